"""The benign telemetry of the estate as SQL: any number of rows, spread over working days, the same for a seed.

Each table is one INSERT over a range; every choice is a hash of the seed, the table and the row's number, so twenty
million rows cost no Python. Who and where come from `company`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel_rag.workspace.sample import company
from sentinel_rag.workspace.sample.company import HOSTS, PEOPLE, TENANT_ID, host_address, host_name
from sentinel_rag.workspace.table_schemas import quote_text

_HOURS_OF_DAY = "[7,8,8,9,9,9,9,10,10,10,10,11,11,11,12,12,13,13,13,14,14,14,14,15,15,15,16,16,17,17,18,19,21,2]"


@dataclass(frozen=True, slots=True)
class _Slot:
    """A placeholder of the file, as `write` puts what stands behind its colon."""

    write: Callable[[str], str]

    def __format__(self, given: str) -> str:
        return self.write(given)


class Background:
    """Statements for one estate. Every choice is deterministic in seed, table and row."""

    def __init__(self, *, start: datetime, end: datetime, seed: int) -> None:
        self._start = start
        self._seconds = int((end - start).total_seconds())
        self._seed = seed

    def statement(self, table: str, count: int) -> str:
        """The INSERT of `count` rows into `table`."""
        slots = {
            "c": company,
            "person": _Slot(lambda name: self._pick(table, "person", [getattr(each, name) for each in PEOPLE])),
            "draw": _Slot(lambda given: self._draw(table, *given.split())),
            "of": _Slot(lambda given: self._pick(table, *_listed(given))),
            "any": _Slot(lambda given: self._pick(table, given.partition(" ")[0], given.partition(" ")[2].split("|"))),
        }
        told = company.data("background")[table]["columns"]
        columns = {
            "TimeGenerated": self._when(table),
            "TenantId": quote_text(TENANT_ID),
            "Type": quote_text(table),
            **{name: expression.format(**slots) for name, expression in told.items()},
        }
        names = ", ".join(columns)
        values = ", ".join(f"{value} AS {name}" for name, value in columns.items())
        return f"INSERT INTO {table} ({names}) SELECT {values} FROM range({count}) AS row(i) ORDER BY 1"  # noqa: S608

    def heartbeats(self, every_hours: int) -> str:
        """One row for each machine and period."""
        hosts = _list(host_name(host) for host in HOSTS)
        addresses = _list(host_address(host) for host in HOSTS)
        periods = self._seconds // (3600 * every_hours)
        return (
            "INSERT INTO Heartbeat (TimeGenerated, TenantId, Type, Computer, ComputerIP, OSType, Category, Version) "  # noqa: S608
            f"SELECT TIMESTAMP '{self._start}' + to_seconds(CAST(3600 * {every_hours} * p + h AS BIGINT)), "
            f"{quote_text(TENANT_ID)}, 'Heartbeat', {hosts}[h + 1], {addresses}[h + 1], 'Windows', 'Direct Agent', "
            f"'10.20.18069.0' FROM range({periods}) AS t(p), range({len(HOSTS)}) AS u(h)"
        )

    def _draw(self, table: str, purpose: str, modulus: int | str) -> str:
        """A number below `modulus` for row `i`."""
        return f"(hash(i, {quote_text(f'{self._seed}/{table}/{purpose}')}) % {modulus})"

    def _pick(self, table: str, purpose: str, values: Sequence[str]) -> str:
        """One of `values` for row `i`."""
        return f"{_list(values)}[CAST({self._draw(table, purpose, len(values))} AS INTEGER) + 1]"

    def _when(self, table: str) -> str:
        """Mostly in working hours of working days; a weekend's event moves into the week after four times in five."""
        days = max(1, self._seconds // 86_400)
        hours = f"{_HOURS_OF_DAY}[CAST({self._draw(table, 'hour', _HOURS_OF_DAY.count(',') + 1)} AS INTEGER) + 1]"
        first = f"date_trunc('day', TIMESTAMP '{self._start}')"
        day = f"({first} + to_days(CAST({self._draw(table, 'day', days)} AS INTEGER)))"
        weekend = f"(isodow({day}) > 5 AND {self._draw(table, 'weekend', 5)} > 0)"
        later = f"to_days(CAST(8 - isodow({day}) + {self._draw(table, 'weekday', 5)} AS INTEGER))"
        workday = f"CASE WHEN {weekend} THEN {day} + {later} ELSE {day} END"
        moment = f"({workday} + to_hours({hours}) + to_seconds(CAST({self._draw(table, 'second', 3600)} AS BIGINT)))"
        milliseconds = f"to_milliseconds(CAST({self._draw(table, 'ms', 1000)} AS BIGINT))"
        last = f"TIMESTAMP '{self._start}' + to_seconds({self._seconds})"
        # What falls outside (the first morning, the last afternoon) is folded back by whole weeks or into the window.
        inside = f"CASE WHEN {moment} >= {last} THEN {moment} - to_days(7) ELSE {moment} END"
        return f"greatest({inside} + {milliseconds}, TIMESTAMP '{self._start}')"


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(quote_text(value) for value in values) + "]"


def _listed(given: str) -> tuple[str, Sequence[str]]:
    """The name of a draw, and a list of `company`."""
    purpose, _, name = given.partition(" ")
    return purpose, getattr(company, name)
