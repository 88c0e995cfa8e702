"""A report as text: Markdown that every viewer shows alike, and its tables or its evidence as CSV.

In Markdown what others wrote is escaped, and our own marks are the only ones. Of evidence a line is one value, so that
rows of any tool fit into one file, or one sentence of an answer, whose field is its state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.surfaces.rendering.markdown import markdown_line
from sentinel_rag.surfaces.rendering.visible import Marked, Note, Seen, csv_text, plain
from sentinel_rag.surfaces.reports import blocks
from sentinel_rag.surfaces.reports.building import HandOver

COLUMNS = ("evidence", "question", "tool", "call_id", "audit_id", "place", "field", "value")


def as_csv(report: HandOver) -> str:
    """The tables of the report, a line for each row; cells are guarded against formulas (`rendering.visible`). A column
    holds what the tables have under its name. Raises UsageError where there is none."""
    tables = blocks.tables_of(report)
    columns = tuple(dict.fromkeys(name for _, table in tables for name in table.columns))
    if not tables:
        raise UsageError("This report has no table.", next_step="Take its evidence, or another form.")
    lines = (
        (about, dict(zip(table.columns, row, strict=True))) for about, table in tables for row in table.plain_rows()
    )
    return csv_text(
        (*columns, "question"),
        ([*("" if row.get(name) == "-" else row.get(name, "") for name in columns), about] for about, row in lines),
    )


def as_evidence(report: HandOver) -> str:
    """The values that answers rest on as CSV, a line for each."""
    return csv_text(COLUMNS, _csv_lines(report))


def _csv_lines(report: HandOver) -> Iterator[tuple[object, ...]]:
    for row in report.evidence:
        for name, value in row.fields:
            yield row.number, row.turn, row.tool, row.call_id, row.audit_id, row.place, name, plain(value)
    for fact in report.facts:
        for said in fact.sentences:
            reason = f" ({said.reason})" if said.reason else ""
            yield " ".join(said.evidence), fact.turn, "", "", "", "sentence", said.state, said.text + reason


_ADDRESS = re.compile(r"\S*(?::/|www\.|\b(?:javascript|data|vbscript|file|mailto|xmpp|ftp):)\S*", re.IGNORECASE)


def as_markdown(report: HandOver) -> str:
    """The whole file."""
    return "\n".join(_parts(report)).strip() + "\n"


def _parts(report: HandOver) -> Iterator[str]:
    yield f"# {markdown_line(blocks.title(report))}\n"
    yield from map(_block, (*blocks.front_page(report), *blocks.annex(report)))


def _block(block: blocks.Block) -> str:
    match block:
        case blocks.PartHeading(text, level):
            return f"{'#' * (level + 1)} {block.prefix}{markdown_line(text)}\n"
        case blocks.Paragraph(text, quiet):
            return f"_{markdown_line(text)}_\n" if quiet else f"{markdown_line(text)}\n"
        case blocks.Labelled(lines):
            return "".join(f"- **{label}**: {markdown_line(text)}\n" for label, text in lines)
        case blocks.Items(items, nothing):
            return "".join(f"- {markdown_line(item)}\n" for item in items) or nothing + "\n"
        case blocks.Grid():
            return _table(block)
        case blocks.Strip(moments):
            happened = ((each.at, blocks.line_of_time(each.place), f"{each.where}: {each.text}") for each in moments)
            return _table(blocks.Grid(("time", "", "what"), tuple(happened)))
        case blocks.Figures() | blocks.Bars():
            return _table(block.as_grid())
        case blocks.AnswerText(marked):
            return "\\\n".join(_lines(marked)) + "\n"


def _lines(said: Marked) -> Iterator[str]:
    """The lines of an answer, with what was found in bold and the notes behind their sentences."""
    said = _addresses_uncut(said)
    first = len(said.text) - len(said.text.lstrip())
    notes = list(said.notes)
    at = first
    for line in said.text.strip().split("\n"):
        end = at + len(line)
        written = ""
        while at < end or (notes and notes[0].at <= end):
            until = max(at, min(end, notes[0].at)) if notes and notes[0].at <= end else end
            for text, seen in said.pieces(at, until):
                written += _piece(text, seen, begins=not written.strip())
            at = until
            if notes and notes[0].at <= at:
                written += _note(notes.pop(0))
        yield written.strip() or "&nbsp;"
        at = end + 1


def _addresses_uncut(said: Marked) -> Marked:
    """Marks that do not cut an address: its halves would be escaped apart, and a viewer makes a link of the whole."""
    runs = [found.span() for found in _ADDRESS.finditer(said.text)]

    def run_around(place: int) -> tuple[int, int] | None:
        return next((run for run in runs if run[0] < place < run[1]), None)

    spans = tuple(each for each in said.spans if not (run_around(each.start) or run_around(each.end)))
    notes = tuple(replace(note, at=(run_around(note.at) or (0, note.at))[1]) for note in said.notes)
    return replace(said, spans=spans, notes=notes)


def _piece(text: str, seen: Seen | None, *, begins: bool) -> str:
    inner = markdown_line(text, begins=begins)
    # Between a letter and a sign a viewer takes stars for text.
    if seen is Seen.FOUND and text[:1].isalnum() and text[-1:].isalnum():
        inner = f"**{inner}**"
    before, after = (" " * (len(text) - len(cut)) for cut in (text.lstrip(), text.rstrip()))
    return f"{before}{inner}{after if text.strip() else ''}"


def _note(note: Note) -> str:
    said = f" **{note.sign}** _{markdown_line(note.reason)}_" if note.sign else ""
    return (f" ({blocks.references(note.sources)})" if note.sources else "") + said


def _table(grid: blocks.Grid) -> str:
    written = [_row(row) for row in grid.plain_rows()]
    if not written:
        return grid.nothing + "\n"
    return "\n".join((_row(grid.columns), "|" + "---|" * len(grid.columns), *written)) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_line(cell) for cell in cells) + " |"
