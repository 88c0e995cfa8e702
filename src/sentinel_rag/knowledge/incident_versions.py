"""What a store remembers of an incident that it holds: enough to tell, from a list alone, whether it is still the same.

It is kept as the document's etag, so that it is written in one transaction with the document. Sentinel's own etag is
part of it; the counts are there because nothing says that a comment or a late alert changes the etag.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

READING = 2
"""Raised when reading or chunking an incident changes, so that every incident is read again."""


@dataclass(frozen=True, slots=True)
class IncidentVersion:
    """One version of one incident. `name` is its GUID; `modified` and `created` are the service's own texts. `whole` is
    False where its details could not be read yet: then it equals no version of a list, and is read again; so does one
    of an earlier `reading`. `workspace_id` is told in a store that several homes share, where `workspace`, a name, is
    not enough."""

    workspace: str
    name: str
    etag: str
    modified: str = ""
    created: str = ""
    comments: int = 0
    alerts: int = 0
    whole: bool = True
    workspace_id: str = ""
    reading: int = READING

    @property
    def text(self) -> str:
        """As the store keeps it."""
        parts = [self.workspace, self.name, self.etag, self.modified, self.created, self.comments, self.alerts]
        of_whom = [self.workspace_id] if self.workspace_id else []
        return json.dumps([self.reading, *parts, self.whole, *of_whom], ensure_ascii=True)

    @property
    def created_at(self) -> datetime | None:
        """When the incident was created; None where the service told no such time."""
        try:
            moment = datetime.fromisoformat(self.created)
        except ValueError:
            return None
        return moment if moment.tzinfo is not None else None


def version_from_text(text: str) -> IncidentVersion | None:
    """The version that a store kept, of whichever way of reading: by it the incident's workspace and age are known, so
    that it is brought up to date or removed like any other. None for one of another origin."""
    try:
        reading, workspace, name, etag, modified, created, comments, alerts, whole, *of_whom = json.loads(text)
    except (ValueError, TypeError):
        return None
    of = of_whom[0] if of_whom else ""
    return IncidentVersion(workspace, name, etag, modified, created, comments, alerts, whole, of, reading)
