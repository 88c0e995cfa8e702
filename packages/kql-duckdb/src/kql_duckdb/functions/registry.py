"""Every function and operator of KQL by name, with what the engine does with it.

Operators are functions named `operator:+`, `operator:has` and so on. The binder asks here; `table` feeds the page that
tells users what is exact, partly so and refused. A name that is refused gets its reason, and no "did you mean".
`install` gives a connection what the SQL of the functions calls.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kql_duckdb.errors import KqlError
from kql_duckdb.functions import (  # noqa: F401 - each defines functions as it is loaded
    addresses,
    aggregates,
    decomposition,
    geography,
    numbers,
    operators,
    parsing,
    series,
    text,
    times,
)
from kql_duckdb.functions.definitions import AGGREGATES, REFUSED, SCALARS, AggregateFunction, Function, install, rows

__all__ = ["PLUGINS", "aggregate", "install", "is_window", "names", "scalar", "table", "unknown"]


def _listed(kind: str) -> dict[str, str]:
    """Name -> what `names.txt` says of it."""
    told = (line.removeprefix(f"{kind}: ").split(" = ") for line in rows("names.txt") if line.startswith(f"{kind}: "))
    return {name: said for said, names in told for name in names.split()}


_OLD_SPELLINGS, _REFUSED, PLUGINS = map(_listed, ("old", "scalar", "plugin"))


def scalar(name: str) -> Function | None:
    """Return the scalar function or operator that goes by `name`, old spellings included; None if there is none."""
    current = _OLD_SPELLINGS.get(name, name)
    return SCALARS.get(current) or SCALARS.get(_OLD_SPELLINGS.get(name.lower(), name.lower()))


def aggregate(name: str) -> AggregateFunction | None:
    """Return the aggregate function that goes by `name`; None if there is none."""
    return AGGREGATES.get(name) or AGGREGATES.get(name.lower())


def is_window(name: str) -> bool:
    function = SCALARS.get(name.lower())
    return function is not None and function.windowed


def names() -> Iterator[str]:
    yield from (each for each in (*SCALARS, *AGGREGATES) if not each.startswith("operator:"))


def unknown(name: str) -> KqlError:
    """Make the error for a function that is refused by name, or that nobody knows, with the nearest that there are."""
    why = _REFUSED.get(name.lower())
    if why is not None:
        return KqlError(f"The function '{name}' is not supported here: {why}.", "KDB0001", token=name)
    near = difflib.get_close_matches(name.lower(), list(names()), n=3, cutoff=0.75)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return KqlError(f"Unknown function: '{name}'.{hint}", "SEM0260")


def table() -> Iterator[tuple[str, str, str, str]]:
    """Yield name, kind, status and note of every function, operator and plugin, for the page."""
    for name, function in sorted(SCALARS.items()):
        kind = "window" if function.windowed else "operator" if name.startswith("operator:") else "scalar"
        yield name.removeprefix("operator:"), kind, function.status, function.note
    for name, aggregated in sorted(AGGREGATES.items()):
        yield name, "aggregate", aggregated.status, aggregated.note
    for name, current in sorted(_OLD_SPELLINGS.items()):
        yield name.removeprefix("operator:"), "old spelling", "exact", f"now {current.removeprefix('operator:')}"
    for name in sorted(_PLUGINS_RUN):
        yield name, "plugin", "exact", ""
    for kind, names_refused in (("scalar", _REFUSED), ("plugin", PLUGINS)):
        for name, why in sorted(names_refused.items()):
            yield name, kind, REFUSED, why


_PLUGINS_RUN = ("activity_counts_metrics", "bag_unpack", "ipv4_lookup", "ipv6_lookup", "narrow", "pivot")
"""The plugins that `binder` runs."""
