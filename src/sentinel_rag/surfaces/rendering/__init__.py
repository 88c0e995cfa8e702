"""The render edge of every surface: text of others made safe to look at, in a terminal, on a page and in a table file.

Nothing else in the product decides what a hostile text may do. Each form has one module; what all of them show instead
of a character that a reader would not see stands in `visible`.
"""

from sentinel_rag.surfaces.rendering.html_text import html_text
from sentinel_rag.surfaces.rendering.links import host_in_ascii, opened_host, with_ascii_hosts
from sentinel_rag.surfaces.rendering.markdown_html import markdown_html, marked_html
from sentinel_rag.surfaces.rendering.markdown_text import markdown_line, markdown_lines
from sentinel_rag.surfaces.rendering.spreadsheet import csv_cell, csv_text
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

__all__ = [
    "csv_cell",
    "csv_text",
    "host_in_ascii",
    "html_text",
    "markdown_html",
    "markdown_line",
    "markdown_lines",
    "marked_html",
    "opened_host",
    "safe",
    "safe_cell",
    "with_ascii_hosts",
]
