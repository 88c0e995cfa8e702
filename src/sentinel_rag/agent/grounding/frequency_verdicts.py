"""How often alerts or incidents of one name occur: "the most frequent alert is X", "X with 13 hits".

Counted over the alerts and incidents that were seen, each once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.count_candidates import Candidate
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Record
from sentinel_rag.agent.grounding.row_sets import row_sets
from sentinel_rag.agent.grounding.verdicts import Verdict, derived, unsupported

_SUPERLATIVE = re.compile(
    r"\b(?:(?P<most>(?:single\s+)?(?:most(?:\s+(?:frequent|common|numerous|prevalent|recurring|repeated))|commonest)"
    r"(?:ly|\s+seen|\s+raised|\s+fired)?)|(?P<least>(?:least\s+(?:frequent|common|numerous)|rarest)(?:ly)?))"
    r"(?:\s+[a-z]+){0,2}?\s+(?P<noun>alert|incident|detection)s?\b(?:\s+(?:name|title|type|rule|kind))?",
    re.IGNORECASE,
)
_NAMES = {"alert": ("name",), "incident": ("title",)}
_IS_BEFORE = re.compile(
    r"^[\s*_`”\"]*(?:alerts?\s+)?(?:is|was|are|were)\s+(?:by far\s+)?(?:the\s+|our\s+)?$", re.IGNORECASE
)
_IS_BEHIND = re.compile(
    r"^[\s*_`]*(?:(?:here|overall|so far|in (?:the|this|these) \w+|by far)\s*,?\s*)*"
    r"(?:is|was|are|were|:|–|-|,|\()\s*(?:by far\s+)?(?:the\s+)?(?:alert\s+)?[\s*_`“\"(]*$",
    re.IGNORECASE,
)
_COUNT_OF_NAME = re.compile(
    r"^[\s*_`”\"’']*(?:,?\s*(?:which|that|with|has|had|accounts for|occurs|occurred|appears|appeared|shows up|fired|"
    r"was raised|came up|comes up|seen|:|=|–|-|\(|at|×|x)\s*)+(?:a total of|in total|about)?[\s*_`(]*$",
    re.IGNORECASE,
)
_NOUN_OF_COUNT = re.compile(
    r"^[\s*_`]*(?:hits?|times?|occurrences?|alerts?|instances?|detections?|matches|entries|incidents?|[).,;]|$|"
    r"and\b|x\b)",
    re.IGNORECASE,
)


def judge_frequencies(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each name of which the piece says that it is the most or the least frequent."""
    text = reading.text
    names = [atom for atom in reading.atoms if atom.kind in (Kind.TITLE, Kind.QUOTE)]
    for match in _SUPERLATIVE.finditer(text):
        noun = "incident" if match["noun"].lower().startswith("incident") else "alert"
        named = [
            atom for atom in names if atom.end <= match.start() and _IS_BEFORE.match(text[atom.end : match.start()])
        ]
        named += [
            atom for atom in names if atom.start >= match.end() and _IS_BEHIND.match(text[match.end() : atom.start])
        ]
        if named:
            yield match.start(), match.end(), _extreme(named[0], noun, reading.index, most=bool(match["most"]))


def _extreme(atom: Atom, noun: str, index: EvidenceIndex, *, most: bool) -> Verdict:
    wanted = folded(str(atom.value))
    for rows in row_sets(noun, index):
        counted = Counter(_name(row, noun) for row in rows)
        if wanted in counted:
            extreme = max(counted.values()) if most else min(counted.values())
            if counted[wanted] == extreme:
                return derived(None, f"{extreme} of {len(rows)}")
    return unsupported("the results have another one at that end")


def named_counts(reading: Reading, atom: Atom) -> list[Candidate] | None:
    """The numbers that a count hung on a name may be ("X with 13 hits", "X (6)"); None where none hangs on one."""
    names = [each for each in reading.atoms if each.kind in (Kind.TITLE, Kind.QUOTE) and each.end <= atom.start]
    if not names or not _COUNT_OF_NAME.match(reading.text[names[-1].end : atom.start]):
        return None
    if not _NOUN_OF_COUNT.match(reading.text[atom.end :]):
        return None
    wanted = folded(str(names[-1].value))
    found: list[Candidate] = []
    for noun in _NAMES:
        for rows in row_sets(noun, reading.index):
            mine = [row for row in rows if _name(row, noun) == wanted]
            if mine:
                found.append(Candidate(len(mine), mine[0].first(_NAMES[noun][0]), f"{noun}s of this name, counted"))
    return found or None


def _name(row: Record, noun: str) -> str:
    leaf = next((leaf for key in _NAMES[noun] if (leaf := row.first(key)) is not None), None)
    return "" if leaf is None else folded(str(leaf.value))
