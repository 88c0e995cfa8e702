"""What every format refuses alike: letters that a reader does not see, or takes for others."""

from __future__ import annotations

import unicodedata

_UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")


class NotCanonical(ValueError):
    """The text has no canonical form; the message says why without repeating it."""


def refuse_unseen(text: str, what: str) -> None:
    """Refuse control, invisible, private and unassigned characters, and all white space but the plain blank."""
    for character in text:
        category = unicodedata.category(character)
        if category in _UNSEEN or (category == "Zs" and character != " "):
            raise NotCanonical(f"{what} may not hold control or invisible characters")


def refuse_look_alikes(text: str, what: str) -> None:
    """Refuse what Unicode's compatibility form writes differently: full width, ligatures, decomposed letters."""
    if not text.isascii() and unicodedata.normalize("NFKC", text) != text:
        raise NotCanonical(f"{what} may not hold look-alike or decomposed letters")
