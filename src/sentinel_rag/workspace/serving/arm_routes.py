"""The REST API of incidents and bookmarks, as Azure Resource Manager serves it (api-version 2025-09-01)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from starlette.routing import Route

from sentinel_rag.workspace.incidents.bodies import (
    NotCurrentError,
    Row,
    alert_body,
    bookmark_body,
    bookmark_entity,
    entities_body,
    incident_body,
    read_bookmark,
    read_comment,
    read_incident,
    related_bookmark,
    relation_body,
)
from sentinel_rag.workspace.incidents.incident_store import (
    MAX_BOOKMARKS,
    Author,
    IncidentStore,
    TooManyBookmarksError,
    TooManyCommentsError,
    comment_body,
)
from sentinel_rag.workspace.incidents.odata_filter import ODataError, compile_filter, compile_order
from sentinel_rag.workspace.serving.arm_authentication import (
    ArmAnswer,
    ArmAuthentication,
    ArmError,
    ArmRequest,
    no_incident,
    stale,
)

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace


# The link's `$skipToken` holds the place, the moment as of which the list is read, and what it was asked with, so that
# pages fit together while incidents are written, and a token for another question is refused.
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


_Found = TypeVar("_Found")
_RELATION = re.compile(r"[a-zA-Z0-9-]{3,63}")

RouteMaker = Callable[[str, str, str, Any], Route]
"""Path, method, operation (as limits name it) and handler of a guarded route."""


def bookmark_routes(
    workspace: Workspace, workspace_path: str, provider: str, author: Author, route: RouteMaker
) -> list[Route]:
    """The routes of bookmarks below the path `provider` of Microsoft.SecurityInsights."""
    bookmarks = _Bookmarks(workspace, workspace_path, author)
    one = f"{provider}/bookmarks/{{bookmark}}"
    held = f"{provider}/incidents/{{incident}}"
    relation = f"{held}/relations/{{relation}}"
    return [
        route(f"{provider}/bookmarks", "GET", "GET bookmarks", bookmarks.listed),
        route(one, "GET", "GET bookmarks", bookmarks.get),
        route(one, "PUT", "PUT bookmarks", bookmarks.put),
        route(one, "DELETE", "DELETE bookmarks", bookmarks.delete),
        route(f"{held}/bookmarks", "POST", "GET incident bookmarks", bookmarks.of_incident),
        route(f"{held}/relations", "GET", "GET relations", bookmarks.relations),
        route(relation, "GET", "GET relations", bookmarks.relation),
        route(relation, "PUT", "PUT relations", bookmarks.relate),
        route(relation, "DELETE", "DELETE relations", bookmarks.unrelate),
    ]


class _Bookmarks:
    def __init__(self, workspace: Workspace, workspace_path: str, author: Author) -> None:
        self._bookmarks = workspace.bookmarks
        self._path = workspace_path
        self._author = author

    def listed(self, _: ArmRequest) -> ArmAnswer:
        return ArmAnswer(200, {"value": [bookmark_body(row, self._path) for row in self._bookmarks.all()]})

    def get(self, request: ArmRequest) -> ArmAnswer:
        name = request.guid("bookmark")
        row = self._bookmarks.get(name)
        if row is None:
            raise _no_bookmark(name)
        return ArmAnswer(200, bookmark_body(row, self._path))

    def put(self, request: ArmRequest) -> ArmAnswer:
        name = request.guid("bookmark")
        body = read_bookmark(request.json())
        try:
            row, created = self._bookmarks.put(name, body, self._author, if_match=request.if_match)
        except NotCurrentError:
            raise stale("bookmark", name, request.if_match) from None
        return ArmAnswer(201 if created else 200, bookmark_body(row, self._path))

    def delete(self, request: ArmRequest) -> ArmAnswer:
        return ArmAnswer(200 if self._bookmarks.delete(request.guid("bookmark")) else 204, None)

    def of_incident(self, request: ArmRequest) -> ArmAnswer:
        rows = _of_incident(self._bookmarks.of_incident, request)
        return ArmAnswer(200, {"value": [bookmark_entity(row, self._path) for row in rows]})

    def relations(self, request: ArmRequest) -> ArmAnswer:
        name = request.guid("incident")
        related = _of_incident(self._bookmarks.relations, request)
        return ArmAnswer(200, {"value": [relation_body(name, *each, self._path) for each in related]})

    def relation(self, request: ArmRequest) -> ArmAnswer:
        name, wanted = request.guid("incident"), _relation_of(request)
        for each in _of_incident(self._bookmarks.relations, request):
            if each[0].lower() == wanted.lower():
                return ArmAnswer(200, relation_body(name, *each, self._path))
        raise ArmError(404, "NotFound", f"The relation '{wanted}' could not be found.")

    def relate(self, request: ArmRequest) -> ArmAnswer:
        name, relation = request.guid("incident"), _relation_of(request)
        bookmark = related_bookmark(request.json(), self._path)
        try:
            fresh = self._bookmarks.relate(name, relation, bookmark, self._author)
        except KeyError:
            raise _no_bookmark(bookmark) from None
        except TooManyBookmarksError:
            raise ArmError(400, "BadRequest", f"An incident holds at most {MAX_BOOKMARKS} bookmarks.") from None
        if fresh is None:
            raise no_incident(name)
        return ArmAnswer(201 if fresh else 200, relation_body(name, relation, bookmark, self._path))

    def unrelate(self, request: ArmRequest) -> ArmAnswer:
        gone = self._bookmarks.unrelate(request.guid("incident"), _relation_of(request), self._author)
        return ArmAnswer(200 if gone else 204, None)


def _of_incident(read: Callable[[str], _Found | None], request: ArmRequest) -> _Found:
    """What `read` finds for the incident of the path. Raises ArmError if there is none."""
    name = request.guid("incident")
    found = read(name)
    if found is None:
        raise no_incident(name)
    return found


def _relation_of(request: ArmRequest) -> str:
    text = request.path["relation"]
    if not _RELATION.fullmatch(text):
        raise ArmError(400, "BadRequest", f"'{text[:60]}' cannot name a relation: 3 to 63 letters, digits and hyphens.")
    return text


def _no_bookmark(name: str) -> ArmError:
    return ArmError(404, "NotFound", f"The bookmark '{name}' could not be found.")


_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}"
_RESOURCE = _GROUP + "/providers/Microsoft.OperationalInsights/workspaces/{workspace}"
_PROVIDER = f"{_RESOURCE}/providers/Microsoft.SecurityInsights"
PATH = f"{_PROVIDER}/incidents"
_ACTIONS = ["*/read", "Microsoft.SecurityInsights/incidents/*", "Microsoft.SecurityInsights/bookmarks/*"]
_PERMISSIONS = {"value": [{"actions": _ACTIONS, "notActions": []}]}
"""What the one identity of the embedded workspace may do."""
CALLER = Author("External application - Sentinel RAG", "8f0f7a43-52a3-4a39-9e0c-1d9ad2f2c6e1")
"""Who writes: the one identity that the embedded identity endpoint stands for."""


def routes(workspace: Workspace, door: ArmAuthentication, workspace_id: str) -> list[Route]:
    """The routes over `workspace`, whose GUID alerts name as their place."""
    incidents = _Incidents(workspace, door.workspace_path, workspace_id)
    one = f"{PATH}/{{incident}}"
    comment = f"{one}/comments/{{comment}}"

    def route(path: str, method: str, operation: str, handler: Any) -> Route:
        writes = method in ("PUT", "DELETE")
        return _ArmRoute(path, door.guarded(operation, handler, writes=writes), methods=[method])

    return [
        route(PATH, "GET", "GET incidents", incidents.listed),
        route(one, "GET", "GET incident", incidents.get),
        route(one, "PUT", "PUT incident", incidents.put),
        route(f"{one}/alerts", "POST", "GET incident alerts", incidents.alerts),
        route(f"{one}/entities", "POST", "GET incident entities", incidents.entities),
        route(f"{one}/comments", "GET", "GET comments", incidents.comments),
        route(comment, "GET", "GET comments", incidents.comment),
        route(comment, "PUT", "PUT comments", incidents.put_comment),
        route(comment, "DELETE", "DELETE comments", incidents.delete_comment),
        *bookmark_routes(workspace, door.workspace_path, _PROVIDER, CALLER, route),
        _ArmRoute(
            f"{_RESOURCE}/providers/Microsoft.Authorization/permissions",
            door.guarded("GET permissions", _permissions, api_versions=("2022-04-01",)),
            methods=["GET"],
        ),
    ]


def _permissions(_: ArmRequest) -> ArmAnswer:
    return ArmAnswer(200, _PERMISSIONS)


class _ArmRoute(Route):
    """A route in any case of letters: ARM's paths, and the ids it gives out, differ in nothing but case."""

    def __init__(self, path: str, endpoint: Any, *, methods: list[str]) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.path_regex = re.compile(self.path_regex.pattern, re.IGNORECASE)


class _Incidents:
    def __init__(self, workspace: Workspace, workspace_path: str, workspace_id: str) -> None:
        self._incidents = workspace.incidents
        self._path = workspace_path
        self._workspace_id = workspace_id

    def listed(self, request: ArmRequest) -> ArmAnswer:
        return ArmAnswer(200, read_page(self._incidents, request.parameters, request.url, self._path))

    def get(self, request: ArmRequest) -> ArmAnswer:
        return ArmAnswer(200, incident_body(_of_incident(self._incidents.get, request), self._path))

    def put(self, request: ArmRequest) -> ArmAnswer:
        name = request.guid("incident")
        body = read_incident(request.json())
        try:
            row, created = self._incidents.put(name, body, CALLER, if_match=request.if_match)
        except NotCurrentError:
            raise stale("incident", name, request.if_match) from None
        return ArmAnswer(201 if created else 200, incident_body(row, self._path))

    def alerts(self, request: ArmRequest) -> ArmAnswer:
        rows = self._alerts(request)
        return ArmAnswer(200, {"value": [alert_body(row, self._path, self._workspace_id) for row in rows]})

    def entities(self, request: ArmRequest) -> ArmAnswer:
        return ArmAnswer(200, entities_body(self._alerts(request), self._path))

    def comments(self, request: ArmRequest) -> ArmAnswer:
        name = request.guid("incident")
        comments = _of_incident(self._incidents.comments, request)
        return ArmAnswer(200, {"value": [comment_body(comment, name, self._path) for comment in comments]})

    def comment(self, request: ArmRequest) -> ArmAnswer:
        name, wanted = request.guid("incident"), request.guid("comment")
        for comment in _of_incident(self._incidents.comments, request):
            if comment.name.lower() == wanted:
                return ArmAnswer(200, comment_body(comment, name, self._path))
        raise ArmError(404, "NotFound", f"The comment '{wanted}' could not be found.")

    def put_comment(self, request: ArmRequest) -> ArmAnswer:
        name, wanted = request.guid("incident"), request.guid("comment")
        message, etag = read_comment(request.json())
        try:
            written = self._incidents.put_comment(name, wanted, message, CALLER, etag=request.if_match or etag)
        except NotCurrentError:
            raise stale("comment", wanted, request.if_match) from None
        except TooManyCommentsError:
            raise ArmError(400, "BadRequest", "An incident holds at most 100 comments.") from None
        if written is None:
            raise no_incident(name)
        comment, created = written
        return ArmAnswer(201 if created else 200, comment_body(comment, name, self._path))

    def delete_comment(self, request: ArmRequest) -> ArmAnswer:
        gone = self._incidents.delete_comment(request.guid("incident"), request.guid("comment"), CALLER)
        return ArmAnswer(200 if gone else 204, None)

    def _alerts(self, request: ArmRequest) -> list[Row]:
        return self._incidents.alerts(_of_incident(self._incidents.get, request))
