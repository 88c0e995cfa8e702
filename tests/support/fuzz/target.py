"""What a fuzz target is: a reader of hostile bytes, and a sentence about it that no input may make false.

The targets stand beside this module; `bench.fuzz` runs them by coverage for as long as somebody likes, and the suite
runs each for a moment. A target says what is to hold; it knows nothing of who makes the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path


class Violation(AssertionError):
    """An input made the promise of a target false; the message says how."""


Check = Callable[[bytes], None]
"""Judges one input. Whatever it raises is a finding; Violation says that nothing failed and something was untrue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`promise` is what must hold for every input. `opened` makes the check, with an empty folder of its own for files;
    the same input gets the same verdict whatever came before it. `seeds` are inputs that get far, `tokens` texts that
    mean something to the reader, `largest` the bytes of the longest input that is worth trying. `calls` bounds the
    work: so many calls of Python functions at least, and so many more for each byte; None where most of the work is
    not Python's."""

    name: str
    promise: str
    opened: Callable[[Path], AbstractContextManager[Check]]
    seeds: Callable[[], Sequence[bytes]]
    tokens: Sequence[bytes] = ()
    largest: int = 4_096
    calls: tuple[int, int] | None = None


def expect(holds: bool, otherwise: str) -> None:
    """Raise Violation unless `holds`."""
    if not holds:
        raise Violation(otherwise)
