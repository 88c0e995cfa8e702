"""What commands print: a table, sentences, JSON. What draws is imported when something is drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sentinel_rag.contracts.evidence import Table
from sentinel_rag.surfaces.rendering.visible import safe


def print_json(value: object) -> None:
    """A value as JSON on lines of its own."""
    print(json.dumps(value, indent=2))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table of plain cells."""
    from sentinel_rag.surfaces.cli._render import console, drawn_table

    target = console()
    for line in drawn_table(target, Table(tuple(columns), tuple(map(tuple, rows)), title)):
        target.print(line.text, soft_wrap=True)


def print_words(text: str) -> None:
    """Sentences of ours, folded between words."""
    from rich.text import Text

    from sentinel_rag.surfaces.cli._render import console

    console().print(Text(safe(text)))
