"""A chunk of Markdown in parts: prose, tables, code. Reads the text of a hit and nothing else; total.

What is no table and no code block is prose. `quoted_section` shows the parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")


@dataclass(frozen=True, slots=True)
class Prose:
    """Lines of one paragraph, list or quotation, each joined with those that only continue it."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its head and its rows, cells as they stand."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A code block with the language that it names, in lower case."""

    language: str
    lines: tuple[str, ...]


Part = Prose | Grid | Code


def parts_of(text: str) -> list[Part]:
    """The parts of a chunk of Markdown, in order. Total: what is no table and no code is prose."""
    parts: list[Part] = []
    prose: list[str] = []
    lines = text.splitlines()
    at = 0

    def end_prose() -> None:
        if any(line.strip() for line in prose):
            parts.append(Prose(tuple(_joined(prose))))
        prose.clear()

    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is not None:
            end_prose()
            close = next(
                (place for place in range(at + 1, len(lines)) if lines[place].strip().startswith(fence["fence"])),
                len(lines),
            )
            parts.append(Code(fence["language"].lower(), tuple(lines[at + 1 : close])))
            at = close + 1
        elif "|" in lines[at] and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            end_prose()
            stop = next((p for p in range(at + 2, len(lines)) if "|" not in lines[p]), len(lines))
            columns = _cells(lines[at])
            rows = tuple(_fitted(_cells(lines[place]), len(columns)) for place in range(at + 2, stop))
            parts.append(Grid(columns, rows))
            at = stop
        else:
            prose.append(lines[at])
            at += 1
    end_prose()
    return parts


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Lines with the wrapped rest of a paragraph or list item behind its first line; empty lines part them."""
    open_line = ""
    for line in lines:
        begins = re.match(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\S", line) is not None
        if open_line and (begins or not line.strip()):
            yield open_line
            open_line = ""
        if line.strip():
            open_line = f"{open_line} {line.strip()}" if open_line else line.strip()
    if open_line:
        yield open_line


def _cells(line: str) -> tuple[str, ...]:
    row = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row))


def _fitted(cells: tuple[str, ...], width: int) -> tuple[str, ...]:
    return (*cells, *("",) * width)[:width]
