"""Denied ties: "m.keller is not involved in incident 12", "31 has nothing to do with dc-01", "Ines does not own 31".

A result that holds the two together makes such a sentence false. That nothing ties them can only be said of what was
read, so a denial that no result contradicts stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import IDENTIFIERS, Atom, Kind
from sentinel_rag.agent.grounding.name_verdicts import ROLES, leaves_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Speaks
from sentinel_rag.agent.grounding.subjects import STRONG, Subject
from sentinel_rag.agent.grounding.verdicts import Verdict, unsupported

_NAMED = (IDENTIFIERS | {Kind.NAME, Kind.QUOTE, Kind.CODE, Kind.TECHNIQUE, Kind.TACTIC}) - {Kind.INCIDENT, Kind.HANDLE}
_ABOUT = (
    r"(?:involv\w+|contain\w*|includ\w+|names?\b|mention\w*|appear\w*|part of|relat\w+|connect\w+|link\w+|tied|"
    r"affect\w*|concern\w*|touch\w*|belong\w*|listed|occur\w*|seen in|found in|present in|used in|hit\b)"
)
_WORKS = r"(?:own\w*|assign\w+|handl\w+|work(?:s|ed|ing)? on|respons\w+)"
_NOT = (
    r"(?:(?:do|does|did|is|are|was|were|has|have|had|can|could)(?:n[’']t|\s+not)|never|not|nowhere|no longer|neither)"
)
_DENIED = re.compile(
    rf"\b(?:{_NOT}\s+(?:\w+\s+){{0,3}}?(?:(?P<about>{_ABOUT})|(?P<works>{_WORKS}))|"
    r"nothing to do with|un(?:related|connected|affected|linked|touched)\b|free of|irrelevant)",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(r"\b(?:in|by|to|of)\s+(?:any(?: of the)?|a single)\s+(?P<noun>alert|incident|case)s?\b", re.I)
_LONGEST = 60


def judge_denials(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each tie that the piece denies and a result shows."""
    text = reading.text
    named = [atom for atom in reading.atoms if atom.kind in _NAMED]
    strong = [each for each in reading.subjects if each.topic in STRONG and each.start >= 0]
    for match in _DENIED.finditer(text):
        works = match["works"] is not None
        for atom in named:
            if anywhere := _denied_of_all(match, atom, text):
                leaves = [leaf for leaf in _leaves(atom, reading, works=False) if _speaks(leaf, anywhere)]
                if leaves:
                    yield match.start(), match.end(), unsupported("results name it there")
            for subject in strong:
                if not _joins(match, atom, subject, text):
                    continue
                if any(subject.holds(leaf) for leaf in _leaves(atom, reading, works=works)):
                    yield match.start(), match.end(), unsupported(f"the results tie it to {subject.text}")


def truly_denied(reading: Reading, atom: Atom) -> bool:
    """Whether the piece says of something that the results hold that it is not tied to a thing, and no result ties
    them."""
    if atom.kind not in _NAMED or not leaves_of(atom, reading.index):
        return False
    strong = [each for each in reading.subjects if each.topic in STRONG and each.start >= 0]
    for match in _DENIED.finditer(reading.text):
        joined = [subject for subject in strong if _joins(match, atom, subject, reading.text)]
        leaves = _leaves(atom, reading, works=match["works"] is not None)
        if joined and not any(subject.holds(leaf) for subject in joined for leaf in leaves):
            return True
    return False


def _joins(match: re.Match[str], atom: Atom, subject: Subject, text: str) -> bool:
    """Whether the denial stands between the two, and nothing else does."""
    first, last = (atom.end, subject.start) if atom.end <= subject.start else (subject.end, atom.start)
    return (
        first <= match.start() <= match.end() <= last
        and last - first <= _LONGEST
        and not re.search(r"[;.](?=\s)|,\s", text[first:last])
    )


def _denied_of_all(match: re.Match[str], atom: Atom, text: str) -> str:
    """What the atom is said to be in none of: "alert", "incident", or nothing."""
    behind = _ANYWHERE.match(text[match.end() :].lstrip())
    if behind is None or not atom.end <= match.start() <= atom.end + _LONGEST:
        return ""
    return "" if re.search(r"[;.](?=\s)", text[atom.end : match.start()]) else behind["noun"].lower()


def _leaves(atom: Atom, reading: Reading, *, works: bool) -> list[Leaf]:
    """Where the results hold it: as who works on a thing, or as what the thing is about."""
    return [leaf for leaf in leaves_of(atom, reading.index) if (leaf.key in ROLES) is works]


def _speaks(leaf: Leaf, noun: str) -> bool:
    if noun == "alert":
        return any(record.speaks is Speaks.ALERT for record in leaf.record.chain())
    return bool(leaf.record.numbers())
