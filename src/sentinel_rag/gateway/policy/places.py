"""The places of a result, as far as a policy's patterns tell them apart.

A result has thousands of values and a policy a handful of patterns, so nearly all values share a few places: row 7 and
row 8 are one. What `ResultFields` says about a place is asked once, and remembered with the way that leads there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache

from sentinel_rag.contracts.labels import Label
from sentinel_rag.gateway.policy.fields import Exposure, Path, ResultFields


class Place:
    """What the patterns say about a value and all below it. `whole` tells that the mode holds for every part of it,
    `silent` that this is to show it as it is; `label` is the join of the declared labels of the value and its parts."""

    def __init__(self, fields: ResultFields, path: Path) -> None:
        self.mode: Exposure = fields.exposure_at(path)
        self.label: Label = fields.label_below(path)
        self.whole: bool = fields.is_uniform(path)
        self.silent: bool = self.whole and self.mode is Exposure.REVEAL
        self._fields = fields
        self._path = path
        self._names = fields.names_below(path)

    def at(self, segment: str) -> Place:
        """The place of the part with that key or index."""
        return self.named.get(segment) or self.other

    @cached_property
    def named(self) -> Mapping[str, Place]:
        """The places of the parts that a pattern names."""
        return {name: Place(self._fields, (*self._path, name)) for name in sorted(self._names)}

    @cached_property
    def other(self) -> Place:
        """The place of every part that no pattern names."""
        # Longer than each name, so it is none of them: it stands for all segments that no pattern names.
        unnamed = "".join(self._names) + "-"
        deeper = self._fields.reaches_below(self._path)
        return Place(self._fields, (*self._path, unnamed)) if deeper else self


@lru_cache(maxsize=1_024)
def root(fields: ResultFields) -> Place:
    """The place of a whole result."""
    return Place(fields, ())
