"""Whether an answer says of a past incident what its record in the knowledge base says, and not what another's does.

Only for incidents that the workspace told nothing of: there the texts of hits are all that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.hit_texts import share, stems_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.subjects import Topic
from sentinel_rag.agent.grounding.verdicts import Verdict, unsupported

_SAYS_SO = re.compile(
    r"\b(?:closing\s+(?:comment|note|words)|comments?\s+(?:say|said|tell|told|note)\w*|according\s+to\s+its|"
    r"(?:was|were)\s+closed\s+(?:because|since|with\s+the))\b",
    re.IGNORECASE,
)
_ABOUT = (
    "closing comment closed created classified severity status classification like similar technique tactic share way"
)
_LABELLED = re.compile(r"[\W_]*(?:\[\d+\]\W*)?(?:past\s+)?incident[-\s#]*\d{1,9}[`*_]*\s*[:–—(-]", re.IGNORECASE)
_OWN, _CLEAR, _HARDLY, _FEWEST = 0.5, 0.75, 0.2, 2


def judge_past_incidents(reading: Reading) -> Iterator[tuple[Atom, Verdict]]:
    """A verdict against a statement about one past incident that its record does not make."""
    named = {number for subject in reading.subjects if subject.topic is Topic.INCIDENT for number in subject.numbers}
    if len(named) != 1:
        return
    (number,) = named
    records = reading.index.incidents(number)
    if not records or not all(record.of_knowledge for record in records):
        return
    claim = _claimed(reading)
    if len(claim) < _FEWEST:
        return
    held: dict[str, set[str]] = {}
    for each in reading.index.hits:
        if each.hit.number:
            held.setdefault(each.hit.number, set()).update(each.stems)
    own = share(claim, held.get(number, ()))
    whole = Atom(Kind.NAME, reading.text.strip(), 0, len(reading.text))
    if own >= _OWN:
        return
    if any(share(claim, words) >= _CLEAR for other, words in held.items() if other != number):
        yield whole, unsupported("the knowledge base tells that of another incident")
    elif _SAYS_SO.search(reading.text) or (own < _HARDLY and len(claim) > _FEWEST and _LABELLED.match(reading.text)):
        yield whole, unsupported(f"the record of incident-{number} does not say that")


def _claimed(reading: Reading) -> frozenset[str]:
    text = list(reading.text)
    for atom in reading.atoms:
        if atom.kind not in (Kind.NAME, Kind.TITLE, Kind.COUNT, Kind.STATUS):
            text[atom.start : atom.end] = " " * (atom.end - atom.start)
    return stems_of("".join(text)) - stems_of(_ABOUT)
