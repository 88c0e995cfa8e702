"""Names for tables inside a query: functions with a table as result, `table(name)`, and `| as name`.

Kusto's pages "let statement", "table()" and "as operator". duckdb-kql expands stored functions; a function of the query
with a tabular body is given to it as one. What is named by `as` becomes a binding that the rest of the pipeline reads.
"""

from __future__ import annotations

from typing import Any

from duckdb_kql import ir, lower, stored_functions  # noqa: TID253 - this module is about that library
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253

TABLE_OF_PARAMETER = "\x02"
"""Stands before the name of a value in `["..."]`, for `table(value)`, which the library's grammar does not know."""

_TABULAR_BODY = ("a tabular body is not supported", "binds a table")


class AsName(str):
    """A name given by `as`, whose binding is written in the query itself and not before it."""

    __slots__ = ()


def declare_function(declaration: Any, scalars: Any, declare: Any) -> None:
    """Makes `let f = (x:long) { T | where a > x };` callable. `declare` is the library's function, for scalar ones."""
    try:
        declare(declaration, scalars)
        return
    except KqlUnsupportedError as error:
        scope = lower._FN_STATE.get()
        tabular = any(words in str(error.hint) for words in _TABULAR_BODY) or _ends_in_pipe(declaration)
        if not tabular or scope is None or scope.functions is None:
            raise
    children = lower._rule_children(declaration)
    names = lower._find_names(children[0])
    name = names[0] if names else children[0].getText()
    scope.functions.setdefault(None, {})[name] = stored_functions.StoredFunction(
        name=name, database=None, parameters="", body="", folder="", docstring="", command="", declaration=declaration
    )


def _ends_in_pipe(declaration: Any) -> bool:
    """Whether the function has scalar parameters and its body ends in a pipeline."""
    children = lower._rule_children(declaration)
    body = next((child for child in children if lower._cls(child) == "LetFunctionBody"), None)
    if body is None or lower._find_all(declaration, "TabularParameter"):
        return False
    final = [child for child in lower._rule_children(body) if lower._cls(child) != "LetFunctionBodyStatement"]
    return len(final) == 1 and lower._cls(lower._unparenthesize(final[0])) in lower._TABULAR_VALUE


def table_of_parameter(source: Any) -> Any:
    """The table whose name is the value of a parameter or of an earlier `let`. Refused if that is no constant text."""
    if not isinstance(source, ir.TableRef) or not source.name.startswith(TABLE_OF_PARAMETER):
        return source
    name = source.name.removeprefix(TABLE_OF_PARAMETER)
    scope = lower._FN_STATE.get()
    value = scope.scalars.get(name) if scope is not None else None
    if not isinstance(value, ir.Literal) or value.kind != "string":
        raise KqlUnsupportedError(f"table({name})", hint="the name of the table must be a constant text")
    return ir.TableRef(str(value.value))


def constant(node: Any) -> ir.Expr:
    """The expression with the values of earlier `let`s in it, such as N of `take N`."""
    expression = lower._lower_expr(node)
    scope = lower._FN_STATE.get()
    valued: ir.Expr = lower._substitute(expression, scope.scalars) if scope is not None else expression
    return valued


def split_at_as(nodes: list[Any]) -> tuple[int, str] | None:
    """Where the last `| as name` of a pipeline stands that operators follow, and the name."""
    for index in range(len(nodes) - 2, -1, -1):
        inner = nodes[index]
        while lower._cls(inner) in ("PipedOperator", "AfterPipeOperator") and lower._rule_children(inner):
            inner = lower._rule_children(inner)[0]
        if lower._cls(inner) == "AsOperator":
            names = lower._find_names(lower._rule_children(inner)[-1])
            if names:
                return index, names[0]
    return None
