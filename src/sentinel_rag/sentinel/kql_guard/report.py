"""What the guard says about a query: whether it may run, and each problem where it stands.

Values only. `guard` makes them from an analysis; the tool for freeform KQL and `sentinel kql check` show them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from sentinel_rag.contracts.json_values import JsonForm, JsonValue

Severity = Literal["error", "warning"]
ParserName = Literal["microsoft", "fallback"]
COMPUTED_TIME = "computed_time"
"""Code of the warning that a time filter's reach is only known when the query runs: who runs it sends a timespan."""


@dataclass(frozen=True, slots=True)
class KqlProblem(JsonForm):
    """One problem. `line` and `column` count from 1 in characters of the text; `length` may be 0 (at the end).

    `code` is stable; `message` is one sentence; `nearest` are known names like the one that is wrong, best first.
    """

    code: str
    severity: Severity
    message: str
    line: int
    column: int
    length: int
    next_step: str = ""
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardReport:
    """The verdict on one query.

    `parser` tells who read it: Microsoft's parser, or the stricter fallback where there is no node. `tables` are those
    that it reads; `columns` of the result as (name, KQL type), None where they are not known before it runs.
    """

    parser: ParserName
    problems: tuple[KqlProblem, ...]
    tables: frozenset[str]
    columns: tuple[tuple[str, str], ...] | None

    @property
    def allowed(self) -> bool:
        """Whether the query may run: no problem is an error."""
        return all(problem.severity != "error" for problem in self.problems)

    @property
    def errors(self) -> tuple[KqlProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "allowed": self.allowed,
            "parser": self.parser,
            "problems": [problem.to_dict() for problem in self.problems],
            "tables": sorted(self.tables),
            "columns": None if self.columns is None else [{"name": name, "type": kind} for name, kind in self.columns],
        }


class TextPlaces:
    """The lines of one text. Offsets are UTF-16 code units, as in Microsoft's parser; the answers are characters."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        # Offsets of the second half of each character that UTF-16 writes as two units.
        self._second_halves: list[int] = []
        seen = 0
        for index, character in enumerate(text):
            if character > "\uffff":
                seen += 1
                self._second_halves.append(index + seen)
        self._characters = len(text)
        self._text = text

    def text(self, start: int, length: int) -> str:
        """The characters there."""
        return self._text[self.character(start) : self.character(start + length)]

    def character(self, offset: int) -> int:
        """The index in the text of the character at `offset`, at most its length."""
        return min(max(offset, 0) - bisect_right(self._second_halves, offset), self._characters)

    def locate(self, start: int, length: int) -> tuple[int, int, int]:
        """(line, column, length in characters)."""
        first, after = self.character(start), self.character(start + length)
        line = bisect_right(self._starts, first)
        return line, first - self._starts[line - 1] + 1, after - first
