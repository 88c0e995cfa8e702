"""The HTTP connections of this surface, made once the event loop runs and closed with it."""

from __future__ import annotations

import ssl

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it


class Connections:
    """Kept-alive connections without cookies, proxies or a bound of their own: the desk and the rates bound them.
    `trusted` is what the other side is checked by, None the system's authorities."""

    def __init__(self, trusted: ssl.SSLContext | None = None) -> None:
        self._trusted = trusted
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._trusted or True),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    async def aclose(self) -> None:
        """Close them. They may be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
