"""Text that readers of sentences share: tables beside a module, phrases of many words, understood words taken out."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def toml_beside(package: str, name: str) -> dict[str, Any]:
    """What a TOML file in the folder of a package holds, read once."""
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))


def blank(text: str, begin: int, end: int) -> str:
    """`text` with spaces in the place of `[begin, end)`; its length stays, so that positions stay."""
    return text[:begin] + " " * (end - begin) + text[end:]


def word_list(text: str) -> list[str]:
    """The words of `text`, in order: a list of two hundred words takes ten lines."""
    return text.split()


_ANY_WORDS = r"(?:[\w'’,]+\s+){0,5}"
_SIGNS = {"...": _ANY_WORDS, "?": r"\w+\s+", "#": r"#?\d+\s+", ">>": r".*?", "^": r"^\W*"}


@cache
def phrases(group: str, name: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of one list of `phrases.toml`, in its order."""
    lists = toml_beside(__package__, "phrases.toml")[group][name]
    each = ([entry] if isinstance(entry, str) else entry for entry in lists)
    return tuple(re.compile("|".join(map(_pattern, alternatives)), re.IGNORECASE) for alternatives in each)


def says(text: str, group: str, name: str) -> bool:
    """True if `text` holds a phrase of the list."""
    return any(pattern.search(text) for pattern in phrases(group, name))


def _pattern(phrase: str) -> str:
    parts = [_part(token) for token in phrase.split()]
    return "".join(parts).removesuffix(r"\s+")


def _part(token: str) -> str:
    """What a token takes of a text, with the blanks behind it."""
    if token in _SIGNS:
        return _SIGNS[token]
    words = "|".join(_word(word) for word in token.strip("[]").split("|"))
    return rf"(?:(?:{words})\s+)?" if token.startswith("[") else rf"(?:{words})\s+"


def _word(word: str) -> str:
    text = re.escape(word).replace("\\~", r"\s+").replace("~", r"\s+").replace(r"\*", r"\w*")
    start = r"\b" if word[0].isalnum() else ""
    return f"{start}{text}" + (r"\b" if word[-1].isalnum() else "")
