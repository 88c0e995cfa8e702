"""What lets a request into a service of Azure: a key that stays the same, or an Entra ID token that is renewed.

The embedding model and the search service both ask for headers; where those come from is settled here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

_EARLY_S = 300
"""A token is renewed so long before it ends."""


class KeyHeaders:
    """Headers that stay the same."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    async def headers(self) -> Mapping[str, str]:
        return self._headers


class EntraToken:
    """Tokens of this machine's Azure sign-in for one resource, each used until it is about to end. `service` names what
    they are for in the error; `next_step` says what helps where none can be had."""

    def __init__(self, resource: str, service: str, *, next_step: str) -> None:
        self._resource = resource
        self._service = service
        self._next_step = next_step
        self._token = ""
        self._ends = 0.0

    async def headers(self) -> Mapping[str, str]:
        from sentinel_rag.contracts.errors import UnavailableError
        from sentinel_rag.sentinel.credentials import azure_credential

        if time.time() > self._ends - _EARLY_S:
            try:
                async with azure_credential() as credential:
                    token = await credential.get_token(f"{self._resource}/.default")
            except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
                raise UnavailableError(
                    f"No Entra ID token for {self._service} could be had.", next_step=self._next_step
                ) from None
            self._token, self._ends = str(token.token), float(token.expires_on)
        return {"Authorization": f"Bearer {self._token}"}
