"""A hand-over report as values, in the order in which the next shift reads it. Texts are raw here; each form makes them
safe where it writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sentinel_rag.surfaces.rendering.marks import Marked


@dataclass(frozen=True, slots=True)
class ReportTurn:
    """One question. `answer` is in the form of `ask --json`; None where only `text` was kept, or nothing came."""

    number: int
    asked_at: str
    question: str
    outcome: str
    text: str = ""
    answer: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Who exports what, when. `timezone` is an IANA name; `revealed` says that values which the policy hides from the
    agent were drawn in for this person."""

    conversation_id: str
    exported_by: str
    exported_at: datetime
    timezone: str
    workspace: str = ""
    revealed: bool = False
    journal_head: str = ""
    """Number and hash of the newest audit record at the time of the export; empty where it could not be read."""
    notes: tuple[str, ...] = ()
    incident: str = ""
    """The one incident that the report is about, by its number; empty for all of a shift."""
    people: Mapping[str, str] = field(default_factory=dict)
    """Names of people and programs by the ids of their keys, as far as they are known."""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One row of one result, as far as answers rest on it. `number` is its name in the report, such as `E3`."""

    number: str
    turn: int
    tool: str
    call_id: str
    audit_id: str
    place: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of an answer; `evidence` has one entry a row, empty where no single row of a result stands behind it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """A sentence of an answer, what the check says of it, and the evidence that it cites."""

    text: str
    state: str
    reason: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """What one question brought."""

    turn: int
    asked_at: str
    question: str
    outcome: str
    said: Marked
    """The text of the answer; its sources are the numbers of evidence rows."""
    sentences: tuple[Stated, ...]
    tables: tuple[ReportTable, ...]
    footnote: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened: in the data, in the conversation, or at the gateway."""

    at: str
    where: str
    text: str
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A call that changed or sent something, a refused one, or a decision of a person about one."""

    at: str
    tool: str
    what: str
    came_of_it: str
    audit_id: str
    approval_id: str = ""


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that was asked for, from its beginning to its end."""

    at: str
    what: str
    decided: str
    """Who approved or denied it and when; empty where no person was asked."""
    came_of_it: str
    done: bool
    """Whether it was carried out."""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """An incident as it was last told."""

    number: str
    title: str = ""
    severity: str = ""
    status: str = ""
    owner: str = ""
    said: tuple[str, ...] = ()
    """The first sentences of the last answer about it alone."""

    @property
    def open(self) -> bool:
        """Whether it was open when it was last told."""
        return self.status in ("New", "Active")


@dataclass(frozen=True, slots=True)
class Front:
    """What stands on the first page."""

    incidents: tuple[KnownIncident, ...]
    """The most severe first, open ones before closed ones."""
    happened: tuple[Moment, ...]
    """What the data tells and what was done, in order of time."""
    scope: tuple[tuple[str, tuple[str, ...]], ...]
    """Names of accounts, hosts and the like, by their kinds."""
    deeds: tuple[Deed, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an answer."""

    turn: int
    tool: str
    arguments: str
    status: str
    rows: str
    audit_id: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Labelled counts, for a bar chart."""

    title: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """The whole report. `hidden` counts texts in which values are still hidden."""

    head: Head
    front: Front
    facts: tuple[Facts, ...]
    evidence: tuple[EvidenceRow, ...]
    timeline: tuple[Moment, ...]
    charts: tuple[Chart, ...]
    open_questions: tuple[str, ...]
    actions: tuple[Action, ...]
    calls: tuple[Call, ...]
    knowledge: tuple[tuple[str, str], ...] = field(default=())
    hidden: int = 0
