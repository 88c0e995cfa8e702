"""Functions that SQL calls and Python computes: what DuckDB has no expression for, or only a very long one.

`python_function` marks one; `install` registers all on a database, once, for every connection to it. They take and
return values as DuckDB holds them, get nulls too, and do not raise for a value in the data: what cannot be computed is
null, as Kusto has it, except where `refusal` says why not.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kql_duckdb.expressions import json_text

if TYPE_CHECKING:
    import duckdb

VERSION = "kql_duckdb_functions_1"
"""A function of this name tells that a database has them already."""


def refusal(message: str) -> ValueError:
    """Make the error by which a function ends a query for a value in the rows; only where null would mislead."""
    return ValueError(f"kql: {message}")


@dataclass(frozen=True)
class PythonFunction:
    """One of them, as DuckDB registers it."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...] | None
    """DuckDB types; None takes any number of values of any type."""
    result: str


_FUNCTIONS: dict[str, PythonFunction] = {}


def python_function(
    name: str, parameters: tuple[str, ...] | None, result: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as one that SQL calls `name`."""

    def mark(call: Callable[..., Any]) -> Callable[..., Any]:
        assert name not in _FUNCTIONS, name
        _FUNCTIONS[name] = PythonFunction(name, call, parameters, result)
        return call

    return mark


def dynamic_function(
    name: str, parameters: tuple[str, ...], result: str = "JSON"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function over Python values of dynamics: arguments of type JSON are decoded, a JSON result is encoded.

    A null argument at the first place gives null without a call.
    """
    decoders = tuple(_DECODERS.get(kind, _as_it_is) for kind in parameters)

    def mark(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)  # DuckDB counts the parameters of what it is given
        def over_text(*arguments: Any) -> Any:
            if arguments[0] is None:
                return None
            found = call(*(decode(argument) for decode, argument in zip(decoders, arguments, strict=True)))
            return found if found is None or result != "JSON" else json_text(found)

        python_function(name, parameters, result)(over_text)
        return call

    return mark


def _as_it_is(argument: Any) -> Any:
    return argument


def _decoded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "JSON": _decoded,
    "JSON[]": lambda texts: [_decoded(text) for text in texts],
}


def install(connection: duckdb.DuckDBPyConnection, sql: str | None = None) -> None:
    """Register every function on the database of `connection`; one that has them is left as it is.

    With `sql`, only if it calls one: DuckDB loads numpy for it, which most queries need not wait for.
    """
    if sql is not None and "kql_" not in sql:
        return
    import duckdb  # here, so that a text can be checked where DuckDB is not loaded

    try:
        connection.execute(f"SELECT {VERSION}()").fetchall()
        return
    except duckdb.CatalogException:
        pass
    register: Any = connection.create_function  # its types name no type that is text, which it takes
    for function in (*_FUNCTIONS.values(), PythonFunction(VERSION, lambda: True, (), "BOOLEAN")):
        parameters = None if function.parameters is None else list(function.parameters)
        register(function.name, function.call, parameters, function.result, null_handling="special")
