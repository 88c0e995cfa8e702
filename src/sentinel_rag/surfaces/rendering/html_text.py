"""Text on a page, in an element or a quoted attribute: nothing in it is markup, and nothing in it is invisible."""

from __future__ import annotations

from html import escape

from sentinel_rag.surfaces.rendering.visible import safe


def html_text(text: object) -> str:
    """`text` as HTML text, with unsafe characters as in a terminal."""
    return escape(safe(str(text)), quote=True)
