"""The credential that signs every query: one object, made once, handed to the connection.

Azure's own chain costs a second to import, so it is built in a thread when the first token is asked for. The embedded
workspace hands out tokens as App Service does, and a GET is all that this takes. Neither reads the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from sentinel_rag.contracts.closing import AsyncClosing
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError
from sentinel_rag.sentinel.response_bodies import load_json

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken
    from azure.core.credentials_async import AsyncTokenCredential

AUDIENCE = "https://api.loganalytics.io"
"""The resource that tokens are asked for, whatever the endpoint (a loopback endpoint has no audience of its own)."""


class DeferredCredential(AsyncClosing):
    """Builds a credential on first use, in a thread and once; then it is that credential."""

    def __init__(self, factory: Callable[[], AsyncTokenCredential]) -> None:
        self._factory = factory
        self._credential: AsyncTokenCredential | None = None
        self._lock = anyio.Lock()

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        async with self._lock:
            if self._credential is None:
                self._credential = await anyio.to_thread.run_sync(self._factory)
        return await self._credential.get_token(*scopes, **options)

    async def close(self) -> None:
        """Close it, once however many connections had it."""
        credential, self._credential = self._credential, None
        if credential is not None:
            await credential.close()


def azure_credential(*, client_id: str | None = None, authority: str | None = None) -> DeferredCredential:
    """Azure's default chain (environment, workload and managed identity, CLI, ...), built when first needed.

    `client_id` names a user-assigned managed identity, `authority` where identities of another cloud sign in.
    """

    def build() -> AsyncTokenCredential:
        from azure.identity.aio import DefaultAzureCredential

        options = {} if authority is None else {"authority": authority}
        return DefaultAzureCredential(managed_identity_client_id=client_id, **options)

    return DeferredCredential(build)


class IdentityEndpointCredential(AsyncClosing):
    """Tokens from an App Service identity endpoint, which is what the embedded workspace offers at `/msi/token`.

    Raises QueryFailedError if the endpoint is away (UNAVAILABLE) or refuses (ACCESS_DENIED).
    """

    def __init__(self, endpoint: str, identity_header: str) -> None:
        self._endpoint = endpoint
        self._identity_header = identity_header

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        import aiohttp
        from azure.core.credentials import AccessToken

        resource = scopes[0].removesuffix("/.default") if scopes else AUDIENCE
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session,
                session.get(
                    self._endpoint,
                    params={"api-version": "2019-08-01", "resource": resource},
                    headers={"X-IDENTITY-HEADER": self._identity_header},
                    allow_redirects=False,
                ) as response,
            ):
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise QueryFailedError(
                QueryError(
                    code=QueryErrorCode.UNAVAILABLE,
                    message=f"The identity endpoint {self._endpoint} cannot be reached.",
                    next_step="Start the workspace server (`sentinel up`) or check the endpoint.",
                )
            ) from error
        try:
            document = load_json(body)
            return AccessToken(str(document["access_token"]), int(document["expires_on"]))
        except (ValueError, KeyError, TypeError) as error:
            raise QueryFailedError(
                QueryError(
                    code=QueryErrorCode.ACCESS_DENIED,
                    message=f"The identity endpoint gave no token (HTTP {status}).",
                    next_step="Check that the identity header belongs to this workspace server.",
                )
            ) from error

    async def close(self) -> None:
        """Nothing is held open between tokens."""
