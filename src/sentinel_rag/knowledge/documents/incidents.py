"""Incidents as documents: what happened, who and what took part, and how it was closed.

The values come from whoever reads Sentinel (ingestion); this writes them down. All of it may be an attacker's words
(titles, comments, names), so an incident is UNTRUSTED whatever its caller thinks of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.knowledge.documents.model import (
    EVERYONE,
    BlockKind,
    Collection,
    Document,
    DocumentBlock,
    DocumentSection,
    Facets,
)
from sentinel_rag.language.attack import known_techniques

MERGED = "Merged"
_MERGE_LABEL = "redirected"
_EVERYONE = frozenset({EVERYONE})
_MOST_ENTITIES = 200
_LONGEST_LINE = 4_000
_HEADING = re.compile(r"(?<!\S)(#{1,6})(?=\s)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class IncidentRecord:
    """One incident's newest version. Times are aware. `entities` are (kind, name) pairs, `comments` oldest first.
    `etag` is that of the REST API; empty where the row came from the log. `workspace` is empty where there is one.
    One that Defender merged has the status Merged, and `merged_into` where that is known."""

    number: int
    title: str
    severity: str = ""
    status: str = ""
    description: str = ""
    created: datetime | None = None
    closed: datetime | None = None
    tactics: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    entities: tuple[tuple[str, str], ...] = ()
    alerts: tuple[str, ...] = ()
    classification: str = ""
    classification_reason: str = ""
    classification_comment: str = ""
    comments: tuple[str, ...] = ()
    etag: str = ""
    workspace: str = ""
    merged_into: int | None = None


def incident_id(number: int, workspace: str = "") -> str:
    """The id of an incident in its collection, which is also how an answer cites it. `workspace` where there are
    several: each counts its incidents from 1."""
    return f"incident-{number}@{workspace}" if workspace else f"incident-{number}"


def incident_document(
    record: IncidentRecord,
    *,
    sensitivity: Sensitivity = Sensitivity.MEDIUM,
    readers: frozenset[str] = _EVERYONE,
) -> Document:
    """The incident as a document. Its label is `sensitivity` and always UNTRUSTED."""
    return Document(
        id=incident_id(record.number, record.workspace),
        collection=Collection.INCIDENTS,
        title=_line(record.title) or f"Incident {record.number} without a title",
        source=incident_id(record.number, record.workspace),
        sections=tuple(_sections(record)),
        facets=Facets(
            techniques=tuple(dict.fromkeys(name.upper() for name in record.techniques)),
            tactics=tuple(dict.fromkeys(record.tactics)),
            severity=record.severity,
            status=record.status,
            classification=record.classification,
            time=record.created,
            entities=tuple(dict.fromkeys(_line(name) for _, name in record.entities if name.strip()))[:_MOST_ENTITIES],
        ),
        label=Label(sensitivity, Integrity.UNTRUSTED),
        readers=readers,
        etag=record.etag,
    )


def _sections(record: IncidentRecord) -> Iterator[DocumentSection]:
    parts: tuple[tuple[str, Iterable[str]], ...] = (
        ("Summary", _summary(record)),
        ("Alerts", _items(record.alerts)),
        ("Entities", _entities(record.entities)),
        ("How it was closed", _closing(record)),
        ("Comments", _items(record.comments)),
    )
    place = 1
    for heading, texts in parts:
        blocks = []
        for text in texts:
            kind = BlockKind.LIST_ITEM if text.startswith("- ") else BlockKind.PARAGRAPH
            blocks.append(DocumentBlock(kind, text, place))
            place += 1
        if blocks:
            yield DocumentSection((heading,), tuple(blocks))


def _summary(record: IncidentRecord) -> Iterator[str]:
    created = "" if record.created is None else f" of {record.created:%Y-%m-%d}"
    where = f" in {record.workspace}" if record.workspace else ""
    yield f"Incident {record.number}{where}{created}: {_line(record.title)}."
    states = [f"Severity {record.severity}" * bool(record.severity), f"status {record.status}" * bool(record.status)]
    told = ", ".join(filter(None, states))
    if told:
        yield f"{told[:1].upper()}{told[1:]}."
    if record.description.strip():
        # Behind a word of ours, so that it cannot begin a line as the closing does.
        yield f"Description: {_line(record.description)}"
    if record.tactics:
        yield f"Tactics: {', '.join(record.tactics)}."
    if record.techniques:
        yield f"MITRE ATT&CK techniques: {', '.join(map(_named_technique, record.techniques))}."


def _named_technique(technique: str) -> str:
    known = known_techniques().get(technique.upper())
    return technique if known is None else f"{known.id} {known.name}"


def _entities(entities: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A line for each kind, so that a long list of addresses does not part an account from its host."""
    by_kind: dict[str, dict[str, None]] = {}
    for kind, name in entities:
        if name.strip():
            by_kind.setdefault(_line(kind) or "other", {})[_line(name)] = None
    for kind, names in by_kind.items():
        more = len(names) - _MOST_ENTITIES
        told = ", ".join(list(names)[:_MOST_ENTITIES]) + (f" and {more:,} more" if more > 0 else "")
        yield f"- {kind}: {told}"


def _closing(record: IncidentRecord) -> Iterator[str]:
    if record.status == MERGED:
        target = "another incident" if record.merged_into is None else f"incident {record.merged_into}"
        when = "" if record.closed is None else f" on {record.closed:%Y-%m-%d}"
        yield f"Merged into {target} by Microsoft Defender{when}: not closed by a person, and its alerts moved there."
        return
    if record.closed is None and not record.classification:
        return
    when = "" if record.closed is None else f" on {record.closed:%Y-%m-%d}"
    took = ""
    if record.closed is not None and record.created is not None and record.closed >= record.created:
        hours = (record.closed - record.created).total_seconds() / 3600
        took = f", {f'{hours / 24:.1f} days' if hours >= 48 else f'{hours:.1f} hours'} after it was created"
    state = "Closed" if record.status == "Closed" or not record.status else f"Closed before, {record.status} now"
    yield f"{state}{when}{took}."
    if record.classification:
        reason = f" ({_line(record.classification_reason)})" if record.classification_reason else ""
        yield f"Classification: {_line(record.classification)}{reason}."
    if record.classification_comment.strip():
        yield f"Closing comment: {_line(record.classification_comment)}"


def _items(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        if text.strip():
            yield f"- {_line(text)}"


def _line(text: str) -> str:
    """Text on one line without control characters, so that a comment cannot forge a section of its own. What would be a
    heading at a line's beginning is escaped: a long text is parted, and a part may begin with it."""
    line = _HEADING.sub(r"\\\1", " ".join(_CONTROL.sub(" ", text).split()))
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def incident_from_rest(
    resource: Mapping[str, Any],
    *,
    entities: tuple[tuple[str, str], ...] = (),
    alerts: tuple[str, ...] = (),
    comments: tuple[str, ...] = (),
) -> IncidentRecord | None:
    """The record of an incident as Sentinel's REST API sends it (2025-09-01); None if it carries no incident number.

    Entities, alerts and comments are resources of their own there, so the caller brings them.
    """
    properties = _mapping(resource.get("properties"))
    number = properties.get("incidentNumber")
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    additional = _mapping(properties.get("additionalData"))

    def text(name: str) -> str:
        value = properties.get(name)
        return value if isinstance(value, str) else ""

    return IncidentRecord(
        number=number,
        title=text("title"),
        severity=text("severity"),
        status=MERGED if _is_merged(properties) else text("status"),
        description=text("description"),
        created=_moment(properties.get("createdTimeUtc")),
        # A reopened incident keeps its closing time; `status` tells which it is.
        closed=_moment(properties.get("closedTimeUtc")),
        tactics=_texts(additional.get("tactics")),
        techniques=_texts(additional.get("techniques")),
        entities=entities,
        alerts=alerts or _texts(additional.get("alertProductNames")),
        classification=text("classification"),
        classification_reason=text("classificationReason"),
        classification_comment=text("classificationComment"),
        comments=comments,
        etag=str(resource.get("etag") or ""),
    )


def _is_merged(properties: Mapping[str, Any]) -> bool:
    """Whether Defender merged it into another: closed, with the label of that."""
    labels = properties.get("labels")
    names = {str(_mapping(label).get("labelName")).casefold() for label in (labels if isinstance(labels, list) else ())}
    return properties.get("status") == "Closed" and _MERGE_LABEL in names


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value if item) if isinstance(value, list) else ()


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
