"""The Porter stemmer of 1980, which the token filter `porter_stem` is."""

from __future__ import annotations

import re

_VOWEL = "aeiou"
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti", "ous",
    "ive", "ize",
)  # fmt: skip


def stem(word: str) -> str:
    """The stem of a word in lower case; whatever is not made of a to z is left alone."""
    if len(word) <= 2 or not re.fullmatch("[a-z]+", word):
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _shortened(word)
    if word.endswith("e"):
        base = word[:-1]
        if _measure(base) > 1 or (_measure(base) == 1 and not _short(base)):
            word = base
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _plural(word: str) -> str:
    for ending, instead in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word.removesuffix(ending) + instead
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        base = word.removesuffix(ending)
        if base != word and _has_vowel(base):
            if base.endswith(("at", "bl", "iz")):
                return base + "e"
            if len(base) > 1 and base[-1] == base[-2] and _consonant(base, len(base) - 1) and base[-1] not in "lsz":
                return base[:-1]
            return base + "e" if _measure(base) == 1 and _short(base) else base
    return word


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, instead in sorted(endings, key=lambda each: -len(each[0])):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            return base + instead if _measure(base) > 0 else word
    return word


def _shortened(word: str) -> str:
    for ending in sorted((*_STEP_4, "ion"), key=lambda each: -len(each)):
        if word.endswith(ending):
            base = word.removesuffix(ending)
            if _measure(base) > 1 and (ending != "ion" or base.endswith(("s", "t"))):
                return base
            return word
    return word


def _consonant(word: str, place: int) -> bool:
    letter = word[place]
    if letter == "y":
        return place == 0 or not _consonant(word, place - 1)
    return letter not in _VOWEL


def _shape(word: str) -> str:
    return "".join("c" if _consonant(word, place) else "v" for place in range(len(word)))


def _measure(word: str) -> int:
    return len(re.findall("v+c+", _shape(word)))


def _has_vowel(word: str) -> bool:
    return "v" in _shape(word)


def _short(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"
