"""The check of an answer that was written out of values: the offline analyst's.

Every token that holds a digit (numbers, times, GUIDs, addresses, hashes, ids, host names) and every severity and status
word of a line must occur in a result, in the window, or in the person's own question. A line that fails is left out and
the answer says so. Used after every answer, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from sentinel_rag.agent.answer_writer import Line, Tally
from sentinel_rag.agent.grounding.outcome import REMOVED, UNCHECKED_CELL
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.times import show_duration, show_value
from sentinel_rag.agent.tool_runs import ToolRun, resolve
from sentinel_rag.contracts.evidence import Evidence, Table
from sentinel_rag.contracts.json_values import JsonValue

_TOKEN = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z.:_@\\/-]*[0-9A-Za-z])?…?")
_WORDS = frozenset(
    {"High", "Medium", "Low", "Informational", "New", "Active", "Closed", "InProgress", "Resolved", "Dismissed"}
)
_ALGORITHMS = frozenset({"sha-256", "sha-1", "md5"})
"""Names of hash algorithms hold digits and state nothing about data."""
_LIST_NUMBER = re.compile(r"\[\d{1,3}\]")
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Unsupported:
    """An atom of the answer that nothing supports, and the text around it."""

    atom: str
    text: str


class KnownAtoms:
    """Everything that an answer of this turn may say: atoms of the results, of the question and of the arguments."""

    def __init__(self, runs: Iterable[ToolRun], question: str, zone: tzinfo, tallies: Iterable[Tally] = ()) -> None:
        runs = list(runs)
        self._known: set[str] = set()
        documents = {run.call.call_id: run.document for run in runs}
        for tally in tallies:
            places = {
                (part.call_id, pointer)
                for part in (tally, *tally.more)
                for pointer in part.pointers
                if resolve(documents.get(part.call_id), pointer) is not None
            }
            self._known.add(str(len(places)))
        self._add(question)
        for run in runs:
            for leaf in _leaves(dict(run.call.arguments)):
                self._add_leaf(leaf, zone)
            if run.worked:
                for leaf in _leaves(run.document):
                    self._add_leaf(leaf, zone)
                for seconds in _durations(run.document):
                    self._add(show_duration(seconds))

    def supports(self, atom: str) -> bool:
        """True if a result, an argument or the question holds `atom`; one that ends in `…` may be a beginning."""
        if atom.endswith("…"):
            start = atom[:-1].lower()
            return any(known.startswith(start) for known in self._known)
        return atom.lower() in self._known

    def _add_leaf(self, leaf: JsonValue, zone: tzinfo) -> None:
        text = plain(str(leaf), limit=_NO_LIMIT)
        self._add(text)
        if _TIMES.match(text):
            self._add(show_value(text, zone))

    def _add(self, text: str) -> None:
        for match in _TOKEN.finditer(plain(text, limit=_NO_LIMIT)):
            token = match[0].rstrip("…").lower()
            self._known.add(token)
            # "10.0.0.5:443" and "C:\\tools\\a1.exe" also name their parts.
            self._known.update(part for part in re.split(r"[\\/:@]", token) if part)


def unsupported(text: str, known: KnownAtoms) -> list[Unsupported]:
    """The atoms of `text` that `known` does not hold."""
    found = []
    for match in _TOKEN.finditer(_LIST_NUMBER.sub(" ", text)):
        token = match[0]
        if not any(character.isdigit() for character in token) and token not in _WORDS:
            continue
        if token.lower() not in _ALGORITHMS and not known.supports(token):
            found.append(Unsupported(token, text))
    return found


def checked_lines(lines: Iterable[Line], known: KnownAtoms) -> list[Line]:
    """The lines, with each one that holds an unsupported atom replaced by a statement that it was left out."""
    kept: list[Line] = []
    for line in lines:
        if line.fixed or not unsupported(line.text, known):
            kept.append(line)
        elif not kept or kept[-1].text != REMOVED:
            kept.append(Line(REMOVED, fixed=True))
    return kept


def checked_table(table: Table, known: KnownAtoms) -> Table:
    """The table, with each unsupported cell emptied. The first column may hold list numbers."""
    rows = tuple(tuple(UNCHECKED_CELL if unsupported(cell, known) else cell for cell in row) for row in table.rows)
    return Table(table.columns, rows, table.title)


def broken_evidence(evidence: Iterable[Evidence], runs: Iterable[ToolRun]) -> list[Evidence]:
    """Pieces whose pointer does not lead to their value in the result of their call."""
    documents = {run.call.call_id: run.document for run in runs}
    return [piece for piece in evidence if resolve(documents.get(piece.call_id), piece.pointer) != piece.value]


def _durations(value: JsonValue) -> Iterator[float]:
    """Every number of seconds of a result: the fields whose name ends in `duration_s`."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key.endswith("duration_s") and isinstance(part, int | float):
                yield float(part)
            else:
                yield from _durations(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _durations(part)


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield key
            yield from _leaves(part)
    elif isinstance(value, list | tuple):
        yield len(value)
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value
