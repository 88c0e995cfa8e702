"""Word lists as text, so that a list of two hundred words takes ten lines."""

from __future__ import annotations


def word_list(text: str) -> list[str]:
    """The words of `text`, in order."""
    return text.split()
