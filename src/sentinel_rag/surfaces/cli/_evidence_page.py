"""`/evidence`: the sources and facts of an answer by number, and the row, the call and the record behind one of them.

A row is what the answer shows of it: the facts whose places lie in the same row of the same result. Values that this
person may not see stay hidden here as everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Answer, Citation, Evidence, Table
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.surfaces.cli._marked_text import place_words
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell
from sentinel_rag.surfaces.rendering.marks import plain, sources_of

_ROW = re.compile(r"(.*?/(?:[^/]+)/[0-9]+)(?:/(.*))?")
_MARK = re.compile(r"\[([0-9]{1,6})\]")
_SOURCE = re.compile(r"s([0-9]{1,6})")
_NUMBER = re.compile(r"[0-9]{1,6}")


def fact_lines(answer: Answer) -> Iterator[str]:
    """One line a fact: its number, its words, and the place that they come from. Those that the cells of the sources
    tell are left out."""
    told = {(mark.call_id, mark.pointer) for sentence in answer.sentences for mark in sentence.marks if mark.found}
    for number, piece in enumerate(answer.evidence, 1):
        if (piece.call_id, piece.pointer) in told:
            continue
        yield f"  {number}. {safe_cell(piece.text)}  <- {safe_cell(f'{piece.tool} [{piece.call_id}] {piece.pointer}')}"


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
