"""What a person has before them: the numbered lists of the answers so far, read from their tables as they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.dialogues.judging import Thing

from sentinel_rag.contracts.evidence import Answer, Table


@dataclass(frozen=True, slots=True)
class Line:
    """One numbered line and its words."""

    thing: Thing | None
    cells: Mapping[str, str]


@dataclass(slots=True)
class Screen:
    """`alerts` maps what a line shows of an alert, its time and name, to the one thing that it may be."""

    alerts: Mapping[tuple[str, str], Thing]
    lists: list[list[Line]] = field(default_factory=list)

    def read(self, answer: Answer) -> bool:
        """Take in the lists of an answer; True if there is one."""
        lines: list[Line] = []
        for table in answer.tables:
            lines += self._lines(table)
        offered = [Line(None, {}) for line in answer.text.splitlines() if re.match(r"\[\d+\] ", line)]
        if offered and not lines:
            self.lists.append(offered)
            return False
        if lines:
            cells = [cell for table in answer.tables for row in (table.columns, *table.rows) for cell in row]
            first = next(cell for cell in cells if cell.startswith("["))[:3]
            if first == "[1]" or not self.lists:
                self.lists.append(lines)
            else:
                self.lists[-1] = self.lists[-1] + lines
        return bool(lines)

    def _lines(self, table: Table) -> list[Line]:
        compared = [re.fullmatch(r"\[\d+\] (\w+) (\S+)", column) for column in table.columns]
        if any(compared):
            return [
                Line(Thing(each[1].lower(), each[2]), {row[0]: row[place] for row in table.rows})
                for place, each in enumerate(compared)
                if each is not None
            ]
        if not table.columns or table.columns[0] != "":
            return []
        found = []
        for row in table.rows:
            cells = dict(zip(table.columns[1:], row[1:], strict=True))
            found.append(Line(self._thing(table.columns[1], cells), cells))
        return found

    def _thing(self, column: str, cells: Mapping[str, str]) -> Thing | None:
        if "Title" in cells:
            return Thing("incident", cells["Incident"])
        if "Alert" in cells:
            return self.alerts.get((cells["Time"], cells["Alert"]))
        return Thing(column.lower(), cells[column])
