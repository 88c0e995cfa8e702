"""What goes back to the writer of an answer: sentences that lack a source, then those that do not stand in theirs.

Only listed sentences are touched; whatever of the reply cannot be read leaves the original. The result is checked again
by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from sentinel_rag.agent.answers.check import CheckedAnswer
from sentinel_rag.agent.answers.markup import Unit, UnitKind, is_citation
from sentinel_rag.contracts.evidence import Sentence, SentenceState

MOST_SENTENCES = 60
MOST_WITHOUT_SOURCE = 150
FEWEST_WORDS = 3
"""Words of a sentence that is asked for its source; fewer are a label."""
MOST_CHARACTERS = 600
ASKED = """\
These sentences of your answer do not stand in what they cite. Send back only these, one a line, each as
n: corrected sentence [c1.3]
A true sentence keeps its words and gets the citations that it lacks, of each row that it takes something from; for
what no row says call read_rows or compute, or once other tools that read. What you conclude is worded so ("probably",
"I think"), without a citation. A line "n:" with nothing behind it drops the sentence. All other sentences stay as they
are; do not send them."""
_LINE = re.compile(r"\s{0,8}(?:[-*]\s{1,4})?\**(\d{1,4}\+?)\**\s?[:.)]\**(?:\s+(.*))?$")
_STOP_BEFORE_SOURCE = re.compile(r"([.!?。]\**)\s*(\[c\d[^\[\]]*\])$")
_NO_STATEMENT = (UnitKind.HEAD, UnitKind.HEADING, UnitKind.CODE)
_END_OF_SENTENCE = ".:;!?。"
_COUNTER = re.compile(r"[\s*]*\[?\d{1,4}[.\]]?[\s*]*")
_PIPE = re.compile(r"(?<!\\)\|")
_MARKER = re.compile(r"(?:[-*+•>]|\d{1,4}[.)])\s+")


def _listed(checked: CheckedAnswer) -> Iterator[tuple[int, Sentence, Unit]]:
    """The sentences that are sent back, with their number and place."""
    number = 0
    for sentence, unit in zip(checked.sentences, checked.written, strict=False):
        if sentence.state not in (SentenceState.NOT_FOUND, SentenceState.CONTRADICTED):
            continue
        if len(sentence.text) > MOST_CHARACTERS or number >= MOST_SENTENCES:
            continue
        number += 1
        yield number, sentence, unit


def repair_request(checked: CheckedAnswer) -> str:
    """What the writer is asked, once: the numbered sentences with their reasons; empty if there are none."""
    lines = [
        f"{number}. “{' '.join(sentence.text.split())}”"
        f"{''.join(f' [{ref}]' for ref in unit.refs[:8])} — {sentence.reason}"
        for number, sentence, unit in _listed(checked)
    ]
    return "\n".join((ASKED, *lines)) if lines else ""


def repaired(raw: str, checked: CheckedAnswer, reply: str) -> str:
    """The answer as it was written with the corrected sentences in their places.

    `checked` is what `check_answer(raw, ...)` said. A number that was not asked for, or that comes twice, is left out.
    """
    given = _given(reply)
    told = [(unit, given.get(str(number))) for number, _, unit in _listed(checked)]
    return _changed(raw, [_change(raw, unit, text) for unit, text in told if text is not None])


def _numbered(checked: CheckedAnswer, *, cited: bool = False) -> Iterator[tuple[int, Sentence, Unit]]:
    """The sentences that cite nothing, or all, with their number and place. Which of them are judgement the writer
    knows; an absence ("no device shows a connection") holds nothing to tell it by."""
    pairs = zip(checked.sentences, checked.written, strict=False)
    told = (pair for pair in pairs if (cited or not pair[1].cited) and pair[1].kind not in _NO_STATEMENT)
    long = ((each, unit) for each, unit in told if len(each.text.split()) >= FEWEST_WORDS)
    for number, (sentence, unit) in enumerate(islice(long, MOST_WITHOUT_SOURCE), start=1):
        yield number, sentence, unit


def numbered_sentences(checked: CheckedAnswer, *, cited: bool = False) -> str:
    """The sentences that the writer is asked the sources of, or all that it may change; empty if there are none."""
    told = _numbered(checked, cited=cited)
    return "\n".join(f"{number}. {' '.join(each.text.split())}" for number, each, _ in told)


def rewritten(raw: str, checked: CheckedAnswer, reply: str) -> str | None:
    """The answer with a list of changes: `4: other words`, `4:` without the sentence, `4+: one more behind it`. None
    where the reply is no such list."""
    lines = [line for line in reply.splitlines() if line.strip()]
    if not lines or not all(map(_LINE.match, lines)):
        return None
    given, changes = _given(reply), list[_Change | None]()
    for number, _, unit in _numbered(checked, cited=True):
        told, more = given.get(str(number)), given.get(f"{number}+")
        changes.append(None if told is None else _change(raw, unit, told))
        changes.append(_added(raw, unit, more) if more else None)
    return _changed(raw, changes)


def sourced(raw: str, checked: CheckedAnswer, reply: str) -> str:
    """The answer as it was written with the sources of `reply`, a line a sentence: `3: c1.4, c2.1`.

    A line of words is the sentence said otherwise, with its citations; `3: -` is the writer's judgement.
    """
    given = _given(reply)
    told = [(unit, given.get(str(number)) or "") for number, _, unit in _numbered(checked)]
    return _changed(raw, [_change(raw, unit, text) for unit, text in told if any(map(str.isalnum, text))])


def _given(reply: str) -> dict[str, str | None]:
    """What stands behind each number of a reply; None for one that comes twice."""
    given: dict[str, str | None] = {}
    for line in reply.splitlines():
        match = _LINE.match(line)
        if match is not None:
            number = match[1].lstrip("0")
            text = _STOP_BEFORE_SOURCE.sub(r" \2\1", (match[2] or "").strip())
            given[number] = None if number in given else text
    return given


_Change = tuple[int, int, str]
"""Which part of the answer becomes what."""


def _changed(raw: str, changes: Sequence[_Change | None]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, new in filter(None, changes):
        if start >= at:
            parts.extend((raw[at:start], new))
            at = end
    parts.append(raw[at:])
    return "".join(parts)


def _change(raw: str, unit: Unit, text: str) -> _Change | None:
    """The text in the place of the unit; None where the new text does not fit into its place."""
    start, end = unit.raw
    if not text:
        return _dropped(raw, unit)
    refs = f"[{text.strip('[]() .')}]"
    if is_citation(refs):  # the sentence stays, and gets this source
        end -= unit.kind is not UnitKind.ROW and raw[end - 1] in _END_OF_SENTENCE
        return end, end, f" {refs}"
    if unit.kind is UnitKind.ROW:
        return _changed_row(raw, unit, text)
    if unit.kind is not UnitKind.CODE:
        marker = _MARKER.match(text)
        text = text[marker.end() :] if marker is not None else text
    return (start, end, text) if text.strip() else None


def _added(raw: str, unit: Unit, text: str) -> _Change:
    """A text behind a unit; a line of its own behind a line of a list that is one sentence, or of a table."""
    (first, last), (start, end) = unit.line, unit.raw
    before = _MARKER.sub("", raw[first:start].strip() + " ").strip(" *_")
    if unit.kind is UnitKind.PROSE or (unit.kind is not UnitKind.ROW and before and not _COUNTER.fullmatch(before)):
        return end, end, f" {text}"
    line = f"| {' | '.join(_cells(text))} |" if unit.kind is UnitKind.ROW else raw[first:start] + text
    return last, last, f"\n{line}"


def _changed_row(raw: str, unit: Unit, text: str) -> _Change | None:
    """The whole line with the cells of `text`, which may leave out what stands before the unit, a cell that only counts
    it, and empty cells at the end."""
    (first, last), start = unit.line, unit.raw[0]
    old, new = _cells(raw[first:last]), _cells(text)
    before = len(_cells(raw[first:start] + "x")) - 1
    ahead = [0, before, *([before + 1] if _COUNTER.fullmatch(old[before]) else [])]
    kept = next((each for each in ahead if each + len(new) == len(old)), None)
    if kept is None and not any(old[before + len(new) :]):
        kept, new = before, [*new, *[""] * (len(old) - before - len(new))]
    cells = None if kept is None else [*old[:kept], *new]
    return (first, last, f"| {' | '.join(cells)} |") if cells and len(cells) == len(old) and any(new) else None


def _cells(row: str) -> list[str]:
    """The cells of a table's line."""
    row = row.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [cell.strip() for cell in _PIPE.split(row)]


def _dropped(raw: str, unit: Unit) -> _Change:
    """Without the sentence; without its line if nothing else stands there."""
    start, end = unit.raw
    line_start, line_end = unit.line
    before = raw[line_start:start]
    alone = unit.kind is UnitKind.ROW or not _MARKER.sub("", before.strip() + " ").strip(" *_|")
    if alone and not raw[end:line_end].strip(" *_|"):
        return line_start, min(line_end + 1, len(raw)), ""
    while end < line_end and raw[end] in " \t":
        end += 1
    return start, end, ""
