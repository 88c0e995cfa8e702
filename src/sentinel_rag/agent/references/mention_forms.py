"""What a mention is: words of a question that point at something, and how they point.

A mention that is `soft` points at nothing where nothing fits ("is it possible", "the incident was large"); the others
are asked back then.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """How the words point."""

    PLACES = "places"
    NUMBERS = "numbers"
    HASHED = "hashed"
    BESIDE = "beside"
    THAT = "that"
    IT = "it"
    THEM = "them"
    OTHER = "other"
    BOTH = "both"
    DESCRIBED = "described"
    EARLIER = "earlier"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChoice:
    """Which list is meant: `place` counts lists from 1, or from the newest with -1; `kind` is what it lists; `earlier`
    for one before the screen's; `unknown` if the words for it are not understood."""

    place: int = 0
    kind: str = ""
    earlier: bool = False
    unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words at `[start, end)`. `places` are line numbers, negative from the end; `kind` is what the noun asks for;
    `words` tell a line by what it says; `genitive` stands for a possessive; `in_words` for places in words;
    `only_if_sure` for words that point at nothing where they may mean several things."""

    form: Form
    start: int
    end: int
    places: tuple[int, ...] = ()
    kind: str = ""
    words: str = ""
    chosen: ListChoice | None = None
    genitive: bool = False
    soft: bool = False
    plural: bool = False
    in_words: bool = False
    only_if_sure: bool = False
