"""`GET /v1/workspaces/{guid}/metadata` and `/v1/{resourceId}/metadata`: which tables and columns a query may read.

The part of the service's answer that a client needs to name tables: known ones and imported ones, with rows or without.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from sentinel_rag.workspace.serving.workspace_authentication import WorkspaceAuthentication, encoded, wire_response

if TYPE_CHECKING:
    from sentinel_rag.workspace.workspace import Workspace

_TIME_COLUMN = "TimeGenerated"


class MetadataEndpoint:
    """Tells the schema of one workspace to whoever `door` lets in."""

    def __init__(self, workspace: Workspace, door: WorkspaceAuthentication) -> None:
        self._workspace = workspace
        self._door = door

    async def __call__(self, request: Request) -> Response:
        correlation_id = str(uuid.uuid4())
        answer = self._door.refusal(request, correlation_id)
        if answer is None:
            answer = await to_thread.run_sync(self._answer)
        return await wire_response(request, *answer, correlation_id)

    def _answer(self) -> tuple[int, bytes]:
        schema = self._workspace.schema()
        return encoded(200, {"tables": [_table(name, schema[name]) for name in sorted(schema)]})


def _table(name: str, columns: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": f"t/{name}",
        "name": name,
        **({"timespanColumn": _TIME_COLUMN} if _TIME_COLUMN in columns else {}),
        "columns": [{"name": column, "type": kql_type} for column, kql_type in columns.items()],
    }
