"""Phrases are data: each is found in its own words, and not in the words without their first."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from sentinel_rag.language.text import says

DATA = tomllib.loads(files("sentinel_rag.language").joinpath("phrases.toml").read_text(encoding="utf-8"))
SIGNS = {"...": "", "?": "debug", "#": "12", ">>": "so", "^": ""}


def _spelled(phrase: str, place: int) -> str:
    """A text that says it, by the first or the last of its alternatives."""
    words = (
        SIGNS[token] if token in SIGNS else "" if token.startswith("[") else token.split("|")[place]
        for token in phrase.split()
    )
    return " ".join(" ".join(words).replace("~", " ").replace("*", "s").split())


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize(
    ("group", "name", "phrase"),
    [
        (group, name, phrase)
        for group, lists in DATA.items()
        for name, entries in lists.items()
        for entry in entries
        for phrase in ([entry] if isinstance(entry, str) else entry)
    ],
)
def test_a_phrase_is_found_in_its_own_words(group: str, name: str, phrase: str, place: int) -> None:
    text = _spelled(phrase, place)
    assert says(text, group, name)
    assert says(text.upper(), group, name)
    assert not says("x".join(text), group, name)
