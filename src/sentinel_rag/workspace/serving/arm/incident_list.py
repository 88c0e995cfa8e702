"""One page of the incident list: `$filter`, `$orderby`, `$top`, and a `nextLink` that continues where it ended.

The link's `$skipToken` holds the place, the moment as of which the list is read, and what it was asked with, so that
pages fit together while incidents are written, and a token for another question is refused.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request

from sentinel_rag.workspace.incidents.bodies import incident_body
from sentinel_rag.workspace.incidents.incident_store import IncidentStore
from sentinel_rag.workspace.incidents.odata_filter import compile_filter, compile_order
from sentinel_rag.workspace.incidents.odata_tokens import ODataError
from sentinel_rag.workspace.serving.arm.answers import ArmError

DEFAULT_TOP = 50
MAX_TOP = 1_000


class _Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    offset: int
    as_of: datetime | None
    asked: str


def read_page(incidents: IncidentStore, parameters: Mapping[str, str], url: str, workspace_path: str) -> dict[str, Any]:
    """`{value, nextLink?}` for the query parameters of a request to `url`. Raises ArmError."""
    filter_text, order_text = parameters.get("$filter", ""), parameters.get("$orderby", "")
    top = _top(parameters.get("$top"))
    asked = hashlib.sha256(f"{filter_text}\n{order_text}".encode()).hexdigest()[:16]
    place = _place(parameters.get("$skipToken"), asked)
    condition = _compiled(compile_filter, "$filter", filter_text)
    order = _compiled(compile_order, "$orderby", order_text)
    rows, as_of = incidents.page(condition, order, limit=top + 1, offset=place.offset, as_of=place.as_of)
    body: dict[str, Any] = {"value": [incident_body(row, workspace_path) for row in rows[:top]]}
    if len(rows) > top:
        token = _token(_Place(place.offset + top, as_of, asked))
        body["nextLink"] = f"{url}?{urlencode({**parameters, '$skipToken': token}, quote_via=quote)}"
    return body


def own_url(request: Request) -> str:
    """The URL of the request without its query: a nextLink leads to the host that was asked."""
    return str(request.url.replace(query="", fragment=""))


def _top(text: str | None) -> int:
    if text is None:
        return DEFAULT_TOP
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= MAX_TOP:
        raise ArmError(400, "BadRequest", f"$top must be a whole number from 1 to {MAX_TOP}.")
    return int(text)


def _compiled(compiler: Any, parameter: str, text: str) -> Any:
    try:
        return compiler(text)
    except ODataError as error:
        message = f"Invalid {parameter} at position {error.position}: {error}."
        raise ArmError(400, "BadRequest", message) from None


def _token(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _place(token: str | None, asked: str) -> _Place:
    if token is None:
        return _Place(0, None, asked)
    try:
        place = msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Place)
    except (ValueError, msgspec.DecodeError):
        raise ArmError(400, "BadRequest", "$skipToken is not one that this service gave out.") from None
    if place.asked != asked or not 0 <= place.offset < 2**31:
        raise ArmError(400, "BadRequest", "$skipToken belongs to another query.")
    return place
