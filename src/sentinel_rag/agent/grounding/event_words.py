"""Events that a sentence names by words of an alert's title ("the credential dump"), without its name.

What the sentence ties to such an event, an account, a host or an address, must belong to an alert that the words can
mean. Words that fit no alert say nothing that could be checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.name_verdicts import leaves_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.subjects import STRONG, Subject, Topic
from sentinel_rag.agent.grounding.verdicts import Verdict, unsupported

_TIED = frozenset({Kind.ADDRESS, Kind.DOMAIN, Kind.ACCOUNT, Kind.TITLE, Kind.TOKEN, Kind.NAME, Kind.CODE})
_EVENT = re.compile(
    r"^[\s*_`>-]*(?:(?:the|this|that|an?)\s+)?(?P<words>(?:[A-Za-z-]+\s+){1,5}?)"
    r"(?P<verb>(?:(?:was|were|is|has been|had been)\s+)?(?:\w+ly\s+)?(?:happened|occurred|took place|went|ran|came|"
    r"originated|started|began|created|made|set up|launched|executed|performed|carried out|done|triggered|seen|"
    r"observed|detected|raised|found|hit|targeted|affected|reached|involved|involves|concerns|left|sent|flowed|transferred|"
    r"exfiltrated|located|registered|installed|dropped|read|dumped|used|by|on|from|at)\b)"
    r"(?:\s+\w+){0,1}?\s+(?:by|on|from|to|at|in|via|against|onto|into|with|toward|towards)?\s*"
    r"(?:the\s+)?(?:account|user|host|server|address|ip|machine|device|workstation|domain controller)?[\s*_`“\"(]*$",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(
    r"(?:\band\b|\bbetween\b|\bfrom\b|\bto\b|[,;:]|^)\s*(?:the|an?)\s+(?P<words>(?:[A-Za-z-]+\s+){1,5})\(\s*$",
    re.IGNORECASE,
)
_GENERAL = frozenset(
    ("alert", "alerts", "incident", "incidents", "suspicious", "activity", "behavior", "behaviour", "account", "user",
     "host", "server", "address", "detected", "unusual", "potentially", "first", "second", "last", "next", "attack",
     "event", "events", "from", "with", "that", "this", "possible", "attempted", "malicious", "same", "other", "whole",
     "final", "initial", "domain", "device", "several", "more", "most", "high", "medium", "severity", "case")
)  # fmt: skip
_WORD = re.compile(r"[a-z]{4,}")
_STEM = 6


def alerts_meant(words: str, index: EvidenceIndex) -> list[Record]:
    """The alerts whose names hold the most of `words`, by their first letters; none where no name holds any."""
    wanted = {word[:_STEM] for word in _WORD.findall(folded(words)) if word not in _GENERAL}
    best: list[Record] = []
    most = 0
    for record in index.records(Speaks.ALERT):
        name = record.first("name")
        if name is None or not wanted:
            continue
        stems = {word[:_STEM] for word in _WORD.findall(folded(str(name.value))) if word not in _GENERAL}
        shared = len(wanted & stems)
        if shared > most:
            best, most = [], shared
        if shared and shared == most:
            best.append(record)
    return best


def judge_events(reading: Reading) -> Iterator[tuple[Atom, Verdict]]:
    """A verdict against each account, host or address that the piece ties to an event of which no alert has it."""
    if any(subject.topic in STRONG and subject.start >= 0 for subject in reading.subjects):
        return
    tied = [atom for atom in reading.atoms if atom.kind in _TIED]
    if not tied:
        return
    match = _EVENT.match(reading.text[: tied[0].start])
    if match is None:
        return
    alerts = alerts_meant(match["words"], reading.index)
    leaves = leaves_of(tied[0], reading.index)
    if alerts and leaves and not _tell(leaves, alerts, match["words"], str(tied[0].value)):
        yield tied[0], unsupported(f"no alert that the words {match['words'].strip()!r} mean has it")


def event_before(reading: Reading, atom: Atom) -> list[Subject]:
    """The event whose words stand right before a time in brackets ("the ransomware alert (07:06 ...)")."""
    match = _IN_BRACKETS.search(reading.text[: atom.start])
    if match is None:
        return []
    alerts = alerts_meant(match["words"], reading.index)
    words = match["words"].strip()
    return [Subject(Topic.ALERT, words, tuple(alerts), start=match.start("words"), end=match.end())] if alerts else []


def _tell(leaves: Sequence[Leaf], alerts: Sequence[Record], words: str, value: str) -> bool:
    """True if one of the alerts, a row of a log, or a longer text that uses the same words holds the value."""
    mine = {id(record) for record in alerts}
    stems = {word[:_STEM] for word in _WORD.findall(folded(words)) if word not in _GENERAL}
    return any(
        any(id(outer) in mine or _in_log(outer) for outer in leaf.record.chain())
        or (len(str(leaf.value)) > len(value) and all(stem in folded(str(leaf.value)) for stem in stems))
        for leaf in leaves
    )


def _in_log(record: Record) -> bool:
    """True for a row of a query's result, and not for a row of an incident's own lists."""
    return record.speaks is Speaks.ROW and bool(re.fullmatch(r"/rows/\d+", record.pointer))
