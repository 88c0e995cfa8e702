"""Whether a query that an analyst wrote is right: it parses, and its names are there.

Tables and functions that the schema does not know are told once each and then taken as given, so that the rest of the
query is checked all the same. Sentinel's and Defender's own functions (watchlists, ASIM, other workspaces) are taken as
given without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.sentinel.kql_guard.analysis import (
    OTHER_RESOURCES,
    UNCHECKED,
    UNKNOWN_FUNCTION,
    UNKNOWN_NAME,
    UNKNOWN_TABLE,
    Analysis,
    Diagnostic,
    KqlProblem,
    Schema,
    Severity,
    TextLimits,
    TextPlaces,
    diagnostic_problems,
    name_in,
    text_problems,
)
from sentinel_rag.sentinel.kql_guard.fallback_process import FALLBACK_LIMITS
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.parser_process import ParserClient
from sentinel_rag.sentinel.kql_guard.rule_collections import FoundQuery
from sentinel_rag.sentinel.kql_guard.rules import TIME, XDR_TIME, Demands, report_of

LIMITS = TextLimits(characters=100_000, depth=200)
_MOST_ROUNDS = 6
_MOST_ANSWERS_KEPT = 32
_SENTINEL_S_OWN = re.compile(r"_(Im|ASim|Get)[A-Z_]\w*|_GetWatchlist\w*|(im|vim|ASim)[A-Z]\w*")
_DEFENDER_S_OWN = frozenset({"AssignedIPAddresses", "DeviceFromIP", "FileProfile", "SeenBy"})
_OTHER_SERVICES = {"arg": "Azure Resource Graph", "adx": "Azure Data Explorer"}
_ABOUT_NAMES = frozenset({UNKNOWN_NAME, UNKNOWN_TABLE, UNKNOWN_FUNCTION})
_XDR_TABLE = re.compile(
    r"(Device|Email|Alert(Info|Evidence)|Identity(Logon|Query|Directory)Events|CloudAppEvents|UrlClickEvents)"
)
# Its columns are whatever the resources that write to it have.
_OPEN_TABLES = ("AzureDiagnostics",)
_BLANK_LINES = re.compile(r"\n[ \t\r]*\n\s*")
_COMMENTS = re.compile(r"//[^\n]*")
_SYNTAX_CODES = re.compile(r"KS0\d\d")


@dataclass(frozen=True, slots=True)
class _Assumed:
    """Names that are taken as given."""

    tables: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.tables, *self.functions)

    def and_also(self, more: _Assumed) -> _Assumed:
        return _Assumed(
            tuple(dict.fromkeys((*self.tables, *more.tables))), tuple(dict.fromkeys((*self.functions, *more.functions)))
        )


@dataclass(frozen=True, slots=True)
class QueryCheck:
    """What is wrong with one query. Places of `problems` are the query's; `assumed` names were taken as given."""

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

    parser: ParserClient
    schema: Schema
    complete: bool = False
    freeform: bool = False
    _answers: dict[tuple[str, bool, _Assumed], Analysis | SentinelError] = field(default_factory=dict, init=False)

    @property
    def _official(self) -> bool:
        return isinstance(self.parser, OfficialParser)

    def check(self, query: FoundQuery) -> tuple[QueryCheck, ...]:
        """The query, or the queries where blank lines separate several, as editors for KQL do."""
        if not self._official or text_problems(_ascii(query.kql), LIMITS):
            return (self._check(query),)
        whole = self._analysis(query.kql, self.schema, _Assumed())
        if not isinstance(whole, Analysis) or not _has_syntax_errors(whole):
            return (self._check(query),)
        parts = tuple(_parts(query))
        if len(parts) < 2 or any(self._breaks(part) for part in parts):
            return (self._check(query),)
        return tuple(self._check(part) for part in parts)

    def _breaks(self, part: FoundQuery) -> bool:
        analysis = self._analysis(part.kql, self.schema, _Assumed())
        return not isinstance(analysis, Analysis) or _has_syntax_errors(analysis)

    def _check(self, query: FoundQuery) -> QueryCheck:
        stopped = text_problems(_ascii(query.kql), LIMITS if self._official else FALLBACK_LIMITS)
        if stopped:
            severity: Severity = "error" if self._official or stopped[0].code in ("empty", "command") else "warning"
            return QueryCheck(query, (replace(stopped[0], severity=severity),))
        schema = self.schema
        first = self._analysis(query.kql, schema, _Assumed())
        if isinstance(first, Analysis) and _is_xdr_time(first):
            schema = _with_xdr_time(schema)
        assumed, analysis = self._settled(query.kql, schema)
        if not isinstance(first, Analysis) or not isinstance(analysis, Analysis):
            failed = first if not isinstance(first, Analysis) else analysis
            assert isinstance(failed, SentinelError)
            return QueryCheck(query, (KqlProblem("too_complex", "error", str(failed), 1, 1, 0, failed.next_step),))
        elsewhere = _read_elsewhere(first)
        if elsewhere is not None:
            analysis = _without_names(analysis)
        told = (*self._names(query.kql, first, assumed), *self._rest(query.kql, analysis))
        if elsewhere is not None:
            told = (_elsewhere_remark(query.kql, elsewhere), *told)
        if schema is not self.schema:
            told = (_xdr_time_remark(query.kql, first), *told)
        problems = tuple(dict.fromkeys(told))
        if self.freeform:
            problems = (*problems, *self._freeform(query.kql, first, problems))
        return QueryCheck(query, tuple(sorted(problems, key=lambda each: (each.line, each.column))), assumed.names)

    def _settled(self, kql: str, schema: Schema) -> tuple[_Assumed, Analysis | SentinelError]:
        """What has to be taken as given until nothing more is unknown, and the analysis under that."""
        assumed = _Assumed(tuple(each for each in _OPEN_TABLES if each in schema and each in kql))
        analysis = self._analysis(kql, schema, assumed)
        if not self._official and isinstance(analysis, Analysis):
            return _unknown(analysis), _without_columns_of_unknown_tables(analysis)
        for _ in range(_MOST_ROUNDS):
            if not isinstance(analysis, Analysis):
                break
            more = _unknown(analysis)
            if not more.names:
                # A name without columns around it may be a table (`let t = Name`); it is one if that settles more.
                more = _Assumed(_nameless(analysis))
                tried = self._analysis(kql, schema, assumed.and_also(more)) if more.names else analysis
                if not isinstance(tried, Analysis) or _errors(tried) >= _errors(analysis):
                    break
            assumed = assumed.and_also(more)
            analysis = self._analysis(kql, schema, assumed)
        return assumed, analysis

    def _analysis(self, kql: str, schema: Schema, assumed: _Assumed) -> Analysis | SentinelError:
        asked = (kql, schema is self.schema, assumed)
        if asked not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS_KEPT:
                self._answers.clear()
            self._answers[asked] = self._asked(kql, schema, assumed)
        return self._answers[asked]

    def _asked(self, kql: str, schema: Schema, assumed: _Assumed) -> Analysis | SentinelError:
        try:
            return self.parser.analyze_now(kql, schema, assumed.tables, assumed.functions)
        except SentinelError as error:
            return error

    def _names(self, kql: str, first: Analysis, assumed: _Assumed) -> Iterator[KqlProblem]:
        """Each unknown table and function once, where it is first named."""
        told: set[str] = set()
        for problem, diagnostic in zip(
            diagnostic_problems(first, TextPlaces(kql), self.schema), _told(first), strict=True
        ):
            name = name_in(diagnostic)
            if name not in assumed.names or name in told:
                continue
            told.add(name)
            if _SENTINEL_S_OWN.fullmatch(name) or name in _DEFENDER_S_OWN | OTHER_RESOURCES:
                continue
            if diagnostic.code == UNKNOWN_FUNCTION:
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


def _unknown(analysis: Analysis) -> _Assumed:
    """Tables and functions that the parser itself calls unknown."""
    found = [each for each in analysis.diagnostics if each.severity == "Error"]
    return _Assumed(
        tuple(dict.fromkeys(name_in(each) for each in found if each.code == UNKNOWN_TABLE)),
        tuple(dict.fromkeys(name_in(each) for each in found if each.code == UNKNOWN_FUNCTION)),
    )


def _without_columns_of_unknown_tables(analysis: Analysis) -> Analysis:
    """The fallback cannot take a table as given: where one is not known, neither are the columns behind it."""
    unknown = _unknown(analysis)
    if not unknown.tables:
        kept = tuple(each for each in analysis.diagnostics if not _is_about(each, unknown))
        return msgspec.structs.replace(analysis, diagnostics=kept)
    return _without_names(analysis)


def _without_names(analysis: Analysis) -> Analysis:
    """The analysis without what it says of names, for a query whose columns nobody here knows."""
    kept = tuple(each for each in analysis.diagnostics if each.code not in _ABOUT_NAMES)
    return msgspec.structs.replace(analysis, diagnostics=kept)


def _read_elsewhere(analysis: Analysis) -> Diagnostic | None:
    """The first call of a function that reads tables of another service."""
    calls = (each for each in analysis.diagnostics if each.code == UNKNOWN_FUNCTION)
    return next((each for each in calls if name_in(each) in _OTHER_SERVICES), None)


def _elsewhere_remark(kql: str, found: Diagnostic) -> KqlProblem:
    name = name_in(found)
    said = f"{name}() reads {_OTHER_SERVICES[name]}, whose columns are not known here, so no column is checked."
    return KqlProblem("not_checkable", "warning", said, *TextPlaces(kql).locate(*found.at))


def _is_about(found: Diagnostic, assumed: _Assumed) -> bool:
    """True if `found` is told by `_names`, once for each name."""
    return found.code == UNKNOWN_FUNCTION and name_in(found) in assumed.functions


def _nameless(analysis: Analysis) -> tuple[str, ...]:
    found = (each for each in analysis.diagnostics if each.code == UNKNOWN_NAME and not each.columns)
    return tuple(dict.fromkeys(name_in(each) for each in found))


def _errors(analysis: Analysis) -> int:
    return sum(each.severity == "Error" for each in analysis.diagnostics)


def _is_xdr_time(analysis: Analysis) -> bool:
    unknown = any(each.code == UNKNOWN_NAME and name_in(each) == XDR_TIME for each in analysis.diagnostics)
    return unknown and any(_XDR_TABLE.match(use.name) for use in analysis.references)


def _with_xdr_time(schema: Schema) -> Schema:
    return {
        table: {**columns, XDR_TIME: "datetime"} if _XDR_TABLE.match(table) else columns
        for table, columns in schema.items()
    }


def _xdr_time_remark(kql: str, analysis: Analysis) -> KqlProblem:
    """Once a query: a rule written for Defender XDR's hunting names its time column many times."""
    found = next(each for each in analysis.diagnostics if name_in(each) == XDR_TIME)
    line, column, length = TextPlaces(kql).locate(*found.at)
    said = f"{XDR_TIME} is the time column of Defender XDR's own hunting; a Sentinel workspace has {TIME}."
    step = f"Use {TIME} to run it in a workspace."
    return KqlProblem("xdr_time", "warning", said, line, column, length, step, (TIME,))


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
