"""The routes of incidents: list, get, create or update, their alerts, entities and comments; and permissions.

Each handler reads the request, works in a thread on the incident store and gives back a status and a body; checks,
limits and failures are the door's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.routing import Route

from sentinel_rag.workspace.incidents.bodies import incident_body, read_comment, read_incident
from sentinel_rag.workspace.incidents.body_values import BodyError
from sentinel_rag.workspace.incidents.comments import Comment, comment_body
from sentinel_rag.workspace.incidents.entity_bodies import alert_body, entities_body
from sentinel_rag.workspace.incidents.incident_store import TooManyCommentsError
from sentinel_rag.workspace.incidents.rows import NotCurrentError, Row
from sentinel_rag.workspace.incidents.version_log import Author
from sentinel_rag.workspace.serving.arm import bookmark_routes
from sentinel_rag.workspace.serving.arm.answers import ArmError
from sentinel_rag.workspace.serving.arm.arm_authentication import ArmAnswer, ArmAuthentication, guid_of, json_of
from sentinel_rag.workspace.serving.arm.arm_failures import no_incident, stale
from sentinel_rag.workspace.serving.arm.incident_list import own_url, read_page

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

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
        *bookmark_routes.routes(workspace, door.workspace_path, _PROVIDER, CALLER, route),
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
