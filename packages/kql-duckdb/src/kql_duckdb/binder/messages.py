"""Sentences of refusals that more than one part of the binder says."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean ...?` with up to three known names like `name`; empty if none is like it."""
    names = list(dict.fromkeys(one for one in known if not one.startswith("$")))
    same = [one for one in names if one.lower() == name.lower()]
    if not same:
        by_lower = {one.lower(): one for one in names}
        close = difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.75)
        same = [by_lower[one] for one in close]
    return f" Did you mean {' or '.join(same[:3])}?" if same else ""
