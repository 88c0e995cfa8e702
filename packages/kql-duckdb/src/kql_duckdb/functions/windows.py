"""Functions over neighbouring rows: `prev`, `next`, `row_number`, `row_cumsum`, `row_rank_*` and `row_window_session`.

Source: the Kusto pages named like the functions. They need rows in an order that counts (`Context.row_order`). What is
computed over another window first, such as where a count starts again, is a column of its own (`Context.hoisted`),
because SQL has no window inside a window.
"""

from __future__ import annotations

from dataclasses import replace

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import BOOL, DATETIME, LONG, STRING, convert, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, aggregated_over, function
from kql_duckdb.functions.operators import condition
from kql_duckdb.functions.python_functions import python_function
from kql_duckdb.types import NUMBERS, KustoType


def _order(call: BoundCall) -> str:
    if not call.context.row_order:
        raise KqlError(
            f"Function '{call.name}' cannot be invoked in current context. Details: the row set must be serialized: "
            "put sort by ... or serialize before it.",
            "SEM0001",
        )
    return f"ORDER BY {call.context.row_order}"


def _windowed(template: str, result: KustoType, *arguments: Typed, nullable: bool = True) -> Typed:
    made = aggregated_over(template, result, *arguments)
    return replace(made, windowed=True, aggregated=False, nullable=nullable)


def _plain(call: BoundCall, value: Typed) -> Typed:
    """The argument, as a column if it is itself over a window."""
    return call.context.hoisted(value, call.name) if value.windowed else value


def _neighbour(call: BoundCall) -> Typed:
    value, *rest = call.arguments
    value = _plain(call, to_string(value) if value.type is STRING else value)
    offset = convert(rest[0], LONG) if rest else literal(1, LONG)
    missing = convert(rest[1], value.type) if len(rest) > 1 else literal(None, value.type)
    word = "lag" if call.name == "prev" else "lead"
    template = f"{word}({{0}}, {{1}}, {{2}}) OVER ({_order(call)})"
    return _windowed(template, value.type, value, offset, _plain(call, missing), nullable=value.type is not STRING)


def _partition(call: BoundCall, place: int) -> tuple[str, tuple[Typed, ...]]:
    """The window of the rows since the last restart, whose condition is the argument at `place`."""
    order = _order(call)
    if place >= len(call.arguments):
        return order, ()
    restart = _plain(call, condition(call, call.arguments[place]))
    if restart.is_constant and not restart.constant:
        return order, ()
    restarts = f"sum(CASE WHEN {{0}} THEN 1 ELSE 0 END) OVER ({order} ROWS UNBOUNDED PRECEDING)"
    group = call.context.hoisted(_windowed(restarts, LONG, restart), call.name)
    return f"PARTITION BY {group.sql} {order}", (group,)


def _row_number(call: BoundCall) -> Typed:
    start = convert(call.arguments[0], LONG) if call.arguments else literal(1, LONG)
    window, _ = _partition(call, 1)
    return _windowed(f"row_number() OVER ({window}) + {{0}} - 1", LONG, start, nullable=False)


def _running_sum(call: BoundCall) -> Typed:
    value = _plain(call, call.arguments[0])
    if value.type not in NUMBERS:
        raise call.invalid(f"argument #1 must be a number, not {value.type}.", "SEM0201")
    window, _ = _partition(call, 1)
    template = f"CAST(coalesce(sum({{0}}) OVER ({window} ROWS UNBOUNDED PRECEDING), 0) AS {value.type.held})"
    return _windowed(template, value.type, value)


def _rank(call: BoundCall) -> Typed:
    """Counts the different terms so far, or gives the number of the first row of its term."""
    term = call.context.hoisted(call.arguments[0], call.name)
    window, _ = _partition(call, 1)
    changed = f"(row_number() OVER ({window}) = 1 OR lag({{0}}) OVER ({window}) IS DISTINCT FROM {{0}})"
    flag = call.context.hoisted(_windowed(changed, BOOL, term), call.name)
    running = f"OVER ({window} ROWS UNBOUNDED PRECEDING)"
    if call.name == "row_rank_min":
        number = call.context.hoisted(_windowed(f"row_number() OVER ({window})", LONG), call.name)
        return _windowed(f"max(CASE WHEN {{0}} THEN {{1}} END) {running}", LONG, flag, number)
    return _windowed(f"CAST(sum(CASE WHEN {{0}} THEN 1 ELSE 0 END) {running} AS BIGINT)", LONG, flag)


def _session(call: BoundCall) -> Typed:
    """The time at which the session of each row starts.

    A new one starts where a row is too far from the one before it, or from the first of its session.
    """
    moment = call.context.hoisted(call.arguments[0], call.name)
    longest, widest = call.arguments[1], call.arguments[2]
    window, groups = _partition(call, 3)
    gap = f"(lag({{0}}) OVER ({window}) IS NULL OR {{0}} - lag({{0}}) OVER ({window}) > {{1}})"
    apart = call.context.hoisted(_windowed(gap, BOOL, moment, widest), call.name)
    order = _order(call)
    counted = _windowed(f"sum(CASE WHEN {{0}} THEN 1 ELSE 0 END) OVER ({order} ROWS UNBOUNDED PRECEDING)", LONG, apart)
    run = call.context.hoisted(counted, call.name)
    keys = ", ".join(each.sql for each in (*groups, run))
    so_far = f"list(epoch_us({{0}})) OVER (PARTITION BY {keys} {order} ROWS UNBOUNDED PRECEDING)"
    return _windowed(f"make_timestamp(kql_session({so_far}, epoch_us({{1}})))", DATETIME, moment, longest)


@python_function("kql_session", ("BIGINT[]", "BIGINT"), "BIGINT")
def _session_start(moments: list[int | None] | None, longest: int | None) -> int | None:
    """The first moment of the session to which the last one belongs."""
    start = None
    for moment in moments or ():
        if moment is not None and (start is None or (longest is not None and moment - start > longest)):
            start = moment
    return start


FUNCTIONS: tuple[ScalarFunction, ...] = (
    function("prev(column: any, offset?: long, default_value?: any)", _neighbour),
    function("next(column: any, offset?: long, default_value?: any)", _neighbour),
    function("row_number(startingIndex?: long, restart?: any)", _row_number),
    function("row_cumsum(term: any, restart?: any)", _running_sum),
    function("row_rank_dense(term: any, restart?: any)", _rank),
    function("row_rank_min(term: any, restart?: any)", _rank),
    function(
        "row_window_session(expr: datetime, maxDistanceFromFirst: timespan, maxDistanceBetweenNeighbors: timespan, "
        "restart?: any)",
        _session,
    ),
)
NAMES = frozenset(one.name for one in FUNCTIONS)
