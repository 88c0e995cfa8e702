"""The text of an answer on a terminal or in a pipe, with what the check says of its sentences.

Literals that were found are underlined, and a small `ˢ¹` behind a sentence names its source in the list below. `!` is
not found, `✗` contradicted, each with its reason. Signs are in the text itself, so nothing rests on colour; where only
ASCII can be shown they are `{s1}`, `!` and `x`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console  # noqa: TID253  # draws with rich, and is imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Answer, Citation, Outcome, Sentence
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.surfaces.cli._safe_text import safe_cell
from sentinel_rag.surfaces.rendering.marks import Note, Source, counted, marked, plain, sources_of

STYLES = {
    "markdown.found": "underline green",
    "markdown.missing": "bold yellow",
    "markdown.other": "bold red",
    "markdown.source": "dim",
}
MOST_BEHIND = 4
"""Sources that are named behind one sentence."""
MOST_LISTED = 8
MOST_NAMED = 6
"""Rows, and fields, of a line of that list."""
_SMALL = str.maketrans("s0123456789", "ˢ⁰¹²³⁴⁵⁶⁷⁸⁹")


def text_lines(
    target: Console, text: str, sentences: Sequence[Sentence] = (), style: str = "", *, reasons: bool = True
) -> Iterator[Text]:
    """The text of an answer in lines of the window's width; without `reasons`, signs stand alone."""
    ascii_only = target.options.ascii_only
    names = source_names(sentences)
    own = "ˢ" if sentences else ""
    shown = marked(text, sentences, lambda citation: names[citation.call_id, citation.pointer], own)

    def put(note: Note, in_row: bool, below: bool) -> list[tuple[str, str]]:
        return list(_said(note, short=in_row or not reasons, below=below, ascii_only=ascii_only))

    if not target.is_terminal:
        # In a pipe the text goes out as it was written, so that scripts and people grep the same words.
        written, at = "", 0
        for note in shown.notes:
            written += shown.text[at : note.at] + "".join(said for said, _ in put(note, False, False))
            at = note.at
        written += shown.text[at:]
        yield from Text(written, style=style).wrap(target, target.width, overflow="fold")
        return
    from rich.theme import Theme

    from sentinel_rag.surfaces.cli._written_markdown import WrittenMarkdown

    # It pads its lines with spaces, which would wrap into empty lines once the window is made narrower.
    with target.use_theme(Theme(STYLES)):
        drawn = target.render_lines(WrittenMarkdown(shown, put, style=style), pad=False)
    for segments in drawn:
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        yield line


def source_names(sentences: Sequence[Sentence]) -> dict[tuple[str, str], str]:
    """How each row or result that they cite is named: `s1` on, in the order of the text."""
    found = sources_of(sentences)
    return {(each.citation.call_id, each.citation.pointer): f"s{number}" for number, each in enumerate(found, 1)}


def source_lines(answer: Answer, *, whole: bool = False, hidden: int = 0) -> Iterator[str]:
    """How many sentences were compared and what came of it, then what they cite: call, row and field; `whole` with all
    of their values."""
    told = counted(answer.sentences) if worth_counting(answer) else ""
    if hidden:
        told += f"{', ' if told else ''}{hidden} hidden (not found or contradicted)"
    if told:
        yield told
    if whole:
        for number, source in enumerate(sources_of(answer.sentences), 1):
            yield f"  s{number}  {_words((source,), values=True)}"
        return
    groups = list(_alike(sources_of(answer.sentences)))
    for first, sources in groups[:MOST_LISTED]:
        last = first + len(sources) - 1
        yield f"  s{first}{f' to s{last}' if last > first else ''}  {_words(sources)}"
    if left := sum(len(sources) for _, sources in groups[MOST_LISTED:]):
        yield f"  ... and {left} more: --evidence, or /evidence in a chat, lists them"


def _alike(sources: Sequence[Source]) -> Iterator[tuple[int, Sequence[Source]]]:
    """Sources that follow each other and differ by their row alone, with the number of the first."""
    first = 1
    for _, group in groupby(sources, lambda each: (each.citation.call_id, not each.row, (*each.cells,), each.given)):
        same = list(group)
        yield first, same
        first += len(same)


def _words(sources: Sequence[Source], *, values: bool = False) -> str:
    """The call, the rows, and the fields that were compared; of one source also with all its values."""
    rows = [each.row for each in sources]
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    place = (
        place_words(sources[0].citation)
        if len(rows) == 1
        else f"{_call(sources[0].citation)} rows {_listed(rows)}{more}"
    )
    fields = [*sources[0].cells]
    if values:
        fields = [", ".join(f"{name} {_value(value)}" for name, value in sources[0].cells.items())] if fields else []
    others = f", and {len(fields) - MOST_NAMED} more" if len(fields) > MOST_NAMED else ""
    by_check = "" if sources[0].given else " (found by the check)"
    return safe_cell(f"{place}{by_check}{f': {_listed(fields)}{others}' if fields else ''}")


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:MOST_NAMED])


def _call(citation: Citation) -> str:
    return f"{citation.ref.partition('.')[0]} {citation.tool}"


def place_words(citation: Citation) -> str:
    """`c1 query_incidents row 3`"""
    row = citation.ref.partition(".")[2]
    return f"{_call(citation)} {f'row {row}' if row else 'as a whole'}"


def worth_counting(answer: Answer) -> bool:
    """A question back, or that it failed, is in the words of this product and not worth a count of them."""
    return bool(sources_of(answer.sentences)) or answer.outcome in (Outcome.ANSWERED, Outcome.NO_DATA)


def _said(note: Note, *, short: bool, below: bool, ascii_only: bool) -> Iterator[tuple[str, str]]:
    """The texts of a note with the names of their styles."""
    sign = {"✗": "x"}.get(note.sign, note.sign) if ascii_only else note.sign
    style = "other" if note.sign == "✗" else "missing"
    if below:
        about = note.about if len(note.about) <= 40 else f"{note.about[:39]}{'...' if ascii_only else '…'}"
        yield f"{sign} ", style
        yield f"{about}: {note.reason}", style
        return
    names = note.sources[:MOST_BEHIND]
    more = f"+{len(note.sources) - len(names)}" if len(note.sources) > len(names) else ""
    if names:
        small = "".join(name.translate(_SMALL) for name in names)
        yield (f"{{{' '.join(names)}{more}}}" if ascii_only else f"{small}{more}"), "source"
    if sign:
        yield f" {sign}", style
        if not short:
            yield f" ({note.reason})", style


def _value(value: object) -> str:
    return "hidden: your key may not see it" if handles_in(value) else plain(value)
