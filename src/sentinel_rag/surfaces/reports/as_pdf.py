"""A report as a PDF: one page to read, the annex behind it. Text, lines and dots alone: no link, no image, no script.

It embeds a TrueType font of this machine, so that names of every script it holds come out as they are; a character that
the font lacks is written as its code. fpdf2 is the extra `documents`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.rendering import safe
from sentinel_rag.surfaces.reports import words
from sentinel_rag.surfaces.reports.blocks import Block, Grid, Heading, Items, NextPage, Strip, Words, annex, front_page
from sentinel_rag.surfaces.reports.model import HandOver

if TYPE_CHECKING:
    from fpdf import FPDF

FONTS = (
    ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("/usr/share/fonts/TTF/DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
    ("/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf", "NotoSans-Bold.ttf"),
    ("/Library/Fonts/Arial Unicode.ttf", "Arial Unicode.ttf"),
    ("/System/Library/Fonts/Supplemental/Arial.ttf", "Arial Bold.ttf"),
    ("C:/Windows/Fonts/arial.ttf", "arialbd.ttf"),
)
"""Where systems keep a font of many scripts, with its bold face in the same folder; the first that is there."""
FONT = "text"
INK, QUIET, RULE, MARK = (27, 31, 36), (87, 96, 106), (208, 215, 222), (11, 92, 173)
LINE = 4.6
"""Height of a line of text, in millimetres; letters are in points."""
KEPT_TOGETHER = 22
"""Millimetres that a heading needs below it."""
MOST_CELL = 600
"""Characters of a cell; the rest of one stands in the other forms of the report."""


def as_pdf(report: HandOver) -> bytes:
    """The whole file. Raises ImportError without the extra `documents`, UnavailableError without a font."""
    from fpdf import FPDF
    from fpdf.fonts import TTFFont

    regular, bold = _fonts()
    pdf = FPDF(format="A4")
    pdf.set_margins(15, 13)
    pdf.set_auto_page_break(True, margin=14)
    pdf.add_font(FONT, "", regular)
    pdf.add_font(FONT, "B", bold)
    pdf.set_title(safe(words.title(report)))
    pdf.set_author(safe(report.head.exported_by))
    pdf.set_lang("en")
    pdf.add_page()
    font = pdf.fonts[FONT]
    assert isinstance(font, TTFFont)
    page = _Page(pdf, frozenset(font.cmap))
    page.say(words.title(report), size=16, bold=True)
    for block in (*front_page(report), *annex(report)):
        page.write(block)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fontTools tells of tables that it drops when it embeds a part of a font
        return bytes(pdf.output())


@cache
def _fonts() -> tuple[Path, Path]:
    for regular, bold in FONTS:
        path = Path(regular)
        if path.is_file():
            return path, bold_path if (bold_path := path.with_name(bold)).is_file() else path
    raise UnavailableError(
        "A PDF needs a font of this machine, and none of the usual ones is here.",
        next_step="Install one (Debian: apt-get install fonts-dejavu-core), or export HTML and print that.",
    )


class _Page:
    """Writes blocks where the last one ended."""

    def __init__(self, pdf: FPDF, known: frozenset[int]) -> None:
        self._pdf = pdf
        self._known = known

    def write(self, block: Block) -> None:
        match block:
            case Heading(text, level):
                if self._pdf.will_page_break(KEPT_TOGETHER):
                    self._pdf.add_page()
                self._pdf.ln(2)
                self.say(text, size=12 if level == 1 else 10, bold=True)
            case Words(text, quiet):
                self.say(text, size=8 if quiet else 9.5, ink=QUIET if quiet else INK)
                self._pdf.ln(1)
            case Items(items, nothing):
                for item in items or ((nothing,) if nothing else ()):
                    self.say(f"{'•  ' if items else ''}{item}", size=9.5)
                self._pdf.ln(1)
            case Grid(columns, rows, nothing):
                self._table(columns, rows, nothing)
            case Strip():
                self._strip(block)
            case NextPage():
                self._pdf.add_page()

    def say(self, text: str, *, size: float, bold: bool = False, ink: tuple[int, int, int] = INK) -> None:
        """A paragraph over the whole width."""
        self._pdf.set_font(FONT, "B" if bold else "", size)
        self._pdf.set_text_color(*ink)
        self._pdf.multi_cell(0, LINE * size / 9.5, self._text(text), new_x="LMARGIN", new_y="NEXT", align="L")

    def _table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> None:
        rows = [[self._text(cell)[:MOST_CELL] for cell in row] for row in rows]
        if not rows:
            if nothing:
                self.say(nothing, size=9.5)
            return
        self._pdf.set_font(FONT, "", 7)
        self._pdf.set_text_color(*INK)
        self._pdf.set_draw_color(*RULE)
        self._pdf.set_fill_color(255)
        widths = [max(len(columns[at]), *(min(len(row[at]), 60) for row in rows), 4) for at in range(len(columns))]
        with self._pdf.table(col_widths=tuple(widths), line_height=3.6, text_align="LEFT", padding=0.6) as table:
            for row in ([self._text(each) for each in columns], *rows):
                shown = table.row()
                for cell in row:
                    shown.cell(cell)
        self._pdf.ln(1.5)

    def _strip(self, strip: Strip) -> None:
        """A line of time for each moment, with a mark at its place and its words beside it."""
        pdf, left, length = self._pdf, 58.0, 40.0
        for place, at, where, what in strip.moments:
            if pdf.will_page_break(LINE):
                pdf.add_page()
            y = pdf.get_y()
            pdf.set_font(FONT, "", 8)
            pdf.set_text_color(*QUIET)
            pdf.cell(left - pdf.l_margin, LINE, self._text(at[:23]))
            pdf.set_draw_color(*RULE)
            pdf.line(left, y + LINE / 2, left + length, y + LINE / 2)
            pdf.set_fill_color(*(MARK if where == "alert" else (154, 52, 18)))
            pdf.circle(left + place * length, y + LINE / 2, 1.1, style="F")
            pdf.set_text_color(*INK)
            pdf.set_xy(left + length + 3, y)
            pdf.multi_cell(0, LINE, self._text(what)[:160], new_x="LMARGIN", new_y="NEXT", align="L")

    def _text(self, text: str) -> str:
        """The text with every character that the font lacks written as its code, so that nothing is lost unseen."""
        return "".join(
            each if each == "\n" or ord(each) in self._known else f"\\u{{{ord(each):x}}}" for each in safe(text)
        )
