"""Markdown on a terminal, as a model writes it. A pipe shows its text as it is, so none of this is loaded for one."""

from __future__ import annotations

from rich.markdown import Markdown  # noqa: TID253  # this module is rich's Markdown, and imported lazily

from sentinel_rag.surfaces.rendering.markdown_html import parsed_without_links


class WrittenMarkdown(Markdown):
    """Markdown in which an address, an image and HTML are words: rich would drop them, and a reader miss them."""

    def __init__(self, text: str, *, hyperlinks: bool, style: str) -> None:
        super().__init__("", hyperlinks=hyperlinks, style=style)
        self.markup = text
        self.parsed = parsed_without_links(text)
