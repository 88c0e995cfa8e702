"""Counts of the incidents that somebody owns: "Ines owns three open incidents", "two are assigned to Ines".

An owner may be an account of alerts as well; what one owns is counted by the owners of incidents and by nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.count_candidates import Candidate
from sentinel_rag.agent.grounding.counted_things import Counted
from sentinel_rag.agent.grounding.evidence_index import folded
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.row_sets import has_states, owned_by, owners, row_sets
from sentinel_rag.agent.grounding.state_atoms import State

_OWNS = re.compile(
    r"\b(?:owns|holds|handles|works on|looks after|is the owner of|is responsible for|is assigned(?: to)?)"
    r"(?:\s+(?:the|only|just|all|exactly|currently))*[\s*_`]*$",
    re.IGNORECASE,
)
_OWNED = re.compile(r"\b(?:owned by|assigned to|held by|handled by|belong to)\s+", re.IGNORECASE)
_BREAK = re.compile(r"[;:(]|\.(?=\W|$)|,\s*(?:and|but|while|whereas)\b|\d")


def owned_counts(reading: Reading, atom: Atom, counted: Counted) -> list[Candidate] | None:
    """The numbers that a count of somebody's incidents may be; None where it counts something else."""
    if counted.noun != "incident":
        return None
    owner = _owner(reading, atom)
    return None if owner is None else list(_candidates(owner, reading, counted))


def _owner(reading: Reading, atom: Atom) -> str | None:
    plain = re.sub(r"[*_`]", " ", reading.text)
    before = _OWNS.search(plain[: atom.start])
    head = folded(plain[: before.start()]) if before else ""
    stop = _BREAK.search(plain, atom.end)
    behind = _OWNED.search(plain[atom.end : stop.start() if stop else len(plain)])
    tail = folded(plain[atom.end + behind.end() :]) if behind else ""
    for name in sorted(owners(reading.index), key=len, reverse=True):
        if head.endswith(name) or tail.startswith(name):
            return name
    return None


def _candidates(owner: str, reading: Reading, counted: Counted) -> Iterator[Candidate]:
    of_all = tuple(
        (each.kind, each.value)
        for each in reading.atoms
        if isinstance(each.value, State) and each.kind in (Kind.SEVERITY, Kind.STATUS, Kind.CLASSIFICATION)
    )
    # "Of the open incidents, four are assigned to X": the states may stand before the count.
    choices = [counted.states] if counted.states else [(), of_all]
    for rows in row_sets("incident", reading.index):
        for states in choices:
            mine = [row for row in rows if owned_by(row, owner) and has_states(row, states)]
            leaf = next((row.first("owner") for row in mine), None)
            yield Candidate(len(mine), leaf, "incidents of this owner, counted")
