"""Typed results of a tool that reads: rows with their coverage, or an error that says whether a retry can help.

`to_dict` and `from_dict` are exact inverses and are the wire form between tool server, gateway and agent. Times are
ISO 8601 in UTC with a trailing `Z`; a window is half open, `[start, end)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from sentinel_rag.contracts.errors import Actor, SentinelError
from sentinel_rag.contracts.json_values import JsonForm, JsonValue
from sentinel_rag.contracts.json_values import format_time as format_time  # beside `parse_time`, for who reads results

if TYPE_CHECKING:
    from logging import Logger


def parse_time(text: str) -> datetime:
    """An ISO 8601 time with zone, with up to 7 fraction digits as Azure writes them (the 7th is cut).

    Raises ValueError for anything else, a time without a zone included.
    """
    head, dot, tail = text.partition(".")
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        text = f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone: write it with Z or an offset")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the time {text!r} lies outside the years 1 to 9999 in UTC") from None


@dataclass(frozen=True, slots=True)
class TimeWindow(JsonForm):
    """`[start, end)` in UTC. None on a side means that side is open: all that the workspace retains."""

    start: datetime | None = None
    end: datetime | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TimeWindow:
        start, end = data["start"], data["end"]
        return cls(None if start is None else parse_time(start), None if end is None else parse_time(end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(JsonForm):
    """What a result covers, so that a reader can tell "none" from "not looked at".

    `rows_total` counts what matched before `limit`; None where the service did not say. `table_*` describe the whole
    table, whatever the window, and explain an empty result.
    """

    workspace: str
    tables: tuple[str, ...]
    window: TimeWindow
    time_column: str
    rows_returned: int
    rows_total: int | None
    query: str
    duration_ms: float
    partial: bool = False
    partial_reason: str = ""
    table_rows: int | None = None
    table_oldest: datetime | None = None
    table_newest: datetime | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coverage:
        oldest, newest = data["table_oldest"], data["table_newest"]
        return cls(
            workspace=data["workspace"],
            tables=tuple(data["tables"]),
            window=TimeWindow.from_dict(data["window"]),
            time_column=data["time_column"],
            rows_returned=data["rows_returned"],
            rows_total=data["rows_total"],
            query=data["query"],
            duration_ms=data["duration_ms"],
            partial=data["partial"],
            partial_reason=data["partial_reason"],
            table_rows=data["table_rows"],
            table_oldest=None if oldest is None else parse_time(oldest),
            table_newest=None if newest is None else parse_time(newest),
        )


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its KQL scalar type (`string`, `long`, `datetime`, `dynamic`, ...)."""

    name: str
    type: str


class CodedNote(str):
    """A sentence for the reader with the code and the values that programs know it by: they never read the sentence.

    `language.notes` makes them.
    """

    __slots__ = ("code", "values")
    code: str
    values: Mapping[str, JsonValue]

    def __new__(cls, text: str, code: str = "", values: Mapping[str, JsonValue] | None = None) -> CodedNote:
        made = super().__new__(cls, text)
        made.code, made.values = code, values or {}
        return made


def note_code(note: str) -> str:
    """The code of a note; empty for one that is only read."""
    return note.code if isinstance(note, CodedNote) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Rows and what was computed over *all* matching rows, returned or not (`summary`).

    `notes` are sentences for the reader that code wrote (a Defender id was taken for a Sentinel number, and so on); the
    wire tells their codes and values beside them in `note_codes` and `note_values`. The shape of `rows` and `summary`
    for each tool is documented in `contracts.tool_schemas`.
    """

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, JsonValue], ...]
    coverage: Coverage
    summary: Mapping[str, JsonValue] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "kind": "result",
            "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            "rows": [dict(row) for row in self.rows],
            "summary": dict(self.summary),
            **notes_form("notes", self.notes),
            "coverage": self.coverage.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QueryResult:
        return cls(
            columns=tuple(Column(column["name"], column["type"]) for column in data["columns"]),
            rows=tuple(data["rows"]),
            coverage=Coverage.from_dict(data["coverage"]),
            summary=data["summary"],
            notes=_notes_in(data),
        )


def _notes_in(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The notes with the codes and values beside them; a newer tool server may know more codes."""
    texts = data["notes"]
    codes, values = (data.get(name, ())[: len(texts)] for name in ("note_codes", "note_values"))
    return tuple(
        CodedNote(text, code, told if isinstance(told, Mapping) else None) if code and isinstance(code, str) else text
        for text, code, told in zip_longest(texts, codes, values)
    )


def notes_form(name: str, notes: Sequence[str]) -> dict[str, JsonValue]:
    """Notes as a field of that name, with their codes and values beside it where any has one."""
    told: dict[str, JsonValue] = {name: [str(note) for note in notes]}
    if any(map(note_code, notes)):
        one = name.removesuffix("s")
        told[f"{one}_codes"] = [note_code(note) for note in notes]
        told[f"{one}_values"] = [dict(note.values) if isinstance(note, CodedNote) else {} for note in notes]
    return told


def told_to_people(form: Mapping[str, Any]) -> dict[str, Any]:
    """Of a result's form what people and models read: not the codes and values that `notes_form` puts beside notes."""
    beside = {f"{name}_{part}" for name in ("note", "remark") if f"{name}s" in form for part in ("codes", "values")}
    return {name: value for name, value in form.items() if name not in beside}


class QueryErrorCode(StrEnum):
    """What went wrong, as far as the reader's next step depends on it."""

    INVALID_ARGUMENT = "invalid_argument"
    QUERY_REJECTED = "query_rejected"
    THROTTLED = "throttled"
    TIMEOUT = "timeout"
    ACCESS_DENIED = "access_denied"
    WORKSPACE_NOT_FOUND = "workspace_not_found"
    CONFLICT = "conflict"
    OUTCOME_UNKNOWN = "outcome_unknown"
    UNAVAILABLE = "unavailable"
    PROTOCOL = "protocol"
    INTERNAL = "internal"


RETRYABLE = frozenset({QueryErrorCode.THROTTLED, QueryErrorCode.UNAVAILABLE, QueryErrorCode.PROTOCOL})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProblem(JsonForm):
    """One thing that is wrong with a query's text. `code` is the parser's or the service's own (`KS142`, `SEM0100`);
    `line` and `column` count from 1, None where nobody told the place; `nearest` are known names like the wrong one."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    length: int | None = None
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryError:
    """Why there is no result. `field` and `allowed` let a model correct an argument; `line` and `position` (from 0) a
    query, and `problems` say the same for each fault that was found in it."""

    code: QueryErrorCode
    message: str
    next_step: str = ""
    field: str = ""
    allowed: tuple[str, ...] = ()
    retry_after_s: float | None = None
    line: int | None = None
    position: int | None = None
    problems: tuple[QueryProblem, ...] = ()

    @property
    def retry_possible(self) -> bool:
        """True if the same call may succeed later without a change."""
        return self.code in RETRYABLE

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "kind": "error",
            "code": self.code.value,
            "message": self.message,
            "next_step": self.next_step,
            "field": self.field,
            "allowed": list(self.allowed),
            "retry_possible": self.retry_possible,
            "retry_after_s": self.retry_after_s,
            "line": self.line,
            "position": self.position,
            "problems": [problem.to_dict() for problem in self.problems],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QueryError:
        return cls(
            code=QueryErrorCode(data["code"]),
            message=data["message"],
            next_step=data["next_step"],
            field=data["field"],
            allowed=tuple(data["allowed"]),
            retry_after_s=data["retry_after_s"],
            line=data["line"],
            position=data["position"],
            problems=tuple(QueryProblem.from_dict(problem) for problem in data.get("problems", ())),
        )


_ACTORS = {
    QueryErrorCode.INVALID_ARGUMENT: Actor.MODEL,
    QueryErrorCode.QUERY_REJECTED: Actor.MODEL,
    QueryErrorCode.TIMEOUT: Actor.USER,
    QueryErrorCode.THROTTLED: Actor.USER,
    QueryErrorCode.INTERNAL: Actor.DEVELOPER,
}


class QueryFailedError(SentinelError):
    """There is no result; `error` says why and whether the same call may succeed later."""

    def __init__(self, error: QueryError) -> None:
        super().__init__(error.message, next_step=error.next_step, code=error.code.value)
        self.error = error
        self.actor = _ACTORS.get(error.code, Actor.OPERATOR)


def invalid_argument(
    field: str, message: str, next_step: str = "", *, allowed: tuple[str, ...] = ()
) -> QueryFailedError:
    """The refusal of one argument, with the values that would have been taken."""
    if not next_step:
        next_step = f"Use one of: {', '.join(allowed)}." if allowed else f"Correct {field} and call again."
    return QueryFailedError(
        QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT, message=message, next_step=next_step, field=field, allowed=allowed
        )
    )


def internal_error(tool: str, log: Logger) -> QueryError:
    """A fault of ours: the trace goes to `log` under an id, the caller gets the id and nothing of the data. Call it
    while the exception is handled."""
    fault = uuid4().hex[:8]
    log.exception("internal error %s in %s", fault, tool)
    return QueryError(
        code=QueryErrorCode.INTERNAL,
        message=f"{tool} failed for a reason that is our fault (error {fault}).",
        next_step=f"Report it with the line 'internal error {fault}' of the tool server's log.",
    )
