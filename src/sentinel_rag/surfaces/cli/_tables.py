"""A table as lines of a terminal, after the layout that fits it. Cells are text of others: each passes `safe_cell`.

Severities carry a mark beside their colour, so that a person without colours, or with few, finds the high ones too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len  # noqa: TID253  # as below
from rich.console import Console  # noqa: TID253  # this module draws with rich, and is imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Table
from sentinel_rag.surfaces.cli._charts import SPARKS, with_picture
from sentinel_rag.surfaces.cli._safe_text import safe_cell
from sentinel_rag.surfaces.cli._table_layout import (
    EDGES,
    ONE_LINE_BETWEEN,
    Layout,
    OneLineEach,
    layout,
    one_line_each,
    shared_tail,
)

MARKS = {"High": "!", "Medium": "+", "Low": "-", "Informational": "."}
STYLES = {
    "High": "bold red",
    "Medium": "yellow",
    "Low": "cyan",
    "Informational": "dim",
    "New": "bold",
    "Active": "bold",
    "Closed": "dim",
}
DRAWN = "cyan"
INDENT = "     "
TITLE = "italic"
NOT_WHOLE = "dim italic"
"""The style of the line that says what a list leaves out."""
FEWEST_OF_A_LIST = 4
"""Rows of a list that gets one line each; fewer fold."""


@dataclass(frozen=True, slots=True)
class _Rules:
    heading: str
    across: str
    crossing: str
    cell: str


LINES = _Rules(" ┃ ", "━", "━╇━", " │ ")
ASCII_LINES = _Rules(" | ", "-", "-+-", " | ")


def plain_lines(target: Console) -> bool:
    """Whether `target` shows ASCII only, so that rules and bars are drawn of it."""
    return target.options.ascii_only or target.is_dumb_terminal


def heading_of(lines: Sequence[Text]) -> Sequence[Text]:
    """The lines of a drawn table that name its columns; none of one that is drawn as a list."""
    marks = set("".join((LINES.across, LINES.crossing, ASCII_LINES.across, ASCII_LINES.crossing)))
    for place, line in enumerate(lines):
        if line.plain and set(line.plain) <= marks:
            return [each for each in lines[: place + 1] if each.style != TITLE]
    return ()


def table_lines(table: Table, target: Console, *, whole: bool = True) -> Iterator[Text]:
    """`table` in lines of at most the width of `target`; on a terminal with marks, and with bars beside a trend. Where
    not the `whole` is asked for, a list that is too wide gets one line a row, and says what that leaves out."""
    width = target.width
    rules = ASCII_LINES if plain_lines(target) else LINES
    names = [safe_cell(name) for name in table.columns]
    rows = [[safe_cell(cell) for cell in row] for row in table.rows]
    if table.title:
        yield from _wrapped(Text(safe_cell(table.title), style=TITLE), width, target)
    if target.is_terminal:
        rows = [[_marked(name, cell) for name, cell in zip(names, row, strict=True)] for row in rows]
        drawn = with_picture(table, names, rows, plain=plain_lines(target))
        found = layout(*drawn, width)
        if (found is not None and not found.below) or one_line_each(*drawn, width, "") is not None:
            names, rows = drawn
    found = layout(names, rows, width)
    if target.is_terminal and not whole and len(rows) >= FEWEST_OF_A_LIST and not _is_one_line_each(rows, found):
        dense = one_line_each(names, rows, width, "..." if plain_lines(target) else "…")
        if dense is not None:
            yield from _dense(dense, rules, target)
            return
    if found is None or found.below:
        names, rows = _tails_told_once(names, rows)
        found = layout(names, rows, width)
    if found is None:
        yield from _list(names, rows, target)
    else:
        yield from _grid(names, rows, found, rules, target)


def _is_one_line_each(rows: Sequence[Sequence[str]], found: Layout | None) -> bool:
    """Whether every cell stands whole in the width of its column."""
    return (
        found is not None
        and not found.below
        and all(cell_len(row[number]) <= width for row in rows for number, width in found.widths.items())
    )


def _dense(found: OneLineEach, rules: _Rules, target: Console) -> Iterator[Text]:
    between = " " * ONE_LINE_BETWEEN
    widths = found.widths
    if any(found.names[number].strip() for number in widths):
        yield from _row([Text(found.names[number], style="bold") for number in widths], widths, between, target)
        yield Text(rules.across * (sum(widths.values()) + ONE_LINE_BETWEEN * (len(widths) - 1) + EDGES))
    for row in found.rows:
        yield from _row(_cells(row, widths), widths, between, target)
    told = ["cells that end in … are cut"] if found.cut else []
    told += [f"not shown: {', '.join(name.strip() for name in found.left_out)}"] if found.left_out else []
    if told:
        text = f"({'; '.join(told)})"
        yield Text(text.replace("…", "...") if plain_lines(target) else text, style=NOT_WHOLE)


def _marked(name: str, cell: str) -> str:
    return f"{MARKS[cell]} {cell}" if cell in MARKS and "severity" in name.lower() else cell


def _style(cell: str) -> str:
    mark, _, word = cell.partition(" ")
    return STYLES.get(word if MARKS.get(word) == mark else cell, "")


def _tails_told_once(names: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Times without what they share, which the heading tells: `Created (UTC)`."""
    names, rows = list(names), [list(row) for row in rows]
    for number in range(len(names)):
        tail = shared_tail([row[number] for row in rows])
        if tail:
            names[number] += f" ({tail.strip()})"
            for row in rows:
                row[number] = row[number].removesuffix(tail)
    return names, rows


def _grid(
    names: Sequence[str], rows: Sequence[Sequence[str]], found: Layout, rules: _Rules, target: Console
) -> Iterator[Text]:
    widths = found.widths
    if any(names[number].strip() for number in widths):
        yield from _row([Text(names[number], style="bold") for number in widths], widths, rules.heading, target)
        rule = rules.crossing.join(rules.across * each for each in widths.values())
        yield Text(f"{rules.across}{rule}{rules.across}")
    for row in rows:
        yield from _row(_cells(row, widths), widths, rules.cell, target)
        if found.below:
            parts = [
                Text.assemble((f"{names[number]}: ", "dim"), (row[number], _style(row[number])))
                for number in found.below
                if row[number].strip()
            ]
            for line in _wrapped(Text("  ").join(parts), target.width - len(INDENT), target):
                yield Text(INDENT) + line


def _cells(row: Sequence[str], widths: Mapping[int, int]) -> list[Text]:
    """The cells in their styles; what is drawn of a row has that of its severity."""
    severity = next((style for cell in row if cell[:2].strip() in MARKS.values() and (style := _style(cell))), DRAWN)
    drawn = (*SPARKS[-1], "#")
    styles = {number: severity if row[number].startswith(drawn) else _style(row[number]) for number in widths}
    return [Text(row[number], style=style) for number, style in styles.items()]


def _row(cells: Sequence[Text], widths: dict[int, int], between: str, target: Console) -> Iterator[Text]:
    folded = [_wrapped(cell, width, target) for cell, width in zip(cells, widths.values(), strict=True)]
    for place in range(max(map(len, folded), default=0)):
        line = Text(" ")
        for number, (lines, width) in enumerate(zip(folded, widths.values(), strict=True)):
            part = lines[place].copy() if place < len(lines) else Text()
            part.rstrip()
            part.pad_right(max(0, width - part.cell_len))
            if number:
                line.append(between)
            line.append_text(part)
        line.rstrip()  # else each line would wrap into two once the window is made narrower
        yield line


def _list(names: Sequence[str], rows: Sequence[Sequence[str]], target: Console) -> Iterator[Text]:
    """One line a cell, an empty line between rows."""
    for place, row in enumerate(rows):
        if place:
            yield Text()
        for name, cell in zip(names, row, strict=True):
            label = f"{name}: " if name.strip() else ""
            yield from _wrapped(Text.assemble((label, "dim"), (cell, _style(cell))), target.width, target)


def _wrapped(text: Text, width: int, target: Console) -> list[Text]:
    return list(text.wrap(target, max(1, width), overflow="fold")) or [Text()]
