"""Bar charts as SVG of our own making: shapes and escaped text, styled by the page's classes; nothing in them loads."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sentinel_rag.surfaces.rendering.html_text import html_text
from sentinel_rag.surfaces.rendering.visible import safe_cell
from sentinel_rag.surfaces.reports.blocks import Strip
from sentinel_rag.surfaces.reports.model import Chart, ReportTable

MOST_BARS = 40
MOST_LABEL = 36
_NUMBER = re.compile(r"[0-9]{1,12}(?:[.,][0-9]{1,6})?")
_NOT_COUNTS = re.compile(r"(?:number|id|\bno\b|port|code|#)", re.IGNORECASE)
_ROW, _LABEL, _WIDTH = 22, 250, 760
_STRIP_START, _STRIP = 170, 160


def charts_of(tables: Iterable[ReportTable]) -> tuple[Chart, ...]:
    """A chart for each table of counts: two columns or more, of which one holds counts alone."""
    return tuple(chart for table in tables if (chart := _chart(table)) is not None)


def svg(chart: Chart) -> str:
    """The chart as an `<svg>` element, with its numbers as text, for those who do not see bars."""
    most = max(value for _, value in chart.bars) or 1
    height = _ROW * len(chart.bars) + 4
    drawn = [
        f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {height}" aria-label="{html_text(_said(chart))}">',
    ]
    for place, (label, value) in enumerate(chart.bars):
        y = place * _ROW + 2
        long = (_WIDTH - _LABEL - 80) * value / most
        drawn.append(
            f'<text class="label" x="{_LABEL - 8}" y="{y + 15}">{html_text(_short(label))}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{y}" width="{long:.1f}" height="{_ROW - 5}"/>'
            f'<text class="count" x="{_LABEL + long + 6:.1f}" y="{y + 15}">{value:g}</text>'
        )
    return "".join((*drawn, "</svg>"))


def strip_svg(strip: Strip) -> str:
    """When things happened as an `<svg>` element: a line of time, a mark for each moment, and its words beside it."""
    height = _ROW * len(strip.moments) + 4
    said = safe_cell("; ".join(f"{at}: {what}" for _, at, _, what in strip.moments))
    drawn = [f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH} {height}" aria-label="{html_text(said)}">']
    for number, (place, at, where, what) in enumerate(strip.moments):
        y = number * _ROW + 12
        x = _STRIP_START + place * _STRIP
        kind = "done" if where in ("done", "asked") else "dot"
        drawn.append(
            f'<text class="count" x="0" y="{y + 4}">{html_text(safe_cell(at[:23]))}</text>'
            f'<line class="axis" x1="{_STRIP_START}" y1="{y}" x2="{_STRIP_START + _STRIP}" y2="{y}"/>'
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="5"/>'
            f'<text class="count" x="{_STRIP_START + _STRIP + 14}" y="{y + 4}">{html_text(_short(what, 58))}</text>'
        )
    return "".join((*drawn, "</svg>"))


def _chart(table: ReportTable) -> Chart | None:
    if not 2 <= len(table.rows) <= MOST_BARS:
        return None
    width = range(len(table.columns))
    counts = [place for place in width if all(_NUMBER.fullmatch(row[place]) for row in table.rows)]
    counts = [place for place in counts if not _NOT_COUNTS.search(table.columns[place])]
    labels = [place for place in width if place not in counts and any(row[place].strip() for row in table.rows)]
    labels = [place for place in labels if not re.fullmatch(r"\[\d+\]", table.rows[0][place])]
    if not counts or not labels:
        return None
    bars = tuple((row[labels[0]], float(row[counts[0]].replace(",", ""))) for row in table.rows)
    return Chart(table.title or f"{table.columns[counts[0]]} by {table.columns[labels[0]]}", bars)


def _said(chart: Chart) -> str:
    return safe_cell(f"{chart.title}: " + ", ".join(f"{label} {value:g}" for label, value in chart.bars))


def _short(label: str, most: int = MOST_LABEL) -> str:
    text = safe_cell(label)
    return text if len(text) <= most else text[: most - 1] + "…"
