"""A result as records: each object of it with its own values, the record that it lies in, and what it speaks of.

A record is what a value belongs to, so that a severity can be asked of the incident whose it is. Built once a result,
without a copy of its values; `evidence_index` looks things up in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sentinel_rag.contracts.json_values import JsonValue

MOST_LEAVES = 40_000
"""Values of one result that are read; a result of that size was cut long before a model saw it."""
MOST_DEPTH = 24


class Speaks(StrEnum):
    """What a record is about."""

    INCIDENT = "incident"
    ALERT = "alert"
    ENTITY = "entity"
    ROW = "row"
    SUMMARY = "summary"
    COVERAGE = "coverage"
    OTHER = "other"


@dataclass(slots=True, eq=False)
class Record:
    """One object of a result. `leaves` are its own values by key (elements of a list under the key of the list),
    `lists` the length of each list, `identities` what names it, lower-cased."""

    speaks: Speaks
    pointer: str
    parent: Record | None
    run: int
    leaves: dict[str, list[Leaf]] = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    children: list[Record] = field(default_factory=list)
    incident: str = ""
    incidents: tuple[str, ...] = ()

    def first(self, key: str) -> Leaf | None:
        """The value under `key`; None where there is none."""
        found = self.leaves.get(key)
        return found[0] if found else None

    def chain(self) -> Iterator[Record]:
        """The record and those that it lies in, outwards."""
        record: Record | None = self
        while record is not None:
            yield record
            record = record.parent

    def inside(self) -> Iterator[Record]:
        """The record and all that lies in it."""
        yield self
        for child in self.children:
            yield from child.inside()

    def numbers(self) -> tuple[str, ...]:
        """The incidents that the record, or the nearest record around it, belongs to."""
        for record in self.chain():
            if record.incident or record.incidents:
                return (record.incident,) if record.incident else record.incidents
        return ()


@dataclass(slots=True, eq=False)
class Leaf:
    """One value: `key` is the nearest name above it in lower case, `pointer` its place in the result of run `run`."""

    key: str
    value: JsonValue
    pointer: str
    record: Record
    run: int


_PARTS = {"summary": Speaks.SUMMARY, "coverage": Speaks.COVERAGE}


class _Reader:
    """Walks one result and collects records and leaves, up to the bounds."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.records: list[Record] = []
        self.leaves: list[Leaf] = []

    def record(self, value: Mapping[str, JsonValue], pointer: str, parent: Record | None, speaks: Speaks) -> Record:
        record = Record(speaks, pointer, parent, self.run)
        _name(record, value)
        self.records.append(record)
        if parent is not None:
            parent.children.append(record)
        return record

    def read(self, value: JsonValue, pointer: str, key: str, record: Record, depth: int) -> None:
        if len(self.leaves) >= MOST_LEAVES or depth > MOST_DEPTH:
            return
        if isinstance(value, Mapping):
            for name, part in value.items():
                self.read_field(str(name), part, f"{pointer}/{_escaped(str(name))}", record, depth + 1)
        elif isinstance(value, list | tuple):
            record.lists[key] = len(value)
            for place, part in enumerate(value):
                at = f"{pointer}/{place}"
                if isinstance(part, Mapping):
                    inner = self.record(part, at, record, _speaks(part, record))
                    self.read(part, at, key, inner, depth + 1)
                else:
                    self.read(part, at, key, record, depth + 1)
        else:
            leaf = Leaf(key, value, pointer, record, self.run)
            record.leaves.setdefault(key, []).append(leaf)
            self.leaves.append(leaf)

    def read_field(self, name: str, value: JsonValue, pointer: str, record: Record, depth: int) -> None:
        key = name.lower()
        if isinstance(value, Mapping):
            inner = self.record(value, pointer, record, _PARTS.get(key, Speaks.OTHER))
            self.read(value, pointer, key, inner, depth)
        else:
            self.read(value, pointer, key, record, depth)


def read_result(document: JsonValue, run: int) -> tuple[list[Record], list[Leaf]]:
    """The records and leaves of a result in wire form; the first record is the result itself."""
    reader = _Reader(run)
    root = reader.record({}, "", None, Speaks.OTHER)
    reader.read(document, "", "", root, 0)
    return reader.records, reader.leaves


def _speaks(value: Mapping[str, JsonValue], parent: Record) -> Speaks:
    if "number" in value and ("incident_name" in value or "title" in value or "severity" in value):
        return Speaks.INCIDENT
    if "alert_id" in value:
        return Speaks.ALERT
    if "name" in value and ("kind" in value or "alerts" in value):
        return Speaks.ENTITY
    # The lists of a detail's `entities` are named by kind and their elements say only `name`.
    if "name" in value and parent.pointer.endswith("/entities"):
        return Speaks.ENTITY
    return Speaks.ROW


def _name(record: Record, value: Mapping[str, JsonValue]) -> None:
    number = value.get("number") if record.speaks is Speaks.INCIDENT else value.get("incident_number")
    if isinstance(number, int | str) and str(number):
        record.incident = str(number)
    numbers = value.get("incident_numbers")
    if isinstance(numbers, list | tuple):
        record.incidents = tuple(str(each) for each in numbers)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
