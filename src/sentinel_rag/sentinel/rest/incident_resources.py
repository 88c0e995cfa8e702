"""What the REST API answers as values: incidents, comments, relations, and what the signed-in may do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.query_results import QueryFailedError
from sentinel_rag.sentinel.rest.connection import protocol_error

# A PUT replaces, so every property that is not read-only goes back as it came, those that we do not know included.
_READ_ONLY = frozenset(
    {
        "lastModifiedTimeUtc",
        "createdTimeUtc",
        "incidentNumber",
        "incidentUrl",
        "providerName",
        "providerIncidentId",
        "relatedAnalyticRuleIds",
        "additionalData",
    }
)


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident at the moment of its `etag`. `name` is its GUID; `properties` are all that the service told."""

    name: str
    etag: str
    properties: Mapping[str, Any]

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Incident:
        """Raises QueryFailedError PROTOCOL for a body that is no incident."""
        name, properties = body.get("name"), body.get("properties")
        if not isinstance(name, str) or not isinstance(properties, Mapping):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no incident."))
        etag = body.get("etag")
        return cls(name, etag if isinstance(etag, str) else "", properties)

    @property
    def number(self) -> int | None:
        number = self.properties.get("incidentNumber")
        return number if isinstance(number, int) else None

    @property
    def owner(self) -> Mapping[str, Any]:
        owner = self.properties.get("owner")
        return owner if isinstance(owner, Mapping) else {}

    def text(self, key: str) -> str | None:
        """The property `key` as text; None for none and for an empty one."""
        value = self.properties.get(key)
        return str(value) if value not in (None, "") else None

    def changed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the PUT that makes `changes` and nothing else; None takes a property away."""
        kept = {key: value for key, value in self.properties.items() if key not in _READ_ONLY}
        properties = {key: value for key, value in {**kept, **changes}.items() if value is not None}
        return {"etag": self.etag, "properties": properties} if self.etag else {"properties": properties}


class IncidentList(tuple[Incident, ...]):
    """Incidents of one list, and what a reader must know of it.

    `read_at` is the client's clock (seconds) when the list was read: a kept one is older than the question. `complete`
    is False where the service ended exactly at the size of a page and named no further one: there may be more.
    """

    read_at: float
    complete: bool

    @classmethod
    def of(cls, incidents: Iterable[Incident], *, read_at: float, complete: bool) -> IncidentList:
        made = cls(incidents)
        made.read_at, made.complete = read_at, complete
        return made


@dataclass(frozen=True, slots=True)
class IncidentComment:
    """A comment; `name` is its GUID, `created` the service's own text of the time."""

    name: str
    message: str
    created: str | None
    author: str | None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> IncidentComment:
        """Raises QueryFailedError PROTOCOL for a body that is no comment."""
        name, properties = body.get("name"), body.get("properties")
        if not isinstance(name, str) or not isinstance(properties, Mapping):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no comment."))
        author = properties.get("author")
        author = author if isinstance(author, Mapping) else {}
        return cls(
            name,
            str(properties.get("message") or ""),
            properties.get("createdTimeUtc"),
            author.get("name") or author.get("userPrincipalName") or author.get("email"),
        )


@dataclass(frozen=True, slots=True)
class IncidentRelation:
    """That an incident is related to a resource, by its ARM id; for a bookmark `related_name` is its GUID."""

    name: str
    related_id: str
    related_name: str | None
    related_type: str | None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> IncidentRelation:
        """Raises QueryFailedError PROTOCOL for a body that is no relation."""
        name, properties = body.get("name"), body.get("properties")
        related = properties.get("relatedResourceId") if isinstance(properties, Mapping) else None
        if not isinstance(name, str) or not isinstance(properties, Mapping) or not isinstance(related, str):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no relation."))
        return cls(name, related, properties.get("relatedResourceName"), properties.get("relatedResourceType"))


# A role grants actions with wildcards and takes some back (`notActions`); an action is allowed if one grant allows it.
UPDATE_INCIDENTS = "Microsoft.SecurityInsights/incidents/write"
WRITE_COMMENTS = "Microsoft.SecurityInsights/incidents/comments/write"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Grants of (actions, actions that are taken back), each a pattern with `*`."""

    grants: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @classmethod
    def from_items(cls, items: Iterable[Mapping[str, Any]]) -> Permissions:
        """Raises QueryFailedError PROTOCOL for items that are no grants."""
        grants = []
        for item in items:
            actions, taken_back = item.get("actions"), item.get("notActions") or []
            if not isinstance(actions, list) or not isinstance(taken_back, list):
                raise QueryFailedError(protocol_error("Azure answered with something that is no list of permissions."))
            grants.append((tuple(map(str, actions)), tuple(map(str, taken_back))))
        return cls(tuple(grants))

    def allows(self, action: str) -> bool:
        """Whether `action` is granted; names of actions know no case."""
        return any(
            any(_matches(pattern, action) for pattern in actions)
            and not any(_matches(pattern, action) for pattern in taken_back)
            for actions, taken_back in self.grants
        )


def _matches(pattern: str, action: str) -> bool:
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch(".*".join(parts), action, re.IGNORECASE) is not None
