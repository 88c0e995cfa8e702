"""Values of results as JSON text for a model: short, and unable to end the block that they stand in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def compact_json(value: Any) -> str:
    """`value` without spaces; `<` and `>` are escaped, so that no text in it can close a tag around it."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _plain(value: Any) -> Any:
    """`value` in dicts and lists, whatever mappings and sequences it is made of."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value
