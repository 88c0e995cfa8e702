"""The parts of a tool's result: what label each carries and whether the agent sees it.

A pattern is a JSON pointer (RFC 6901) in which a segment `*` stands for every key or index; it speaks about the value
there and all below. Of the patterns that match a place the most specific decides: the longest, then the one with the
fewest `*`. A result has thousands of values and a policy a handful of patterns, so nearly all values share a few
places: what is said about one is asked once. Pure: what becomes of a hidden value is the business of `gateway.flow`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

from sentinel_rag.contracts.labels import Integrity, Label, join_all

ANY = "*"
MAX_SEGMENTS = 16

UNDECLARED = Label(integrity=Integrity.UNTRUSTED)
"""Whatever a tool returns may have been written by an attacker: log lines, file names, web pages."""

Path = tuple[str, ...]


class Exposure(StrEnum):
    """REVEAL: the agent sees the value. QUOTE: it sees it, marked as data of others. HIDE: it gets a handle."""

    REVEAL = "reveal"
    QUOTE = "quote"
    HIDE = "hide"


@dataclass(frozen=True, slots=True)
class FieldLabel:
    """The label of what the pattern `path` matches."""

    path: Path
    label: Label


@dataclass(frozen=True, slots=True)
class FieldExposure:
    """Whether the agent sees what the pattern `path` matches."""

    path: Path
    mode: Exposure


@dataclass(frozen=True, slots=True)
class ResultFields:
    """What a policy declares about the parts of one tool's result."""

    labels: tuple[FieldLabel, ...] = ()
    exposures: tuple[FieldExposure, ...] = ()

    def label_at(self, path: Sequence[str]) -> Label:
        """The declared label of the value at `path`, without the share of the rule and the arguments."""
        matching = [entry for entry in self.labels if covers(entry.path, path)]
        if not matching:
            return UNDECLARED
        best = max(_rank(entry.path) for entry in matching)
        return join_all(entry.label for entry in matching if _rank(entry.path) == best)

    def exposure_at(self, path: Sequence[str]) -> Exposure:
        """Whether the agent sees the value at `path`; of two modes equally specific the stricter."""
        matching = [entry for entry in self.exposures if covers(entry.path, path)]
        best = max((_rank(entry.path) for entry in matching), default=None)
        modes = {entry.mode for entry in matching if _rank(entry.path) == best}
        return next((mode for mode in (Exposure.HIDE, Exposure.QUOTE) if mode in modes), Exposure.REVEAL)

    def label_below(self, path: Sequence[str]) -> Label:
        """The join of the declared labels of the value at `path` and of every part of it."""
        below = (entry.label for entry in self.labels if _overlap(entry.path, path) and len(entry.path) > len(path))
        return join_all([self.label_at(path), *below])

    def is_uniform(self, path: Sequence[str]) -> bool:
        """Whether what holds for the value at `path` holds for every part of it: no longer pattern says otherwise."""
        mode = self.exposure_at(path)
        return not any(
            entry.mode is not mode and len(entry.path) > len(path) and _overlap(entry.path, path)
            for entry in self.exposures
        )

    def names_below(self, path: Sequence[str]) -> frozenset[str]:
        """The keys and indices directly below `path` that a pattern tells apart from the others there."""
        return frozenset(pattern[len(path)] for pattern in self._longer(path)) - {ANY}

    def reaches_below(self, path: Sequence[str]) -> bool:
        """Whether a pattern speaks about parts of the value at `path`."""
        return any(True for _ in self._longer(path))

    def _longer(self, path: Sequence[str]) -> Iterator[Path]:
        patterns = [*(entry.path for entry in self.labels), *(entry.path for entry in self.exposures)]
        return (pattern for pattern in patterns if len(pattern) > len(path) and _overlap(pattern, path))

    @property
    def hides(self) -> bool:
        return any(entry.mode is Exposure.HIDE for entry in self.exposures)

    def revealed(self) -> Label:
        """An upper bound of what the agent may see of a result, known before there is one. Hidden parts are left out
        only where no part of the pattern's region can be seen."""
        regions = [((), UNDECLARED), *((entry.path, entry.label) for entry in self.labels)]
        label = join_all(label for path, label in regions if not self._hidden_whole(path))
        quoted = any(entry.mode is Exposure.QUOTE for entry in self.exposures)
        return label.join(UNDECLARED) if quoted else label

    def whole(self) -> Label:
        """An upper bound of everything in a result, hidden parts too."""
        return join_all([UNDECLARED, *(entry.label for entry in self.labels)])

    def _hidden_whole(self, region: Path) -> bool:
        """Whether no place of the region can be seen: a hiding pattern covers it, and none that shows a part of it is
        more specific."""
        hiding = [_rank(e.path) for e in self.exposures if e.mode is Exposure.HIDE and covers(e.path, region)]
        showing = [_rank(e.path) for e in self.exposures if e.mode is not Exposure.HIDE and _overlap(e.path, region)]
        return bool(hiding) and all(rank <= max(hiding) for rank in showing)


NO_FIELDS = ResultFields()
"""Everything revealed, as text that an attacker may have written."""


def parse_pointer(text: str) -> Path:
    """The segments of a JSON pointer; the empty text is the whole value. Raises ValueError with a reason."""
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("a pointer is empty or starts with /")
    segments = tuple(segment.replace("~1", "/").replace("~0", "~") for segment in text[1:].split("/"))
    if len(segments) > MAX_SEGMENTS:
        raise ValueError(f"a pointer has at most {MAX_SEGMENTS} segments")
    return segments


def pointer_text(path: Iterable[str]) -> str:
    """Inverse of `parse_pointer`."""
    return "".join("/" + segment.replace("~", "~0").replace("/", "~1") for segment in path)


def covers(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether `pattern` speaks about `path`: it matches it or a place above it. `path` may be a pattern itself; then
    every place it matches is meant."""
    return len(pattern) <= len(path) and all(
        part in (ANY, segment) for part, segment in zip(pattern, path, strict=False)
    )


def _overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether some place lies in the regions of both."""
    return all(ANY in (a, b) or a == b for a, b in zip(one, other, strict=False))


def _rank(pattern: Path) -> tuple[int, int]:
    """How specific a pattern is; the greater decides."""
    return len(pattern), -sum(segment == ANY for segment in pattern)


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
