"""Words and tables as data, and understood words taken out of a sentence, so that no later reader reads them again."""

from __future__ import annotations

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
