"""Microsoft's parser for a benchmark: which queries bind to a schema, and the columns that each then has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.sentinel.kql_guard.analysis import Analysis
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser, installed_parser, parser_state
from sentinel_rag.sentinel.kql_guard.parser_process import ParserStuckError

_SYNTAX_CODES = frozenset(("KS176", "KS198"))
"""Beside those below KS100: an operator expected, an incomplete fragment."""

OUTSIDE = frozenset(("adx", "app", "arg", "cluster", "FileProfile", "resource", "SeenBy", "workspace"))
"""Functions whose rows are not the workspace's: other services, and what Microsoft knows of files and networks."""

_MISSING = re.compile(r"The (?:name|column) '([^']+)' (?:does not refer|must exist)")
_HUNTING = re.compile(r"\bTimestamp\b")
_MOST_TRIES = 5

Schema = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Bound:
    """`columns` is None where they are known only when the query runs (`evaluate pivot`), or for a command.

    `schema` says to which of the schemas it binds, the first that does; `unknown` are the tables and functions that it
    names in vain, or the parser's first complaint. `watchlist` are the columns that it reads of watchlists, which are
    nobody's to know: their items are text.
    """

    syntax_error: bool
    binds: bool = False
    columns: tuple[tuple[str, str], ...] | None = None
    outside_data: bool = False
    schema: int = 0
    unknown: tuple[str, ...] = ()
    watchlist: tuple[str, ...] | None = None


def _is_syntax(code: str) -> bool:
    return code in _SYNTAX_CODES or int(code.removeprefix("KS") or 0) < 100


def open_parser() -> OfficialParser:
    """The installed parser. Raises SystemExit, saying what to do, if it is not there."""
    parser = installed_parser(timeout_s=20.0)
    if parser is None:
        state = parser_state()
        raise SystemExit(f"{state.missing} {state.next_step}")
    return parser


def bind(parser: OfficialParser, queries: Sequence[str], schemas: Sequence[Schema]) -> list[Bound]:
    """What the parser says about each query; one that it cannot finish counts as not binding."""
    bounds = []
    for kql in queries:
        try:
            bounds.append(_bound(parser, kql, schemas))
        except ParserStuckError:
            bounds.append(Bound(syntax_error=True))
    return bounds


def _bound(parser: OfficialParser, kql: str, schemas: Sequence[Schema]) -> Bound:
    best, least = Bound(syntax_error=False), 0
    watchlist: set[str] | None = None
    for place, schema in enumerate(schemas):
        analysis = parser.analyze_now(kql, schema)
        if any(_is_syntax(code) for code, _ in _errors(analysis)):
            return Bound(syntax_error=True)
        called = {use.name for use in analysis.functions}
        if "ExternalDataExpression" in analysis.kinds or called & OUTSIDE:
            return Bound(syntax_error=False, outside_data=True)
        lacks_tables = place + 1 < len(schemas) and any(code == "KS204" for code, _ in _errors(analysis))
        if "_GetWatchlist" in called and not lacks_tables:
            watchlist = watchlist or set()
            for _ in range(_MOST_TRIES):
                analysis = parser.analyze_now(_watchlist_function(sorted(watchlist)) + kql, schema)
                missing = {name for _, text in _errors(analysis) for name in _MISSING.findall(text)}
                if missing <= watchlist:
                    break
                watchlist |= missing
        errors = _errors(analysis)
        if not errors and [one.kind for one in analysis.statements[-1:]] == ["LetStatement"]:
            return Bound(syntax_error=True)  # names for a query, and none
        opened = "EvaluateOperator" in analysis.kinds
        if not errors and analysis.kind == "Query" and (analysis.result is not None or opened):
            # Behind bag_unpack any name binds, so that the time column tells where a query belongs.
            if opened and place + 1 < len(schemas) and _HUNTING.search(kql):
                continue
            known = None if watchlist is None else tuple(sorted(watchlist))
            return Bound(False, True, analysis.result, schema=place, watchlist=known)
        if not best.unknown or len(errors) <= least:
            named = [found for code, text in errors if code in ("KS204", "KS211") for found in _MISSING.findall(text)]
            told = tuple(dict.fromkeys(named)) or tuple(text for _, text in errors[:1]) or ("an unknown result",)
            best, least = Bound(False, unknown=told), len(errors)
    return best


def _errors(analysis: Analysis) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in analysis.diagnostics if found.severity.lower() == "error"]


def _watchlist_function(columns: Sequence[str]) -> str:
    """`_GetWatchlist` in KQL, for a parser that does not know it."""
    declared = "".join(f", ['{name}']: string" for name in columns)
    rows = f"datatable(_DTItemId: string, LastUpdatedTimeUTC: datetime, SearchKey: string{declared})[]"
    return f"let _GetWatchlist = (alias: string, keys: dynamic = dynamic(null)) {{ {rows} }};\n"
