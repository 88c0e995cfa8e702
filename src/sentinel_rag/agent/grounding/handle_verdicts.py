"""Whether a handle of a hidden value stands at the thing, and for the field, whose value it is.

Nobody but the person sees the value, so nothing else in a sentence can show that it is the wrong one. A handle names
its place in a result, and that place has a row and a field. It is never put right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.markdown_text import Layout
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Speaks
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.verdicts import HARMLESS, Verdict, in_result, unsupported

_LINK = r"(?:\s+(?:is|was|are|of|for|reads?|:))?[\s:=*_`“\"(]*$"
_FIELDS = (
    (r"(?:titled?|entitled)", ("title", "name")),
    (r"(?:owners?|owned\s+by|assign(?:ed\s+to|ee)|belongs\s+to)", ("owner", "assign")),
    (r"(?:descri(?:ption|bed\s+as))", ("descri",)),
    (r"(?:classification|reason)", ("classif", "reason")),
    (r"(?:severity)", ("severity",)),
    (r"(?:status)", ("status",)),
    (r"(?:products?|providers?)", ("product", "provider", "vendor")),
)
"""Words in front of a value, and what the name of its field has then in it."""
_BEFORE = tuple((re.compile(rf"\b{words}{_LINK}", re.IGNORECASE), stems) for words, stems in _FIELDS)
_HEADER = tuple((re.compile(rf"^\W*(?:\w+\s+)?{words}\W*$", re.IGNORECASE), stems) for words, stems in _FIELDS)
_OWNS = re.compile(r"^[\s*_`”\"]*(?:owns\b|(?:is|was)\s+(?:its|the)\s+(?:owner|assignee)\b)", re.IGNORECASE)
_ENDS, _BEGINS = re.compile(r"\S{1,200}$"), re.compile(r"\S{1,200}")
_POSSESSIVE = re.compile(r"⟧['’]s\b")
_PLACEHOLDER = re.compile(r"⟦[^⟦⟧]*⟧")
_ADDRESS_MARK = re.compile(r"[/\\?=&@%#]|\.\w")


def judge_handle(reading: Reading, atom: Atom, subjects: Sequence[Subject]) -> Verdict:
    """The verdict for a handle; `subjects` are the incidents or alerts that the sentence gives the value to."""
    leaves = leaves_of_handle(atom, reading.index)
    if not leaves:
        known = any(str(atom.value) in run.handles for run in reading.index.results)
        return HARMLESS if known else unsupported("no result has this handle")
    if _within_address(reading.text, atom):
        return unsupported("a hidden value is no part of an address")
    stems = _field(reading, atom)
    if stems and not any(stem in leaf.key for leaf in leaves for stem in stems):
        return unsupported("the handle is of another field")
    meant = _in_order(reading, atom, subjects)
    if meant and not any(_is_of(leaf, subject) for leaf in leaves for subject in meant):
        return unsupported(f"the handle is of another {meant[0].topic.value}")
    return in_result(leaves[0])


def leaves_of_handle(atom: Atom, index: EvidenceIndex) -> list[Leaf]:
    """The values of results that are the placeholder, or hold it."""
    return [
        leaf
        for run in index.results
        if str(atom.value) in run.handles
        for leaf in run.leaves
        if isinstance(leaf.value, str) and atom.text in leaf.value
    ]


def _field(reading: Reading, atom: Atom) -> tuple[str, ...]:
    """What the name of the field must have in it, by the words beside the handle or by the column; empty for any."""
    if reading.piece.layout is Layout.CELL:
        return next((stems for pattern, stems in _HEADER if pattern.match(reading.piece.header)), ())
    if _OWNS.match(reading.text[atom.end :]):
        return ("owner", "assign")
    before = reading.text[: atom.start]
    return next((stems for pattern, stems in _BEFORE if pattern.search(before)), ())


def _in_order(reading: Reading, atom: Atom, subjects: Sequence[Subject]) -> Sequence[Subject]:
    """Of several subjects the one that this handle is for, where the sentence gives each of them one."""
    handles = [each for each in reading.atoms if each.kind is Kind.HANDLE]
    if len(subjects) > 1 and len(handles) == len(subjects):
        return [subjects[handles.index(atom)]]
    return subjects


def _is_of(leaf: Leaf, subject: Subject) -> bool:
    if leaf.record.speaks in (Speaks.SUMMARY, Speaks.COVERAGE) or subject.holds(leaf):
        return True
    if subject.topic is Topic.ALERT and leaf.record.speaks is not Speaks.ALERT:
        # What is said of an alert may be its incident's.
        return bool(set(_numbers(subject)) & set(leaf.record.numbers()))
    return not leaf.record.numbers()


def _numbers(subject: Subject) -> Iterator[str]:
    for record in subject.records:
        yield from record.numbers()


def _within_address(text: str, atom: Atom) -> bool:
    """True for a handle inside what a person could follow or run: its value would go where the address leads."""
    before, after = _ENDS.search(text[: atom.start]), _BEGINS.match(text[atom.end :])
    word = f"{before[0] if before else ''}{atom.text}{after[0] if after else ''}"
    beside = _PLACEHOLDER.sub("", _POSSESSIVE.sub("⟧", word))
    return any(character.isalnum() for character in beside) and bool(_ADDRESS_MARK.search(beside))
