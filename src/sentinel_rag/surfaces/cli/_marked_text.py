"""An answer's text with the check's marks, and the evidence behind a fact, as lines of a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console  # noqa: TID253  # draws with rich, and is imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Answer, Citation, Evidence, Outcome, Sentence, Table
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.surfaces.rendering.visible import (
    CitedSource,
    Note,
    counted,
    marked,
    plain,
    safe,
    safe_cell,
    sources_of,
)

STYLES = {
    "markdown.found": "underline green",
    "markdown.missing": "bold yellow",
    "markdown.other": "bold red",
    "markdown.source": "dim",
}
MOST_BEHIND = 4
"""Sources, or runs of them, that are named behind one sentence."""
MOST_LISTED = 8
MOST_NAMED = 6
"""Rows, and fields, of a line of that list."""
_SMALL = str.maketrans("s0123456789-", "ˢ⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


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


def _alike(sources: Sequence[CitedSource]) -> Iterator[tuple[int, Sequence[CitedSource]]]:
    """Sources that follow each other and differ by their row alone, with the number of the first."""
    first = 1
    for _, group in groupby(sources, lambda each: (each.citation.call_id, not each.row, (*each.cells,), each.given)):
        same = list(group)
        yield first, same
        first += len(same)


def _words(sources: Sequence[CitedSource], *, values: bool = False) -> str:
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
    runs = list(_runs(note.sources))
    more = f"+{sum(map(len, runs[MOST_BEHIND:]))}" if len(runs) > MOST_BEHIND else ""
    if names := [run[0] if len(run) == 1 else f"{run[0]}-{run[-1].lstrip('s')}" for run in runs[:MOST_BEHIND]]:
        small = "".join(name.translate(_SMALL) for name in names)
        yield (f"{{{' '.join(names)}{more}}}" if ascii_only else f"{small}{more}"), "source"
    if sign:
        yield f" {sign}", style
        if not short:
            yield f" ({note.reason})", style


def _runs(names: Sequence[str]) -> Iterator[list[str]]:
    """Names in their order, those that follow each other together: `s1-4` is shorter than four of them."""
    numbered = enumerate(sorted(names, key=lambda name: int(name.lstrip("s"))))
    for _, run in groupby(numbered, lambda each: int(each[1].lstrip("s")) - each[0]):
        yield [name for _, name in run]


def _value(value: object) -> str:
    return "hidden: your key may not see it" if handles_in(value) else plain(value)


_ROW = re.compile(r"(.*?/(?:[^/]+)/[0-9]+)(?:/(.*))?")
_STEP = re.compile(r"/([^/]+)(?:/([0-9]+)(?=/|$))?")
_OF_LIST = re.compile(r"(?<!^/rows)/[0-9]+$")
_MARK = re.compile(r"\[([0-9]{1,6})\]")
_SOURCE = re.compile(r"s([0-9]{1,6})")
_NUMBER = re.compile(r"[0-9]{1,6}")


def fact_lines(answer: Answer) -> Iterator[str]:
    """One line a row: the call, the place of the row, and its facts with their numbers, names and words. Those that
    the cells of the sources tell are left out."""
    told = {(mark.call_id, mark.pointer) for sentence in answer.sentences for mark in sentence.marks if mark.found}
    rows: dict[str, list[str]] = {}
    for number, piece in enumerate(answer.evidence, 1):
        if (piece.call_id, piece.pointer) not in told:
            place, _, name = _OF_LIST.sub("", piece.pointer).rpartition("/")
            row = f"{piece.call_id} {piece.tool}{''.join(map(_step, _STEP.findall(place)))}"
            rows.setdefault(row, []).append(f"{number}. {name} {piece.text}")
    for row, facts in rows.items():
        yield safe_cell(f"  {row}: {'; '.join(facts)}")


def _step(found: tuple[str, str]) -> str:
    name, number = found
    return f"{' row' if name == 'rows' else f', {name}'}{f' {int(number) + 1}' if number else ''}"


def query_lines(answer: Answer) -> Iterator[str]:
    """The KQL that each call ran, with the call's name before it."""
    for trace in answer.tools:
        if query := str((trace.coverage or {}).get("query") or ""):
            yield safe_cell(f"KQL of {trace.call_id} {trace.name}:")
            yield from (f"  {line}" for line in safe(query).splitlines())


def evidence_lines(answer: Answer, wanted: str) -> Iterator[str]:
    """What stands behind fact `wanted` (`3`), in the source that is named so (`s3`), or behind the line that a table
    marks so (`[3]`).

    Raises UsageError for what the answer does not have.
    """
    pieces = answer.evidence
    if named := _SOURCE.fullmatch(wanted):
        yield from _source_lines(answer, int(named[1]))
        return
    if not pieces:
        raise UsageError("No fact of the last answer comes from a tool.", next_step="Ask about incidents or alerts.")
    if mark := _MARK.fullmatch(wanted):
        row = _marked_row(answer, f"[{int(mark[1])}]")
        yield f"The line {wanted} of the answer:"
        yield from _row_lines(row)
        yield from _call_lines(answer, row[0])
        return
    number = int(wanted) if _NUMBER.fullmatch(wanted) else 0
    if not 1 <= number <= len(pieces):
        raise UsageError(
            f"The last answer has the facts 1 to {len(pieces)}, and no {wanted!r}.",
            next_step="/evidence lists them; /evidence [2] is for the line that a table marks [2].",
        )
    piece = pieces[number - 1]
    yield f"Fact {number}: {safe_cell(piece.text)}"
    yield f"  place    {safe_cell(piece.pointer)}"
    yield from _value_lines(piece)
    row = _row_of(pieces, piece)
    if len(row) > 1:
        yield "  its row, as far as the answer tells it:"
        yield from _row_lines(row)
    yield from _call_lines(answer, piece)
    if any(cells[0].strip() == f"[{number}]" for table in answer.tables for cells in table.rows if cells):
        yield f"For the line that the table marks [{number}]: /evidence [{number}]"


def _source_lines(answer: Answer, number: int) -> Iterator[str]:
    """A row, or a whole result, and the sentences that cite it."""
    found = sources_of(answer.sentences)
    if not 1 <= number <= len(found):
        raise UsageError(
            f"The last answer has {len(found)} sources, and no 's{number}'.", next_step="/evidence lists them."
        )
    source = found[number - 1]
    cited = source.citation
    yield f"Source s{number}: {safe_cell(place_words(cited))}"
    yield f"  place    {safe_cell(cited.pointer or 'the whole result')}"
    if not source.given:
        yield "  given    by the check: the writer named no source"
    inside = f"{cited.pointer}/"
    cells = {
        each.pointer.removeprefix(inside): each.value
        for each in answer.evidence
        if cited.pointer and each.call_id == cited.call_id and each.pointer.startswith(inside)
    } | source.cells
    if cells:
        yield "  its row, as far as the answer tells it:"
    for name, value in cells.items():
        yield safe_cell(f"    {name}: {'hidden: your key may not see it' if handles_in(value) else plain(value)}")
    yield "  behind these words of the answer:"
    for sentence in answer.sentences:
        if any((each.call_id, each.pointer) == (cited.call_id, cited.pointer) for each in sentence.citations):
            yield f"    {safe_cell(' '.join(sentence.text.split()))}"
    yield from _call_lines(answer, cited)


def _marked_row(answer: Answer, mark: str) -> list[Evidence]:
    """The facts of the row of a table that carries `mark`. Raises UsageError if there is none."""
    for table in answer.tables:
        for cells in table.rows:
            if cells and cells[0].strip() == mark:
                found = _row_by_cells(answer.evidence, table, cells)
                if found:
                    return found
    raise UsageError(f"No table of the last answer has a line {mark}.", next_step="/evidence lists the facts.")


def _row_by_cells(pieces: Sequence[Evidence], table: Table, cells: Sequence[str]) -> list[Evidence]:
    """The row whose facts are most of these cells: a cell does not say its place itself."""
    rows: dict[tuple[str, str], list[Evidence]] = {}
    for piece in pieces:
        if match := _ROW.fullmatch(piece.pointer):
            rows.setdefault((piece.call_id, match[1]), []).append(piece)
    shown = set(cells[1:])
    best = max(rows.values(), key=lambda row: len(shown & {piece.text for piece in row}), default=[])
    return best if shown & {piece.text for piece in best} else []


def _row_of(pieces: Sequence[Evidence], piece: Evidence) -> list[Evidence]:
    match = _ROW.fullmatch(piece.pointer)
    if match is None:
        return [piece]
    inside = f"{match[1]}/"
    return [each for each in pieces if each.call_id == piece.call_id and each.pointer.startswith(inside)]


def _row_lines(row: Sequence[Evidence]) -> Iterator[str]:
    for each in row:
        match = _ROW.fullmatch(each.pointer)
        name = (match[2] if match else "") or each.pointer
        yield f"    {safe_cell(name)}: {safe_cell(each.text)}"


def _value_lines(piece: Evidence) -> Iterator[str]:
    value = piece.value if isinstance(piece.value, str) else json.dumps(piece.value, ensure_ascii=False)
    if handles_in(piece.value):
        yield "  value    hidden: your key may not see it"
    elif value != piece.text:
        first, *more = safe(value).splitlines() or [""]
        yield f"  value    {first}"
        yield from (f"         | {line}" for line in more)


def _call_lines(answer: Answer, piece: Evidence | Citation) -> Iterator[str]:
    trace = next((each for each in answer.tools if each.call_id == piece.call_id), None)
    if trace is None:
        yield f"  call     {safe_cell(piece.tool)}"
        return
    arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in trace.arguments.items())
    yield f"  call     {safe_cell(f'{trace.name}({arguments})')}"
    coverage = trace.coverage or {}
    if coverage:
        tables = ", ".join(map(str, coverage.get("tables") or ()))  # type: ignore[arg-type]
        rows = f"{coverage.get('rows_returned')} of {coverage.get('rows_total')} rows"
        yield safe_cell(f"  read     {tables or 'no table'} of workspace {coverage.get('workspace')}: {rows}")
    if coverage.get("query"):
        yield safe_cell(f"  query    {coverage['query']}")
    if trace.audit_id:
        yield f"  record   sentinel audit show {safe_cell(trace.audit_id)}"
