"""The REST API of incidents and bookmarks, as Azure Resource Manager serves it (api-version 2025-09-01)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.routing import Route

from sentinel_rag.workspace.incidents.bodies import (
    BodyError,
    NotCurrentError,
    Row,
    bookmark_body,
    bookmark_entity,
    incident_body,
    read_bookmark,
    read_comment,
    read_incident,
    related_bookmark,
    relation_body,
)
from sentinel_rag.workspace.incidents.entity_bodies import alert_body, entities_body
from sentinel_rag.workspace.incidents.incident_store import (
    MAX_BOOKMARKS,
    Comment,
    IncidentStore,
    TooManyBookmarksError,
    TooManyCommentsError,
    comment_body,
)
from sentinel_rag.workspace.incidents.odata_filter import ODataError, compile_filter, compile_order
from sentinel_rag.workspace.incidents.version_log import Author
from sentinel_rag.workspace.serving.arm_answers import ArmError, no_incident, stale
from sentinel_rag.workspace.serving.arm_authentication import ArmAnswer, ArmAuthentication, guid_of, json_of

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

    async def listed(self, _: Request) -> ArmAnswer:
        rows = await to_thread.run_sync(self._bookmarks.all)
        return ArmAnswer(200, {"value": [bookmark_body(row, self._path) for row in rows]})

    async def get(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "bookmark")
        row = await to_thread.run_sync(self._bookmarks.get, name)
        if row is None:
            raise _no_bookmark(name)
        return ArmAnswer(200, bookmark_body(row, self._path))

    async def put(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "bookmark")
        body = await json_of(request)
        if_match = request.headers.get("if-match")

        def work() -> ArmAnswer:
            try:
                row, created = self._bookmarks.put(name, read_bookmark(body), self._author, if_match=if_match)
            except BodyError as error:
                raise ArmError(400, "BadRequest", str(error)) from None
            except NotCurrentError:
                raise stale("bookmark", name, if_match) from None
            return ArmAnswer(201 if created else 200, bookmark_body(row, self._path))

        return await to_thread.run_sync(work)

    async def delete(self, request: Request) -> ArmAnswer:
        gone = await to_thread.run_sync(self._bookmarks.delete, guid_of(request, "bookmark"))
        return ArmAnswer(200 if gone else 204, None)

    async def of_incident(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "incident")
        rows = await to_thread.run_sync(self._bookmarks.of_incident, name)
        if rows is None:
            raise no_incident(name)
        return ArmAnswer(200, {"value": [bookmark_entity(row, self._path) for row in rows]})

    async def relations(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "incident")
        bodies = [relation_body(name, *each, self._path) for each in await self._related(name)]
        return ArmAnswer(200, {"value": bodies})

    async def relation(self, request: Request) -> ArmAnswer:
        name, wanted = guid_of(request, "incident"), _relation_of(request)
        for each in await self._related(name):
            if each[0].lower() == wanted.lower():
                return ArmAnswer(200, relation_body(name, *each, self._path))
        raise ArmError(404, "NotFound", f"The relation '{wanted}' could not be found.")

    async def relate(self, request: Request) -> ArmAnswer:
        name, relation = guid_of(request, "incident"), _relation_of(request)
        body = await json_of(request)

        def work() -> ArmAnswer:
            try:
                bookmark = related_bookmark(body, self._path)
                fresh = self._bookmarks.relate(name, relation, bookmark, self._author)
            except BodyError as error:
                raise ArmError(400, "BadRequest", str(error)) from None
            except KeyError:
                raise _no_bookmark(bookmark) from None
            except TooManyBookmarksError:
                message = f"An incident holds at most {MAX_BOOKMARKS} bookmarks."
                raise ArmError(400, "BadRequest", message) from None
            if fresh is None:
                raise no_incident(name)
            return ArmAnswer(201 if fresh else 200, relation_body(name, relation, bookmark, self._path))

        return await to_thread.run_sync(work)

    async def unrelate(self, request: Request) -> ArmAnswer:
        name, relation = guid_of(request, "incident"), _relation_of(request)
        gone = await to_thread.run_sync(self._bookmarks.unrelate, name, relation, self._author)
        return ArmAnswer(200 if gone else 204, None)

    async def _related(self, incident: str) -> list[tuple[str, str]]:
        found = await to_thread.run_sync(self._bookmarks.relations, incident)
        if found is None:
            raise no_incident(incident)
        return found


def _relation_of(request: Request) -> str:
    text: str = request.path_params["relation"]
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


async def _permissions(_: Request) -> ArmAnswer:
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

    async def listed(self, request: Request) -> ArmAnswer:
        parameters = dict(request.query_params)
        page = await to_thread.run_sync(read_page, self._incidents, parameters, own_url(request), self._path)
        return ArmAnswer(200, page)

    async def get(self, request: Request) -> ArmAnswer:
        return ArmAnswer(200, incident_body(await self._row(request), self._path))

    async def put(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "incident")
        body = await json_of(request)
        if_match = request.headers.get("if-match")

        def work() -> tuple[Row, bool]:
            try:
                return self._incidents.put(name, read_incident(body), CALLER, if_match=if_match)
            except BodyError as error:
                raise ArmError(400, "BadRequest", str(error)) from None
            except NotCurrentError:
                raise stale("incident", name, if_match) from None

        row, created = await to_thread.run_sync(work)
        return ArmAnswer(201 if created else 200, incident_body(row, self._path))

    async def alerts(self, request: Request) -> ArmAnswer:
        rows = await self._alerts(request)
        return ArmAnswer(200, {"value": [alert_body(row, self._path, self._workspace_id) for row in rows]})

    async def entities(self, request: Request) -> ArmAnswer:
        rows = await self._alerts(request)
        return ArmAnswer(200, await to_thread.run_sync(entities_body, rows, self._path))

    async def comments(self, request: Request) -> ArmAnswer:
        name = guid_of(request, "incident")
        comments = await self._comments(name)
        return ArmAnswer(200, {"value": [comment_body(comment, name, self._path) for comment in comments]})

    async def comment(self, request: Request) -> ArmAnswer:
        name, wanted = guid_of(request, "incident"), guid_of(request, "comment")
        for comment in await self._comments(name):
            if comment.name.lower() == wanted:
                return ArmAnswer(200, comment_body(comment, name, self._path))
        raise ArmError(404, "NotFound", f"The comment '{wanted}' could not be found.")

    async def put_comment(self, request: Request) -> ArmAnswer:
        name, wanted = guid_of(request, "incident"), guid_of(request, "comment")
        body = await json_of(request)
        if_match = request.headers.get("if-match")

        def work() -> tuple[Comment, bool] | None:
            try:
                message, etag = read_comment(body)
                return self._incidents.put_comment(name, wanted, message, CALLER, etag=if_match or etag)
            except BodyError as error:
                raise ArmError(400, "BadRequest", str(error)) from None
            except NotCurrentError:
                raise stale("comment", wanted, if_match) from None
            except TooManyCommentsError:
                raise ArmError(400, "BadRequest", "An incident holds at most 100 comments.") from None

        written = await to_thread.run_sync(work)
        if written is None:
            raise no_incident(name)
        comment, created = written
        return ArmAnswer(201 if created else 200, comment_body(comment, name, self._path))

    async def delete_comment(self, request: Request) -> ArmAnswer:
        name, wanted = guid_of(request, "incident"), guid_of(request, "comment")
        gone = await to_thread.run_sync(self._incidents.delete_comment, name, wanted, CALLER)
        return ArmAnswer(200 if gone else 204, None)

    async def _row(self, request: Request) -> Row:
        name = guid_of(request, "incident")
        row = await to_thread.run_sync(self._incidents.get, name)
        if row is None:
            raise no_incident(name)
        return row

    async def _alerts(self, request: Request) -> list[Row]:
        return await to_thread.run_sync(self._incidents.alerts, await self._row(request))

    async def _comments(self, name: str) -> list[Comment]:
        comments = await to_thread.run_sync(self._incidents.comments, name)
        if comments is None:
            raise no_incident(name)
        return comments
