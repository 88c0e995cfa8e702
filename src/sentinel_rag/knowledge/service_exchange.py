"""What speaking to a service over HTTP has in common, whichever of knowledge's services it is: the session that is
opened once, the bounded body of an answer, and the sentence for a service that cannot be reached.

The ports of knowledge block, so the connections live in an event loop of their own thread; threads may share them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from sentinel_rag.contracts.errors import UnavailableError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

T = TypeVar("T")

LARGEST_ANSWER = 64_000_000
"""Bytes that are read of one answer."""


class BlockingSession:
    """One HTTP session for callers that block, opened by its first request. It has no cookies; a proxy of the
    environment is used for all but this machine. `timeout_s` bounds one request."""

    def __init__(self, timeout_s: float, *, is_loopback: bool) -> None:
        self.timeout_s = timeout_s
        self._is_loopback = is_loopback
        self._stack = ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal("asyncio"))
        self._session: ClientSession | None = None

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` gives, in the loop where the session lives."""
        return self._portal.call(work)

    @property
    def http(self) -> ClientSession:
        """The session itself, for work that runs in its loop."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=self.timeout_s),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not self._is_loopback,
            )
        return self._session

    def close(self) -> None:
        """Close the connections; calls after it fail."""
        session, self._session = self._session, None
        if session is not None:
            self._portal.call(session.close)
        self._stack.close()


def unreachable(service: str, error: Exception, timeout_s: float) -> UnavailableError:
    """Why `service`, such as `Azure AI Search at HOST`, did not answer; nothing of the library's own text."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UnavailableError(
            f"{service} has no certificate that this machine trusts.",
            next_step="Set SSL_CERT_FILE to your organisation's certificates, or check the address.",
        )
    if isinstance(error, TimeoutError):
        return UnavailableError(
            f"{service} did not answer within {timeout_s:g} s.",
            next_step="Go on later, what is done stays; or check the address.",
        )
    return UnavailableError(
        f"{service} cannot be reached, or hangs up.",
        next_step="Check the address and the network; what is done stays.",
    )


async def bounded_body(response: ClientResponse) -> bytes:
    """The body; of one that is larger than any answer only its beginning, which is then no JSON."""
    content = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        content += part
        if len(content) > LARGEST_ANSWER:
            break
    return bytes(content)
