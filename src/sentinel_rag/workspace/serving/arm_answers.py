"""Answers and refusals in the form of Azure Resource Manager."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response


class ArmError(Exception):
    """A refusal: HTTP status, code and sentence of the error body."""

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


def error_body(code: str, message: str) -> dict[str, Any]:
    """The CloudError of ARM."""
    return {"error": {"code": code, "message": message}}


def response(status: int, body: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None) -> Response:
    """A response with the ids that a support request would name; without a body for None."""
    request_id = str(uuid.uuid4())
    sent = {
        "x-ms-request-id": request_id,
        "x-ms-correlation-request-id": request_id,
        "cache-control": "no-cache",
        **(headers or {}),
    }
    if body is None:
        return Response(status_code=status, headers=sent)
    return Response(msgspec.json.encode(body), status, sent, media_type="application/json; charset=utf-8")


def refusal(error: ArmError) -> Response:
    """The response for a refusal."""
    return response(error.status, error_body(error.code, str(error)), error.headers)


def no_incident(name: str) -> ArmError:
    """404 for an incident that there is not."""
    return ArmError(404, "NotFound", f"The incident '{name}' could not be found.")


def stale(what: str, name: str, if_match: str | None) -> ArmError:
    """412 for the header's condition, 409 for the body's etag."""
    if if_match is not None:
        return ArmError(412, "PreconditionFailed", f"The {what} '{name}' has another etag than If-Match names.")
    return ArmError(409, "Conflict", f"The {what} '{name}' was changed since it was read: newer data exists.")
