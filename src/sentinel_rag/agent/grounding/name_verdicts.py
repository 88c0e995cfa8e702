"""Whether an identifier or a name stands in a result, and at the thing that the answer ties it to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded
from sentinel_rag.agent.grounding.identifier_atoms import tactic_writings
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Speaks
from sentinel_rag.agent.grounding.subjects import STRONG, Subject, Topic, governing
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, HARMLESS, Verdict, in_result, unsupported
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS

_TIED = frozenset(
    {
        Kind.ADDRESS,
        Kind.HASH,
        Kind.URL,
        Kind.DOMAIN,
        Kind.ACCOUNT,
        Kind.PATH,
        Kind.FILE,
        Kind.TITLE,
        Kind.CODE,
        Kind.QUOTE,
        Kind.NAME,
        Kind.TOKEN,
        Kind.TECHNIQUE,
        Kind.TACTIC,
        Kind.GUID,
    }
)
_ACTORS = frozenset({Kind.ACCOUNT, Kind.TITLE})
_PLACES = frozenset({Kind.ADDRESS, Kind.DOMAIN, Kind.TITLE})
_CUT = re.compile(r"(?:…|\.\.\.)$")
_OWNER = re.compile(
    r"\b(?:owned by|assigned to|(?:owner|assignee)(?:\s+(?:of\s+)?\(?(?:incident\s*)?#?\d+\)?)?(?:\s+is|\s*[*_`]*:)?|"
    r"belongs to)[\s*_`“\"]*$",
    re.IGNORECASE,
)
_OWNS = re.compile(
    r"^[\s*_`”\"]*(?:(?:is|was)\s+(?:the\s+|its\s+)?(?:current\s+|assigned\s+)?(?:owner|"
    r"assignee)|owns|is assigned|['’]s\s+(?:hands|queue|plate|care))\b",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"\b(?:unlike|similar|like|other than|besides|apart from|compared|related|elsewhere|overall|across|all)\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:all|every|each|both)\b", re.IGNORECASE)
_SHARED = re.compile(r"\b(?:share[sd]?|sharing|common|both|each|all of)\b", re.IGNORECASE)
_LABELLED = re.compile(
    r"^[\W_]*(?:the\s+)?(?:following\s+)?(?:affected|compromised|involved|source|target|host|"
    r"account|user|ip|address|device|entit|file|hash|url|domain)",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"^[*_`”\")]*\s*(?:'s|’s)?\s*(?:(?:was|were|is|had|has|been|then|also|the|its|a|an|"
    r"account|host|user|ip|address|device|process|"
    r"file|from|on|at|to|into|in|via|using|against|by|of|with|ran|run|running|seen|observed|"
    r"found|signed|logged|logon|login|"
    r"connected|connecting|contacted|dropped|executed|started|launched|detected|triggered|"
    r"created|downloaded|sent|received|"
    r"attacked|targeted|scanned|hit|reached|compromised|infected|beaconed|communicated|talked|uploaded|exfiltrated|"
    r"brute-?forced|sprayed|phished|e-?mailed|messaged|spread|jumped|pivoted|propagated|exploited|encrypted|queried|"
    r"hash|sha256|sha-256|sha1|md5|has|named|having|workstation|server|machine)\b\s*[:(]?\s*)+[*_`“\"(:]*$",
    re.IGNORECASE,
)
_ACTS_ON = re.compile(
    r"^[*_`”\")]*\s*(?:\w+ly\s+)?(?:(?:has|had|then|also|later|was seen to|was used to|logged|signed)\s+)*(?:ran|run|"
    r"executed|started|launched|used|opened|logged|log|signed|sign|connected|connect|moved|accessed|created|deployed|"
    r"installed|copied|dumped|read|dropped|downloaded|authenticated|pivoted|jumped|on|in)\b[^.;,:()]{0,50}?"
    r"\b(?:on|to|from|at|into|onto|in|via|against)\s+(?:the\s+|an?\s+)?(?:[\w-]+\s+){0,3}[*_`“\"(]*$",
    re.IGNORECASE,
)
"""A deed of an account with a word or more between it and where it was done."""
_WORKS_ON = re.compile(
    r"\b(?:own(?:s|ed|er)|assign\w*|comment\w*|wrote|note[ds]?|changed|closed|reopened|"
    r"updated|handl\w+|works?|working|status|ask|contact|speak|talk|consult|coordinate|hand over)\b",
    re.IGNORECASE,
)
ROLES = frozenset({"owner", "author", "created_by", "event", "message"})
"""Fields that name who works on an incident, not what it is about."""
_ROW = re.compile(r"/rows/\d+")
_TOOLS = frozenset(tool.name for tool in SHIPPED_TOOLS)


def judge_name(reading: Reading, atom: Atom) -> Verdict:
    """The verdict for an identifier or a name."""
    index, text = reading.index, str(atom.value)
    if atom.kind in (Kind.CODE, Kind.TOKEN) and text.strip("()") in _TOOLS:
        return HARMLESS
    leaves = leaves_of(atom, index)
    if not leaves:
        if index.said(_CUT.sub("", text), reading.question):
            return FROM_PERSON
        if atom.kind is Kind.NAME and folded(text).replace(" ", "_") in str(index.zone).lower():
            return HARMLESS
        if atom.kind in (Kind.CODE, Kind.TOKEN, Kind.NAME) and index.names_key(text):
            return HARMLESS
        if atom.kind is Kind.GUID or atom.kind in _TIED:
            return unsupported(f"no result holds this {atom.kind.value}")
        return unsupported("no result holds it")
    if all(leaf.record.speaks is Speaks.SECTION for leaf in leaves):
        return in_result(leaves[0])  # of a playbook, which speaks of no incident
    if _OWNER.search(reading.text[: atom.start]) or _OWNS.match(reading.text[atom.end :]):
        return _owner(reading, atom, leaves)
    if atom.kind in _TIED:
        broken = _tie(reading, atom, leaves)
        if broken is not None:
            return broken
    return in_result(leaves[0])


def leaves_of(atom: Atom, index: EvidenceIndex) -> list[Leaf]:
    """The leaves that hold an identifier or a name, exactly or within a longer text."""
    text = str(atom.value)
    if atom.kind is Kind.TACTIC:
        found = [leaf for writing in tactic_writings(text) for leaf in index.all_holding(writing)]
        return found or [
            record.leaves[key][0]
            for run in index.results
            for record in run.records
            for key in record.leaves.keys() & set(tactic_writings(text))
        ]
    if _CUT.search(text):
        start = folded(_CUT.sub("", text))
        return (
            [leaf for run in index.results for value, found in run.by_text.items() if start in value for leaf in found]
            if len(start) >= 4
            else []
        )
    found = list(index.all_holding(text))
    if not found and atom.kind is Kind.QUOTE:
        found = list(index.all_holding(text.rstrip(".,;:!? ")))
    if not found and "\\\\" in text:
        found = list(index.all_holding(text.replace("\\\\", "\\")))
    if not found and atom.kind in (Kind.CODE, Kind.QUOTE) and "|" in text:
        found = list(index.all_holding(text.replace("\\|", "|")))
    if not found and atom.kind is Kind.GUID and "_" in text:
        found = list(index.all_holding(text.partition("_")[0]))
    return found


def _owner(reading: Reading, atom: Atom, leaves: Sequence[Leaf]) -> Verdict:
    """ "assigned to X": X must be the owner of the incident that the sentence speaks of."""
    subjects = governing(atom, reading.subjects, reading.text, (Topic.INCIDENT,)) or [
        subject for subject in (*reading.row_subjects, reading.context.incident) if subject is not None
    ]
    owners = [leaf for leaf in leaves if leaf.key == "owner"]
    incidents = [subject for subject in subjects if subject.topic is Topic.INCIDENT]
    if len(incidents) > 1:
        each_owner = [next(iter(subject.values("owner")), None) for subject in incidents]
        right_of_all = [leaf for leaf in each_owner if leaf is not None and _names(atom, leaf)]
        if len(right_of_all) < len(incidents):
            return unsupported("the results tell another owner of one of them")
        return in_result(right_of_all[0])
    if incidents:
        newest = {record.incident: record.first("owner") for record in reversed(incidents[0].records)}
        for leaf in newest.values():
            if leaf is not None and _names(atom, leaf):
                return in_result(leaf)
        others = [leaf for leaf in newest.values() if leaf is not None and leaf.value]
        right = str(others[0].value) if len(newest) == 1 and others else ""
        return unsupported("the results tell another owner", others[0] if right else None, right)
    if owners and _EVERY.search(reading.text):
        of_all = [record.first("owner") for run in reading.index.results[:4] for record in run.rows]
        others = [leaf for leaf in of_all if leaf is not None and str(leaf.value or "") != str(owners[0].value)]
        if others:
            return unsupported("the results tell other owners too")
    return in_result(owners[0]) if owners else unsupported("no result has this owner")


def _names(atom: Atom, leaf: Leaf) -> bool:
    return folded(str(atom.value)) in folded(str(leaf.value or ""))


def _tie(reading: Reading, atom: Atom, leaves: Sequence[Leaf]) -> Verdict | None:
    """A verdict against the atom where it stands in results, but not at the thing that it is tied to."""
    text = reading.text
    if not _WORKS_ON.search(text):
        leaves = [leaf for leaf in leaves if leaf.key not in ROLES] or leaves
    own = [subject for subject in reading.subjects if subject.start <= atom.start and atom.end <= subject.end]
    strong_self = [subject for subject in own if subject.topic in STRONG]
    others = [subject for subject in reading.subjects if subject not in own and subject.start >= 0]
    exact = [leaf for leaf in leaves if folded(str(leaf.value)) == folded(str(atom.value))]
    if any(leaf.record.speaks is Speaks.INCIDENT and leaf.key in ("title", "incident_name") for leaf in exact):
        return None
    alerts = [leaf.record for leaf in exact if leaf.record.speaks is Speaks.ALERT and leaf.key in ("name", "alert_id")]
    if strong_self or alerts:
        alert = strong_self[0] if strong_self else Subject(Topic.ALERT, str(atom.value), tuple(alerts))
        return _alert_of_incident(alert, others, text) if alert.topic is Topic.ALERT else None
    said = reading.index.said(str(atom.value), reading.question)
    if said and not any(subject.topic in STRONG for subject in others):
        return None
    subjects = governing(atom, others, text, STRONG)
    if not subjects:
        row = [subject for subject in reading.row_subjects if subject.topic in STRONG]
        subjects = row[:1]
    if subjects:
        known = [subject for subject in subjects if subject.records or subject.numbers]
        tied = [any(_ties(subject, leaf) for leaf in leaves) for subject in known]
        holds = all(tied) if _SHARED.search(text) else any(tied)
        if known and not holds and not said:
            return unsupported(f"the results do not tie it to {known[0].text}")
    elif broken := _off_context(reading, leaves, text):
        return broken
    return _unrelated(reading, atom, leaves)


def _ties(subject: Subject, leaf: Leaf) -> bool:
    if subject.holds(leaf):
        return True
    if leaf.record.speaks in (Speaks.SUMMARY, Speaks.COVERAGE):
        return False
    # A product or a workspace is no entity: it is tied to the alert whose field it is, which `holds` has seen.
    return False


def _alert_of_incident(alert: Subject, others: Sequence[Subject], text: str) -> Verdict | None:
    incidents = [subject for subject in others if subject.topic is Topic.INCIDENT]
    if len({number for subject in incidents for number in subject.numbers}) != 1 or _LOOSE.search(text):
        return None
    numbers = incidents[0].numbers
    if any(numbers & set(record.numbers()) for record in alert.records):
        return None
    if not any(record.numbers() for record in alert.records):
        return None
    return unsupported(f"the alert does not belong to incident {incidents[0].text}")


def _off_context(reading: Reading, leaves: Sequence[Leaf], text: str) -> Verdict | None:
    """An entity in a sentence without a subject, under an incident that it has nothing to do with."""
    context = reading.context.last
    if context is None or _LOOSE.search(text) or not (reading.context.firm or _LABELLED.match(text)):
        return None
    numbers = context.numbers or {number for record in context.records for number in record.numbers()}
    tied = [leaf for leaf in leaves if leaf.record.numbers()]
    if not numbers or not tied:
        return None
    if any(numbers & set(leaf.record.numbers()) for leaf in tied) or any(context.holds(leaf) for leaf in leaves):
        return None
    return unsupported(f"the results do not tie it to {context.text}")


def _unrelated(reading: Reading, atom: Atom, leaves: Sequence[Leaf]) -> Verdict | None:
    """Two entities that a sentence relates ("X signed in from Y") and that no alert or row holds together."""
    before = [
        other
        for other in reading.atoms
        if other.end <= atom.start and other.kind in _TIED and other.kind is not Kind.TECHNIQUE
    ]
    if not before:
        return None
    other = before[-1]
    between = reading.text[other.end : atom.start]
    acts = other.kind in _ACTORS and atom.kind in _PLACES and _ACTS_ON.match(between)
    if not _RELATION.match(between) and not acts:
        return None
    their = leaves_of(other, reading.index)
    if not their:
        return None
    mine, theirs = _settings(leaves), _settings(their)
    if mine & theirs:
        return None
    return unsupported(f"no alert or row holds it together with {other.text}")


def _settings(leaves: Sequence[Leaf]) -> set[int]:
    """The records in which values stand together: alerts and rows. An incident as a whole is one only for what no alert
    of it holds."""
    close: set[int] = set()
    wide: set[int] = set()
    for leaf in leaves:
        inner: set[int] = set()
        for record in leaf.record.chain():
            inner.add(id(record))
            if record.speaks is Speaks.INCIDENT:
                wide |= inner
                break
            if record.speaks is Speaks.ALERT or _ROW.fullmatch(record.pointer):
                close |= inner
                break
    return close or wide
