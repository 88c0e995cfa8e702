"""Superlatives: the newest, the first, the one with the most. Checked where the results hold what is compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sentinel_rag.agent.grounding.atoms import Kind
from sentinel_rag.agent.grounding.evidence_index import moment_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf, Record, Speaks
from sentinel_rag.agent.grounding.state_atoms import State
from sentinel_rag.agent.grounding.state_verdicts import KEYS, fits
from sentinel_rag.agent.grounding.subjects import Subject, Topic
from sentinel_rag.agent.grounding.verdicts import Verdict, derived, unsupported

_THING = (
    r"(?:\s+(?:of\s+(?:them|these|those|all|the)|(?:\w+[\s-]){0,2}?(?:incidents?|alerts?|"
    r"ones?|entr(?:y|ies)|cases?|events?)))"
)
_NEWEST = re.compile(
    rf"\b(?:newest|latest|most recent|youngest|last{_THING}|came last|(?:created|opened|raised|"
    rf"logged|seen|reported) last|"
    rf"comes last|end(?:ed|s) with|no \w+ (?:is|was) (?:more recent|newer|younger|"
    rf"later) than)\b(?!\s+(?:update|version|state|status|activity|seen|\d+|hours?|days?|"
    rf"weeks?))",
    re.I,
)
_OLDEST = re.compile(
    rf"\b(?:oldest|earliest|first{_THING}|came first(?! in)|(?:created|opened|raised|logged|"
    rf"reported) first|(?:began|started|begins|"
    rf"starts) with|no \w+ (?:is|was) (?:older|earlier) than|initial\s+(?:alert|"
    rf"incident))\b(?!\s+(?:update|seen))",
    re.I,
)
_MOST = re.compile(
    r"\b(?:most|highest number|largest number|busiest|peak(?:ed)?|leads|top|comes first|tops|"
    r"greatest|biggest|highest count|more than any)\b(?!\s+(?:recent|severe|likely|"
    r"of the time|important|relevant|urgent|serious|critical|probably|common(?:ly)?|\d+|ten|"
    r"five|three))",
    re.I,
)
_FEWEST = re.compile(r"\b(?:fewest|lowest number|smallest number|quietest|least)\b(?!\s+(?:one|likely|severe))", re.I)
_TOP = re.compile(r"/rows/\d+")
_TIME_KEYS = {
    Topic.INCIDENT: ("created_time",),
    Topic.ALERT: ("time", "start_time", "end_time"),
    Topic.ENTITY: ("last_seen", "first_seen", "timegenerated", "time"),
    Topic.ROW: ("time", "timegenerated"),
}
_UPDATED = re.compile(r"\b(?:updated|modified|changed)\b", re.I)
_PREDICATE = re.compile(
    r"^[\s*_`”\")]*(?:\([^)]*\)\s*)?(?:is|was|being|remains|ranks|has|had|saw|shows?|leads?|"
    r"comes?|came|stands?|tops?|,|–|-|,\s+(?:which|who))\b[^;.]{0,25}$|^[\s*_`”\")]*$",
    re.I,
)


_AMOUNTS = ("alerts", "alert_count", "count")
_NO_AMOUNTS = ("number", "incident_number", "provider_incident_id", "open_duration_s", "first_response_s")


@dataclass(frozen=True, slots=True)
class Claim:
    """A superlative at `[start, end)` and the subject that it is said of."""

    start: int
    end: int
    largest: bool
    by_time: bool
    subject: Subject


def judge_orders(reading: Reading) -> Iterator[tuple[Claim, Verdict]]:
    """A verdict for each superlative of the piece that is said of a thing the results hold among others."""
    for claim in _claims(reading):
        yield claim, _judge(claim, reading)


def _claims(reading: Reading) -> Iterator[Claim]:
    text = reading.text
    subjects = [subject for subject in reading.subjects if subject.start >= 0 and subject.records]
    for pattern, largest, by_time in (
        (_NEWEST, True, True),
        (_OLDEST, False, True),
        (_MOST, True, False),
        (_FEWEST, False, False),
    ):
        for match in pattern.finditer(text):
            if any(atom.start <= match.start() < atom.end for atom in reading.atoms if atom.kind is not Kind.COUNT):
                continue
            subject = _said_of(match, subjects, text, by_time=by_time)
            if subject is not None:
                yield Claim(match.start(), match.end(), largest, by_time, subject)


def _said_of(match: re.Match[str], subjects: Sequence[Subject], text: str, *, by_time: bool) -> Subject | None:
    """The subject of a superlative: the one in front of it ("55 is the newest"), else the next one."""
    wanted = _topics(text[match.start() : match.end() + 25], by_time=by_time)
    fitting = [subject for subject in subjects if subject.topic in wanted]
    before = [subject for subject in fitting if subject.end <= match.start()]
    after = [subject for subject in fitting if subject.start >= match.start()]
    if before and _PREDICATE.match(text[before[-1].end : match.start()]):
        return before[-1]
    if after:
        alone = re.search(r"[;.]|,\s*(?:and|while|whereas)\b", text[match.end() : after[0].start])
        if alone is None:
            return after[0]
    return before[-1] if before and not by_time else None


def _topics(words: str, *, by_time: bool) -> tuple[Topic, ...]:
    words = words.lower()
    if by_time:
        if re.search(r"alert|(?:began|started|ended|begins|starts|ends) with", words):
            return (Topic.ALERT,)
        return (Topic.INCIDENT,) if "incident" in words else (Topic.INCIDENT, Topic.ALERT)
    if re.search(r"busiest|peak|quietest", words):
        return (Topic.ROW,)
    return (Topic.INCIDENT, Topic.ENTITY, Topic.ROW)


def _judge(claim: Claim, reading: Reading) -> Verdict:
    metrics = _metrics(claim, reading)
    seen = False
    broken = ""
    # What a detail counts within its incident says nothing of the whole ranking.
    outer = [record for record in claim.subject.records if _TOP.fullmatch(record.pointer)]
    records = outer if outer and not claim.by_time else claim.subject.records
    for record in records:
        group = _group(record, reading)
        if len(group) < 2:
            continue
        for metric in metrics(record):
            values = [value for each in group if (value := metric(each)) is not None]
            mine = metric(record)
            if mine is None or len(values) < 2:
                continue
            seen = True
            extreme = max(value for value, _ in values) if claim.largest else min(value for value, _ in values)
            if mine[0] == extreme:
                return derived(mine[1], "the extreme of its list")
        broken = broken or record.pointer
    if not seen:
        return derived(None, "nothing to compare with")
    return unsupported("the results have another one at that end")


_EARLIER = re.compile(r"\b(?:before|earlier than|predates?|preceded|precedes|older than|prior to)\b", re.IGNORECASE)
_LATER = re.compile(
    r"\b(?:after|later than|postdates?|followed(?! by)|newer than|more recent than|younger than)\b", re.IGNORECASE
)


def judge_sequences(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each pair of incidents of which the piece says that one came before the other."""
    subjects = [each for each in reading.subjects if each.topic is Topic.INCIDENT and each.start >= 0]
    for first, second in pairwise(subjects):
        between = reading.text[first.end : second.start]
        words = _EARLIER.search(between) or _LATER.search(between)
        if words is None or len(between) > 60 or re.search(r"[;.]|\balerts?\b|\bupdated\b|\bclosed\b", between):
            continue
        moments = [
            (moment, leaf)
            for subject in (first, second)
            for leaf in subject.values("created_time")[:1]
            if (moment := moment_of(leaf.value)) is not None
        ]
        if len(moments) == 2:
            earlier = moments[0][0] < moments[1][0]
            right = earlier is bool(_EARLIER.search(between)) and moments[0][0] != moments[1][0]
            verdict = (
                derived(moments[0][1], "the times of the two") if right else unsupported("the times say the reverse")
            )
            yield first.end, second.start, verdict


Metric = Callable[[Record], "tuple[float, Leaf] | None"]


def _metrics(claim: Claim, reading: Reading) -> Callable[[Record], Sequence[Metric]]:
    around = reading.text[max(0, claim.start - 40) : claim.end + 60]
    if claim.by_time:
        keys = ("updated_time",) if _UPDATED.search(around) else _TIME_KEYS[claim.subject.topic]
        return lambda _: [_time_metric(key) for key in keys]
    words = reading.text[claim.end : claim.end + 60]
    named = any(counts(key, words) for record in claim.subject.records for key in record.leaves)
    return lambda record: [_number_metric(key) for key in _compared(record) if not named or counts(key, words)]


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z]+", "", text.lower())


def counts(key: str, words: str) -> bool:
    """Whether the words behind "the most" or "more" begin with the name of a number, such as FailedSignIns."""
    name = _squeezed(key)
    return len(name) >= _SHORTEST_KEY and _squeezed(words).startswith(name)


_SHORTEST_KEY = 5


def _compared(record: Record) -> list[str]:
    """The numbers that "most" can mean: the count of a ranking or a bucket, else every number of the row."""
    numbers = [
        key
        for key, leaves in record.leaves.items()
        if isinstance(leaves[0].value, int | float) and key not in _NO_AMOUNTS
    ]
    return [key for key in numbers if key in _AMOUNTS] or numbers


def _time_metric(key: str) -> Metric:
    def metric(record: Record) -> tuple[float, Leaf] | None:
        leaf = record.first(key)
        moment: datetime | None = moment_of(leaf.value) if leaf is not None else None
        return None if leaf is None or moment is None else (moment.timestamp(), leaf)

    return metric


def _number_metric(key: str) -> Metric:
    def metric(record: Record) -> tuple[float, Leaf] | None:
        leaf = record.first(key)
        return (float(leaf.value), leaf) if leaf is not None and isinstance(leaf.value, int | float) else None

    return metric


def _group(record: Record, reading: Reading) -> list[Record]:
    """The records beside it in its list; narrowed to the states that the sentence names, if it fits them."""
    if record.parent is None:
        return []
    folder = record.pointer.rpartition("/")[0]
    run = reading.index.run_of(record.run)
    group = [
        each
        for each in record.parent.children
        if each.speaks is record.speaks and each.pointer.rpartition("/")[0] == folder
    ]
    if record.speaks is Speaks.ALERT:
        spoken_of = [each for each in (*reading.subjects, reading.context.incident) if each is not None]
        numbers = next((each.numbers for each in spoken_of if each.topic is Topic.INCIDENT), frozenset())
        group = [each for each in group if not numbers or numbers & set(each.numbers())]
    states = [
        (atom.kind, atom.value)
        for atom in reading.atoms
        if atom.kind in (Kind.SEVERITY, Kind.STATUS) and isinstance(atom.value, State)
    ]
    if run.tool == "get_threat_summary" and record.speaks is Speaks.INCIDENT:
        # Its rows are the open incidents only.
        if not any(state.word == "Open" for _, state in states) and _others(record, reading):
            return []
        return group
    narrowed = [each for each in group if _has_all(each, states)]
    return narrowed if states and record in narrowed and _narrows(reading.text) else group


def _others(record: Record, reading: Reading) -> bool:
    return any(run.tool == "query_incidents" and len(run.rows) > 1 for run in reading.index.results)


def _narrows(text: str) -> bool:
    return bool(
        re.search(
            r"\b(?:newest|latest|oldest|earliest|first|last|recent)\s+(?:\w+[\s-])?(?:open|closed|new|"
            r"active|high|medium|low|informational)",
            text,
            re.I,
        )
    )


def _has_all(record: Record, states: Sequence[tuple[Kind, State]]) -> bool:
    return all(
        any(fits(kind, state, leaf.value) for key in KEYS[kind] for leaf in record.leaves.get(key, ()))
        for kind, state in states
    )
