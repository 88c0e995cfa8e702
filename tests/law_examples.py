"""How many examples a law is tried with.

`make laws` takes the whole number, before a release and after a change of what a law is about; `make test` takes a part
of it, and at least a hundred of a law about security.
"""

from __future__ import annotations

import os

IN_FULL = os.environ.get("LAWS") == "full"


def examples(in_full: int, in_the_suite: int) -> int:
    """The number for this run."""
    return in_full if IN_FULL else in_the_suite
