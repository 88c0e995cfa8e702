"""The alerts that the calls of a walk brought, each once and in its fullest form, and the things they name.

A list of many alerts tells only some entities of each and no properties; one of few tells all. Which rows to read again
is decided in `rounds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

WITH_PROPERTIES = 20
"""Rows of an answer of query_alerts up to which its entities carry their properties."""
_SHORTEST_NAME = 4
_NAMING = (
    "name",
    "account_name",
    "display_name",
    "upn",
    "sid",
    "aad_user_id",
    "host_name",
    "aad_device_id",
    "device_id",
    "address",
    "url",
    "image_file",
    "command_line",
    "value",
    "sender",
    "recipient",
    "sender_ip",
    "app_id",
)
"""Properties by which a person may call an entity."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert: a row of a result. `whole` if it tells all its entities with their properties."""

    run: ToolRun
    place: int
    whole: bool

    @property
    def row(self) -> Mapping[str, JsonValue]:
        """The row as the tool gave it."""
        return self.run.rows[self.place]

    @property
    def alert_id(self) -> str:
        """Its SystemAlertId."""
        return str(self.row.get("alert_id"))

    @property
    def incident(self) -> str:
        """The number of its incident; empty if it is in none."""
        number = self.row.get("incident_number")
        return str(number) if isinstance(number, int) else ""

    @property
    def entities(self) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
        """(JSON pointer in the result, entity) of each thing that the alert names."""
        found = self.row.get("entities")
        for index, entity in enumerate(found if isinstance(found, list | tuple) else ()):
            if isinstance(entity, Mapping):
                yield f"/rows/{self.place}/entities/{index}", entity

    @property
    def pointer(self) -> str:
        """Where the row stands in its result."""
        return f"/rows/{self.place}"

    def said_in(self, text: str, *, without: Sequence[str] = ()) -> frozenset[str]:
        """The names of its entities that `text` (in lower case) says, those of the kinds `without` left out."""
        return frozenset(
            name
            for _, entity in self.entities
            if entity.get("kind") not in without
            for name in names_of(entity)
            if says(text, name)
        )


def alerts_in(runs: Sequence[ToolRun]) -> list[Alert]:
    """Every alert once, in the order in which it came first; a whole row takes the place of a part."""
    found: dict[str, Alert] = {}
    for run in runs:
        if run.call.tool_name != "query_alerts":
            continue
        for place, row in enumerate(run.rows):
            alert = Alert(run, place, "alert_id" in run.call.arguments or not _in_part(row, len(run.rows)))
            key = str(row.get("alert_id"))
            if key not in found or (alert.whole and not found[key].whole):
                found[key] = alert
    return list(found.values())


def _in_part(row: Mapping[str, JsonValue], rows: int) -> bool:
    """True if the row tells only some of its entities, or none of their properties."""
    shown, count = row.get("entities"), row.get("entity_count")
    few = isinstance(count, int) and isinstance(shown, list | tuple) and count > len(shown)
    return rows > WITH_PROPERTIES or few


def names_of(entity: Mapping[str, JsonValue]) -> Iterator[str]:
    """What an entity may be called, in lower case; a path also by its last part."""
    for key in _NAMING:
        value = entity.get(key)
        if isinstance(value, str) and len(value) >= _SHORTEST_NAME:
            yield value.lower()
            if key in ("name", "image_file") and entity.get("kind") in ("file", "process"):
                yield base_name(value).lower()


def says(text: str, name: str) -> bool:
    """True if `text` holds `name` by itself and not as a part of a longer one."""
    return name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def base_name(path: str) -> str:
    """The last part of a Windows or Unix path."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
