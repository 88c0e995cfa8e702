"""All incidents or alerts that the results tell of, each once, as sets over which an answer counts or compares.

A set is either all that was seen or the rows of one call, since an answer may speak of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sentinel_rag.agent.grounding.atoms import Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.records import Record, Speaks
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.state_verdicts import KEYS, fits

_SPEAKS = {"incident": Speaks.INCIDENT, "alert": Speaks.ALERT}


_LISTS = ("query_incidents", "query_alerts", "get_threat_summary")


def row_sets(noun: str, index: EvidenceIndex, within: frozenset[str] = frozenset()) -> Iterator[list[Record]]:
    """Sets of incidents or alerts (`noun`), the newest record of each: all that were seen first, then each list's, then
    those of the incidents `within` that the answer speaks of."""
    speaks = _SPEAKS.get(noun)
    if speaks is None:
        return
    everything: dict[str, Record] = {}
    of_runs: list[list[Record]] = []
    for run in index.results:
        mine: dict[str, Record] = {}
        for record in run.records:
            if record.speaks is speaks and (identity := _identity(record)):
                mine.setdefault(identity, record)
                everything.setdefault(identity, record)
        if run.tool in _LISTS:
            of_runs.append(list(mine.values()))
    yield list(everything.values())
    of_runs.append([record for record in everything.values() if within & set(record.numbers())])
    for each in of_runs:
        if len(each) > 1 and len(each) < len(everything):
            yield each


def _identity(record: Record) -> str:
    if record.speaks is Speaks.INCIDENT:
        return record.incident
    leaf = record.first("alert_id")
    return "" if leaf is None else str(leaf.value)


def has_states(record: Record, states: Sequence[tuple[Kind, State]]) -> bool:
    """True if the record has every one of the states."""
    return all(
        any(fits(kind, state, leaf.value) for key in KEYS[kind] for leaf in record.leaves.get(key, ()))
        for kind, state in states
    )


def owned_by(record: Record, name: str) -> bool:
    """True if `name` (folded) is the owner of the incident, or a part of the owner's name."""
    leaf = record.first("owner")
    return leaf is not None and bool(leaf.value) and f" {name} " in f" {folded(str(leaf.value))} "


def owners(index: EvidenceIndex) -> frozenset[str]:
    """The owners of all incidents, folded."""
    return frozenset(
        folded(str(leaf.value))
        for record in index.records(Speaks.INCIDENT)
        for leaf in record.leaves.get("owner", ())
        if leaf.value
    )
