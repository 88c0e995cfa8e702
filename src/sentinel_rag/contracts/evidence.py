"""An answer and what it rests on.

Every checkable atom of an answer's text points at the tool call, and the place in its result, that supports it; the
agent writes an answer only from such pieces. Surfaces render; they add no fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue

REMOVED = "A sentence was left out here, because it could not be checked against the results."
"""Stands in an answer in place of each sentence that its evidence did not support."""


class Outcome(StrEnum):
    """How a question ended; surfaces map it to an exit code or an HTTP status."""

    ANSWERED = "answered"
    NO_DATA = "no_data"
    CLARIFICATION = "clarification"
    OUT_OF_SCOPE = "out_of_scope"
    DENIED = "denied"
    TOOL_FAILED = "tool_failed"


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text`, as it stands in the answer, is the value at `pointer` (RFC 6901) in the result of call `call_id`."""

    text: str
    call_id: str
    tool: str
    pointer: str
    value: JsonValue

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "text": self.text,
            "call_id": self.call_id,
            "tool": self.tool,
            "pointer": self.pointer,
            "value": self.value,
        }


@dataclass(frozen=True, slots=True)
class Table:
    """A table of an answer. Cells are text already formatted for people."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""

    def to_dict(self) -> dict[str, JsonValue]:
        return {"title": self.title, "columns": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True, slots=True)
class ToolTrace:
    """One tool call as the footnote shows it. `status` is `ok`, `denied`, `failed`; in a `Progress` also `running`."""

    call_id: str
    name: str
    arguments: Mapping[str, JsonValue]
    status: str
    detail: str = ""
    audit_id: str = ""
    duration_ms: float = 0.0
    coverage: Mapping[str, JsonValue] | None = None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
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
    duration_ms: float = 0.0
    model: Mapping[str, JsonValue] | None = None
    """What models took for it (tokens, cost, seconds, ...); None for an answer without one."""

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
            "duration_ms": self.duration_ms,
            "model": None if self.model is None else dict(self.model),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Answer:
        return cls(
            outcome=Outcome(data["outcome"]),
            text=data["answer"],
            session_id=data["session_id"],
            tables=tuple(
                Table(tuple(table["columns"]), tuple(tuple(row) for row in table["rows"]), table["title"])
                for table in data["tables"]
            ),
            footnote=tuple(data["footnote"]),
            suggestions=tuple(data["suggestions"]),
            tools=tuple(ToolTrace(**trace) for trace in data["tools"]),
            evidence=tuple(Evidence(**piece) for piece in data["evidence"]),
            duration_ms=data["duration_ms"],
            model=data.get("model"),
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """A status line while tools run, such as "Querying incidents..."; `elapsed_s` counts from the question.

    `tool` is the call that it is about, if it is about one: its status is `running` where it starts, and else how it
    ended. `written` is more of the answer's text, checked as the answer is and shown as it comes; with `withdrawn` all
    that was written so far is no part of the answer any more, for instance because the model asked for more data.
    """

    text: str
    elapsed_s: float = field(default=0.0)
    tool: ToolTrace | None = None
    written: str = ""
    withdrawn: bool = False


@dataclass(slots=True)
class Written:
    """What was shown of an answer before it was whole."""

    text: str = ""

    def hear(self, progress: Progress) -> None:
        """Take over what one line of progress tells."""
        self.text = progress.written if progress.withdrawn else self.text + progress.written

    def rest_of(self, answer: str) -> str | None:
        """What is still to be shown of the answer's text; None if it does not begin with what was shown."""
        return answer[len(self.text) :] if answer.startswith(self.text) else None
