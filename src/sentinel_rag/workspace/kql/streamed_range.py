"""The source `range x from a to b step s` as a table function, which makes its rows as they are asked for.

duckdb-kql makes one list of all of them first, seven gigabytes for a hundred million rows that no memory limit counts,
and casts numbers to whole ones. Both ends belong to the range, as on Kusto's page "range operator".
"""

from __future__ import annotations

from typing import Any

from duckdb_kql import ir, translate  # noqa: TID253 - this module is about that library

from sentinel_rag.workspace.kql.column_types import expression_type, range_type
from sentinel_rag.workspace.kql.errors import KqlError


def streamed_range(source: Any) -> str:
    """The SELECT of the range, one column. Raises KqlError if its step is the constant 0."""
    bounds = (source.start, source.stop, source.step)
    if isinstance(source.step, ir.Literal) and source.step.kind in ("int", "long", "real") and not source.step.value:
        raise KqlError("The step of range is 0.", kql_code="SEN0002", next_step="Give a step above or below 0.")
    name = translate.quote_ident(source.name)
    start, stop, step = (translate.render_expr(bound) for bound in bounds)
    if translate._is_timespan_expr(source.start):
        micros = ", ".join(f"epoch_us({bound})" for bound in (start, stop, step))
        return f"SELECT to_microseconds(_us) AS {name} FROM generate_series({micros}) AS made(_us)"  # noqa: S608
    if any(translate._is_datetime_expr(bound) or translate._is_timespan_expr(bound) for bound in bounds):
        return f"SELECT {name} FROM generate_series({start}, {stop}, {step}) AS made({name})"  # noqa: S608
    if any(expression_type(bound, {}, {}) in _FRACTIONS for bound in bounds):
        return _real_range(name, [f"CAST({bound} AS DOUBLE)" for bound in (start, stop, step)], source)
    whole = ", ".join(f"CAST({bound} AS BIGINT)" for bound in (start, stop, step))
    return f"SELECT {name} FROM generate_series({whole}) AS made({name})"  # noqa: S608


_FRACTIONS = frozenset(("real", "decimal"))


def _real_range(name: str, bounds: list[str], source: Any) -> str:
    """Each value is made from the start, so that errors do not add up; whole if only the end is a real."""
    start, stop, step = bounds
    count = f"CAST(floor(({stop} - {start}) / nullif({step}, 0)) AS BIGINT)"
    value = f"({start} + _i * {step})"
    made = value if range_type(source) in _FRACTIONS else f"CAST({value} AS BIGINT)"
    return (
        f"SELECT {made} AS {name} FROM generate_series(0, {count} + 1) AS made(_i) "  # noqa: S608
        f"WHERE ({stop} - {value}) * sign({step}) >= 0"
    )
