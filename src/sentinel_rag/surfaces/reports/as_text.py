"""A report as text: Markdown that every viewer shows alike, and its evidence as CSV.

In Markdown what others wrote is escaped, and our own marks are the only ones. In CSV a line is one value, so that rows
of any tool fit into one file, or one sentence of an answer, whose field is its state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sentinel_rag.surfaces.rendering.markdown import markdown_line
from sentinel_rag.surfaces.rendering.marks import Marked, Note, Seen
from sentinel_rag.surfaces.rendering.visible import csv_text, plain
from sentinel_rag.surfaces.reports import blocks
from sentinel_rag.surfaces.reports.blocks import Block, Grid, Items, Paragraph, PartHeading, Strip, front_page
from sentinel_rag.surfaces.reports.model import HandOver, TurnFacts, both

COLUMNS = ("evidence", "question", "tool", "call_id", "audit_id", "place", "field", "value")


def as_csv(report: HandOver) -> str:
    """The whole file; cells are guarded against formulas (`rendering.visible`)."""
    return csv_text(COLUMNS, _csv_lines(report))


def _csv_lines(report: HandOver) -> Iterator[tuple[object, ...]]:
    for row in report.evidence:
        for name, value in row.fields:
            yield row.number, row.turn, row.tool, row.call_id, row.audit_id, row.place, name, plain(value)
    for fact in report.facts:
        for said in fact.sentences:
            reason = f" ({said.reason})" if said.reason else ""
            yield " ".join(said.evidence), fact.turn, "", "", "", "sentence", said.state, said.text + reason


MOST_BLOCKS = 20
"""Characters of the longest bar of a chart."""


_ADDRESS = re.compile(r"\S*(?::/|www\.|\b(?:javascript|data|vbscript|file|mailto|xmpp|ftp):)\S*", re.IGNORECASE)


def as_markdown(report: HandOver) -> str:
    """The whole file."""
    return "\n".join(_parts(report)).strip() + "\n"


def _parts(report: HandOver) -> Iterator[str]:
    zone = report.head.timezone
    yield f"# {markdown_line(blocks.title(report))}\n"
    yield from map(_block, front_page(report))
    yield "## Annex: about this report\n"
    yield from (f"- **{label}**: {markdown_line(text)}" for label, text in blocks.head_lines(report))
    yield ""
    if any(fact.sentences for fact in report.facts):
        yield f"_{blocks.MARKS}_\n"
    yield "## Annex: questions and answers\n"
    if not report.facts:
        yield blocks.NO_FACTS + "\n"
    for fact in report.facts:
        yield from _facts(fact, zone)
    yield "## Annex: all open points\n"
    yield _list(report.open_questions, blocks.NOTHING_OPEN)
    yield "## Annex: actions and approvals, as recorded\n"
    yield _table(
        ("time", "tool", "with", "what came of it", "audit id"),
        ((both(a.at, zone), a.tool, a.what, a.came_of_it, a.audit_id) for a in report.actions),
        blocks.NO_ACTIONS,
    )
    yield "## Annex: timeline\n"
    yield _table(
        ("time", "where", "what", "see"),
        ((both(m.at, zone), m.where, m.text, m.reference) for m in report.timeline),
        blocks.NO_FACTS,
    )
    if report.charts:
        yield "## Annex: charts\n"
        for chart in report.charts:
            most = max(value for _, value in chart.bars) or 1
            yield _table(
                (chart.title, "count", ""),
                ((label, f"{value:g}", "█" * round(MOST_BLOCKS * value / most)) for label, value in chart.bars),
                "",
            )
    yield "## Annex: knowledge cited\n"
    yield _list((f"{number}: {source}" for number, source in report.knowledge), blocks.NO_KNOWLEDGE)
    yield "## Annex: evidence\n"
    yield _table(
        ("number", "question", "tool and call", "place", "values", "audit id"),
        (
            (
                row.number,
                str(row.turn),
                f"{row.tool} {row.call_id}",
                row.place,
                "; ".join(f"{name}: {plain(value)}" for name, value in row.fields),
                row.audit_id,
            )
            for row in report.evidence
        ),
        blocks.NO_EVIDENCE,
    )
    yield "## Annex: calls, and how to verify them\n"
    yield _table(
        ("question", "tool", "arguments", "status", "rows", "audit id"),
        ((str(c.turn), c.tool, c.arguments, c.status, c.rows, c.audit_id) for c in report.calls),
        "No tool was called.",
    )
    yield from (f"{markdown_line(line)}\n" for line in blocks.how_to_verify(report))


def _block(block: Block) -> str:
    match block:
        case PartHeading(text, level):
            return f"{'#' * (level + 1)} {markdown_line(text)}\n"
        case Paragraph(text, quiet):
            return f"_{markdown_line(text)}_\n" if quiet else f"{markdown_line(text)}\n"
        case Items(items, nothing):
            return _list(items, nothing)
        case Grid(columns, rows, nothing):
            return _table(columns, rows, nothing)
        case Strip(moments):
            happened = ((at, _line_of_time(place), f"{where}: {what}") for place, at, where, what in moments)
            return _table(("time", "", "what"), happened, "")
        case _:
            return ""


def _line_of_time(place: float) -> str:
    before = round(place * (MOST_BLOCKS - 1))
    return "·" * before + "●" + "·" * (MOST_BLOCKS - 1 - before)


def _facts(fact: TurnFacts, zone: str) -> Iterator[str]:
    yield f"### {fact.turn}. {markdown_line(fact.question)}\n"
    yield f"_{markdown_line(both(fact.asked_at, zone))}, {markdown_line(blocks.outcome_words(fact.outcome))}_\n"
    yield "\\\n".join(_lines(fact.said)) + "\n"
    if told := blocks.counted(fact):
        yield f"_{markdown_line(told)}_\n"
    for table in fact.tables:
        if table.title:
            yield f"{markdown_line(table.title)}\n"
        rows = [(*row, number) for row, number in zip(table.rows, table.evidence, strict=True)]
        yield _table((*table.columns, "evidence"), rows, "")
    yield from (f"- {markdown_line(line)}" for line in fact.footnote)
    yield ""


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
    return _references(note.sources) + said


def _references(numbers: Sequence[str]) -> str:
    return f" ({blocks.references(numbers)})" if numbers else ""


def _list(lines: Iterable[str], nothing: str) -> str:
    return "\n".join(f"- {markdown_line(line)}" for line in lines) + "\n" if (lines := list(lines)) else nothing + "\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> str:
    written = [_row(row) for row in rows]
    if not written:
        return nothing + "\n"
    return "\n".join((_row(columns), "|" + "---|" * len(columns), *written)) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_line(cell) for cell in cells) + " |"
