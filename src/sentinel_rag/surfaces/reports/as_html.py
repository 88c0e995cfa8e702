"""A report as one HTML file that loads nothing and runs nothing: its policy forbids it, and its elements are our own.

It reads without colour, follows the system's light or dark, prints on paper, and its numbers lead to their evidence.
Charts are SVG: shapes and escaped text, styled by the page's classes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Container, Iterator, Set
from importlib.resources import files

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.surfaces.rendering.markdown import marked_html
from sentinel_rag.surfaces.rendering.visible import Note, html_text, safe_cell
from sentinel_rag.surfaces.reports import blocks
from sentinel_rag.surfaces.reports.building import MOST_SHOWN, Chart, HandOver

MOST_LABEL = 36
_ROW, _LABEL, _WIDTH = 22, 250, 760
_STRIP_START, _STRIP = 130, 150


def svg(chart: Chart) -> str:
    """The chart as an `<svg>` element, with its numbers as text, for those who do not see bars."""
    most = max(value for _, value in chart.bars) or 1
    height = _ROW * len(chart.bars) + 4
    drawn = [f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {height}" aria-label="{html_text(_said(chart))}">']
    for place, (label, value) in enumerate(chart.bars):
        y = place * _ROW + 2
        long = (_WIDTH - _LABEL - 80) * value / most
        drawn.append(
            f'<text class="label" x="{_LABEL - 8}" y="{y + 15}">{html_text(_short(label))}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{y}" width="{long:.1f}" height="{_ROW - 5}"/>'
            f'<text class="count" x="{_LABEL + long + 6:.1f}" y="{y + 15}">{value:g}</text>'
        )
    return "".join((*drawn, "</svg>"))


def strip_svg(strip: blocks.Strip) -> str:
    """When things happened as an `<svg>` element: a line of time, a mark for each moment, and its words beside it."""
    height = _ROW * len(strip.moments) + 4
    said = safe_cell("; ".join(f"{each.at}: {each.text}" for each in strip.moments))
    drawn = [f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {height}" aria-label="{html_text(said)}">']
    for number, each in enumerate(strip.moments):
        y = number * _ROW + 12
        x, behind = _STRIP_START + each.place * _STRIP, _STRIP_START + _STRIP + 14
        kind = "done" if each.where != "alert" else f"dot {_tone(each.severity)}"
        drawn.append(
            f'<text class="at" x="0" y="{y + 4}">{html_text(each.at)}</text>'
            f'<line class="axis" x1="{_STRIP_START}" y1="{y}" x2="{_STRIP_START + _STRIP}" y2="{y}"/>'
            f'<circle class="{kind.strip()}" cx="{x:.1f}" cy="{y}" r="5"/>'
            f'<text class="count" x="{behind}" y="{y + 4}">{html_text(_short(each.text, 74))}</text>'
        )
    return "".join((*drawn, "</svg>"))


def _tone(severity: str) -> str:
    """The class of a severity; none of any other text."""
    return severity.lower() if severity in SEVERITIES else ""


def _said(chart: Chart) -> str:
    return safe_cell(f"{chart.title}: " + ", ".join(f"{label} {value:g}" for label, value in chart.bars))


def _short(label: str, most: int = MOST_LABEL) -> str:
    text = safe_cell(label)
    return text if len(text) <= most else text[: most - 1] + "…"


STYLE = files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def as_html(report: HandOver) -> str:
    """The whole file."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="referrer" content="no-referrer">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html_text(blocks.title(report))}</title><style>{STYLE}</style></head>\n"
        f"<body><main>{''.join(_body(report))}</main></body></html>\n"
    )


def _body(report: HandOver) -> Iterator[str]:
    numbers = frozenset(row.number for row in report.evidence)
    yield f"<h1>{html_text(blocks.title(report))}</h1>\n"
    yield from (_block(each, numbers) for each in (*blocks.front_page(report), *blocks.annex(report)))


def _block(block: blocks.Block, numbers: Set[str]) -> str:
    """A block; `numbers` are those of the evidence."""
    match block:
        case blocks.PartHeading(text, level):
            kind = ' class="annex"' if block.new_page else ""
            return f"<h{level + 1}{kind}>{block.prefix}{html_text(text)}</h{level + 1}>\n"
        case blocks.Paragraph(text, quiet):
            return f'<p class="quiet">{html_text(text)}</p>\n' if quiet else f"<p>{html_text(text)}</p>\n"
        case blocks.Labelled(lines):
            return f"<dl>{''.join(_labelled(label, text) for label, text in lines)}</dl>\n"
        case blocks.Items(items, quiet=True):
            return "".join(f'<p class="quiet">{html_text(item)}</p>\n' for item in items)
        case blocks.Items(items, nothing):
            written = "".join(f"<li>{_item(item, numbers if block.cites else ())}</li>\n" for item in items)
            return f"<ul>{written}</ul>\n" if written else f"<p>{html_text(nothing)}</p>\n"
        case blocks.Grid():
            return _table(block, numbers)
        case blocks.Figures(items):
            told = "".join(f"<div><dt>{html_text(name)}</dt><dd>{_cell(value)}</dd></div>" for name, value in items)
            return f'<dl class="figures">{told}</dl>\n'
        case blocks.Strip():
            return f"{strip_svg(block)}\n"
        case blocks.Bars(chart):
            return f"<h3>{html_text(chart.title)}</h3>\n{svg(chart)}\n"
        case blocks.AnswerText(marked):
            return marked_html(marked, _note)


def _cell(text: str) -> str:
    tone = _tone(text)
    return f'<span class="{tone}">{tone.capitalize()}</span>' if tone else html_text(text)


def _labelled(label: str, text: str) -> str:
    marked = ' class="warn"' if label == "Note" or text.startswith("REVEALED") else ""
    return f"<dt>{html_text(label)}</dt><dd{marked}>{html_text(text)}</dd>\n"


def _item(item: str, numbers: Container[str]) -> str:
    number, colon, rest = item.partition(":")
    return _reference(number) + html_text(colon + rest) if number in numbers else html_text(item)


def _note(note: Note, below: bool) -> str:
    """What stands behind a sentence, or below a table for one of its rows."""
    if below:
        return f'<span class="warn">{note.sign} {html_text(f"{note.about}: {note.reason}")}</span>'
    said = f" ({html_text(note.reason)})" if note.reason else ""
    sign = f' <span class="warn">{note.sign}{said}</span>' if note.sign else ""
    more = f", and {len(note.sources) - MOST_SHOWN} more" if len(note.sources) > MOST_SHOWN else ""
    numbers = ", ".join(map(_reference, note.sources[:MOST_SHOWN]))
    return (f' <span class="quiet">({numbers}{more})</span>' if numbers else "") + sign


def _reference(number: str) -> str:
    return f'<a href="#{html_text(number)}">{html_text(number)}</a>'


def _table(grid: blocks.Grid, numbers: Set[str]) -> str:
    """A table whose references lead to their evidence, and whose named rows are what they lead to."""
    if not grid.rows:
        return f"<p>{html_text(grid.nothing)}</p>\n"
    written = []
    for row in grid.rows:
        cells = [_cell(each) if isinstance(each, str) else "<br>".join(map(html_text, each)) for each in row]
        if grid.cites is not None and row[grid.cites] in numbers:
            cells[grid.cites] = _reference(str(row[grid.cites]))
        named = f' id="{cells[0]}"' if grid.named else ""
        written.append(f"<tr{named}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
    head = "".join(f'<th scope="col">{html_text(name)}</th>' for name in grid.columns)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(written)}</tbody></table></div>\n'
