"""Whether a severity, status, classification or owner is the one of the thing that the answer speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, Verdict, in_result, unsupported

KEYS = {
    Kind.SEVERITY: ("severity", "alertseverity"),
    Kind.STATUS: ("status",),
    Kind.CLASSIFICATION: ("classification",),
    Kind.OWNERSHIP: ("owner",),
}
_SAME = {
    "open": frozenset({"new", "active", "inprogress"}),
    "closed": frozenset({"closed", "resolved", "dismissed"}),
    "active": frozenset({"active", "inprogress"}),
}
"""Words of an answer that stand for more than one word of Sentinel. An alert is "closed" once it is resolved."""
_BEFORE = re.compile(
    r"\b(?:previously|formerly|originally|initially|earlier|used to be|at first|lowered|raised|changed|moved|went)\b",
    re.IGNORECASE,
)


def judge_state(atom: Atom, subjects: Sequence[Subject], index: EvidenceIndex, *, text: str, question: str) -> Verdict:
    """The verdict for a word of an enumeration; with several subjects it must be right for each."""
    state = atom.value
    assert isinstance(state, State)
    known = [subject for subject in subjects if subject.records or subject.topic is Topic.INCIDENT]
    if not known:
        return _anywhere(atom.kind, state, index, question, atom.text)
    verdicts = [_of_subject(atom, state, subject, index, text) for subject in known]
    wrong = next((verdict for verdict in verdicts if not verdict.supported), None)
    if wrong is not None and len(known) > 1:
        # One word for several things cannot be put right for one of them.
        return unsupported(wrong.reason)
    return wrong or verdicts[0]


def fits(kind: Kind, state: State, value: object) -> bool:
    """True if a record's value is what the answer says."""
    if kind is Kind.OWNERSHIP:
        owned = value not in (None, "", "unassigned")
        return owned is (state.word == "assigned")
    same = _matches(state.word, value)
    return not same if state.negated else same


def _matches(word: str, value: object) -> bool:
    told, wanted = str(value or "").lower().replace(" ", ""), word.lower()
    return told == wanted or told in _SAME.get(wanted, ())


def _of_subject(atom: Atom, state: State, subject: Subject, index: EvidenceIndex, text: str) -> Verdict:
    holders = _holders(atom.kind, subject)
    leaves = [leaf for record in holders for key in KEYS[atom.kind] for leaf in record.leaves.get(key, ())]
    if not leaves:
        return unsupported(f"no result tells the {atom.kind.value} of {subject.text}")
    newest = _newest(leaves, subject)
    if _BEFORE.search(text):
        newest = leaves
    for leaf in newest:
        if fits(atom.kind, state, leaf.value):
            return in_result(leaf)
    once = _once_closed(atom, state, holders, text)
    if once is not None:
        return in_result(once)
    right = _one_value(newest) if not state.negated and atom.kind in (Kind.SEVERITY, Kind.STATUS) else None
    reason = f"the results tell another {atom.kind.value} for {subject.text}"
    if right is None:
        return unsupported(reason)
    return unsupported(reason, right, _in_case(str(right.value), atom.text))


_WAS = re.compile(
    r"\b(?:was|had been|got|were|first|once)\s+(?:first |once |already |initially )?[*_`]*$", re.IGNORECASE
)
_WHEN = re.compile(r"^[*_`]*\s+(?:on|at|by|then|once|before|and (?:later |then |since )?re-?opened)\b", re.IGNORECASE)


def _once_closed(atom: Atom, state: State, holders: Sequence[Record], text: str) -> Leaf | None:
    """The time at which a reopened incident was closed, for "it was closed on Monday and later reopened"."""
    if state.word != "Closed" or state.negated or not _WAS.search(text[: atom.start]):
        return None
    if not _WHEN.match(text[atom.end :]) or "open" not in text[atom.end :].lower():
        return None
    return next((leaf for record in holders for leaf in record.leaves.get("closed_time", ()) if leaf.value), None)


def _holders(kind: Kind, subject: Subject) -> list[Record]:
    """The records that can have the value: the subject's own, or for an entity the alerts that name it."""
    if subject.topic in (Topic.INCIDENT, Topic.ALERT):
        return [record for record in subject.records if record.speaks in (Speaks.INCIDENT, Speaks.ALERT)]
    found: list[Record] = []
    for record in subject.records:
        for outer in record.chain():
            if any(key in outer.leaves for key in KEYS[kind]):
                found.append(outer)
                break
    return found


def _newest(leaves: Sequence[Leaf], subject: Subject) -> list[Leaf]:
    """The values of the newest result for each thing that the subject may be."""
    newest: dict[str, Leaf] = {}
    several: list[Leaf] = []
    for leaf in leaves:
        record = leaf.record
        identity = record.incident if record.speaks is Speaks.INCIDENT else _text(record.first("alert_id"))
        if subject.topic in (Topic.INCIDENT, Topic.ALERT) and identity:
            newest.setdefault(identity, leaf)
        else:
            several.append(leaf)
    return [*newest.values(), *several]


def _text(leaf: Leaf | None) -> str:
    return "" if leaf is None else str(leaf.value)


def _one_value(leaves: Iterable[Leaf]) -> Leaf | None:
    found = {str(leaf.value): leaf for leaf in leaves}
    (leaf, *others) = found.values()
    return None if others or leaf.value is None else leaf


def _in_case(value: str, written: str) -> str:
    return value.lower() if written.islower() else value


def _anywhere(kind: Kind, state: State, index: EvidenceIndex, question: str, written: str) -> Verdict:
    """For a word without a subject: some record must have it."""
    for run in index.results:
        for record in run.records:
            for key in KEYS[kind]:
                for leaf in record.leaves.get(key, ()):
                    if fits(kind, state, leaf.value):
                        return in_result(leaf)
            group = record.first(state.word.lower())
            if group is not None and isinstance(group.value, int | float) and (group.value > 0 or state.negated):
                return in_result(group)
    return FROM_PERSON if index.said(written, question) else unsupported(f"no result holds this {kind.value}")
