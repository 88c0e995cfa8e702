"""The routes of bookmarks and of incidents' relations to them. Checks, limits and failures are the door's."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.routing import Route

from sentinel_rag.workspace.incidents.body_values import BodyError
from sentinel_rag.workspace.incidents.bookmark_bodies import (
    bookmark_body,
    bookmark_entity,
    read_bookmark,
    related_bookmark,
    relation_body,
)
from sentinel_rag.workspace.incidents.bookmark_store import MAX_BOOKMARKS, TooManyBookmarksError
from sentinel_rag.workspace.incidents.rows import NotCurrentError
from sentinel_rag.workspace.incidents.version_log import Author
from sentinel_rag.workspace.serving.arm.answers import ArmError
from sentinel_rag.workspace.serving.arm.arm_authentication import ArmAnswer, guid_of, json_of
from sentinel_rag.workspace.serving.arm.arm_failures import no_incident, stale

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

_RELATION = re.compile(r"[a-zA-Z0-9-]{3,63}")

RouteMaker = Callable[[str, str, str, Any], Route]
"""Path, method, operation (as limits name it) and handler of a guarded route."""


def routes(workspace: Workspace, workspace_path: str, provider: str, author: Author, route: RouteMaker) -> list[Route]:
    """The routes below the path `provider` of Microsoft.SecurityInsights."""
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
