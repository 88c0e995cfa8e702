"""Paths below a root that the tool server knows.

Symbolic links are not known here: the tool server resolves them and must stay inside its root by itself.
"""

from __future__ import annotations

import re

from sentinel_rag.gateway.argument_formats.refusals import NotCanonical, refuse_look_alikes, refuse_unseen

ROOT = "."
"""The canonical form of the root itself, which has no part to be named by."""

MAX_PATH = 4_096

_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2}|[uU][0-9A-Fa-f]{4})")
_SCHEME_OR_DRIVE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SHORT_NAME = re.compile(r"~[0-9]")
_NOT_ON_WINDOWS = frozenset(':*?"<>|')


def canonical_path(text: str) -> str:
    """A relative path with `/` between its parts, without `.`, `..` or empty parts; a trailing `/` is kept.

    Letter case stays, because on most servers two cases name two files; `path-any-case` is for the others.
    """
    if len(text) > MAX_PATH:
        raise NotCanonical(f"a path has at most {MAX_PATH} characters")
    refuse_unseen(text, "a path")
    if "\\" in text:
        raise NotCanonical("write a path with / and not with backslashes")
    if _PERCENT.search(text):
        raise NotCanonical("write a path without percent escapes")
    refuse_look_alikes(text, "a path")
    if text.startswith(("/", "~")) or _SCHEME_OR_DRIVE.match(text):
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
    if not parts:
        return ROOT
    path = "/".join(parts) + ("/" if text.endswith("/") else "")
    if path.startswith("~") or _SCHEME_OR_DRIVE.match(path):  # `./C:x` and `a/../~x` name what `C:x` and `~x` name
        raise NotCanonical("a path must be relative")
    return path


def canonical_path_any_case(text: str) -> str:
    """`canonical_path` for a store that takes two cases for one name (Windows, macOS): letters in lower case.

    Also refused is what such a store takes for another name: `PROGRA~1`, `file:stream`, and letters whose upper and
    lower case are not each other's (`ı`, `ß`), on which stores differ.
    """
    path = canonical_path(text)
    if _SHORT_NAME.search(path) or any(letter in _NOT_ON_WINDOWS for letter in path):
        raise NotCanonical('a path may not hold ~1, :, *, ?, ", <, > or |')
    folded = path.lower()
    if any(_has_no_one_case(letter) for letter in path):
        raise NotCanonical("a path may not hold letters without one lower and one upper case")
    return folded


def _has_no_one_case(letter: str) -> bool:
    lower, upper = letter.lower(), letter.upper()
    return len(lower) != 1 or len(upper) != 1 or upper.lower() != lower or letter.casefold() != lower
