"""An answer and what it rests on.

Every checkable atom of an answer's text points at the tool call, and the place in its result, that supports it; the
agent writes an answer only from such pieces. Surfaces render; they add no fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.json_values import JsonForm, JsonObject, JsonValue


class Outcome(StrEnum):
    """How a question ended; surfaces map it to an exit code or an HTTP status."""

    ANSWERED = "answered"
    NO_DATA = "no_data"
    CLARIFICATION = "clarification"
    OUT_OF_SCOPE = "out_of_scope"
    DENIED = "denied"
    TOOL_FAILED = "tool_failed"


@dataclass(frozen=True, slots=True)
class Evidence(JsonForm):
    """`text`, as it stands in the answer, is the value at `pointer` (RFC 6901) in the result of call `call_id`."""

    text: str
    call_id: str
    tool: str
    pointer: str
    value: JsonValue


class SentenceState(StrEnum):
    """What code could say of a sentence by comparing its literals with what it cites. None of them says that it is
    true: a citation proves values and not verbs."""

    VALUES_FOUND = "values_found"
    SOURCE_GIVEN = "source_given"
    OWN_WORDS = "own_words"
    NOT_FOUND = "not_found"
    CONTRADICTED = "contradicted"


class Picture(StrEnum):
    """What a surface may draw of a table beside its cells."""

    NONE = ""
    TREND = "trend"
    """A count for each stretch of time, in their order."""
    RANKING = "ranking"
    """A count for each name, the largest first."""
    SHARE = "share"
    """Counts that add up to a whole."""
    TIMES = "times"
    """Things that happened, each at its time."""


class CitedBy(StrEnum):
    """Who gave a sentence its citations."""

    WRITER = "writer"
    BLOCK = "block"
    CHECK = "check"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Citation(JsonForm):
    """`ref` is what the writer writes: `c1.3` for row 3 of call c1, `c1` for the result as a whole. `pointer` (RFC
    6901) is the row's place in the result of call `call_id`, empty for the whole. `at` are the places in `Answer.text`
    where the writer put it; none for one that another sentence or the check gave."""

    ref: str
    call_id: str
    tool: str
    pointer: str = ""
    at: tuple[int, ...] = ()

    def moved(self, to: Callable[[int], int]) -> Citation:
        """The same in another text, by where each of its places is there."""
        return replace(self, at=tuple(map(to, self.at))) if self.at else self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Citation:
        """Of an answer that was kept before places were, `at` is empty."""
        return cls(data["ref"], data["call_id"], data["tool"], data["pointer"], tuple(data.get("at", ())))


@dataclass(frozen=True, slots=True)
class Mark(JsonForm):
    """A literal of a sentence: `start` and `end` are its place in `Answer.text`. `found` tells whether it stands in
    what is cited; `call_id`, `pointer` and `value` are the cell that it was compared with, empty where there is none.
    """

    start: int
    end: int
    found: bool
    call_id: str = ""
    pointer: str = ""
    value: JsonValue = None


@dataclass(frozen=True, slots=True)
class Sentence(JsonForm):
    """A sentence, list item, heading or table row of an answer: `Answer.text[start:end]`, without its citations.

    `reason` is for a person to read: what was not found, or what the cited cell says instead. Empty where nothing is to
    be said.
    """

    start: int
    end: int
    text: str
    state: SentenceState
    reason: str = ""
    citations: tuple[Citation, ...] = ()
    marks: tuple[Mark, ...] = ()
    cited_by: CitedBy = CitedBy.NOBODY

    def behind(self, by: int) -> Sentence:
        """The same in a text that has `by` characters more before it."""
        return self.moved(lambda place: place + by)

    def moved(self, to: Callable[[int], int]) -> Sentence:
        """The same in another text, by where each place of this one is there."""
        return replace(
            self,
            start=to(self.start),
            end=to(self.end),
            citations=tuple(citation.moved(to) for citation in self.citations),
            marks=tuple(replace(mark, start=to(mark.start), end=to(mark.end)) for mark in self.marks),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sentence:
        return cls(
            start=data["start"],
            end=data["end"],
            text=data["text"],
            state=SentenceState(data["state"]),
            reason=data["reason"],
            citations=tuple(Citation.from_dict(citation) for citation in data["citations"]),
            marks=tuple(Mark(**mark) for mark in data["marks"]),
            cited_by=CitedBy(data["cited_by"]),
        )


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an answer. Cells are text already formatted for people."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    folded: bool = False
    """Whether it is shown on demand alone: ids, addresses of portals, hashes and the like, which few readers need."""
    picture: Picture = Picture.NONE
    """What may be drawn of it; the numbers are those of its cells."""

    def to_dict(self) -> dict[str, JsonValue]:
        rows: list[JsonValue] = [list(row) for row in self.rows]
        shown: dict[str, JsonValue] = {"title": self.title, "columns": list(self.columns), "rows": rows}
        return {**shown, "folded": self.folded, "picture": self.picture.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Table:
        rows = tuple(tuple(row) for row in data["rows"])
        # An answer stored before has neither folded tables nor pictures.
        picture = Picture(data.get("picture", ""))
        return cls(tuple(data["columns"]), rows, data["title"], data.get("folded", False), picture)


@dataclass(frozen=True, slots=True)
class ToolTrace:
    """One tool call as the footnote shows it. `status` is `ok`, `denied`, `failed`; in a `Progress` also `running`.
    With an `approval_id` it is not refused but waits for a person, by `decided_by` for the one who asked (`asker`)."""

    call_id: str
    name: str
    arguments: Mapping[str, JsonValue]
    status: str
    detail: str = ""
    audit_id: str = ""
    duration_ms: float = 0.0
    coverage: Mapping[str, JsonValue] | None = None
    approval_id: str = ""
    decided_by: str = ""

    def to_dict(self) -> dict[str, JsonValue]:
        waits: dict[str, JsonValue] = {"approval_id": self.approval_id, "decided_by": self.decided_by or "other"}
        return {
            **(waits if self.approval_id else {}),
            "call_id": self.call_id,
            "name": self.name,
            "arguments": dict(self.arguments),
            "status": self.status,
            "detail": self.detail,
            "audit_id": self.audit_id,
            "duration_ms": self.duration_ms,
            "coverage": None if self.coverage is None else dict(self.coverage),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person reads: facts first (`text`, Markdown without links, images or HTML), then tables and footnote.

    `footnote` lists tools, arguments, rows seen of total, window and data age, one line an entry. `suggestions` are
    whole questions that the person could ask next; empty unless they help.
    """

    outcome: Outcome
    text: str
    session_id: str
    tables: tuple[Table, ...] = ()
    footnote: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    tools: tuple[ToolTrace, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    """The parts of `text` with what the check says of each, in their order; gaps between them hold no statement."""
    duration_ms: float = 0.0
    model: Mapping[str, JsonValue] | None = None
    """What models took for it (tokens, cost, seconds, ...); None for an answer without one."""
    results: tuple[JsonObject, ...] = field(default=(), repr=False, compare=False)
    """The calls with their results as `sentinel export --format results` writes them. They are kept with the
    conversation and are no part of `to_dict`."""

    @property
    def coverage(self) -> tuple[Mapping[str, JsonValue], ...]:
        """The coverage of every call that produced a result, in the order of the calls."""
        return tuple(trace.coverage for trace in self.tools if trace.coverage is not None)

    def to_dict(self) -> dict[str, JsonValue]:
        """The form of `ask --json` and of `POST /chat`."""
        return {
            "outcome": self.outcome.value,
            "answer": self.text,
            "session_id": self.session_id,
            "tables": [table.to_dict() for table in self.tables],
            "footnote": list(self.footnote),
            "suggestions": list(self.suggestions),
            "tools": [trace.to_dict() for trace in self.tools],
            "coverage": [dict(coverage) for coverage in self.coverage],
            "evidence": [piece.to_dict() for piece in self.evidence],
            "sentences": [sentence.to_dict() for sentence in self.sentences],
            "duration_ms": self.duration_ms,
            "model": None if self.model is None else dict(self.model),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Answer:
        return cls(
            outcome=Outcome(data["outcome"]),
            text=data["answer"],
            session_id=data["session_id"],
            tables=tuple(map(Table.from_dict, data["tables"])),
            footnote=tuple(data["footnote"]),
            suggestions=tuple(data["suggestions"]),
            tools=tuple(ToolTrace(**trace) for trace in data["tools"]),
            evidence=tuple(Evidence(**piece) for piece in data["evidence"]),
            sentences=tuple(map(Sentence.from_dict, data.get("sentences", ()))),  # an answer stored before has none
            duration_ms=data["duration_ms"],
            model=data.get("model"),
        )


def option_chosen(words: str, shown: str) -> str:
    """The option of the text that was shown last which the words pick by its number; empty if they pick none."""
    pick = re.fullmatch(r"\[?([1-9][0-9]?)\]?[.)]?", words.strip())
    line = re.search(rf"^\[{pick[1]}\] (.*)", shown, re.MULTILINE) if pick else None
    return line[1] if line else ""


@dataclass(frozen=True, slots=True)
class Progress:
    """A status line while tools run, such as "Querying incidents..."; `elapsed_s` counts from the question.

    `tool` is the call that it is about, if it is about one: its status is `running` where it starts, and else how it
    ended. `written` is more of the answer's text, shown as it comes; with `withdrawn` all that was written so far is no
    part of the answer any more, for instance because the model asked for more data. `sentences` are those whose check
    has ended since, with their places in all that was written.
    """

    text: str
    elapsed_s: float = field(default=0.0)
    tool: ToolTrace | None = None
    written: str = ""
    withdrawn: bool = False
    sentences: tuple[Sentence, ...] = ()


@dataclass(slots=True)
class Written:
    """What was shown of an answer before it was whole."""

    text: str = ""
    sentences: tuple[Sentence, ...] = ()

    def hear(self, progress: Progress) -> None:
        """Take over what one line of progress tells."""
        if progress.withdrawn:
            self.text, self.sentences = "", ()
        self.text += progress.written
        self.sentences += progress.sentences

    def rest_of(self, answer: str) -> str | None:
        """What is still to be shown of the answer's text; None if it does not begin with what was shown."""
        return answer[len(self.text) :] if answer.startswith(self.text) else None
