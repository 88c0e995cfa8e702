"""`parse` patterns that duckdb-kql does not take: a column before the first text, and columns with any name.

Kusto's page "parse operator". The library makes one regular expression with a group for each column, named as the
column; here the groups get plain names, which are exchanged for the columns' own around it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, schema, translate  # noqa: TID253 - this module is about that library

from sentinel_rag.workspace.kql.extension import quoted

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Nothing(str):
    """The text before a leading column: none. The library refuses an empty text that somebody wrote."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


def with_leading_column(node: Any, lower_parse: Callable[[Any], Any]) -> Any:
    """Lowers a `parse` with `lower_parse`, a column before the first text included."""
    patterns = [child for child in lower._rule_children(node) if lower._cls(child) == "ParseOperatorPattern"]
    parts = lower._rule_children(patterns[0]) if patterns else []
    if not parts or lower._cls(parts[0]) == "ParseOperatorPatternSegment":
        return lower_parse(node)
    leading, pattern = parts[0], patterns[0]
    pattern.children = [child for child in pattern.children if child is not leading]
    parsed = lower_parse(node)
    names = lower._find_names(leading)
    kinds = [child.getText().strip().lower() for child in lower._find_all(leading, "ScalarType")]
    segment = ir.ParseSegment(_Nothing(), False, names[0], kinds[0] if kinds else None)
    return dataclasses.replace(parsed, segments=(segment, *parsed.segments))


def parse_sql(operator: ir.Parse, previous: str, before: list[str] | None, render: Callable[..., str]) -> str:
    """The SQL of a `parse`. `render` is the library's function."""
    names = [segment.name for segment in operator.segments if segment.name]
    if before is None or all(_PLAIN.fullmatch(name) for name in names) or len(set(names)) != len(names):
        return render(operator, previous, before)
    plain = {name: f"_part{position}" for position, name in enumerate(names)}
    segments = tuple(
        dataclasses.replace(segment, name=plain[segment.name]) if segment.name else segment
        for segment in operator.segments
    )
    inner = render(dataclasses.replace(operator, segments=segments), previous, before)
    columns = [
        f"{quoted(plain[name])} AS {quoted(name)}" if name in plain else quoted(name)
        for name in schema.replacing(before, names)
    ]
    return f"SELECT {', '.join(columns)} FROM ({inner}) AS _named"  # noqa: S608 - quoted names around the library's SQL


def install(replace: Callable[[Any, str, Any], Any]) -> None:
    """Put `parse_sql` in the place of the library's function."""

    def render_parse(operator: ir.Parse, previous: str, before: list[str] | None = None) -> str:
        return parse_sql(operator, previous, before, original)

    original = replace(translate, "render_parse", render_parse)
