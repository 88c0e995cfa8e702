"""Every function and operator of KQL by name, with what the engine does with it.

Operators are functions named `operator:+`, `operator:has` and so on. The binder asks here; `table` feeds the page that
tells users what is exact, partly so and refused. `install` gives a connection what the SQL of the functions calls.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from kql_duckdb.errors import KqlError
from kql_duckdb.functions import (
    addresses,
    aggregates,
    conditions,
    conversion,
    dynamics,
    encodings,
    geography,
    numbers,
    operators,
    parsing,
    refused,
    series,
    text,
    text_search,
    times,
    units,
    windows,
)
from kql_duckdb.functions.definitions import EXACT, REFUSED, AggregateFunction, Function, ScalarFunction
from kql_duckdb.functions.python_functions import install

__all__ = ["aggregate", "install", "is_window", "names", "scalar", "table", "unknown"]

_Kind = TypeVar("_Kind", bound=Function)


def _by_name(functions: Iterable[_Kind]) -> dict[str, _Kind]:
    named: dict[str, _Kind] = {}
    for function in functions:
        assert function.name not in named, function.name
        named[function.name] = function
    return named


_SCALARS: dict[str, ScalarFunction] = _by_name(
    function
    for module in (
        addresses,
        conditions,
        conversion,
        dynamics,
        encodings,
        geography,
        numbers,
        operators,
        parsing,
        series,
        text,
        text_search,
        times,
        units,
        windows,
    )
    for function in module.FUNCTIONS
)
_AGGREGATES: dict[str, AggregateFunction] = _by_name(aggregates.FUNCTIONS)

_OLD_SPELLINGS = dynamics.ALIASES | {
    "operator:notcontains": "operator:!contains",
    "operator:notcontainscs": "operator:!contains_cs",
    "operator:containscs": "operator:contains_cs",
    "operator:nothas": "operator:!has",
    "operator:notin": "operator:!in",
}
"""Old name -> the one that it goes by now."""


def scalar(name: str) -> ScalarFunction | None:
    """Return the scalar function or operator that goes by `name`, old spellings included; None if there is none."""
    current = _OLD_SPELLINGS.get(name, name)
    return _SCALARS.get(current) or _SCALARS.get(_OLD_SPELLINGS.get(name.lower(), name.lower()))


def aggregate(name: str) -> AggregateFunction | None:
    """Return the aggregate function that goes by `name`; None if there is none."""
    return _AGGREGATES.get(name) or _AGGREGATES.get(name.lower())


def is_window(name: str) -> bool:
    """Return whether the function looks at neighbouring rows."""
    return name.lower() in windows.NAMES


def names() -> Iterator[str]:
    """Yield the names that a query may call."""
    yield from (each for each in (*_SCALARS, *_AGGREGATES) if not each.startswith(("operator:", "__")))


def unknown(name: str) -> KqlError:
    """Make the error for a function that is refused by name, or that nobody knows, with the nearest that there are."""
    why = refused.FUNCTIONS.get(name.lower())
    if why is not None:
        return KqlError(f"The function '{name}' is not supported here: {why}.", "KDB0001")
    near = difflib.get_close_matches(name.lower(), list(names()), n=3, cutoff=0.75)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return KqlError(f"Unknown function: '{name}'.{hint}", "SEM0260")


def table() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, kind, status and note of every function, operator and plugin, for the page."""
    for name, function in sorted(_SCALARS.items()):
        if name.startswith("__"):
            continue
        kind = "window" if name in windows.NAMES else "operator" if name.startswith("operator:") else "scalar"
        yield name.removeprefix("operator:"), kind, function.status, function.note
    for name, aggregated in sorted(_AGGREGATES.items()):
        yield name, "aggregate", aggregated.status, aggregated.note
    for name, current in sorted(_OLD_SPELLINGS.items()):
        yield name.removeprefix("operator:"), "old spelling", "exact", f"now {current.removeprefix('operator:')}"
    for name in sorted(refused.PLUGINS_RUN):
        yield name, "plugin", EXACT, ""
    for kind, names_refused in (("scalar", refused.FUNCTIONS), ("plugin", refused.PLUGINS)):
        for name, why in sorted(names_refused.items()):
            yield name, kind, REFUSED, why
