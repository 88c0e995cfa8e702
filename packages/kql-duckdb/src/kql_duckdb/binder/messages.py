"""Refusals that more than one part of the binder makes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kql_duckdb.errors import KqlError


def unresolved(what: str, name: str, known: Iterable[str]) -> KqlError:
    """SEM0100 for a name that nobody knows, with the nearest that somebody does."""
    near = nearest(name, known)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    message = f"Failed to resolve {what} expression named '{name}'.{hint}"
    return KqlError(message, "SEM0100", token=name, suggestions=near)


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Up to three known names like `name`; another spelling of its case comes before all."""
    names = list(dict.fromkeys(one for one in known if not one.startswith("$")))
    same = [one for one in names if one.lower() == name.lower()]
    if same:
        return tuple(same[:1])
    by_lower = {one.lower(): one for one in names}
    close = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.75)
    return tuple(by_lower[one] for one in close)
