"""The places of a result, as far as a policy's patterns tell them apart.

A result has thousands of values and a policy a handful of patterns, so nearly all values share a few places: row 7 and
row 8 are one. What `ResultFields` says about a place is asked once, and remembered with the way that leads there.
"""

from __future__ import annotations

from functools import lru_cache

from sentinel_rag.contracts.labels import Label
from sentinel_rag.interceptor.policy.fields import Exposure, Path, ResultFields


class Place:
    """What the patterns say about a value and all below it. `whole` tells that the mode holds for every part of it;
    `label` is the join of the declared labels of the value and its parts."""

    __slots__ = ("_below", "_fields", "_names", "_other", "_path", "label", "mode", "whole")

    def __init__(self, fields: ResultFields, path: Path) -> None:
        self.mode: Exposure = fields.exposure_at(path)
        self.label: Label = fields.label_below(path)
        self.whole: bool = fields.is_uniform(path)
        self._fields = fields
        self._path = path
        self._names = fields.names_below(path)
        self._below: dict[str, Place] = {}
        self._other: Place | None = None

    def at(self, segment: str) -> Place:
        """The place of the part with that key or index."""
        if segment in self._names:
            place = self._below.get(segment)
            if place is None:
                place = self._below[segment] = Place(self._fields, (*self._path, segment))
            return place
        if self._other is None:
            # Longer than each name, so it is none of them: it stands for all segments that no pattern names.
            unnamed = "".join(self._names) + "-"
            deeper = self._fields.reaches_below(self._path)
            self._other = Place(self._fields, (*self._path, unnamed)) if deeper else self
        return self._other


@lru_cache(maxsize=1_024)
def root(fields: ResultFields) -> Place:
    """The place of a whole result."""
    return Place(fields, ())
