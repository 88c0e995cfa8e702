"""`KqlGuard`: one question, whether a query may run, answered by whichever parser is there.

It puts the parts in order: the text's own rules, the parser, its findings, the rules of freeform KQL. It is the only
module here that waits for anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.sentinel.kql_guard.analysis import Analysis
from sentinel_rag.sentinel.kql_guard.diagnostics import TextLimits, diagnostic_problems, text_problems
from sentinel_rag.sentinel.kql_guard.fallback_process import FALLBACK_LIMITS, FallbackParser
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.parser_process import ParserStuckError
from sentinel_rag.sentinel.kql_guard.report import GuardReport, KqlProblem, ParserName, TextPlaces
from sentinel_rag.sentinel.kql_guard.rules import Demands, freeform_problems

Schema = Mapping[str, Mapping[str, str]]


class KqlGuard:
    """Judges freeform KQL with `parser`, which it owns; without one, with the stricter fallback."""

    def __init__(self, parser: OfficialParser | None) -> None:
        self._parser = parser
        self._fallback: FallbackParser | None = None

    async def check(
        self,
        kql: str,
        schema: Schema,
        *,
        time_bounded: bool = False,
        row_cap: int | None = None,
        allowed_tables: frozenset[str] | None = None,
    ) -> GuardReport:
        """The verdict on `kql` for a workspace with the tables of `schema`. Never raises for what a query says.

        `time_bounded` says that the caller sends a timespan with the query, `row_cap` that it cuts the rows;
        `allowed_tables` are those that may be read, None for all of the schema.
        """
        name: ParserName = "microsoft" if self._parser is not None else "fallback"
        problems = text_problems(kql, TextLimits() if self._parser is not None else FALLBACK_LIMITS)
        if problems:
            return GuardReport(name, problems, frozenset(), None)
        try:
            analysis = await self._analysis(kql, schema)
        except ParserStuckError as stuck:
            told = KqlProblem("too_complex", "error", str(stuck), 1, 1, 0, stuck.next_step)
            return GuardReport(name, (told,), frozenset(), None)
        demands = Demands(schema, time_bounded, row_cap, allowed_tables, datetime.now(UTC))
        return report_of(kql, analysis, demands)

    async def close(self) -> None:
        """End the parsers' processes."""
        for parser in (self._parser, self._fallback):
            if parser is not None:
                await parser.close()

    async def _analysis(self, kql: str, schema: Schema) -> Analysis:
        if self._parser is not None:
            try:
                return await self._parser.analyze(kql, schema)
            except ParserStuckError:
                raise
            except UnavailableError:
                problems = text_problems(kql, FALLBACK_LIMITS)
                if problems:
                    raise ParserStuckError(problems[0].message, next_step=problems[0].next_step) from None
        if self._fallback is None:
            self._fallback = FallbackParser()
        return await self._fallback.analyze(kql, schema)


def report_of(kql: str, analysis: Analysis, demands: Demands) -> GuardReport:
    """The verdict on a query that has been read: the parser's own findings, then the rules of freeform KQL."""
    places = TextPlaces(kql)
    found = (*diagnostic_problems(analysis, places, demands.schema), *freeform_problems(analysis, places, demands))
    tables = frozenset(use.name for use in analysis.references)
    return GuardReport(analysis.parser, _once_each(found), tables, analysis.result)


def _once_each(problems: tuple[KqlProblem, ...]) -> tuple[KqlProblem, ...]:
    """One problem a place and kind of fault, errors first where they stand: several rules see the same wrong name."""
    kept: dict[tuple[int, int, str], KqlProblem] = {}
    for problem in problems:
        fault = "function" if "function" in problem.code or "plugin" in problem.code else problem.code
        kept.setdefault((problem.line, problem.column, fault), problem)
    places = [(each.line, each.column) for each in kept.values()]
    told = [each for each in kept.values() if each.code != "not_tabular" or places.count((each.line, each.column)) == 1]
    return tuple(sorted(_read(told), key=lambda each: (each.severity != "error", each.line, each.column)))


def _read(problems: list[KqlProblem]) -> list[KqlProblem]:
    """Those of what could be read: at the first place that breaks the syntax the reading ends, and what a parser finds
    behind it, or of the query as a whole, is of its own guess how the query goes on."""
    broken = [(each.line, each.column) for each in problems if each.code == "syntax" and each.severity == "error"]
    if not broken:
        return problems
    first = min(broken)
    return [
        each
        for each in problems
        if (each.code == "syntax" and (each.line, each.column) == first)
        or (each.code != "not_tabular" and (each.line, each.column) < first)
    ]
