"""The tool add_incident_comment: one comment, as plain text, under an id that makes it one however often it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from sentinel_rag.contracts.query_results import Column, QueryError, QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_schemas import LONGEST_COMMENT
from sentinel_rag.sentinel.comment_text import plain_text
from sentinel_rag.sentinel.failures import QueryFailedError
from sentinel_rag.sentinel.incident_target import target_incident
from sentinel_rag.sentinel.workspace_view import WorkspaceView

MOST_COMMENTS = 100
_COLUMNS = (
    Column("number", "long"),
    Column("title", "string"),
    Column("incident_name", "guid"),
    Column("url", "string"),
    Column("comment_id", "guid"),
    Column("time", "datetime"),
    Column("author", "string"),
    Column("message", "string"),
    Column("comment_count", "long"),
)


async def add_incident_comment(view: WorkspaceView, arguments: Mapping[str, Any]) -> QueryResult:
    """Adds the comment and answers with it as it is stored. Raises QueryFailedError."""
    message = plain_text("message", arguments["message"], longest=LONGEST_COMMENT)
    target = await target_incident(view, arguments["incident"])
    incident = await target.rest.get_incident(target.name)
    additional = incident.properties.get("additionalData")
    count = additional.get("commentsCount") if isinstance(additional, Mapping) else None
    if isinstance(count, int) and count >= MOST_COMMENTS:
        raise QueryFailedError(
            QueryError(
                code=QueryErrorCode.QUERY_REJECTED,
                message=f"{target.label} has {count} comments, which is all that Sentinel keeps. Nothing was added.",
                next_step="Delete comments in the portal, or write to another incident.",
            )
        )
    comment = await target.rest.add_comment(target.name, str(uuid4()), message)
    notes = [f"A comment was added to {target.label[0].lower()}{target.label[1:]}."]
    if message != arguments["message"]:
        notes.append("What the portal would take for markup was written as plain text.")
    if comment.message != message:
        notes.append("Microsoft Sentinel stored the message otherwise than it was sent.")
    return target.result(
        _COLUMNS,
        {
            "number": incident.number,
            "title": incident.text("title"),
            "incident_name": incident.name,
            "url": incident.text("incidentUrl"),
            "comment_id": comment.name,
            "time": comment.created,
            "author": comment.author,
            "message": comment.message,
            "comment_count": count + 1 if isinstance(count, int) else None,
        },
        summary={},
        notes=tuple(notes),
    )
