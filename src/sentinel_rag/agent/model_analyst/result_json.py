"""Values of results as JSON text for a model: short, and unable to end the block that they stand in."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

QUOTE = "quote"


def compact_json(value: Any) -> str:
    """`value` without spaces; `<` and `>` are escaped, so that no text in it can close a tag around it."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def with_quotes(value: Any, quoted: Collection[str], pointer: str = "") -> Any:
    """`value`, which stands at `pointer` of a result, with the texts at `quoted` marked as words of others."""
    if pointer in quoted:
        return {QUOTE: value}
    if isinstance(value, Mapping):
        return {
            name: with_quotes(part, quoted, f"{pointer}/{str(name).replace('~', '~0').replace('/', '~1')}")
            for name, part in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [with_quotes(part, quoted, f"{pointer}/{place}") for place, part in enumerate(value)]
    return value


def _plain(value: Any) -> Any:
    """`value` in dicts and lists, whatever mappings and sequences it is made of."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    return value
