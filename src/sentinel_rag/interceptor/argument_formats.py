"""Canonical forms of argument texts, by the `format` that a policy declares for a parameter.

A condition such as `file_path.startswith('confidential/')` is only worth something if every spelling of one place reads
the same. The canonical form is what rules see *and* what is forwarded. A text that has no single meaning (a percent
escape, a backslash, a look-alike letter) is refused rather than guessed at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping

_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")


class NotCanonical(ValueError):
    """The text has no canonical form; the message says why without repeating it."""


def canonical_path(text: str) -> str:
    """A relative path with `/` between its parts, without `.`, `..` or empty parts; a trailing `/` is kept.

    Letter case stays: whether two cases name one file is known to the store alone, so on a case-insensitive store
    write the rule over `file_path.casefold()`.
    """
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for character in text):
        raise NotCanonical("a path may not hold control or invisible characters")
    if "\\" in text:
        raise NotCanonical("write a path with / and not with backslashes")
    if _PERCENT.search(text):
        raise NotCanonical("write a path without percent escapes")
    if unicodedata.normalize("NFKC", text) != text:
        raise NotCanonical("a path may not hold look-alike or decomposed letters")
    if text.startswith(("/", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        raise NotCanonical("a path must be relative")
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                raise NotCanonical("a path may not leave its root")
            parts.pop()
        elif part.rstrip(". ") != part and part != ".":
            raise NotCanonical("a part of a path may not end in a dot or a space")
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) + ("/" if parts and text.endswith("/") else "")


FORMATS: Mapping[str, Callable[[str], str]] = {"path": canonical_path}
"""The known values of `format`."""
