"""`has`, `contains` and their kind, written so that DuckDB answers them from its dictionaries.

Source: the Kusto page "String operators". A term is a run of letters and digits; every other character ends it, the
underscore too. duckdb-kql's own SQL is right and slow: a type test for each row, and LIKE with an escape.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

# DuckDB runs LIKE with ESCAPE, which the library writes, without its fast substring search: three times slower.
_SUBSTRING = {
    "contains": "contains(lower({0}), lower({1}))",
    "contains_cs": "contains({0}, {1})",
    "startswith": "starts_with(lower({0}), lower({1}))",
    "endswith": "ends_with(lower({0}), lower({1}))",
}


def register(operators: dict[str, Any]) -> None:
    """Replace the templates of the substring operators and their negations."""
    for name, template in _SUBSTRING.items():
        operators[name] = replace(operators[name], template=template)
        operators[f"!{name}"] = replace(operators[f"!{name}"], template=f"NOT {template}")
