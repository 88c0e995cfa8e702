"""An answer on the terminal: facts first, tables, suggestions, then the footnote in a quiet colour.

Everything passes `safe` here, whatever field it came from; colour, width and links are decided here and nowhere else.
Without a terminal (a pipe, NO_COLOR) the same text comes without colour, and tables are as wide as they need.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType  # noqa: TID253  # this module is rich, and imported lazily
from rich.markdown import Markdown  # noqa: TID253  # as above
from rich.table import Table as RichTable  # noqa: TID253  # as above
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell
from sentinel_rag.surfaces.rendering.markdown_html import spelled_out_parser

PIPE_WIDTH = 160
MIN_COLUMN = 12
"""Characters that a column needs on average to be read; below it a table becomes a list."""

STYLES = {
    "High": "bold red",
    "Medium": "yellow",
    "Low": "cyan",
    "Informational": "dim",
    "New": "bold",
    "Active": "bold",
    "Closed": "dim",
}
OUTCOME_STYLES = {
    Outcome.DENIED: "bold red",
    Outcome.TOOL_FAILED: "bold red",
    Outcome.NO_DATA: "yellow",
    Outcome.CLARIFICATION: "bold",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which ends with 0: rich would exit with 1, as if the command had failed."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Rich's console: colour and width of the terminal, or plain and wide in a pipe. Markup is never interpreted."""
    made = _Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def print_answer(target: Console, answer: Answer, *, evidence: bool = False) -> None:
    """Write `answer` to `target`."""
    target.print(_text(answer, target), style=OUTCOME_STYLES.get(answer.outcome))
    for table in answer.tables:
        target.print()
        target.print(_table(table, target.width))
    if answer.suggestions:
        target.print()
        target.print(Text("You could ask:"), style="dim")
        for suggestion in answer.suggestions:
            target.print(Text(f"  {safe_cell(suggestion)}"))
    if answer.footnote:
        target.print()
        for line in answer.footnote:
            target.print(Text(safe(line)), style="dim")
    if evidence:
        target.print()
        target.print(_evidence(answer.evidence))


def print_table(target: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table of plain cells, for commands that list things."""
    target.print(_table(Table(columns, tuple(rows), title), target.width))


def _text(answer: Answer, target: Console) -> RenderableType:
    text = safe(answer.text)
    # In a pipe the text goes out as it was written, so that scripts and people grep the same words.
    # On a terminal each line stays a line: Markdown alone would run them together.
    return _Markdown(text.replace("\n", "  \n"), hyperlinks=False) if target.is_terminal else Text(text)


class _Markdown(Markdown):
    """Markdown in which an address, an image and HTML are words: rich would drop them, and a reader miss them."""

    def __init__(self, text: str, *, hyperlinks: bool) -> None:
        super().__init__("", hyperlinks=hyperlinks)
        self.markup = text
        self.parsed = spelled_out_parser().parse(text)


def _table(table: Table, width: int) -> RenderableType:
    if width < MIN_COLUMN * len(table.columns):
        return _list(table)
    made = RichTable(title=Text(safe_cell(table.title)) if table.title else None, title_justify="left", show_edge=False)
    for name in table.columns:
        made.add_column(Text(safe_cell(name)), overflow="fold")
    for row in table.rows:
        made.add_row(*(Text(safe_cell(cell), style=STYLES.get(cell, "")) for cell in row))
    return made


def _list(table: Table) -> RenderableType:
    """The table for a narrow terminal: one line a cell, an empty line between rows."""
    lines = [Text(safe_cell(table.title), style="italic")] if table.title else []
    for row in table.rows:
        for name, cell in zip(table.columns, row, strict=True):
            label = f"{safe_cell(name)}: " if name.strip() else ""
            lines.append(Text.assemble((label, "dim"), (safe_cell(cell), STYLES.get(cell, ""))))
        lines.append(Text())
    return Text("\n").join(lines[:-1] if table.rows else lines)


def _evidence(pieces: tuple[Evidence, ...]) -> RenderableType:
    if not pieces:
        return Text("No fact of this answer comes from a tool.", style="dim")
    lines = (f"  {safe_cell(p.text)}  <- {safe_cell(f'{p.tool} [{p.call_id}] {p.pointer}')}" for p in pieces)
    return Text("\n".join(("Evidence:", *lines)), style="dim")
