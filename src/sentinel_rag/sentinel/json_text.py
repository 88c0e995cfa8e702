"""JSON that others wrote: of the service, and of the columns that hold JSON in a string.

It is read leniently, since a row that cannot be read is a row that an analyst does not see: line breaks inside strings
are taken, and half of a surrogate pair, which no UTF-8 can carry on, becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_DECODER = json.JSONDecoder(strict=False)  # made once: json.loads would make one for each cell
decode_strictly = msgspec.json.Decoder().decode
"""Refuses what `load_json` mends, and reads the rest as it does."""
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def load_cell(text: str) -> Any:
    """As `load_json`, for the many short texts of a column: the strict reader first, which is several times faster."""
    try:
        return decode_strictly(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return load_json(text)  # it is no JSON, or JSON that only the lenient reader takes


def load_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for text that is none, or that is nested beyond reading."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    if "\\u" in text and _HALF_PAIR.search(text):
        # Escape by escape, so that an escaped backslash before a `ud800` stays what it is.
        text = _ESCAPE.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
