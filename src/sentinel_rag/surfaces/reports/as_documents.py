"""A report as a Word document or a PDF (the extra `documents`): nothing in it loads, runs or opens.

Fields, links and images are never written, so a text of others can become none. The PDF embeds a TrueType font of this
machine; a character that the font lacks is written as its code.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.rendering.visible import safe
from sentinel_rag.surfaces.reports import blocks
from sentinel_rag.surfaces.reports.building import HandOver

if TYPE_CHECKING:
    from docx.document import Document
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Flowable


SMALL, NORMAL, LARGE = 8, 10, 13
"""Points of the letters of tables, of all else, and of figures."""
INK, QUIET, RULE, DATA = "#161a20", "#59636f", "#dfe3e8", "#1d57b8"
TONES = {"High": "#b42318", "Medium": "#8f5400", "Low": "#3c6285", "Informational": "#66707d"}
"""The colours of severities, those of the page."""


def as_docx(report: HandOver) -> bytes:
    """The whole file. Raises ImportError without the extra `documents`."""
    import docx
    from docx.shared import Cm

    document = docx.Document()
    document.core_properties.title = safe(blocks.title(report))
    document.core_properties.author = safe(report.head.exported_by)
    _style(document)
    for section in document.sections:
        section.page_width, section.page_height = Cm(21.0), Cm(29.7)
        section.left_margin = section.right_margin = Cm(1.8)
        section.top_margin = section.bottom_margin = Cm(1.5)
    document.add_heading(safe(blocks.title(report)), 0)
    for block in map(_without_pictures, (*blocks.front_page(report), *blocks.annex(report))):
        _write(document, block)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _without_pictures(block: blocks.Block) -> blocks.Block:
    """A block as one that needs no mark, picture or link."""
    match block:
        case blocks.Bars():
            return block.as_grid()
        case blocks.AnswerText(marked):
            return blocks.Paragraph(blocks.with_sources(marked))
        case _:
            return block


def _style(document: Document) -> None:
    """One face in ink for all of it: Word's own headings are blue, and of another one."""
    from docx.oxml.ns import qn
    from docx.shared import Pt, RGBColor

    for name, size in {"Normal": NORMAL, "Title": 18, "Heading 1": 12, "Heading 2": NORMAL}.items():
        style = document.styles[name]
        style.font.name, style.font.size = "Calibri", Pt(size)
        style.font.color.rgb = RGBColor.from_string(INK[1:])
        fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
        for theme in ("asciiTheme", "hAnsiTheme"):
            fonts.attrib.pop(qn(f"w:{theme}"), None)
    for border in document.styles["Title"].element.findall(f".//{qn('w:pBdr')}"):
        border.getparent().remove(border)
    document.styles["Normal"].paragraph_format.space_after = Pt(4)


def _write(document: Document, block: blocks.Block) -> None:
    from docx.enum.text import WD_BREAK

    match block:
        case blocks.PartHeading(text, level):
            if block.new_page:
                document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
            document.add_heading(_text(block.prefix + text), level)
        case blocks.Paragraph(text, quiet):
            document.add_paragraph().add_run(_text(text)).italic = quiet
        case blocks.Items(items, quiet=True):
            for item in items:
                document.add_paragraph().add_run(_text(item)).italic = True
        case blocks.Items(items, nothing):
            for item in items:
                document.add_paragraph(_text(item), style="List Bullet")
            if not items and nothing:
                document.add_paragraph(nothing)
        case blocks.Grid():
            _table(document, block)
        case blocks.Labelled(lines):
            for label, text in lines:
                paragraph = document.add_paragraph()
                paragraph.add_run(f"{_text(label)}: ").bold = True
                paragraph.add_run(_text(text))
        case blocks.Strip():
            _strip(document, block)
        case blocks.Figures():
            _table(document, block.as_grid(), large=True)


def _table(document: Document, grid: blocks.Grid, *, large: bool = False) -> None:
    """A table with lines between its rows alone, its head on every page; `large` sets its values as figures."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Pt, RGBColor

    if not grid.rows:
        document.add_paragraph(grid.nothing)
        return
    table = document.add_table(rows=0, cols=len(grid.columns))
    rows = [[_text(cell) for cell in row] for row in (grid.columns, *grid.plain_rows())]
    points = LARGE if large else SMALL
    widths = blocks.column_widths(rows, PAGE_POINTS, lambda text: len(text) * points * 0.56 + 12)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Pt(width)
    borders = OxmlElement("w:tblBorders")
    for name in ("top", "bottom", "insideH"):
        border = OxmlElement(f"w:{name}")
        for key, value in {"val": "single", "sz": "4", "color": RULE[1:]}.items():
            border.set(qn(f"w:{key}"), value)
        borders.append(border)
    table._tbl.tblPr.insert(1, borders)  # Word wants it behind the width, and before how the table looks
    for place, row in enumerate(rows):
        for cell, text, width in zip(table.add_row().cells, row, widths, strict=True):
            cell.width = Pt(width)
            run = cell.paragraphs[0].add_run(text)
            run.font.size = Pt(LARGE if large and place else SMALL)
            run.bold = bool(place) and (large or text in TONES)
            run.font.color.rgb = RGBColor.from_string((TONES.get(text, INK) if place else QUIET)[1:])
    head = OxmlElement("w:tblHeader")
    head.set(qn("w:val"), "true")
    table.rows[0]._tr.get_or_add_trPr().append(head)


def _strip(document: Document, strip: blocks.Strip) -> None:
    """The moments as rows of a table, in which a filled cell stands at the place of each."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Pt, RGBColor

    steps, step, before = 20, 6.0, 82.0
    widths = [before, *[step] * steps, PAGE_POINTS - before - steps * step]
    table = document.add_table(rows=0, cols=len(widths))
    table.autofit = False
    for column, width in zip(table.columns, widths, strict=True):
        column.width = Pt(width)
    for each in strip.moments:
        cells = table.add_row().cells
        at = 1 + round(each.place * (steps - 1))
        parts = [cells[0], cells[1].merge(cells[at - 1]) if at > 1 else None, cells[at]]
        parts += [cells[at + 1].merge(cells[steps]) if at < steps else None, cells[-1]]
        shade = OxmlElement("w:shd")
        for key, value in {"val": "clear", "color": "auto", "fill": TONES.get(each.severity, QUIET)[1:]}.items():
            shade.set(qn(f"w:{key}"), value)
        cells[at]._tc.get_or_add_tcPr().append(shade)
        for cell, text in ((parts[0], each.at), (parts[-1], each.text)):
            run = cell.paragraphs[0].add_run(_text(text))
            run.font.size, run.font.color.rgb = Pt(SMALL), RGBColor.from_string(INK[1:])
        for cell in filter(None, parts):
            cell.paragraphs[0].paragraph_format.space_after = Pt(1)


def _text(text: str) -> str:
    """What XML can hold, with every character that a reader would not see made visible."""
    return safe(text).encode("utf-8", "backslashreplace").decode()


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
FONT, BOLD = "ReportText", "ReportText-Bold"
MARGIN, FRAME, LEAST_BELOW = 30, 6, 40
"""Points around the page, around a text within them, as ReportLab has them, and that a heading wants below it; letters
are in points too."""
PAGE_POINTS = 493.0
"""The width of the text of a page in Word, in points."""
MOST_CELL = 600
"""Characters of a cell; the rest of one stands in the other forms of the report."""


def as_pdf(report: HandOver) -> bytes:
    """The whole file. Raises ImportError without the extra `documents`, UnavailableError without a font."""
    from reportlab.lib.pagesizes import A4
    from reportlab.platypus import SimpleDocTemplate

    known = _registered()
    written = io.BytesIO()
    document = SimpleDocTemplate(
        written,
        pagesize=A4,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
        title=safe(blocks.title(report)),
        author=safe(report.head.exported_by),
        lang="en",
    )
    setter = _Setter(known, document.width - 2 * FRAME)
    told = [setter.paragraph(blocks.title(report), "title")]
    for block in (*blocks.front_page(report), *blocks.annex(report)):
        told += setter.set(block)

    def foot(canvas: Any, page: Any) -> None:
        canvas.setFont(FONT, 7)
        canvas.setFillColor(QUIET)
        name = setter.text(blocks.title(report))[:80].strip()
        canvas.drawRightString(A4[0] - MARGIN - FRAME, MARGIN / 2, f"{name}, page {page.page}")

    document.build(told, onFirstPage=foot, onLaterPages=foot)
    return written.getvalue()


@cache
def _registered() -> frozenset[int]:
    """Make the font known to ReportLab; the characters that it holds."""
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    for regular, bold in FONTS:
        path = Path(regular)
        if path.is_file():
            font = TTFont(FONT, str(path))
            pdfmetrics.registerFont(font)
            heavy = path.with_name(bold)
            pdfmetrics.registerFont(TTFont(BOLD, str(heavy if heavy.is_file() else path)))
            return frozenset(font.face.charToGlyph)
    raise UnavailableError(
        "A PDF needs a font of this machine, and none of the usual ones is here.",
        next_step="Install one (Debian: apt-get install fonts-dejavu-core), or export HTML and print that.",
    )


def _styles() -> dict[str, ParagraphStyle]:
    from reportlab.lib.styles import ParagraphStyle

    def style(name: str, size: float, **more: Any) -> ParagraphStyle:
        more = {"fontName": FONT, "textColor": INK, "splitLongWords": True, **more}
        return ParagraphStyle(name, fontSize=size, leading=size * 1.25, **more)

    heading = {"fontName": BOLD}
    return {
        "title": style("title", 15, fontName=BOLD, spaceAfter=4),
        "part": style("part", 11, spaceBefore=4, spaceAfter=2, **heading),
        "inner": style("inner", 9.5, spaceBefore=5, spaceAfter=1, **heading),
        "text": style("text", 9, spaceAfter=2),
        "label": style("label", 9, fontName=BOLD),
        "quiet": style("quiet", 7.5, textColor=QUIET, spaceAfter=3),
        "item": style("item", 9, leftIndent=10, bulletIndent=1),
        "cell": style("cell", 8),
        "head": style("head", 7.5, textColor=QUIET),
        "figure": style("figure", 12, fontName=BOLD),
        **{f"cell {name}": style(f"cell {name}", 8, fontName=BOLD, textColor=ink) for name, ink in TONES.items()},
        **{f"figure {name}": style(f"figure {name}", 12, fontName=BOLD, textColor=ink) for name, ink in TONES.items()},
        "strip": style("strip", 8),
    }


class _Setter:
    """Turns blocks into what ReportLab lays out. Every text is escaped here: no markup of its own is ever read."""

    def __init__(self, known: frozenset[int], width: float) -> None:
        self._known = known
        self._width = width
        self._styles = _styles()

    def set(self, block: blocks.Block) -> Iterator[Flowable]:
        from reportlab.platypus import CondPageBreak, PageBreak, Spacer

        match block:
            case blocks.PartHeading(text, level):
                if block.new_page:
                    yield PageBreak()
                yield CondPageBreak(LEAST_BELOW)
                yield self.paragraph(block.prefix + text, "part" if level == 1 else "inner")
            case blocks.Paragraph(text, quiet):
                yield self.paragraph(text, "quiet" if quiet else "text")
            case blocks.Items(items, quiet=True):
                for item in items:
                    yield self.paragraph(item, "quiet")
            case blocks.Items(items, nothing):
                for item in items:
                    yield self.paragraph(item, "item", bullet="•")
                if not items and nothing:
                    yield self.paragraph(nothing, "text")
                yield Spacer(1, 1)
            case blocks.Grid():
                yield from self._table(block.columns, block.plain_rows(), block.nothing)
            case blocks.Figures(items):
                yield self._figures(items)
            case blocks.Strip():
                yield self._strip(block)
            case blocks.Labelled(lines):
                yield self._labelled(lines)
            case _:
                yield from self.set(_without_pictures(block))

    def paragraph(self, text: str, style: str, *, bullet: str | None = None) -> Flowable:
        """A text in its style; its own new lines stay."""
        from reportlab.platypus import Paragraph as Flowing

        lines = escape(self.text(text)).replace("\n", "<br/>")
        return Flowing(lines, self._styles[style], bulletText=bullet)

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> Iterator[Flowable]:
        from reportlab.pdfbase.pdfmetrics import stringWidth
        from reportlab.platypus import Spacer, Table

        if not rows:
            if nothing:
                yield self.paragraph(nothing, "text")
            return
        head = [self.paragraph(each, "head") for each in columns]
        cells = [[self.paragraph(cell[:MOST_CELL], self._toned(cell)) for cell in row] for row in rows]
        texts = [[self.text(cell[:MOST_CELL]) for cell in row] for row in (columns, *rows)]
        widths = blocks.column_widths(texts, self._width, lambda text: stringWidth(text, BOLD, 8) + 7)
        table = Table([head, *cells], colWidths=widths, repeatRows=1, splitInRow=1)
        table.setStyle(
            [
                ("LINEBELOW", (0, 0), (-1, -1), 0.5, RULE),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("LEFTPADDING", (0, 0), (-1, -1), 0),
                ("RIGHTPADDING", (0, 0), (-1, -1), 6),
                *((side, (0, 0), (-1, -1), 2) for side in ("TOPPADDING", "BOTTOMPADDING")),
            ]
        )
        yield table
        yield Spacer(1, 2)

    @staticmethod
    def _toned(cell: str) -> str:
        """The style of a cell: a severity has its own."""
        return f"cell {cell}" if cell in TONES else "cell"

    def _labelled(self, lines: Sequence[tuple[str, str]]) -> Flowable:
        from reportlab.platypus import Table

        cells = [[self.paragraph(label, "label"), self.paragraph(text, "text")] for label, text in lines]
        table = Table(cells, colWidths=[88, self._width - 88], splitInRow=1)
        sides = ("LEFTPADDING", "RIGHTPADDING", "TOPPADDING", "BOTTOMPADDING")
        table.setStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), *((side, (0, 0), (-1, -1), 0.5) for side in sides)])
        return table

    def _figures(self, items: Sequence[tuple[str, str]]) -> Flowable:
        """Names with their values large below them, in one frame."""
        from reportlab.pdfbase.pdfmetrics import stringWidth
        from reportlab.platypus import Table

        names = [self.paragraph(name, "quiet") for name, _ in items]
        values = [self.paragraph(value[:60], f"figure {value}" if value in TONES else "figure") for _, value in items]
        wanted = [max(stringWidth(self.text(value), BOLD, 12), stringWidth(name, FONT, 7.5)) for name, value in items]
        spare = (self._width - sum(wanted)) / len(items)
        widths = [each + spare for each in wanted] if spare > 13 else [self._width / len(items)] * len(items)
        table = Table([names, values], colWidths=widths, spaceBefore=4, spaceAfter=4)
        table.setStyle(
            [
                ("BOX", (0, 0), (-1, -1), 0.5, RULE),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("BOTTOMPADDING", (0, 0), (-1, 0), 0),
                ("TOPPADDING", (0, 1), (-1, 1), 0),
            ]
        )
        return table

    def _strip(self, strip: blocks.Strip) -> Flowable:
        """A line of time for each moment, with a mark at its place and its words beside it."""
        from reportlab.graphics.shapes import Circle, Drawing, Line
        from reportlab.lib.colors import HexColor
        from reportlab.platypus import Table

        length, middle = 110.0, 5.0
        rows = []
        for each in strip.moments:
            drawing = Drawing(length + 8, 2 * middle)
            drawing.add(Line(4, middle, length + 4, middle, strokeColor=HexColor(RULE), strokeWidth=0.8))
            ink = HexColor(TONES.get(each.severity, DATA))
            inside = ink if each.where == "alert" else HexColor("#ffffff")
            drawing.add(Circle(4 + each.place * length, middle, 3, fillColor=inside, strokeColor=ink))
            rows.append([self.paragraph(each.at, "quiet"), drawing, self.paragraph(each.text[:160], "strip")])
        table = Table(rows, colWidths=[80, length + 14, self._width - length - 94])
        table.setStyle(
            [
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                *((side, (0, 0), (-1, -1), 0.5) for side in ("TOPPADDING", "BOTTOMPADDING", "LEFTPADDING")),
            ]
        )
        return table

    def text(self, text: str) -> str:
        """The text with every character that the font lacks written as its code, so that nothing is lost unseen."""
        return "".join(
            each if each == "\n" or ord(each) in self._known else f"\\u{{{ord(each):x}}}" for each in safe(text)
        )
