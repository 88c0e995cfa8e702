"""How the added KQL functions are written: a row with a Python function that writes SQL, and the forms they share.

Below the modules of functions by idea (`text_functions`, `dynamic_functions`, ...) and above nothing but duckdb-kql.
A value that a form reads twice is bound once in a one-element list, because SQL has no `let`; the names in such a
binding start with an underscore, so that no column of a Sentinel table is shadowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from duckdb_kql.translate import _kql_datetime_text, _kql_timespan_text  # noqa: TID253 - these forms are its SQL
from duckdb_kql.translate.functions import AggregateSpec, FunctionSpec  # noqa: TID253

MAX_ARRAY = 1_048_576
"""The most elements that Kusto puts into an array (2^20); longer ones are cut there."""


@dataclass(frozen=True)
class WrittenFunction(FunctionSpec):
    """A scalar function whose SQL `write` makes from its rendered arguments."""

    write: Callable[..., str] = str

    def render(self, args: list[str]) -> str:
        _check_arity(self.name, self.arities, args)
        return self.write(*args)


@dataclass(frozen=True)
class WrittenAggregate(AggregateSpec):
    """An aggregate whose SQL `write` makes from its rendered arguments."""

    write: Callable[..., str] = str

    def render(self, args: list[str]) -> str:
        _check_arity(self.name, self.arities, args)
        return self.write(*args)


def scalar(name: str, write: Callable[..., str], *arities: int) -> WrittenFunction:
    """A scalar function that takes one of `arities` arguments; any number of them if none is given."""
    return WrittenFunction(name, "template", "", arities, write=write)


def _check_arity(name: str, arities: tuple[int, ...], args: list[str]) -> None:
    if arities and len(args) not in arities:
        allowed = " or ".join(str(count) for count in arities)
        raise ValueError(f"{name}() takes {allowed} argument(s), got {len(args)}")


def bound(name: str, value: str, body: str) -> str:
    """`body` with `name` standing for `value`, which is computed once."""
    return f"list_transform([{value}], lambda {name}: {body})[1]"


def bound_all(name: str, body: str, **values: str) -> str:
    """`body` with `name.key` standing for each of `values`."""
    fields = ", ".join(f"{key} := {value}" for key, value in values.items())
    return bound(name, f"struct_pack({fields})", body)


def json_array(value: str) -> str:
    """The elements of a dynamic array as a list of JSON; null for anything else. A JSON null is a SQL null."""
    return f"TRY_CAST(to_json({value}) AS JSON[])"


def json_object(value: str) -> str:
    """A dynamic that is a property bag; null for anything else."""
    return bound("_bag", f"to_json({value})", "CASE WHEN json_type(_bag) = 'OBJECT' THEN _bag END")


def json_element(value: str) -> str:
    """A scalar as it stands inside a dynamic: times and spans in Kusto's own text."""
    return (
        f"CASE typeof({value}) "
        f"WHEN 'TIMESTAMP' THEN to_json({_kql_datetime_text(f'CAST({value} AS TIMESTAMP)')}) "
        f"WHEN 'INTERVAL' THEN to_json({_kql_timespan_text(f'CAST({value} AS INTERVAL)')}) "
        f"ELSE to_json({value}) END"
    )


def number_of(element: str) -> str:
    """The number in a JSON element; null for text, booleans, arrays and bags."""
    return f"TRY_CAST(CAST({element} AS VARCHAR) AS DOUBLE)"


def text_of(element: str) -> str:
    """A JSON element as text without quotes; null stays null."""
    return f"({element} ->> '$')"


def constant_array(values: list[str]) -> str:
    return f"[{', '.join(values)}]"


def first_by(values: str, key: str) -> str:
    """The elements of a list whose `key` (SQL over `_v`) no earlier one has, in order.

    Sorted twice, since a look-up for each element would be quadratic.
    """
    return bound(
        "_all",
        values,
        bound(
            "_sorted",
            f"list_sort(list_transform(_all, lambda _v, _i: struct_pack(k := {key}, i := _i)))",
            "list_transform(list_sort(list_transform(list_filter(_sorted, "
            "lambda _p, _i: _i = 1 OR _sorted[_i - 1].k IS DISTINCT FROM _p.k), "
            "lambda _p: _p.i)), lambda _i: _all[_i])",
        ),
    )


def distinct_in_order(values: str) -> str:
    """The different values of a list, each where it first stands."""
    return first_by(values, "_v")
