"""What the guard says about a query: whether it may run, and each problem where it stands.

Values only. `guard` makes them from an analysis; the tool for freeform KQL and `sentinel kql check` show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sentinel_rag.contracts.json_values import JsonValue

Severity = Literal["error", "warning"]
ParserName = Literal["microsoft", "fallback"]
COMPUTED_TIME = "computed_time"
"""Code of the warning that a time filter's reach is only known when the query runs: who runs it sends a timespan."""


@dataclass(frozen=True, slots=True)
class KqlProblem:
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

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "length": self.length,
            "next_step": self.next_step,
            "nearest": list(self.nearest),
        }


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
