"""Microsoft's parser for a benchmark: which queries bind to a schema, and the columns that each then has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.parser_installation import installed_parser, parser_state
from sentinel_rag.sentinel.kql_guard.parser_process import ParserStuckError

_SYNTAX_CODES = frozenset(("KS176", "KS198"))
"""Beside those below KS100: an operator expected, an incomplete fragment."""

Schema = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Bound:
    """`columns` is None where they are known only when the query runs (`evaluate pivot`), or for a command."""

    syntax_error: bool
    binds: bool
    columns: tuple[tuple[str, str], ...] | None
    outside_data: bool


def _is_syntax(code: str) -> bool:
    return code in _SYNTAX_CODES or int(code.removeprefix("KS") or 0) < 100


def open_parser() -> OfficialParser:
    """The installed parser. Raises SystemExit, saying what to do, if it is not there."""
    parser = installed_parser(timeout_s=20.0)
    if parser is None:
        state = parser_state()
        raise SystemExit(f"{state.missing} {state.next_step}")
    return parser


def bind(parser: OfficialParser, queries: Sequence[str], schema: Schema) -> list[Bound]:
    """What the parser says about each query; one that it cannot finish counts as not binding."""
    bounds = []
    for analysis in parser.analyze_many(queries, schema):
        if isinstance(analysis, ParserStuckError):
            bounds.append(Bound(syntax_error=True, binds=False, columns=None, outside_data=False))
            continue
        errors = [found for found in analysis.diagnostics if found.severity.lower() == "error"]
        opened = "EvaluateOperator" in analysis.kinds
        bounds.append(
            Bound(
                syntax_error=any(_is_syntax(found.code) for found in errors),
                binds=not errors and analysis.kind == "Query" and (analysis.result is not None or opened),
                columns=analysis.result,
                outside_data="ExternalDataExpression" in analysis.kinds,
            )
        )
    return bounds
