"""Arguments that a server wants to see in HTTP headers too, so that what stands before it can route without the body.

The era without sessions lets a tool's schema annotate a property with `x-mcp-header: TOKEN`; a call then carries
`Mcp-Param-TOKEN`, and a server refuses one whose header and body differ. Only properties that are reached through
`properties` alone can be annotated, and only texts, whole numbers and booleans.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATION = "x-mcp-header"
MAX_DEPTH = 8
MAX_HEADERS = 32

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_TYPES = ("string", "integer", "boolean")
_ENCODED = re.compile(r"=\?base64\?.*\?=")

Places = Mapping[tuple[str, ...], str]
"""The header token of each annotated property, by its path in the arguments."""


def annotated(input_schema: Mapping[str, Any]) -> Places:
    """The annotated properties of a schema; annotations that the protocol does not allow are left out."""
    found: dict[tuple[str, ...], str] = {}
    for path, token in _walk(input_schema, ()):
        if token.lower() not in (known.lower() for known in found.values()) and len(found) < MAX_HEADERS:
            found[path] = token
    return found


def headers_of(places: Places, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a call; an argument that is left out has none."""
    headers: dict[str, str] = {}
    for path, token in places.items():
        value: Any = arguments
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[f"Mcp-Param-{token}"] = "true" if value else "false"
        elif isinstance(value, str | int):
            headers[f"Mcp-Param-{token}"] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """`text` as a header can carry it: plain if it is printable ASCII, else in the protocol's base64 form."""
    if text.isascii() and text.isprintable() and text == text.strip() and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def _walk(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(path) == MAX_DEPTH:
        return
    for name, part in properties.items():
        if not isinstance(part, Mapping):
            continue
        token = part.get(ANNOTATION)
        if isinstance(token, str) and _TOKEN.fullmatch(token) and part.get("type") in _TYPES:
            yield (*path, name), token
        yield from _walk(part, (*path, name))
