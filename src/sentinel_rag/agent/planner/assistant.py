"""Whether a question is about the assistant itself: what it can and may do, what it keeps, what its words mean.

It reads the words of `assistant.toml` in the sentence as it was said. A question with a subject in the workspace, as is
a list, a name or a time, is none. Pure.
"""

from __future__ import annotations

from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import WORD, side_book
from sentinel_rag.language.lexicon import fold

_OF_THE_WORKSPACE = ("table", "name", "incident", "alert_id", "template", "digits", "item", "class")
_SUBJECTS = ("topic", "status", "severity", "kind", "tactic", "product", "threat")
_ASKS = (
    ("op", "top"), ("op", "trend"), ("op", "summary"), ("meta", "oos"), ("meta", "leisure"), ("meta", "workspaces"),
    ("meta", "templates"), ("meta", "tables"),
)  # fmt: skip
_BOTH = ({"self", "trait"}, {"talk", "deed"})
"""What says together that the assistant is spoken of."""


def about_assistant(frame: Frame) -> bool:
    """True for a question about the assistant, or about the ideas that it speaks of."""
    if frame.has(*_OF_THE_WORKSPACE) or frame.window or set(frame.all("owner")) - {"me"}:
        return False
    found = list(WORD.finditer(frame.said))
    words, spans = [fold(match[0]) for match in found], [match.span() for match in found]
    items = side_book("assistant", frame.language).cover(words, spans, frame.said)[1]
    told = {type_ for item in items for type_, _ in item.senses}
    if "unless" in told:
        return False
    if "idea" in told:
        return True
    said = {word for item in items if item.type != "text" for word in fold(item.text).split()}
    other = any(
        not said & set(fold(item.text).split())
        and any(type_ in _SUBJECTS or (type_, value) in _ASKS for type_, value in item.senses)
        and not item.silent
        for item in frame.items
    )
    return not other and ("itself" in told or any(both <= told for both in _BOTH))
