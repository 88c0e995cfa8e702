"""The told part of the sample workspace, read from `attack.yaml`: its alerts with their entities, and the raw rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.workspace.sample import company
from sentinel_rag.workspace.sample.records import AlertCase, EntityList, Row, stable_guid


@dataclass(frozen=True, slots=True)
class _Machine:
    name: str

    @property
    def fqdn(self) -> str:
        return company.host_name(self.name)

    @property
    def address(self) -> str:
        return company.host_address(self.name)

    @property
    def id(self) -> str:
        return company.device_id(self.name)


_CLERK = company.PEOPLE[9]
_PEOPLE = {"victim": company.VICTIM, "admin": company.ADMINISTRATOR, "clerk": _CLERK}
_MACHINES = {
    "wks": _Machine(company.WORKSTATION),
    "file": _Machine(company.FILE_SERVER),
    "dc": _Machine(company.DOMAIN_CONTROLLER),
    "desk": _Machine(_CLERK.host),
}


@dataclass(frozen=True, slots=True)
class _Guid:
    """`{guid:NAME}` in a text."""

    seed: int

    def __format__(self, name: str) -> str:
        return stable_guid(self.seed, name)


@dataclass(frozen=True, slots=True)
class _Moment:
    """`{at:HOURS}` in a text."""

    start: datetime

    def __format__(self, hours: str) -> str:
        return f"{(self.start + timedelta(hours=float(hours))).isoformat()}Z"


class StoryRows:
    """One part of the file, beginning at `start`."""

    def __init__(self, name: str, *, start: datetime, seed: int) -> None:
        self._told = company.data("attack")[name]
        self._start = start
        self._names = {"c": company, **_PEOPLE, **_MACHINES, "guid": _Guid(seed), "at": _Moment(start)}

    def alerts(self) -> tuple[AlertCase, ...]:
        """All of them, oldest first."""
        return tuple(self._alert(dict(told)) for told in self._told["alerts"])

    def rows(self) -> dict[str, list[Row]]:
        """Table -> rows."""
        return {
            table: [self._row(table, told, number) for told in listed for number in range(told.get("count", 1))]
            for table, listed in self._told["rows"].items()
        }

    def _alert(self, told: dict[str, Any]) -> AlertCase:
        entities = EntityList()
        for entity in told.pop("entities"):
            for kind, given in entity.items():
                person = _PEOPLE.get(given) if isinstance(given, str) else None
                getattr(entities, kind)(*([person] if person else self._filled(given, {})))
        at = self._start + timedelta(hours=told.pop("hours"))
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
        return AlertCase(**self._filled(given, {}), at=at, entities=entities.json())

    def _row(self, table: str, told: Mapping[str, Any], number: int) -> Row:
        seconds = told.get("seconds", 0) + told.get("every", 0) * number
        row: Row = {"TimeGenerated": self._start + timedelta(hours=told.get("hours", 0), seconds=seconds)}
        for column, value in told.items():
            if column[0].isupper():
                row[column] = self._cell(value, {**row, "n": number})
        return {**row, "Type": table}

    def _cell(self, value: Any, before: Mapping[str, Any]) -> Any:
        if isinstance(value, dict) and value.keys() == {"hours"}:
            return self._start + timedelta(**value)
        filled = self._filled(value, before)
        return json.dumps(filled) if isinstance(filled, list | dict) else filled

    def _filled(self, value: Any, before: Mapping[str, Any]) -> Any:
        """`value` with every text in it completed."""
        if isinstance(value, str):
            return value.format(**self._names, **before)
        if isinstance(value, list | tuple):
            return type(value)(self._filled(each, before) for each in value)
        if isinstance(value, dict):
            return {name: self._filled(each, before) for name, each in value.items()}
        return value
