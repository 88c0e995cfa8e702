"""Documents as knowledge keeps them: sections of blocks that are never torn apart, with label and readers.

Readers of files and of incidents make them; chunking, stores and search use them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity

# A document carries its label and who may read it from the beginning, so that no row of a store can be without. Every
# text in it has a UTF-8 form, whatever the source held.
FORMAT = 2
"""Raised when reading or chunking changes, so that everything is read in again."""
EVERYONE = "*"
"""The reader that stands for every caller."""


def encodable(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which no store and no wire can hold. Such halves come
    from JSON escapes, from cut texts and from file names."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Collection(StrEnum):
    """The two collections, by the names that the stores give them."""

    INCIDENTS = "sentinel_incidents"
    PLAYBOOKS = "playbooks"


class BlockKind(StrEnum):
    """What a block is. TABLE and CODE are kept whole by chunking."""

    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A paragraph, a list item, a table or a code block as Markdown. `place` is its first line, in a PDF its page; both
    count from 1. `whole`: a table or code stands in it, so it is not parted."""

    kind: BlockKind
    text: str
    place: int
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", encodable(self.text))
        if self.kind in (BlockKind.TABLE, BlockKind.CODE):
            object.__setattr__(self, "whole", True)


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """What stands under one heading. `path` holds the headings, outermost first; it is empty before the first one."""

    path: tuple[str, ...]
    blocks: tuple[DocumentBlock, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", tuple(map(encodable, self.path)))


@dataclass(frozen=True, slots=True)
class Facets:
    """What a document can be filtered by. Severity, status and classification are spelled as Sentinel does; empty where
    there is none. `time` is when an incident was created or a playbook reviewed. `entities` are names as they stand."""

    techniques: tuple[str, ...] = ()
    tactics: tuple[str, ...] = ()
    severity: str = ""
    status: str = ""
    classification: str = ""
    time: datetime | None = None
    entities: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("severity", "status", "classification"):
            object.__setattr__(self, name, encodable(getattr(self, name)))
        for name in ("techniques", "tactics", "entities"):
            object.__setattr__(self, name, tuple(map(encodable, getattr(self, name))))

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "techniques": list(self.techniques),
            "tactics": list(self.tactics),
            "severity": self.severity,
            "status": self.status,
            "classification": self.classification,
            "time": None if self.time is None else self.time.isoformat(),
            "entities": list(self.entities),
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """The facets that `to_dict` told."""
        time = told["time"]
        return cls(
            techniques=tuple(told["techniques"]),
            tactics=tuple(told["tactics"]),
            severity=told["severity"],
            status=told["status"],
            classification=told["classification"],
            time=None if time is None else datetime.fromisoformat(time),
            entities=tuple(told["entities"]),
        )


UNTRUSTED_KNOWLEDGE = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)
"""The label of what nobody vouched for: incidents hold attackers' text, and so may a playbook from elsewhere."""


@dataclass(frozen=True, slots=True)
class Document:
    """One playbook or incident. `id` is unique in its collection; `source` is what an answer cites: the file's path in
    its folder, or `incident-N`. `etag` is the source's own version, empty where it has none."""

    id: str
    collection: Collection
    title: str
    source: str
    sections: tuple[DocumentSection, ...]
    facets: Facets = field(default_factory=Facets)
    label: Label = UNTRUSTED_KNOWLEDGE
    readers: frozenset[str] = frozenset({EVERYONE})
    etag: str = ""

    def __post_init__(self) -> None:
        for name in ("id", "title", "source", "etag"):
            object.__setattr__(self, name, encodable(getattr(self, name)))
        object.__setattr__(self, "readers", frozenset(map(encodable, self.readers)))

    @property
    def content_hash(self) -> str:
        """SHA-256 of all that a store keeps of it, so that a change of readers counts too; `etag` does not."""
        told = [
            FORMAT,
            self.title,
            self.source,
            [[list(each.path), [[b.kind.value, b.text, b.place] for b in each.blocks]] for each in self.sections],
            self.facets.to_dict(),
            self.label.to_dict(),
            sorted(self.readers),
        ]
        return hashlib.sha256(json.dumps(told, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


LONGEST_HEADING = 300


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 (outermost) to 6. `place` as in Block."""

    level: int
    text: str
    place: int


def sections_of(parts: Iterable[Heading | DocumentBlock]) -> tuple[DocumentSection, ...]:
    """One section for each heading that has blocks of its own; a heading without any lives on in the paths below it."""
    found: list[DocumentSection] = []
    above: list[Heading] = []
    blocks: list[DocumentBlock] = []

    def close() -> None:
        if blocks:
            found.append(
                DocumentSection(tuple(each.text[:LONGEST_HEADING] for each in above if each.text), tuple(blocks))
            )
            blocks.clear()

    for part in parts:
        if isinstance(part, DocumentBlock):
            blocks.append(part)
            continue
        close()
        while above and above[-1].level >= part.level:
            above.pop()
        above.append(part)
    close()
    return tuple(found)


class FileFault(ValueError):
    """The file is broken, locked, or not what its name says. The text is the sentence for the report."""


class MissingReaderError(Exception):
    """The library that reads this format is not installed; the text says how to get it."""
