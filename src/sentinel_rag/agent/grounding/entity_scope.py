"""How far a thing reaches: "m.keller is in every incident", "m.keller appears in incidents 12, 18 and 40", "svc-backup
is the only account in 31". Each incident that is spoken of has to be tied to it, and no other thing of the kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.atoms import IDENTIFIERS, Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import folded
from sentinel_rag.agent.grounding.name_verdicts import ROLES, leaves_of
from sentinel_rag.agent.grounding.number_atoms import NOUNS, noun_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Speaks
from sentinel_rag.agent.grounding.row_sets import row_sets
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.verdicts import Verdict, unsupported

_NAMED = (IDENTIFIERS | {Kind.NAME, Kind.CODE}) - {Kind.INCIDENT, Kind.HANDLE, Kind.GUID}
_IN = (
    r"(?:appears?|appeared|is|was|are|were|been|named|seen|involved|used|found|present|part|occurs?|occurred|shows up|"
    r"showed up)\b(?:\s+(?:part|named|seen|involved|used|found|present))?\s+(?:in|of|by|across)\s+"
)
_EVERYWHERE = re.compile(
    rf"^[\s*_`”\"]*{_IN}(?:every|each|all(?:\s+of)?(?:\s+the)?)\s+(?:single\s+)?(?P<noun>incident|case)s?\b"
    r"(?!\s+(?:that|which|with|of|from|in|about|created|owned|assigned))",
    re.IGNORECASE,
)
_LISTED = re.compile(rf"^[\s*_`”\"]*{_IN}(?:the\s+)?incidents\s*[#*_`(]*$", re.IGNORECASE)
_BETWEEN_LISTED = re.compile(r"[\s#*_`,&]*(?:and|incident|&)?[\s#*_`]*", re.IGNORECASE)
_SOLE = re.compile(
    r"^[\s*_`”\"]*(?:is|was|remains)\s+the\s+(?:only|sole|single)\s+(?P<noun>[A-Za-z]+)\s+(?:\w+\s+){0,2}?(?:in|of|for)\s+"
    r"(?:the\s+)?(?:incident\s*)?[#*_`]*$",
    re.IGNORECASE,
)


def judge_scopes(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each reach that the piece claims too wide or too narrow."""
    text = reading.text
    incidents = [each for each in reading.subjects if each.topic is Topic.INCIDENT and each.start >= 0]
    for atom in reading.atoms:
        if atom.kind not in _NAMED:
            continue
        everywhere = _EVERYWHERE.match(text[atom.end :])
        if everywhere is not None and not _in_all(atom, reading):
            yield atom.start, atom.end + everywhere.end(), unsupported("the results do not tie it to each of them")
        behind = [each for each in incidents if each.start >= atom.end]
        if not behind:
            continue
        between = text[atom.end : behind[0].start]
        if _LISTED.match(between):
            listed = _list_of(behind, text)
            if any(not _tied(atom, each.numbers, reading) for each in listed):
                yield atom.start, listed[-1].end, unsupported("the results do not tie it to each of them")
        sole = _SOLE.match(between)
        if sole is not None and _others(atom, sole["noun"], behind[0], reading):
            yield atom.start, behind[0].end, unsupported("the results name others of this kind there")


def _in_all(atom: Atom, reading: Reading) -> bool:
    return any(
        rows and all(_tied(atom, frozenset({row.incident}), reading) for row in rows)
        for rows in row_sets("incident", reading.index)
    )


def _tied(atom: Atom, numbers: frozenset[str], reading: Reading) -> bool:
    leaves: Sequence[Leaf] = leaves_of(atom, reading.index)
    return any(numbers & set(leaf.record.numbers()) and leaf.key not in ROLES for leaf in leaves)


def _list_of(incidents: Sequence[Subject], text: str) -> list[Subject]:
    """The first incident and those that are listed with it."""
    found = [incidents[0]]
    for each in incidents[1:]:
        if not _BETWEEN_LISTED.fullmatch(text[found[-1].end : each.start]):
            break
        found.append(each)
    return found


def _others(atom: Atom, noun: str, incident: Subject, reading: Reading) -> bool:
    """Whether the incident has another entity of the kind that the noun tells."""
    kind = noun_of(noun)
    if kind not in NOUNS.values():
        return False
    mine = folded(str(atom.value))
    for record in reading.index.records(Speaks.ENTITY):
        name, told = record.first("name"), record.first("kind")
        of_kind = f"/entities/{kind}/" in record.pointer or (told is not None and told.value == kind)
        if name is None or not of_kind or not incident.numbers & set(record.numbers()):
            continue
        other = folded(str(name.value))
        if mine not in other and other not in mine:
            return True
    return False
