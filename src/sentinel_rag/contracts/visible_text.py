"""Characters that a reader would not see, or that would move or reorder what is read, shown as visible escapes.

Log rows are written by attackers, so the agent shows their values so, and each surface does it again at its edge.
Control characters (terminal escapes among them), separators, bidirectional controls, zero-width and tag characters, and
floods of combining marks become `\\xNN`, `\\uNNNN` or `\\UNNNNNNNN`; nothing is dropped. What scripts and emoji need of
them stays. See Boucher and Anderson, "Trojan Source" (2021), and UTS 55.
"""

from __future__ import annotations

import re
import unicodedata

MOST_MARKS = 4
"""Combining marks on one character; written languages need no more, and a flood covers the lines above and below."""

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f]")  # C0 but tab and new line, DEL
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and new line, DEL, C1
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners and fillers without a shape
    "\u2028\u2029"  # separators that some terminals take for new lines
    "\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width and bidirectional controls
    "\u2800\u3164\uffa0"  # letters and patterns that look like a space
    "\ufe00-\ufe0d\ufff0-\uffff"  # variation selectors that no emoji uses, annotation marks
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags and further variation selectors: whole messages fit into them
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)
_JOINERS = "\u200c\u200d"
_EMOJI_SELECTORS = "\ufe0e\ufe0f"
_JOINED_BEFORE = frozenset({"Lo", "Mn", "Mc", "So", "Sk"})
_JOINED_AFTER = frozenset({"Lo", "So"})


def visible(text: str) -> str:
    """`text` with every unsafe character written as an escape; new lines and tabs stay where the caller wants lines."""
    if text.isascii():
        return _CONTROLS.sub(lambda found: _escape(found.group()), text)
    return "".join(shown_characters(text))


def shown_characters(text: str, also: str = "") -> list[str]:
    """What `visible` writes for each character; those of `also` become escapes too."""
    shown: list[str] = []
    before, marks = "", 0  # the last character if it was kept, and how many marks it carries
    for place, character in enumerate(text):
        if character in also:
            keep = False
        elif character < "\x7f":
            keep = not _CONTROLS.match(character)
        elif _INVISIBLE.match(character):
            keep = False
        elif character in _JOINERS:
            keep = _joins(before, text[place + 1 : place + 2])
        elif character in _EMOJI_SELECTORS:
            keep = bool(before) and not before.isspace() and before not in _EMOJI_SELECTORS + _JOINERS
        elif unicodedata.category(character) in ("Mn", "Me"):
            marks += 1
            keep = marks <= MOST_MARKS
        else:
            keep = unicodedata.category(character) != "Cf" or "\u0600" <= character <= "\u08e2"  # signs one can see
        if keep and unicodedata.category(character) not in ("Mn", "Me"):
            marks = 0
        shown.append(character if keep else _escape(character))
        if keep:
            before = character
        elif unicodedata.category(character) not in ("Mn", "Me"):
            before = ""
    return shown


def _joins(before: str, after: str) -> bool:
    """Whether a joiner stands where scripts and emoji use it, so that it changes a shape and hides nothing."""
    if not before or not after or _INVISIBLE.match(after):
        return False
    return (unicodedata.category(before) in _JOINED_BEFORE or before in _EMOJI_SELECTORS) and unicodedata.category(
        after
    ) in (_JOINED_AFTER)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
