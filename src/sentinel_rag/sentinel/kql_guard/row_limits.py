"""How many rows a query leaves at most, as far as its last operators say."""

from __future__ import annotations

import math

from sentinel_rag.sentinel.kql_guard.analysis import Call, Let, Node, Operator, Pipe, Reference, Statement, Value
from sentinel_rag.sentinel.kql_guard.names import words

MOST_ROWS = 30_000
"""What a result may hold without a cap of the caller: as many as the portal shows."""

# These leave as many rows as they get, or fewer.
_NOT_MORE = words("""
    AsOperator ExtendOperator FilterOperator ParseKvOperator ParseOperator ParseWhereOperator ProjectAwayOperator
    ProjectKeepOperator ProjectOperator ProjectRenameOperator ProjectReorderOperator RenderOperator SearchOperator
    SerializeOperator SortOperator
    """)
_ONE_EACH_GROUP = frozenset(
    {"SummarizeOperator", "DistinctOperator", "MakeSeriesOperator", "ReduceByOperator", "TopNestedOperator"}
)
_COUNTED = frozenset({"TakeOperator", "TopOperator", "SampleOperator", "SampleDistinctOperator", "TopHittersOperator"})
_FIXED = frozenset({"CountOperator", "GetSchemaOperator", "PrintOperator"})


def row_limit(statements: tuple[Statement, ...]) -> float | None:
    """The rows that the last statement leaves at most: a number, infinity for none told, None for one a group."""
    lets: dict[str, Let] = {}
    last: Value | None = None
    for statement in statements:
        if statement.let is not None:
            lets[statement.let.name] = statement.let
        if statement.value is not None:
            last = statement.value
    return math.inf if last is None or last.node is None else _of_node(last.node, lets, frozenset())


def _of_node(node: Node | None, lets: dict[str, Let], seen: frozenset[str]) -> float | None:
    if isinstance(node, Pipe):
        for operator in reversed(node.ops):
            if operator.kind not in _NOT_MORE:
                return _of_operator(operator)
        return _of_node(node.source, lets, seen)
    if isinstance(node, Reference) and node.name in lets and node.name not in seen:
        let = lets[node.name]
        return math.inf if let.params is not None else _of_node(let.value.node, lets, seen | {node.name})
    if isinstance(node, Call):
        return math.inf
    return math.inf


def _of_operator(operator: Operator) -> float | None:
    if operator.kind in _ONE_EACH_GROUP:
        return None
    if operator.kind in _FIXED:
        return 1
    if operator.kind in _COUNTED and operator.rows is not None:
        return operator.rows
    return math.inf
