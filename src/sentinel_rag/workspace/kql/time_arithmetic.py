"""Which expressions are times or spans, and the arithmetic of spans that SQL does not have.

Source: the Kusto pages "Datetime / timespan arithmetic" and "bin()". A span divided by a span is a real, a span divided
or multiplied by a number is a span, and bins of time count from 0001-01-01. Used by `dialect`, which puts these
functions in the place of duckdb-kql's.
"""

from __future__ import annotations

from collections.abc import Callable

from duckdb_kql import ir  # noqa: TID253 - this module reads that library's query form

from sentinel_rag.workspace.kql.sql_forms import bound_all

Render = Callable[[ir.Expr], str]

_SPANS = frozenset({"totimespan", "timespan", "to_timespan", "time", "dayofweek", "make_timespan"})
_TIMES = frozenset(
    {
        "todatetime",
        "datetime",
        "now",
        "ago",
        "ingestion_time",
        "make_datetime",
        "datetime_add",
        "datetime_utc_to_local",
        "datetime_local_to_utc",
        *(f"{edge}of{period}" for edge in ("start", "end") for period in ("day", "week", "month", "year")),
        *(f"unixtime_{unit}_todatetime" for unit in ("seconds", "milliseconds", "microseconds", "nanoseconds")),
    }
)
_FIRST_ARGUMENT = frozenset({"bin", "floor", "bin_at", "abs", "coalesce", "max_of", "min_of"})


def is_timespan(node: ir.Expr) -> bool:
    """Whether `node` is surely a span."""
    if isinstance(node, (ir.Literal, ir.Parameter)):
        return bool(node.kind == "timespan")
    if isinstance(node, ir.ColumnRef):
        return _column_type(node) == "timespan"
    if isinstance(node, ir.UnaryOp):
        return is_timespan(node.operand)
    if isinstance(node, ir.FunctionCall):
        return _call_is(node, _SPANS, is_timespan)
    if not isinstance(node, ir.BinaryOp):
        return False
    if node.op == "-" and is_datetime(node.left) and is_datetime(node.right):
        return True
    if node.op in ("+", "-"):
        return is_timespan(node.left) and is_timespan(node.right)
    if node.op == "*":
        return is_timespan(node.left) or is_timespan(node.right)
    if node.op == "/":
        return is_timespan(node.left) and not is_timespan(node.right)
    return node.op == "%" and is_timespan(node.left)


def is_datetime(node: ir.Expr) -> bool:
    """Whether `node` is surely a time."""
    if isinstance(node, (ir.Literal, ir.Parameter)):
        return bool(node.kind == "datetime")
    if isinstance(node, ir.ColumnRef):
        return _column_type(node) == "datetime"
    if isinstance(node, ir.FunctionCall):
        return _call_is(node, _TIMES, is_datetime)
    if isinstance(node, ir.BinaryOp) and node.op in ("+", "-"):
        sides = (node.left, node.right)
        return any(map(is_datetime, sides)) and any(map(is_timespan, sides))
    return False


def _column_type(column: ir.ColumnRef) -> str:
    """The KQL type of a column, where the translation knows it and has noted it at the reference."""
    return str(getattr(column, "kind", ""))


def _call_is(call: ir.FunctionCall, names: frozenset[str], test: Callable[[ir.Expr], bool]) -> bool:
    name = call.name.lower()
    if name in ("iff", "iif"):
        return len(call.args) == 3 and test(call.args[1]) and test(call.args[2])
    return name in names or (name in _FIRST_ARGUMENT and bool(call.args) and test(call.args[0]))


def span_arithmetic(node: ir.BinaryOp, render: Render) -> str | None:
    """SQL for a product, a quotient or a remainder that is a span; None for anything else."""
    if node.op not in ("*", "/", "%") or not is_timespan(node):
        return None
    left, right = node.left, node.right
    if node.op == "*" and not is_timespan(left):
        left, right = right, left
    number = f"CAST({render(right)} AS DOUBLE)"
    micros = f"epoch_us({render(left)})"
    if node.op == "%":
        width = f"epoch_us({render(right)})" if is_timespan(right) else f"CAST({number} AS BIGINT)"
        return bound_all(
            "_r", "to_microseconds(((_r.v % _r.w) + abs(_r.w)) % abs(_r.w))", v=micros, w=f"nullif({width}, 0)"
        )
    if isinstance(right, ir.Literal) and right.kind in ("int", "long"):
        whole = f"{micros} * {right.value}" if node.op == "*" else f"{micros} // nullif({right.value}, 0)"
        return f"to_microseconds({whole})"
    if node.op == "*":
        return f"to_microseconds(CAST(trunc({micros} * {number}) AS BIGINT))"
    return f"to_microseconds(CAST(trunc({micros} / nullif({number}, 0)) AS BIGINT))"


def time_bin(node: ir.FunctionCall, render: Render) -> str | None:
    """SQL for `bin(value, span)`; None if the size of the bins is no span.

    duckdb-kql counts bins from 1970-01-01, a Thursday, and in floating point; Kusto's bins of 7d start on Mondays.
    """
    if len(node.args) != 2 or not is_timespan(node.args[1]):
        return None
    value, width = node.args
    if is_timespan(value):
        body = "to_microseconds((_b.v - ((_b.v % _b.w) + _b.w) % _b.w))"
        return bound_all("_b", body, v=f"epoch_us({render(value)})", w=f"nullif(epoch_us({render(width)}), 0)")
    return f"time_bucket({render(width)}, CAST({render(value)} AS TIMESTAMP), TIMESTAMP '0001-01-01')"


def time_aggregate(call: ir.FunctionCall, render: Render) -> str | None:
    """SQL for `sum` and `avg` of spans and `avg` of times, with their `if` forms; None for any other aggregate."""
    name = call.name.lower()
    function = name.removesuffix("if")
    if function not in ("sum", "avg") or len(call.args) != (2 if name.endswith("if") else 1):
        return None
    value = call.args[0]
    spans = is_timespan(value)
    if not spans and not (function == "avg" and is_datetime(value)):
        return None
    only = f" FILTER (WHERE {render(call.args[1])})" if len(call.args) == 2 else ""
    total = f"{function}(epoch_us({render(value)})){only}"
    if function == "sum":
        total = f"coalesce({total}, 0)"
    return f"{'to_microseconds' if spans else 'make_timestamp'}(CAST(trunc({total}) AS BIGINT))"
