"""The render edge of the terminal: whatever field a text came from, it cannot move the cursor or reorder what is read.

Log rows are written by attackers. Control characters (terminal escapes among them), line and paragraph separators and
bidirectional controls are shown as visible escapes instead of being sent; new lines and tabs stay where the caller
wants lines. See Boucher and Anderson, "Trojan Source" (2021), for the bidirectional set.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and new line, DEL, C1
    "\u2028\u2029"  # separators that some terminals take for new lines
    "\u200b\u200e\u200f\u061c\u202a-\u202e\u2060-\u2069\ufeff"  # zero width and bidirectional controls
    "\U000e0000-\U000e007f"  # tag characters: invisible text
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)


def safe(text: str) -> str:
    """`text` with every unsafe character written as `\\xNN`, `\\uNNNN` or `\\UNNNNNNNN`."""
    return _UNSAFE.sub(lambda found: _escape(ord(found.group())), text)


def safe_cell(text: str) -> str:
    """`safe` on one line, for a table cell."""
    return safe(text).replace("\n", " ").replace("\t", " ")


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
