"""Whether a time is one of the thing that the answer speaks of, and a duration the one between two of its times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from sentinel_rag.agent.grounding.atoms import Atom
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, moment_of
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.time_atoms import Moment, Span, times_in
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, Verdict, derived, in_result, unsupported
from sentinel_rag.agent.times import show_time
from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS

_ROLES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(r"\b(?:last|latest|most recent)\s+(?:updated?|modified|changed?)|\bupdated?\b|\bmodified\b", re.I),
        ("updated_time",),
    ),
    (re.compile(r"\b(?:closed|resolved)(?:\s+since)?\b(?!\s+incident)", re.I), ("closed_time",)),
    (
        re.compile(r"\b(?:first seen|first appeared|first time|starting|began|started|since)\b", re.I),
        ("first_seen", "start_time", "created_time", "oldest", "time"),
    ),
    (
        re.compile(r"\b(?:last seen|last time|last appeared|ended|until)\b", re.I),
        ("last_seen", "end_time", "time", "newest", "updated_time"),
    ),
    (
        re.compile(
            r"\b(?:created|opened|dates? from|dates? back to|raised|generated|fired|came in|triggered|"
            r"logged|reported|received)\b",
            re.I,
        ),
        ("created_time", "time", "start_time", "end_time"),
    ),
)
"""Words that say which of a thing's times is meant, and the fields that tell it."""
_ABOUT = re.compile(
    r"\b(?:about|around|approximately|roughly|shortly (?:after|before)|near|~|circa)\s*(?:the\s+)?$", re.I
)
_BOUND = re.compile(
    r"\b(?:since|between|from|until|till|before|after|by|to|through|window|period|and|as of)\s*(?:the\s+)?$", re.I
)
_TOLERANCE = timedelta(minutes=5)


def judge_time(
    atom: Atom, subjects: Sequence[Subject], index: EvidenceIndex, *, text: str, question: str, firm: bool = False
) -> Verdict:
    """The verdict for a time; with a subject it must be one of the subject's times, and the one that the verb means."""
    moment = atom.value
    assert isinstance(moment, Moment)
    about = bool(_ABOUT.search(text[: atom.start]))

    def right(leaf: Leaf) -> bool:
        told = moment_of(leaf.value)
        if told is None:
            return False
        return moment.near(told, index.zone, _TOLERANCE) if about else moment.fits(told, index.zone)

    if any(_same(moment, each.value) for each in times_in(question)):
        return FROM_PERSON
    known = [subject for subject in subjects if subject.records]
    unknown = [subject for subject in subjects if subject.topic is Topic.INCIDENT and not subject.records]
    if unknown and not any(index.alerts(number) for number in unknown[0].numbers):
        return unsupported(f"no result tells a time of {unknown[0].text}")
    keys = _role(text, atom)
    if known and known[0].start < 0 and not keys and not firm:
        # Nothing in the sentence says that it still speaks of what came before.
        known = []
    if not known:
        leaf = _anywhere(moment, index, right)
        if leaf is not None:
            return in_result(leaf)
        return FROM_PERSON if index.said(atom.text, question) else unsupported("no result holds this time")
    if known and all(record.of_knowledge for subject in known for record in subject.records):
        leaf = _told_in_words(known, moment, keys)
        if leaf is not None or keys == ("closed_time",):
            return unsupported("its record tells another day of closing") if leaf is None else in_result(leaf)
    for subject in known:
        meant = _times_of(subject, keys)
        if not meant and subject.topic is Topic.INCIDENT and _bare(text, subject, atom):
            meant = [leaf for record in subject.records for leaves in record.leaves.values() for leaf in leaves]
        if meant:
            if leaf := next(filter(right, meant), None):
                return in_result(leaf)
        elif leaf := next(filter(right, _all_times_of(subject, index)), None):
            return in_result(leaf)
    if _BOUND.search(text[: atom.start]):
        leaf = _window_bound(index, right)
        if leaf is not None:
            return in_result(leaf)
    if index.said(atom.text, question):
        return FROM_PERSON
    meant = _times_of(known[0], keys)
    moments = {told: leaf for leaf in meant if (told := moment_of(leaf.value)) is not None}
    reason = f"the results tell another time for {known[0].text}"
    if len(moments) == 1 and len(known) == 1:
        ((told, leaf),) = moments.items()
        return unsupported(reason, leaf, show_time(told, index.zone))
    return unsupported(reason)


_CLOSED_ON = re.compile(r"\bClosed (?:on|before) (\d{4})-(\d\d)-(\d\d)")
_DAY = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")


def _told_in_words(subjects: Sequence[Subject], moment: Moment, keys: Sequence[str]) -> Leaf | None:
    """The text of a past incident's record that tells the day, which has no field of its own there."""
    pattern = _CLOSED_ON if keys == ("closed_time",) else _DAY
    for subject in subjects:
        for record in subject.records:
            leaf = record.first("text")
            for year, month, day in pattern.findall(str(leaf.value)) if leaf is not None else ():
                said = (moment.year if moment.year is not None else int(year), moment.month, moment.day)
                if said == (int(year), int(month), int(day)) and moment.hour is None:
                    return leaf
    return None


def _same(moment: Moment, other: object) -> bool:
    """True if two times are written of one day and hour, whichever of day and month the person put first."""
    if not isinstance(other, Moment) or (moment.hour, moment.minute) != (other.hour, other.minute):
        return False
    day = (moment.year, moment.month, moment.day)
    return day == (other.year, other.month, other.day) or (
        other.swapped and day == (other.year, other.day, other.month)
    )


def _bare(text: str, subject: Subject, atom: Atom) -> bool:
    """True if nothing but marks and values stands between an incident and a time: then it is one of its own times."""
    between = text[max(subject.end, 0) : atom.start]
    if re.search(r"\balerts?\b", text[: atom.start], re.I):
        return False
    return subject.start >= 0 and not re.search(r"[a-z]{3,}", re.sub(r"[“\"*][^“”\"*]*[”\"*]", "", between))


def _role(text: str, atom: Atom) -> tuple[str, ...]:
    """The fields that the words around a time mean: the nearest words before it, or those right behind it."""
    before = re.split(r"[;.]|,\s*(?:and|but|while|whereas)\b|\band\b", text[: atom.start])[-1][-60:]
    best: tuple[int, tuple[str, ...]] | None = None
    for pattern, keys in _ROLES:
        for match in pattern.finditer(before):
            if best is None or match.end() > best[0]:
                best = (match.end(), keys)
    if best is None and not before.strip(" *_`|([-–:,"):
        after = text[atom.end : atom.end + 25]
        for pattern, keys in _ROLES:
            if pattern.search(after):
                return keys
    return () if best is None else best[1]


def _times_of(subject: Subject, keys: Sequence[str]) -> list[Leaf]:
    """The times that `keys` mean of a subject."""
    own = [record for record in subject.records if _owns(record, subject)]
    meant: list[Leaf] = []
    for record in own:
        found = [leaf for key in keys for leaf in record.leaves.get(key, ()) if leaf.value]
        if record.speaks is Speaks.INCIDENT:
            found = found[:1]
        meant += found
    newest = max((leaf.run for leaf in meant if leaf.record.speaks is Speaks.INCIDENT), default=-1)
    if subject.topic is Topic.INCIDENT and len(subject.numbers) == 1:
        meant = [leaf for leaf in meant if leaf.run == newest or leaf.record.speaks is Speaks.ALERT]
    return meant


def _all_times_of(subject: Subject, index: EvidenceIndex) -> Iterator[Leaf]:
    """Every value of a subject and of what lies in it or belongs to it; those that are no times fit none."""
    own = [record for record in subject.records if _owns(record, subject)]
    for record in own:
        for inner in record.inside():
            for leaves in inner.leaves.values():
                yield from leaves
    for record in own:
        yield from _around(record)
    if subject.topic is Topic.INCIDENT:
        for number in sorted(subject.numbers):
            for record in index.alerts(number):
                for leaves in record.leaves.values():
                    yield from leaves


def _owns(record: Record, subject: Subject) -> bool:
    if subject.topic is Topic.INCIDENT:
        return record.speaks in (Speaks.INCIDENT, Speaks.ALERT)
    return True


def _around(record: Record) -> Iterator[Leaf]:
    """Times of the alert that an entity lies in."""
    if record.speaks in (Speaks.ENTITY, Speaks.OTHER):
        for outer in record.chain():
            if outer.speaks is Speaks.ALERT:
                yield from (leaf for leaves in outer.leaves.values() for leaf in leaves)
                return


def _anywhere(moment: Moment, index: EvidenceIndex, right: Callable[[Leaf], bool]) -> Leaf | None:
    if moment.year is not None and moment.month is not None and moment.day is not None:
        try:
            day = datetime(moment.year, moment.month, moment.day).astimezone(index.zone)
        except ValueError:
            return None
        near = index.times_between(day - timedelta(days=2), day + timedelta(days=3))
        found = next(filter(right, near), None)
        if found is not None or not moment.swapped:
            return found
    return next((leaf for run in index.results for leaf in run.times[1] if right(leaf)), None)


def _window_bound(index: EvidenceIndex, right: Callable[[Leaf], bool]) -> Leaf | None:
    covered = (record for run in index.results for record in run.records if record.speaks is Speaks.COVERAGE)
    inner = (each for record in covered for each in record.inside())
    leaves = (leaf for each in inner for of_key in each.leaves.values() for leaf in of_key)
    return next(filter(right, leaves), None)


def judge_duration(
    atom: Atom, subjects: Sequence[Subject], index: EvidenceIndex, *, question: str, told: Sequence[datetime]
) -> Verdict:
    """The verdict for a duration: a window that was asked for, a number of seconds of a result, or the time between two
    times of the subject. `told` are the times that the sentence itself states."""
    span = atom.value
    assert isinstance(span, Span)
    if index.said(atom.text, question) or any(
        TIME_WINDOWS.get(str(run.run.call.arguments.get("time_window")), 0) * 3600 == span.seconds
        for run in index.results
    ):
        return FROM_PERSON
    for leaf, seconds in _seconds(subjects, index):
        if _close(seconds, span):
            return in_result(leaf)
    instants = sorted(dict(_key_times(subjects, index)).items())
    for place, (earlier, leaf) in enumerate(instants):
        for later, other in instants[place + 1 :]:
            if _close((later - earlier).total_seconds(), span):
                return derived(other, f"{other.pointer} - {leaf.pointer}")
    for earlier in told:
        for later in told:
            if earlier < later and _close((later - earlier).total_seconds(), span):
                return derived(None, "difference of two times of the sentence")
    return unsupported("no two times of the results are so far apart")


def _close(seconds: float, span: Span) -> bool:
    """True if a person would write `seconds` like this, cut or rounded to the unit that was written."""
    return abs(seconds - span.seconds) <= max(span.unit * 0.5, 0.5) or 0 <= seconds - span.seconds < span.unit


def _seconds(subjects: Sequence[Subject], index: EvidenceIndex) -> Iterator[tuple[Leaf, float]]:
    records = [record for subject in subjects for record in subject.records] or [
        record for run in index.results for record in run.records
    ]
    for record in records:
        for key, leaves in record.leaves.items():
            if key.endswith(("duration_s", "response_s", "_seconds", "duration")):
                for leaf in leaves:
                    if isinstance(leaf.value, int | float):
                        yield leaf, float(leaf.value)


def _key_times(subjects: Sequence[Subject], index: EvidenceIndex) -> list[tuple[datetime, Leaf]]:
    """The few times that a duration can be meant between: those of the subjects, of the incidents of their alerts, and
    of the first and the last alert of their incidents."""
    records = [record for subject in subjects for record in subject.records[:4]]
    numbers = {number for record in records for number in record.numbers()}
    incidents = [record for number in sorted(numbers)[:4] for record in index.incidents(number)[:2]]
    found: list[tuple[datetime, Leaf]] = []
    for record in dict.fromkeys((*records, *incidents)):
        found += _moments(leaf for leaves in record.leaves.values() for leaf in leaves)
    for number in sorted(numbers)[:4]:
        alerts = index.alerts(number)
        for key in ("time", "start_time", "end_time"):
            moments = sorted(
                _moments(leaf for alert in alerts for leaf in alert.leaves.get(key, ())), key=lambda each: each[0]
            )
            found += moments[:1] + moments[-1:]
    return found


def _moments(leaves: Iterable[Leaf]) -> list[tuple[datetime, Leaf]]:
    return [(moment, leaf) for leaf in leaves if (moment := moment_of(leaf.value)) is not None]
