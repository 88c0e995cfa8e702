"""What speaking to a service over HTTP has in common, whichever of knowledge's services it is: the session that is
opened once, the bounded body of an answer, and the sentence for a service that cannot be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

LARGEST_ANSWER = 64_000_000
"""Bytes that are read of one answer."""


def client_session(timeout_s: float, *, is_loopback: bool) -> ClientSession:
    """A session without cookies; a proxy of the environment is used for all but this machine."""
    import aiohttp

    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=not is_loopback,
    )


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
