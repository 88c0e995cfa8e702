"""A result as records: each object of it with its own values, the record that it lies in, and what it speaks of.

A record is what a value belongs to, so that a severity can be asked of the incident whose it is. Built once a result,
without a copy of its values; `evidence_index` looks things up in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sentinel_rag.agent.knowledge_hits import PLAYBOOKS, incident_number
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS

MOST_LEAVES = 40_000
"""Values of one result that are read; a result of that size was cut long before a model saw it."""
MOST_DEPTH = 24


class Speaks(StrEnum):
    """What a record is about."""

    INCIDENT = "incident"
    ALERT = "alert"
    ENTITY = "entity"
    ROW = "row"
    SECTION = "section"
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

    @property
    def of_knowledge(self) -> bool:
        """True for a hit of the knowledge base: what it tells of an incident is as old as its last ingestion."""
        return self.pointer.startswith("/hits/")

    def numbers(self) -> tuple[str, ...]:
        """The incidents that the record, or the nearest record around it, belongs to."""
        for record in self.chain():
            if record.incident or record.incidents:
                return (record.incident,) if record.incident else record.incidents
        return ()


class Leaf:
    """One value: `key` is the nearest name above it in lower case, `pointer` its place in the result of run `run`."""

    __slots__ = ("_tokens", "key", "record", "value")

    def __init__(self, key: str, value: JsonValue, tokens: str, record: Record) -> None:
        self.key = key
        self.value = value
        self.record = record
        self._tokens = tokens

    @property
    def pointer(self) -> str:
        """RFC 6901, put together when it is asked for: most leaves are never evidence."""
        return f"{self.record.pointer}/{self._tokens}" if self._tokens else self.record.pointer

    @property
    def run(self) -> int:
        return self.record.run


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

    def read(self, value: JsonValue, record: Record, depth: int) -> None:
        """Take in the fields of an object into its record."""
        if not isinstance(value, Mapping) or depth > MOST_DEPTH:
            return
        for name, part in value.items():
            if len(self.leaves) >= MOST_LEAVES:
                return
            token = name if "/" not in name and "~" not in name else _escaped(name)
            self._field(name.lower(), token, part, record, depth)

    def alias(self, record: Record) -> None:
        """A past incident's creation and citation under the names that they have in the workspace."""
        for key, own in (("created_time", "time"), ("number", "citation")):
            if own in record.leaves and key not in record.leaves:
                record.leaves[key] = record.leaves[own]

    def read_rest(self, value: JsonValue, record: Record) -> None:
        """Take in a result that is no object: its elements, or the one value that it is."""
        if isinstance(value, list | tuple):
            for place, part in enumerate(value):
                self._field("", str(place), part, record, 0)
        else:
            self._field("", "", value, record, 0)

    def _field(self, key: str, token: str, value: JsonValue, record: Record, depth: int) -> None:
        if isinstance(value, str | int | float) or value is None:
            leaf = Leaf(key, value, token, record)
            if key in record.leaves:
                record.leaves[key].append(leaf)
            else:
                record.leaves[key] = [leaf]
            self.leaves.append(leaf)
        elif isinstance(value, Mapping):
            inner = self.record(value, f"{record.pointer}/{token}", record, _PARTS.get(key, Speaks.OTHER))
            self.read(value, inner, depth + 1)
        elif isinstance(value, list | tuple) and depth <= MOST_DEPTH:
            record.lists[key] = len(value)
            for place, part in enumerate(value):
                if isinstance(part, Mapping):
                    inner = self.record(part, f"{record.pointer}/{token}/{place}", record, _speaks(part, token))
                    self.read(part, inner, depth + 1)
                    if inner.speaks is Speaks.INCIDENT and inner.of_knowledge:
                        self.alias(inner)
                else:
                    self._field(key, f"{token}/{place}", part, record, depth + 1)


def read_result(document: JsonValue, run: int) -> tuple[list[Record], list[Leaf]]:
    """The records and leaves of a result in wire form; the first record is the result itself."""
    reader = _Reader(run)
    root = reader.record({}, "", None, Speaks.OTHER)
    if isinstance(document, Mapping):
        reader.read(document, root, 0)
    else:
        reader.read_rest(document, root)
    return reader.records, reader.leaves


def _speaks(value: Mapping[str, JsonValue], list_name: str) -> Speaks:
    if value.get("collection") == PLAYBOOKS:
        return Speaks.SECTION
    if incident_number(value):
        return Speaks.INCIDENT
    if "number" in value and ("incident_name" in value or "title" in value or "severity" in value):
        return Speaks.INCIDENT
    if "alert_id" in value:
        return Speaks.ALERT
    if "name" in value and ("kind" in value or "alerts" in value):
        return Speaks.ENTITY
    # The lists of a detail's `entities` are named by kind and their elements say only `name`.
    if "name" in value and list_name in ENTITY_KINDS:
        return Speaks.ENTITY
    return Speaks.ROW


def _name(record: Record, value: Mapping[str, JsonValue]) -> None:
    number = value.get("number") if record.speaks is Speaks.INCIDENT else value.get("incident_number")
    if record.speaks is Speaks.INCIDENT and number is None:
        number = incident_number(value)
    if isinstance(number, int | str) and str(number):
        record.incident = str(number)
    numbers = value.get("incident_numbers")
    if isinstance(numbers, list | tuple):
        record.incidents = tuple(str(each) for each in numbers)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
