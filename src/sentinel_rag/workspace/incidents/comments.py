"""Comments of an incident: entries of the Comments column, which has no ids, and the ids that REST gives them.

An id that a client chose is kept in a table of the workspace's own; a comment that came with an import has an id
derived from its incident and time. Pure but for `comment_names`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.incidents.rows import Row, derived_guid, etag_of, json_list

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment: its GUID, and the entry as the Comments column holds it."""

    name: str
    entry: Mapping[str, Any]

    @property
    def etag(self) -> str:
        return etag_of(self.entry).strip('"')  # recorded from the service: a comment's etag has no quotes


def comment_names(cursor: duckdb.DuckDBPyConnection, incident: str) -> dict[str, str]:
    """Creation time (as in the entry) -> GUID, of the comments of `incident` that were written through REST."""
    cursor.execute("SELECT created, name FROM sentinel.incident_comments WHERE incident = ?", [incident.lower()])
    return dict(cursor.fetchall())


def comments_of(row: Row, names: Mapping[str, str]) -> list[Comment]:
    """The comments of an incident's newest row, oldest first as the column keeps them."""
    incident = str(row["IncidentName"]).lower()
    comments = []
    seen: Counter[str] = Counter()
    for entry in json_list(row["Comments"]):
        if isinstance(entry, dict):
            created = str(entry.get("createdTimeUtc"))
            seen[created] += 1
            name = names.get(created) or derived_guid("comment", incident, created, seen[created])
            comments.append(Comment(name, entry))
    return comments


def comment_body(comment: Comment, incident: str, workspace_path: str) -> dict[str, Any]:
    """The REST resource of a comment."""
    author = comment.entry.get("author")
    author = author if isinstance(author, dict) else {}
    created = comment.entry.get("createdTimeUtc")
    return {
        "id": f"{workspace_path}/Incidents/{incident}/Comments/{comment.name}",
        "name": comment.name,
        "etag": comment.etag,
        "type": "Microsoft.SecurityInsights/Incidents/Comments",
        "properties": {
            "message": comment.entry.get("message") or "",
            "createdTimeUtc": created,
            "lastModifiedTimeUtc": comment.entry.get("lastModifiedTimeUtc") or created,
            "author": {key: author.get(key) for key in ("objectId", "email", "userPrincipalName", "name")},
        },
    }
