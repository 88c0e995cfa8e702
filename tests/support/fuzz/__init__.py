"""Fuzz targets: every reader of text that somebody else wrote, each with the promise that no input may make false.

`python -m bench fuzz TARGET --minutes N` runs one by coverage. `catalogue` lists them; a target's own module can be
imported without the others.
"""

from tests.support.fuzz.target import Target, Violation

__all__ = ["Target", "Violation"]
