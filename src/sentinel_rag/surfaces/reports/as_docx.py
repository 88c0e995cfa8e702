"""A report as a Word document: headings, paragraphs, lists and tables of the built-in styles; nothing loads or runs.

Fields, links and images are never written, so a text of others can become none. python-docx is the extra `documents`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sentinel_rag.surfaces.rendering.visible import safe
from sentinel_rag.surfaces.reports import words
from sentinel_rag.surfaces.reports.blocks import (
    Block,
    Grid,
    Items,
    NextPage,
    Paragraph,
    PartHeading,
    Strip,
    annex,
    front_page,
)
from sentinel_rag.surfaces.reports.model import HandOver

if TYPE_CHECKING:
    from docx.document import Document

SMALL, NORMAL = 8, 10
"""Points of the letters of tables and of all else."""
LINE_OF_TIME = 20


def as_docx(report: HandOver) -> bytes:
    """The whole file. Raises ImportError without the extra `documents`."""
    import docx
    from docx.shared import Cm, Pt

    document = docx.Document()
    document.core_properties.title = safe(words.title(report))
    document.core_properties.author = safe(report.head.exported_by)
    document.styles["Normal"].font.size = Pt(NORMAL)
    for section in document.sections:
        section.left_margin = section.right_margin = Cm(1.8)
        section.top_margin = section.bottom_margin = Cm(1.5)
    document.add_heading(safe(words.title(report)), 0)
    for block in (*front_page(report), *annex(report)):
        _write(document, block)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _write(document: Document, block: Block) -> None:
    from docx.enum.text import WD_BREAK

    match block:
        case PartHeading(text, level):
            document.add_heading(_text(text), level)
        case Paragraph(text, quiet):
            document.add_paragraph().add_run(_text(text)).italic = quiet
        case Items(items, nothing):
            for item in items:
                document.add_paragraph(_text(item), style="List Bullet")
            if not items and nothing:
                document.add_paragraph(nothing)
        case Grid(columns, rows, nothing):
            _table(document, columns, rows, nothing)
        case Strip(moments):
            rows = tuple((at, _line_of_time(place), what) for place, at, _, what in moments)
            _table(document, ("time", "when", "what"), rows, "")
        case NextPage():
            document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)


def _table(document: Document, columns: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> None:
    from docx.shared import Pt

    rows = list(rows)
    if not rows:
        document.add_paragraph(nothing)
        return
    table = document.add_table(rows=0, cols=len(columns), style="Table Grid")
    for place, row in enumerate((columns, *rows)):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            run = cell.paragraphs[0].add_run(_text(text))
            run.font.size = Pt(SMALL)
            run.bold = place == 0


def _line_of_time(place: float) -> str:
    before = round(place * (LINE_OF_TIME - 1))
    return "·" * before + "●" + "·" * (LINE_OF_TIME - 1 - before)


def _text(text: str) -> str:
    """What XML can hold, with every character that a reader would not see made visible."""
    return safe(text).encode("utf-8", "backslashreplace").decode()
