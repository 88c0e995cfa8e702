"""Shares in words: "most incidents are High", "Ines owns most of the open incidents", "few alerts are Medium".

Counted over the incidents or alerts that were seen; a sentence whose predicate is no state and no owner is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import folded
from sentinel_rag.agent.grounding.number_atoms import NOUNS, noun_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Record
from sentinel_rag.agent.grounding.row_sets import has_states, owned_by, owners, row_sets
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.verdicts import Verdict, derived, unsupported

_SHARE = re.compile(
    r"\b(?P<words>(?P<most>(?:the )?(?:(?:vast |large |great |clear )?majority|bulk)|(?<!the )most(?!\s+"
    r"(?:recent|severe|likely|common|frequent|important|urgent|serious|critical|active)\b))|"
    r"(?P<over>(?:well |slightly |just )?(?:more than|over) (?:a )?half)|"
    r"(?P<under>(?:less|fewer) than (?:a )?half|under half|(?:a |the )?minority)|"
    r"(?P<nearly>(?:nearly|almost|virtually|practically) (?:all|every))|"
    r"(?P<few>(?:only|very|just) (?:a )?few|(?<!a )(?<!the )few|"
    r"hardly any|barely any|almost no|scarcely any|(?:only )?a handful))"
    r"(?:\s+of)?(?:\s+(?:the|these|those|all|our|your))?\s+(?P<narrow>(?:[A-Za-z-]+\s+){0,3}?)"
    r"(?P<noun>incidents?|cases?|alerts?|detections?|them|these|those)\b",
    re.IGNORECASE,
)
_LIMITS = {"most": (0.5, 1.0), "over": (0.5, 1.0), "under": (-1.0, 0.5), "nearly": (0.84, 1.0), "few": (-1.0, 0.34)}
"""Above the first and at most the second share (for "under" and "few": below the second)."""
_PREDICATE = re.compile(
    r"^[\s*_`]*(?:are|were|is|was|have|had|has|remain|remained|stay|carry|carried|"
    r"come|came|rated|still|already|currently)\b",
    re.IGNORECASE,
)
_OWNS = re.compile(
    r"\b(?:owns|owned|holds|handles|handled|has|works on|is (?:responsible|accountable) for|is assigned(?: to)?|"
    r"looks after|is the owner of)[\s*_`]*$",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"^[\s*_`]*(?:are|were|is|was|have been|belong)?\s*(?:owned by|assigned to|held by|handled by|with|to)\s+",
    re.IGNORECASE,
)
_END = re.compile(r"[;:(]|\.(?=\W|$)|,\s*(?:and|but|while|whereas|with)\b|\b(?:while|whereas|but)\b")
_KINDS = (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION, Kind.OWNERSHIP)


@dataclass(frozen=True, slots=True)
class Share:
    """Of the `noun`s that have the states `narrow`, the part that has `states` or is `owner`'s; `[start, end)` of the
    piece."""

    start: int
    end: int
    kind: str
    noun: str
    narrow: tuple[tuple[Kind, State], ...]
    states: tuple[tuple[Kind, State], ...]
    owner: str


def judge_shares(reading: Reading) -> Iterator[tuple[Share, Verdict]]:
    """A verdict for each share in words whose predicate can be counted."""
    for share in _shares(reading):
        yield share, _judge(share, reading)


def _shares(reading: Reading) -> Iterator[Share]:
    text = reading.text
    for match in _SHARE.finditer(text):
        noun = NOUNS.get(noun_of(match["noun"]), "") or noun_of(match["noun"])
        if noun not in ("incident", "alert"):
            noun = reading.context.noun
        kind = next(name for name in _LIMITS if match[name])
        stop = _END.search(text, match.end())
        end = stop.start() if stop else len(text)
        narrow = _states(reading.atoms, match.start("narrow"), match.end("narrow"))
        states = _states(reading.atoms, match.end(), end) if _PREDICATE.match(text[match.end() :]) else ()
        owner = _owner(text, match.start(), match.end(), end, reading) if noun == "incident" else ""
        if " or " in text[match.end() : end] and states:
            continue
        if noun and (states or owner):
            yield Share(match.start(), match.end(), kind, noun, narrow, states, owner)


def _states(atoms: Sequence[Atom], start: int, end: int) -> tuple[tuple[Kind, State], ...]:
    return tuple(
        (atom.kind, atom.value)
        for atom in atoms
        if atom.kind in _KINDS and isinstance(atom.value, State) and start <= atom.start and atom.end <= end
    )


def _owner(text: str, start: int, after: int, end: int, reading: Reading) -> str:
    """The owner of whom the share is said, before it ("X owns most") or behind it ("most are assigned to X")."""
    before = _OWNS.search(text[:start])
    head = folded(re.sub(r"[*_`]", "", text[: before.start()])) if before else ""
    behind = _OWNED.match(text[after:end])
    tail = folded(re.sub(r"[*_`]", "", text[after + behind.end() : end])) if behind else ""
    for name in sorted(owners(reading.index), key=len, reverse=True):
        if head.endswith(name) or tail.startswith(name):
            return name
    return ""


def _judge(share: Share, reading: Reading) -> Verdict:
    seen = False
    low, high = _LIMITS[share.kind]
    around = (*reading.subjects, reading.context.last)
    within = frozenset(number for each in around if each is not None for number in each.numbers)
    for rows in row_sets(share.noun, reading.index, within):
        whole = [row for row in rows if has_states(row, share.narrow)]
        if len(whole) < 2:
            continue
        seen = True
        part = [row for row in whole if _meant(row, share)]
        ratio = len(part) / len(whole)
        if low < ratio <= high and not (share.kind in ("under", "few") and ratio >= high):
            leaf = next(iter(next(iter((part or whole)[0].leaves.values()))), None)
            return derived(leaf, f"{len(part)} of {len(whole)}")
    return unsupported("the results tell another share of them" if seen else "no result gives this share")


def _meant(row: Record, share: Share) -> bool:
    return has_states(row, share.states) and (not share.owner or owned_by(row, share.owner))
