"""Taking understood words out of a sentence, so that no later reader reads them again."""

from __future__ import annotations


def blank(text: str, begin: int, end: int) -> str:
    """`text` with spaces in the place of `[begin, end)`; its length stays, so that positions stay."""
    return text[:begin] + " " * (end - begin) + text[end:]


def word_list(text: str) -> list[str]:
    """The words of `text`, in order: a list of two hundred words takes ten lines."""
    return text.split()
