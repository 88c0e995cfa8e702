"""The HTTP connections of this surface, made once the event loop runs and closed with it."""

from __future__ import annotations

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it


class Connections:
    """Kept-alive connections without cookies, proxies or a bound of their own: the desk and the rates bound them."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
            )
        return self._session

    async def aclose(self) -> None:
        """Close them. They may be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
