"""The source `range x from a to b step s` as a table function, which makes its rows as they are asked for.

duckdb-kql makes one list of all of them first: a hundred million rows cost seven gigabytes that no memory limit of the
engine counts. Which bounds are times is the library's rule; both ends belong to the range, as Kusto has it.
"""

from __future__ import annotations

from typing import Any

from duckdb_kql import translate  # noqa: TID253 - this module is about that library


def streamed_range(source: Any) -> str:
    """The SELECT of the range, one column."""
    bounds = (source.start, source.stop, source.step)
    temporal = any(translate._is_datetime_expr(bound) or translate._is_timespan_expr(bound) for bound in bounds)
    rendered = [translate.render_expr(bound) for bound in bounds]
    arguments = ", ".join(rendered if temporal else [f"CAST({bound} AS BIGINT)" for bound in rendered])
    name = translate.quote_ident(source.name)
    return f"SELECT {name} FROM generate_series({arguments}) AS made({name})"  # noqa: S608 - the library's own rendering
