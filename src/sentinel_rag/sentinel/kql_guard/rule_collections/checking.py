"""Whether a query that an analyst wrote is right: it parses, and its names are there.

Tables and functions that the schema does not know are told once each and then taken as given, so that the rest of the
query is checked all the same. Sentinel's own functions (watchlists, ASIM) are taken as given without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.sentinel.kql_guard.analysis import Analysis, Diagnostic
from sentinel_rag.sentinel.kql_guard.diagnostics import (
    OTHER_RESOURCES,
    UNCHECKED,
    UNKNOWN_FUNCTION,
    UNKNOWN_NAME,
    UNKNOWN_TABLE,
    diagnostic_problems,
    name_in,
)
from sentinel_rag.sentinel.kql_guard.fallback_parser import FALLBACK_LIMITS, fallback_analysis
from sentinel_rag.sentinel.kql_guard.guard import report_of
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.places import TextPlaces
from sentinel_rag.sentinel.kql_guard.report import KqlProblem, Severity
from sentinel_rag.sentinel.kql_guard.rule_collections.found_query import FoundQuery
from sentinel_rag.sentinel.kql_guard.rules import Demands
from sentinel_rag.sentinel.kql_guard.text_rules import TextLimits, text_problems

Schema = Mapping[str, Mapping[str, str]]
LIMITS = TextLimits(characters=100_000, depth=200)
_MOST_ROUNDS = 6
_SENTINEL_S_OWN = re.compile(r"_(Im|ASim|Get)[A-Z_]\w*|_GetWatchlist\w*|(im|vim|ASim)[A-Z]\w*")
_BLANK_LINES = re.compile(r"\n[ \t\r]*\n\s*")
_COMMENTS = re.compile(r"//[^\n]*")
_SYNTAX_CODES = re.compile(r"KS0\d\d")


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """What is wrong with one query. Places of `problems` are those of the query; `assumed` names were taken so."""

    query: FoundQuery
    problems: tuple[KqlProblem, ...]
    assumed: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return all(problem.severity != "error" for problem in self.problems)


@dataclass(frozen=True, slots=True)
class RuleChecker:
    """Checks queries under one schema.

    `complete`: a name that the schema lacks is a fault, not a remark.

    `freeform` adds what the guard would refuse if a model had asked it (time and rows left to the caller).
    """

    parser: OfficialParser | None
    schema: Schema
    complete: bool = False
    freeform: bool = False

    def check(self, query: FoundQuery) -> tuple[QueryCheck, ...]:
        """The query, or the queries where blank lines separate several, as editors for KQL do."""
        if self.parser is None or text_problems(_ascii(query.kql), LIMITS):
            return (self._check(query),)
        whole = self._analysis(query.kql, (), ())
        if not isinstance(whole, Analysis) or not _has_syntax_errors(whole):
            return (self._check(query),)
        parts = tuple(_parts(query))
        if len(parts) < 2 or any(self._breaks(part) for part in parts):
            return (self._check(query),)
        return tuple(self._check(part) for part in parts)

    def _breaks(self, part: FoundQuery) -> bool:
        analysis = self._analysis(part.kql, (), ())
        return not isinstance(analysis, Analysis) or _has_syntax_errors(analysis)

    def _check(self, query: FoundQuery) -> QueryCheck:
        stopped = text_problems(_ascii(query.kql), LIMITS if self.parser is not None else FALLBACK_LIMITS)
        if stopped:
            severity: Severity = (
                "error" if self.parser is not None or stopped[0].code in ("empty", "command") else "warning"
            )
            return QueryCheck(query, (replace(stopped[0], severity=severity),))
        tables: tuple[str, ...] = ()
        functions: tuple[str, ...] = ()
        first = analysis = self._analysis(query.kql, (), ())
        for _ in range(_MOST_ROUNDS if self.parser is not None else 0):
            if not isinstance(analysis, Analysis):
                break
            more_tables, more_functions = _unknown(analysis)
            if not more_tables and not more_functions:
                break
            tables = tuple(dict.fromkeys((*tables, *more_tables)))
            functions = tuple(dict.fromkeys((*functions, *more_functions)))
            analysis = self._analysis(query.kql, tables, functions)
        if not isinstance(first, Analysis) or not isinstance(analysis, Analysis):
            failed = first if not isinstance(first, Analysis) else analysis
            assert isinstance(failed, SentinelError)
            return QueryCheck(query, (KqlProblem("too_complex", "error", str(failed), 1, 1, 0, failed.next_step),))
        assumed = (*tables, *functions)
        told = (*self._names(query.kql, first, assumed), *self._rest(query.kql, analysis))
        problems = tuple(dict.fromkeys(told))
        if self.freeform:
            problems = (*problems, *self._freeform(query.kql, first, problems))
        return QueryCheck(query, tuple(sorted(problems, key=lambda each: (each.line, each.column))), assumed)

    def _analysis(self, kql: str, tables: tuple[str, ...], functions: tuple[str, ...]) -> Analysis | SentinelError:
        if self.parser is None:
            return fallback_analysis(kql, self.schema)
        try:
            return self.parser.analyze_now(kql, self.schema, tables, functions)
        except SentinelError as error:
            return error

    def _names(self, kql: str, first: Analysis, assumed: tuple[str, ...]) -> Iterator[KqlProblem]:
        """Each unknown table and function once, where it is first named."""
        told: set[str] = set()
        for problem, diagnostic in zip(
            diagnostic_problems(first, TextPlaces(kql), self.schema), _told(first), strict=True
        ):
            name = name_in(diagnostic)
            if name not in assumed or name in told:
                continue
            told.add(name)
            if _SENTINEL_S_OWN.fullmatch(name):
                continue
            if diagnostic.code == UNKNOWN_FUNCTION or name in OTHER_RESOURCES:
                said = f"There is no function {name!r}; one that a workspace has saved is not known here."
                yield replace(problem, code="unknown_function", severity=self._doubt, message=said, next_step="")
            else:
                said = f"There is no table {name!r} in the schema, so its columns are not checked."
                hint = f" Did you mean {problem.nearest[0]!r}?" if problem.nearest else ""
                yield replace(
                    problem,
                    code="unknown_table",
                    severity=self._doubt,
                    message=said + hint,
                    next_step="Give its columns with --schema.",
                )

    @property
    def _doubt(self) -> Severity:
        return "error" if self.complete else "warning"

    def _rest(self, kql: str, analysis: Analysis) -> Iterator[KqlProblem]:
        for problem, diagnostic in zip(
            diagnostic_problems(analysis, TextPlaces(kql), self.schema), _told(analysis), strict=True
        ):
            yield replace(problem, severity="warning") if diagnostic.code == UNCHECKED else problem

    def _freeform(self, kql: str, first: Analysis, known: tuple[KqlProblem, ...]) -> Iterator[KqlProblem]:
        demands = Demands(self.schema, True, 1, None, datetime.now(UTC))
        seen = {(problem.line, problem.column, problem.code) for problem in known}
        for problem in report_of(kql, first, demands).errors:
            if (problem.line, problem.column, problem.code) not in seen:
                yield problem


def _told(analysis: Analysis) -> tuple[Diagnostic, ...]:
    return tuple(each for each in analysis.diagnostics if each.severity in ("Error", "Warning"))


def _unknown(analysis: Analysis) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tables: list[str] = []
    functions: list[str] = []
    for each in analysis.diagnostics:
        name = name_in(each)
        if each.severity != "Error" or not name:
            continue
        if each.code == UNKNOWN_FUNCTION:
            functions.append(name)
        elif each.code == UNKNOWN_TABLE or (each.code == UNKNOWN_NAME and not each.columns):
            tables.append(name)
    return tuple(dict.fromkeys(tables)), tuple(dict.fromkeys(functions))


def _has_syntax_errors(analysis: Analysis) -> bool:
    return any(each.severity == "Error" and _SYNTAX_CODES.fullmatch(each.code) for each in analysis.diagnostics)


def _parts(query: FoundQuery) -> Iterator[FoundQuery]:
    start = 0
    for gap in (*_BLANK_LINES.finditer(query.kql), None):
        stop = len(query.kql) if gap is None else gap.start()
        if _COMMENTS.sub("", query.kql[start:stop]).strip():
            yield query.part(start, stop)
        start = stop if gap is None else gap.end()


def _ascii(kql: str) -> str:
    """For the rules about length and form alone: which characters a rule file holds is its author's business."""
    return "".join(each if "\x20" <= each <= "\x7e" or each == "\n" else " " for each in kql)
