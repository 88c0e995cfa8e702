"""Numbers: conversions and mathematics where duckdb-kql has no mapping or answers other than Kusto's pages say.

Source: the Kusto pages named like the functions. What is no number of the type that is asked for is null.
"""

from __future__ import annotations

from duckdb_kql.translate.functions import long_or_wider  # noqa: TID253 - this module writes that library's rows

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, scalar

_DECIMAL = "DECIMAL(38, 10)"


def _to_decimal(value: str) -> str:
    return f"TRY_CAST({value} AS {_DECIMAL})"


def _of_positive(function: str) -> str:
    """Null for a negative number, as the pages of `sqrt()` and the logarithms have it."""
    return f"CASE WHEN _n >= 0 OR isnan(_n) THEN {function}(_n) END"


def _root(value: str) -> str:
    return bound("_n", f"CAST({value} AS DOUBLE)", _of_positive("sqrt"))


def _logarithm(function: str, value: str) -> str:
    """Minus infinity for 0, where DuckDB raises."""
    return bound(
        "_n",
        f"CAST({value} AS DOUBLE)",
        f"CASE WHEN _n = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN _n > 0 OR isnan(_n) THEN {function}(_n) END",
    )


def _natural(value: str) -> str:
    return _logarithm("ln", value)


def _common(value: str) -> str:
    return _logarithm("log10", value)


def _binary(value: str) -> str:
    return _logarithm("log2", value)


def _log_gamma(value: str) -> str:
    return f"lgamma(CAST({value} AS DOUBLE))"


def _ones(value: str) -> str:
    return f"CAST(bit_count(CAST({value} AS BIGINT)) AS BIGINT)"


def _ceiling(value: str) -> str:
    """Of the type of its argument: a whole number stays one."""
    return bound("_n", long_or_wider(value), "_n - _n % 1 + CASE WHEN _n % 1 > 0 THEN 1 ELSE 0 END")


def _random(limit: str = "") -> str:
    """A real below 1, or a whole number below the limit."""
    return f"CAST(floor(random() * {limit}) AS BIGINT)" if limit else "random()"


def _new_guid() -> str:
    return "uuid()"


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("todecimal", _to_decimal, 1),
    scalar("sqrt", _root, 1),
    scalar("log", _natural, 1),
    scalar("log10", _common, 1),
    scalar("log2", _binary, 1),
    scalar("loggamma", _log_gamma, 1),
    scalar("bitset_count_ones", _ones, 1),
    scalar("ceiling", _ceiling, 1),
    scalar("rand", _random, 0, 1),
    scalar("new_guid", _new_guid, 0),
)
