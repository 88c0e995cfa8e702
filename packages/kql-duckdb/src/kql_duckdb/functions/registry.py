"""Every function and operator of KQL by name, with what the engine does with it.

Operators are functions named `operator:+`, `operator:has` and so on. The binder asks here; `table` feeds the page that
tells users what is exact, partly so and refused. `install` gives a connection what the SQL of the functions calls.
"""

from __future__ import annotations

from kql_duckdb.functions import basics
from kql_duckdb.functions.definitions import AggregateFunction, ScalarFunction

_SCALARS: dict[str, ScalarFunction] = {one.name: one for one in basics.FUNCTIONS}
_AGGREGATES: dict[str, AggregateFunction] = {one.name: one for one in basics.AGGREGATES}


def scalar(name: str) -> ScalarFunction | None:
    """Return the scalar function or operator that goes by `name`, old spellings included; None if there is none."""
    return _SCALARS.get(name) or _SCALARS.get(name.lower())


def aggregate(name: str) -> AggregateFunction | None:
    """Return the aggregate function that goes by `name`; None if there is none."""
    return _AGGREGATES.get(name) or _AGGREGATES.get(name.lower())
