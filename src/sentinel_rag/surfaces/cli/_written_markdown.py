"""Markdown on a terminal, as a model writes it. A pipe shows its text as it is, so none of this is loaded for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markdown_it.token import Token
from rich.markdown import Markdown  # noqa: TID253  # this module is rich's Markdown, and imported lazily

from sentinel_rag.surfaces.rendering.markdown import BELOW, IN_ROW, NOTE, SEEN, parsed_without_links, with_marks
from sentinel_rag.surfaces.rendering.visible import Marked, Note


class WrittenMarkdown(Markdown):
    """Markdown in which an address, an image and HTML are words: rich would drop them, and a reader miss them.

    `put` gives the texts of a note with the names of their styles; its second argument tells that a note stands in a
    row of a table, where no reason fits, its third that it stands below one.
    """

    inlines = {*Markdown.inlines, "found", "missing", "other", "source"}  # noqa: RUF012  # as rich declares it

    def __init__(
        self, marked: Marked, put: Callable[[Note, bool, bool], Sequence[tuple[str, str]]], *, style: str
    ) -> None:
        super().__init__("", hyperlinks=False, style=style)
        self.markup = marked.text
        self.parsed = with_marks(parsed_without_links(marked.text), marked)
        self._put = put

    def _flatten_tokens(self, tokens: Iterable[Token]) -> Iterable[Token]:
        for token in tokens:
            if token.children:
                yield from self._flatten_tokens(token.children)
            elif token.type == NOTE:
                for text, style in self._put(token.meta[NOTE], IN_ROW in token.meta, BELOW in token.meta):
                    yield from _styled(Token("text", "", 0, content=text), style)
            elif token.type in ("text", "text_special"):
                yield from _styled(token.copy(type="text"), token.meta.get(SEEN))
            elif token.type == "code_inline":
                yield from _styled(token, token.meta.get(SEEN))
            elif token.type == "softbreak":  # each line stays a line: Markdown alone would run them together
                yield token.copy(type="hardbreak")
            else:
                yield token


def _styled(token: Token, style: str | None) -> Iterable[Token]:
    if not style:
        return (token,)
    return Token("mark_open", str(style), 1), token, Token("mark_close", str(style), -1)
