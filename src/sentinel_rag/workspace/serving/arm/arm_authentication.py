"""Who may use the REST API, and for which workspace: ARM's checks, in ARM's order.

A token of this server for the management audience, a resource that exists, an api-version that is served. Around every
endpoint of this folder.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.workspace.serving.arm.answers import ArmError, refusal, response
from sentinel_rag.workspace.serving.arm.request_limits import RequestLimits
from sentinel_rag.workspace.serving.identity import MANAGEMENT_AUDIENCES, TokenIssuer, TokenVerdict, bearer_token
from sentinel_rag.workspace.serving.request_checks import BodyTooLargeError, read_body

API_VERSIONS = ("2025-09-01",)
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArmAnswer:
    """Status and JSON body (None: no body) of an answered request."""

    status: int
    body: dict[str, Any] | None


Handler = Callable[[Request], Awaitable[ArmAnswer]]


class ArmAuthentication:
    """Lets in whoever holds a management token of `issuer` and names the workspace with the resource id given."""

    def __init__(self, issuer: TokenIssuer, resource_id: str, limits: RequestLimits) -> None:
        self._issuer = issuer
        self._parts = _named_parts(resource_id)
        self._limits = limits
        self.workspace_path = f"{resource_id}/providers/Microsoft.SecurityInsights"

    def guarded(
        self,
        operation: str,
        handler: Handler,
        *,
        writes: bool = False,
        api_versions: tuple[str, ...] = API_VERSIONS,
    ) -> Callable[[Request], Awaitable[Response]]:
        """`handler` behind the checks and the rate limits; `operation` names it in the limits."""

        async def endpoint(request: Request) -> Response:
            try:
                self._check(request, api_versions)
                headers = self._limits.admit(operation, writes=writes)
                answer = await handler(request)
                return response(answer.status, answer.body, headers)
            except ArmError as error:
                return refusal(error)
            except UnavailableError as error:
                return refusal(ArmError(503, "ServiceUnavailable", str(error), headers={"retry-after": "5"}))
            except SentinelError as error:
                return refusal(ArmError(409, "Conflict", f"{error} {error.next_step}"))
            except Exception:  # a fault of ours is answered in ARM's form, as Azure would; the log has the rest
                _log.exception("%s failed", operation)
                return refusal(ArmError(500, "InternalServerError", "Something went wrong on the server."))

        return endpoint

    def _check(self, request: Request, api_versions: tuple[str, ...]) -> None:
        token = bearer_token(request)
        if token is None:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise ArmError(401, "AuthenticationFailed", message, headers={"www-authenticate": "Bearer"})
        verdict = self._issuer.judge(token, MANAGEMENT_AUDIENCES)
        if verdict is TokenVerdict.UNKNOWN:
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.")
        if verdict is TokenVerdict.WRONG_AUDIENCE:
            message = "The access token has been obtained for the wrong audience or resource."
            raise ArmError(401, "InvalidAuthenticationTokenAudience", message)
        version = request.query_params.get("api-version")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise ArmError(400, "MissingApiVersionParameter", message)
        given = request.path_params
        for code, key in (
            ("SubscriptionNotFound", "subscription"),
            ("ResourceGroupNotFound", "group"),
            ("ResourceNotFound", "workspace"),
        ):
            if given[key].lower() != self._parts[key]:
                raise ArmError(404, code, f"The {key} '{given[key][:90]}' could not be found.")
        if version not in api_versions:
            message = f"The api-version '{version[:40]}' is not supported. Supported: {', '.join(api_versions)}."
            raise ArmError(400, "InvalidApiVersionParameter", message)


def guid_of(request: Request, key: str) -> str:
    """The GUID at `key` of the path, in lower case. Raises ArmError."""
    text: str = request.path_params[key]
    if not _GUID.fullmatch(text):
        raise ArmError(400, "BadRequest", f"The id '{text[:60]}' is not a GUID.")
    return text.lower()


async def json_of(request: Request) -> Any:
    """The JSON of the body. Raises ArmError."""
    try:
        return msgspec.json.decode(await read_body(request))
    except BodyTooLargeError:
        raise ArmError(413, "RequestEntityTooLarge", "The request is too large.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ArmError(400, "InvalidRequestContent", "The request content was invalid and could not be read.") from None


def _named_parts(resource_id: str) -> dict[str, str]:
    parts = resource_id.lower().strip("/").split("/")
    return {"subscription": parts[1], "group": parts[3], "workspace": parts[-1]}
