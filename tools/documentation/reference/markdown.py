"""Markdown of made pages: heads, tables, and JSON schemas in one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WRITTEN = "<!-- Made from the code by `make reference`; edit the code, not this file. -->"


def page(title: str, introduction: str, parts: Iterable[str]) -> str:
    """A whole page: its head, what it is, and its parts, one blank line between two."""
    return "\n\n".join([f"# {title}", WRITTEN, introduction.strip(), *(part.strip("\n") for part in parts)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """A text that stays in its cell, whatever it holds."""
    return " ".join(text.split()).replace("|", "\\|") or "-"


def code(text: str) -> str:
    """A text in code marks; empty stays empty."""
    return f"`{text}`" if text else ""


def codes(texts: Iterable[str]) -> str:
    return ", ".join(code(text) for text in texts)


def type_of(schema: Mapping[str, Any]) -> str:
    """What a JSON schema takes, in words of one line: `string, 1 to 200 characters`, `one of New, Active`."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](#{anchor(name)})"
    if "const" in schema:
        return code(_literal(schema["const"]))
    if "enum" in schema:
        return "one of " + codes(_literal(value) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(type_of(each) for each in schema[key])
    kind = schema.get("type", "any value")
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    if kind == "array":
        inner = type_of(schema.get("items", {}))
        words = "list" if inner == "any value" else f"list of {inner}"
    elif kind == "object" and schema.get("properties") and "title" not in schema:
        words = "object of " + codes(schema["properties"])
    return ", ".join([words, *_bounds(schema)])


def fields(schema: Mapping[str, Any], called: str = "field") -> str:
    """The table of an object's properties; without a column of meanings where no property states its own."""
    required = set(schema.get("required", ()))
    rows = [
        (code(name), type_of(each), "yes" if name in required else _default(each), str(each.get("description", "")))
        for name, each in schema.get("properties", {}).items()
    ]
    columns = 4 if any(row[3] for row in rows) else 3
    return table((called, "type", "needed", "meaning")[:columns], [row[:columns] for row in rows])


def anchor(title: str) -> str:
    """The address of a heading, for headings of letters, digits, blanks, `_` and `-`."""
    return "".join(char for char in title.lower().replace(" ", "-") if char.isalnum() or char in "-_")


def _default(schema: Mapping[str, Any]) -> str:
    default = schema.get("default")
    return "" if default is None else f"default {code(_literal(default))}"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value


def _bounds(schema: Mapping[str, Any]) -> list[str]:
    found = []
    for low, high, what in (
        ("minLength", "maxLength", " characters"),
        ("minimum", "maximum", ""),
        ("minItems", "maxItems", " entries"),
    ):
        if low in schema and high in schema:
            found.append(f"{schema[low]:,} to {schema[high]:,}{what}")
        elif high in schema:
            found.append(f"at most {schema[high]:,}{what}")
        elif low in schema:
            found.append(f"at least {schema[low]:,}{what}")
    if "pattern" in schema:
        found.append(code(str(schema["pattern"])))
    if "format" in schema:
        found.append(str(schema["format"]))
    return found
