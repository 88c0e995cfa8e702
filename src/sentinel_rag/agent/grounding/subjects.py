"""Which incident, alert, entity or row a part of an answer speaks of.

A value is right only at the thing whose it is, so every value is judged against its subject: the one that the sentence
names beside it, or that a pronoun, the heading, the list item or the sentence before stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from enum import StrEnum
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, RunEvidence, moment_of
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.time_atoms import Moment


class Topic(StrEnum):
    """What kind of thing a subject is."""

    INCIDENT = "incident"
    ALERT = "alert"
    ENTITY = "entity"
    ROW = "row"


STRONG = (Topic.INCIDENT, Topic.ALERT)
"""Subjects that have a severity and a status of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """`records` are what results tell of it, newest first; none where no result knows it. `numbers` are the incidents
    that it may be, for an incident. `[start, end)` is its place in the piece, -1 where it stands before it."""

    topic: Topic
    text: str
    records: tuple[Record, ...] = ()
    numbers: frozenset[str] = frozenset()
    start: int = -1
    end: int = -1
    dependent: bool = False
    """True where it stands behind "of" or "in" and another subject before it is the one that is spoken of."""

    def same(self, other: Subject) -> bool:
        """True if both can be one thing."""
        if self.topic is not other.topic:
            return False
        if self.topic is Topic.INCIDENT:
            return bool(self.numbers & other.numbers)
        return any(record in other.records for record in self.records)

    def values(self, key: str) -> list[Leaf]:
        """The newest value under `key` of each record set that the subject may be, newest first."""
        return [leaf for record in self.records for leaf in record.leaves.get(key, ())]

    def holds(self, leaf: Leaf) -> bool:
        """True if the value lies in the subject, or in an alert or ranking that is tied to the incident."""
        mine = {id(record) for record in self.records}
        if any(id(record) in mine for record in leaf.record.chain()):
            return True
        return self.topic is Topic.INCIDENT and bool(self.numbers & set(leaf.record.numbers()))


@dataclass(slots=True)
class Context:
    """What was spoken of before a piece."""

    last: Subject | None = None
    incident: Subject | None = None
    alert: Subject | None = None
    entity: Subject | None = None
    several: tuple[Subject, ...] = ()
    noun: str = ""
    firm: bool = False
    """True where a heading, an item above or the question itself names the subject."""

    def copy(self) -> Context:
        return replace(self)

    def learn(self, subjects: Sequence[Subject]) -> None:
        """Take over what a piece named."""
        named = [subject for subject in subjects if subject.start >= 0]
        strong = [subject for subject in named if subject.topic in STRONG]
        for subject in strong:
            self.last = subject
            if subject.topic is Topic.INCIDENT:
                self.incident = subject
            else:
                self.alert = subject
        incidents = [subject for subject in strong if subject.topic is Topic.INCIDENT]
        if len(incidents) > 1:
            self.several = tuple(incidents)
        for subject in named:
            if subject.topic is Topic.ENTITY:
                self.entity = subject


_TIES = re.compile(
    r"^(?:[\s*_`“”\"'()\[\],:;–—|#·-]|\b(?:incident|number|no|with|the|title|titled|named|"
    r"called|known|as|has|is|its|it|guid|id|"
    r"name|entitled|carries|a|an|one|case|this|of|severity|high|medium|low|informational|"
    r"rated|and|alert|[Ss]entinel)\b)*$",
    re.IGNORECASE,
)
_DEPENDENT = re.compile(
    r"\b(?:of|in|from|for|under|behind|within|inside|belonging to|part of|to)\s+"
    r"(?:the\s+)?(?:incidents?\s*|case\s*)?"
    r"(?:number\s*)?[#*_`“\"(]*$",
    re.IGNORECASE,
)
_THE_INCIDENT = re.compile(
    r"\b(?:th(?:is|at|e)(?: same)?|said)\s+(?:\w+[\s-]){0,2}?(?:incident|case)\b(?!s)(?!\s+(?:list|number|id|queue))",
    re.IGNORECASE,
)
_THE_ALERT = re.compile(
    r"\b(?:th(?:is|at|e)(?: same)?)\s+alert\b(?!s)(?!\s+(?:list|volume|number|count|id))(?:[’']s)?", re.IGNORECASE
)
_IT = re.compile(r"\b(?:it|its|it[’']s|itself|this one|that one|which)\b", re.IGNORECASE)
_ORDINAL = re.compile(
    r"\bthe\s+(?P<word>first|second|third|former|latter|other)\b(?:\s+(?:one|incident|"
    r"of (?:them|the two)))?(?=\s*(?:[,(:–—]|is|was|has|being|created|came|followed|on|at|"
    r"from|\d))",
    re.IGNORECASE,
)
_ORDINALS = {"first": 0, "former": 0, "second": 1, "latter": -1, "other": 1, "third": 2}
_ALERT_BEFORE = re.compile(
    r"\b(?:alert|detection)s?\b[^.;,]{0,45}\b(?:was|is|were|are|named|called|include[sd]?|including)[\s:*_`“\"‘(]*$|"
    r"\b(?:alerts?|detections?|alert named|alert called)[\s:,*_`“\"‘(]*$",
    re.IGNORECASE,
)
_ENTITY_KINDS = frozenset(
    {Kind.ADDRESS, Kind.HASH, Kind.URL, Kind.DOMAIN, Kind.ACCOUNT, Kind.PATH, Kind.FILE, Kind.TITLE, Kind.CODE,
     Kind.QUOTE, Kind.NAME, Kind.TOKEN}
)  # fmt: skip
_NOT_ENTITIES = frozenset({"owner", "product", "provider", "description", "author", "message", "workspace", "template"})


def subjects_in(
    text: str, atoms: Sequence[Atom], index: EvidenceIndex, context: Context, *, column: str = ""
) -> list[Subject]:
    """The subjects that a piece names or refers to, in order; two names of one thing become one subject."""
    found = [subject for atom in atoms if (subject := subject_of(atom, f"{column} ", text, index, context)) is not None]
    merged: list[Subject] = []
    for subject in found:
        before = merged[-1] if merged else None
        if before is not None and before.same(subject):
            merged[-1] = _joined(before, subject)
        else:
            merged.append(subject)
    explicit = {subject.topic for subject in merged}
    merged += [
        subject
        for subject in _references(text, context, merged)
        if not (subject.topic in explicit and subject.topic in STRONG and _names_one(text, subject, merged))
        or _begins_with_pronoun(text, subject, merged)
    ]
    merged.sort(key=lambda subject: subject.start)
    merged = [_within_incident(subject, merged, context) for subject in merged]
    ends = [0, *(subject.end for subject in merged)]
    return [_with_dependence(subject, place, ends[place], text) for place, subject in enumerate(merged)]


def mismatched(subjects: Sequence[Subject], text: str) -> Subject | None:
    """An incident whose number and name stand side by side and are of two incidents."""
    incidents = [subject for subject in subjects if subject.topic is Topic.INCIDENT and subject.start >= 0]
    for before, after in pairwise(incidents):
        one_is_number = before.text.isdigit() != after.text.isdigit()
        if one_is_number and not before.same(after) and _TIES.match(text[before.end : after.start]):
            return before if before.text.isdigit() else after
    return None


def subject_of(atom: Atom, column: str, text: str, index: EvidenceIndex, context: Context) -> Subject | None:
    """The thing that an atom names, if it names one."""
    if atom.kind is Kind.INCIDENT:
        number = str(atom.value)
        return Subject(
            Topic.INCIDENT, number, tuple(index.incidents(number)), frozenset({number}), atom.start, atom.end
        )
    if atom.kind is Kind.TIME:
        return _bucket(atom, index)
    if atom.kind not in (Kind.GUID, Kind.HANDLE) and atom.kind not in _ENTITY_KINDS:
        return None
    # A result holds a handle with the marks around it.
    leaves = list(index.exactly(atom.text if atom.kind is Kind.HANDLE else str(atom.value)))
    incidents = [
        leaf.record
        for leaf in leaves
        if leaf.record.speaks is Speaks.INCIDENT and leaf.key in ("title", "incident_name")
    ]
    alerts = [leaf.record for leaf in leaves if leaf.record.speaks is Speaks.ALERT and leaf.key in ("name", "alert_id")]
    if incidents and alerts:
        if _ALERT_BEFORE.search(column + text[: atom.start]) or _is_alert_of(alerts, incidents, context):
            incidents = []
        else:
            # An incident of one alert often has its name: what is said may be of either.
            spoken_of = context.incident.numbers if context.incident is not None else frozenset()
            if any(record.incident in spoken_of for record in incidents):
                incidents = [record for record in incidents if record.incident in spoken_of]
            mine = {record.incident for record in incidents}
            incidents += [record for record in alerts if record.incident in mine]
    if incidents:
        numbers = frozenset(record.incident for record in incidents)
        return Subject(Topic.INCIDENT, str(atom.value), tuple(incidents), numbers, atom.start, atom.end)
    if alerts:
        return Subject(Topic.ALERT, str(atom.value), tuple(alerts), frozenset(), atom.start, atom.end)
    if atom.kind is Kind.HANDLE:
        return None
    if not leaves:
        leaves = [
            leaf for leaf in index.all_holding(str(atom.value)) if leaf.record.speaks in (Speaks.ENTITY, Speaks.ROW)
        ]
    entities = tuple(
        leaf.record
        for leaf in leaves
        if leaf.record.speaks in (Speaks.ENTITY, Speaks.ROW, Speaks.ALERT) and leaf.key not in _NOT_ENTITIES
    )
    if entities:
        return Subject(Topic.ENTITY, str(atom.value), entities, frozenset(), atom.start, atom.end)
    return None


def _is_alert_of(alerts: Sequence[Record], incidents: Sequence[Record], context: Context) -> bool:
    """True if a name of both is that of an alert of the incident that is spoken of, and not that incident's own."""
    spoken_of = context.incident.numbers if context.incident is not None else frozenset()
    return any(record.incident in spoken_of for record in alerts) and not any(
        record.incident in spoken_of for record in incidents
    )


def governing(
    atom: Atom, subjects: Sequence[Subject], text: str, topics: Sequence[Topic], *, may_describe: bool = True
) -> list[Subject]:
    """The subject of a value, or several where a list of them shares it; none where the piece names none.

    The nearest before it, unless one follows so closely that the value describes it ("the High incident 55").
    """
    of_topic = [subject for subject in subjects if subject.topic in topics]
    ahead = next((subject for subject in of_topic if subject.start >= atom.end), None)
    before = [subject for subject in of_topic if subject.end <= atom.start]
    predicate = bool(before) and bool(_IS.match(text[before[-1].end : atom.start]))
    if may_describe and ahead is not None and not predicate and _describes(text[atom.end : ahead.start]):
        return _with_listed(ahead, of_topic, text, atom.end)
    if not before:
        return [] if ahead is None else _with_listed(ahead, of_topic, text, atom.end)
    nearest = before[-1]
    if nearest.dependent and len(before) > 1:
        nearest = before[-2]
    group = [nearest]
    for earlier in reversed(before[: before.index(nearest)]):
        if earlier.topic is not nearest.topic or not _LISTED.match(text[earlier.end : group[0].start]):
            break
        group.insert(0, earlier)
    return group


def _with_listed(first: Subject, subjects: Sequence[Subject], text: str, start: int) -> list[Subject]:
    """All of a list that the plural announces: "High incidents: 40, 18 and 12"."""
    group = [first]
    if _PLURAL.search(text[start : first.start]):
        for subject in subjects[subjects.index(first) + 1 :]:
            if not _LISTED.match(text[group[-1].end : subject.start]):
                break
            group.append(subject)
    return group


_PLURAL = re.compile(
    r"^[*_`”\"]*[\s-]+(?:(?:severity|status|priority|owns|handles|has)\s+)?(?:incidents|"
    r"alerts|ones|cases)\b|^[*_`\s]*(?:severity|priority)?[*_`]*\s*[:–—-][*_`]*\s*$",
    re.IGNORECASE,
)
_IS = re.compile(r"^[\s*_`”\")]*(?:is|was|are|were|remains?|stays?|has been|has)\b", re.IGNORECASE)
_LISTED = re.compile(
    r"^(?:[\s,#&/*_`“”\"()–—-]|and|or|through|thru|to|until|incidents?|number|alerts?|both|as well as)*$", re.IGNORECASE
)
_DESCRIBES = re.compile(
    r"^[*_`”\"]*(?:[\s-]+(?:severity|sev|priority|status|rated|ranked|level|risk|sentinel))*[\s-]+"
    r"(?:(?:incident|alert|one|case|account|host|user)s?\b)?(?:\s+(?:named|called|titled|"
    r"mention|mentions|name|names|involve|involves|for|on))?"
    r"[\s,:(]*(?:number|no\.?)?[\s#*_`(“\"]*$",
    re.IGNORECASE,
)


def _describes(between: str) -> bool:
    return bool(_DESCRIBES.match(between)) and bool(re.search(r"[A-Za-z#]", between))


def _within_incident(subject: Subject, all_of: Sequence[Subject], context: Context) -> Subject:
    """Of alerts of one name those of the incident that the sentence, or what stands before it, speaks of."""
    if subject.topic is not Topic.ALERT or len(subject.records) < 2:
        return subject
    named = [each for each in all_of if each.topic is Topic.INCIDENT]
    spoken_of = named or [each for each in (context.incident,) if each is not None]
    if len(spoken_of) != 1:
        return subject
    records = tuple(record for record in subject.records if spoken_of[0].numbers & set(record.numbers()))
    return replace(subject, records=records) if records else subject


def _joined(before: Subject, after: Subject) -> Subject:
    if before.topic is not Topic.INCIDENT:
        records = tuple(record for record in before.records if record in after.records)
        return replace(before, records=records or before.records)
    numbers = before.numbers & after.numbers
    records = tuple(
        record
        for record in dict.fromkeys((*before.records, *after.records))
        # A number names the incident, and not the alert of the same name.
        if record.incident in numbers and record.speaks is Speaks.INCIDENT
    )
    text = before.text if before.text.isdigit() else after.text
    return replace(before, text=text, records=records, numbers=numbers)


def _names_one(text: str, reference: Subject, named: Sequence[Subject]) -> bool:
    """True if a reference such as "the incident" is only the noun of a name in the piece."""
    return (
        reference.topic is Topic.INCIDENT
        or any(_TIES.match(text[reference.end : subject.start]) for subject in named if subject.start >= reference.end)
        or any(subject.topic is reference.topic and subject.end <= reference.start for subject in named)
    )


_PRONOUN_FIRST = re.compile(r"^[\s*_`>-]*(?:it|its|it[’']s)\b", re.IGNORECASE)


def _begins_with_pronoun(text: str, reference: Subject, named: Sequence[Subject]) -> bool:
    """True if a sentence begins with "It" or "Its" for one thing and names another further on: both are spoken of. Not
    where the name says what "it" is ("It is incident 12")."""
    first = _PRONOUN_FIRST.match(text)
    if first is None or reference.end > first.end():
        return False
    following = next((subject for subject in named if subject.start >= reference.end), None)
    return following is not None and not _TIES.match(text[reference.end : following.start])


def _references(text: str, context: Context, named: Sequence[Subject]) -> Iterator[Subject]:
    """Words that stand for what was named before."""
    taken: list[tuple[int, int]] = []
    for pattern, subject in ((_THE_INCIDENT, context.incident), (_THE_ALERT, context.alert)):
        for match in pattern.finditer(text):
            taken.append(match.span())
            if subject is not None:
                yield replace(subject, start=match.start(), end=match.end(), dependent=False)
    for match in _ORDINAL.finditer(text):
        earlier = [each for each in named if each.topic is Topic.INCIDENT and each.end <= match.start()]
        choice = earlier if len(earlier) > 1 else context.several
        place = _ORDINALS[match["word"].lower()]
        if choice and -1 <= place < len(choice) and not re.match(r"\W*(?:incident|alert)s?\b", text[match.end() :]):
            taken.append(match.span())
            yield replace(choice[place], start=match.start(), end=match.end(), dependent=False)
    if context.last is None:
        return
    for match in _IT.finditer(text):
        explicit_before = any(subject.topic in STRONG and subject.end <= match.start() for subject in named)
        if not explicit_before and not any(left <= match.start() < right for left, right in taken):
            yield replace(context.last, start=match.start(), end=match.end(), dependent=False)
            return


def _with_dependence(subject: Subject, place: int, before: int, text: str) -> Subject:
    dependent = (
        place > 0
        and subject.start >= 0
        and bool(_DEPENDENT.search(text[: subject.start]))
        and not re.search(
            r"[,;]|\b(?:that|those|ones?) of\b|\b(?:is|was|are|were|has|have)\b", text[before : subject.start]
        )
    )
    return replace(subject, dependent=dependent)


def _bucket(atom: Atom, index: EvidenceIndex) -> Subject | None:
    """The rows of a trend or a grouped query that a date names."""
    moment = atom.value
    if not isinstance(moment, Moment) or not moment.dated or moment.day is None:
        return None
    records = tuple(
        record
        for run in index.results
        if run.tool in ("get_alert_trend", "run_kql_query", "run_freeform_kql")
        for record in _at(moment, run, index)
    )
    return Subject(Topic.ROW, atom.text, records, frozenset(), atom.start, atom.end) if records else None


def _at(moment: Moment, run: RunEvidence, index: EvidenceIndex) -> list[Record]:
    """Rows with a number whose time is `moment`: in the zone in which the buckets begin, else in the session's."""
    rows = [
        (record, told)
        for record in run.rows
        if any(isinstance(leaf.value, int | float) for leaves in record.leaves.values() for leaf in leaves)
        for leaves in record.leaves.values()
        for leaf in leaves[:1]
        if (told := moment_of(leaf.value)) is not None
    ]
    zone = moment.offset or _bucket_zone(run)
    exact = [record for record, told in rows if replace(moment, offset=zone).fits(told, index.zone)]
    return exact or [record for record, told in rows if moment.fits(told, index.zone)]


def _bucket_zone(run: RunEvidence) -> tzinfo:
    summary = next((record for record in run.records if record.pointer == "/summary"), None)
    leaf = summary.first("timezone") if summary is not None else None
    try:
        return ZoneInfo(str(leaf.value)) if leaf is not None and leaf.value else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
