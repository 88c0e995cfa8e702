"""Any text as text that a service takes, and back: NUL and halves of surrogate pairs are written out, behind a mark.

Broken sources hold such characters. Whatever else there is stays as it is, so what people see in the index reads as it
was written.
"""

from __future__ import annotations

import re

_MARK = "\ue000"
"""A character of private use; itself it is written twice."""
_RARE = re.compile(f"[\0\ud800-\udfff{_MARK}]")
_WRITTEN = re.compile(f"{_MARK}(?:{_MARK}|([0-9a-f]{{4}}))")


def plain(text: str) -> str:
    """The text as the index holds it. Of two joined texts it is the two joined."""
    return _RARE.sub(lambda found: _MARK + (_MARK if found[0] == _MARK else f"{ord(found[0]):04x}"), text)


def original(text: str) -> str:
    """The text that `plain` was given."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)) if found[1] else _MARK, text) if _MARK in text else text
