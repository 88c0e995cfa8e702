"""Times without a number: "on a Monday", "at night", "around noon", "yesterday".

A part of a day is right if one of the times of the thing that it is said of falls into it, in the session's zone or in
UTC. Which day yesterday was no result tells; so it stands only where the person said it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from sentinel_rag.agent.grounding.clauses import clause_at, clauses_of
from sentinel_rag.agent.grounding.evidence_index import folded, moment_of
from sentinel_rag.agent.grounding.reading import Reading
from sentinel_rag.agent.grounding.records import Leaf
from sentinel_rag.agent.grounding.row_sets import row_sets
from sentinel_rag.agent.grounding.subjects import STRONG, Subject
from sentinel_rag.agent.grounding.time_atoms import Moment
from sentinel_rag.agent.grounding.verdicts import FROM_PERSON, Verdict, derived, unsupported

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WHEN = re.compile(
    r"\b(?:created|opened|raised|closed|updated|reopened|started|began|occurred|happened|came in|reported|detected|"
    r"seen|logged|resolved|triggered|fired|arrived|generated)\b[^.;:?!]{0,40}?\b(?:"
    rf"(?:on\s+)?(?:an?|some)\s+(?P<day>{'|'.join(_DAYS)})|(?P<weekend>(?:on|over|during)\s+(?:a|the)\s+weekend)|"
    r"(?P<weekday>on an? (?:weekday|working day))|"
    r"(?P<morning>in the (?:early |late )?morning)|(?P<afternoon>in the (?:early |late )?afternoon)|"
    r"(?P<evening>in the (?:early |late )?evening)|(?P<night>at night|overnight|in the middle of the night)|"
    r"(?P<noon>(?:around|at|about) (?:noon|midday))|(?P<midnight>(?:around|at|about) midnight)|"
    r"(?P<relative>yesterday|today|tonight|last (?:night|week|month|year)|the day before yesterday|"
    r"this (?:morning|afternoon|evening|week|month|year)))\b",
    re.IGNORECASE,
)
_KEYS = ("created_time", "updated_time", "closed_time", "first_activity_time", "last_activity_time", "time",
         "start_time", "end_time")  # fmt: skip
_FITS: Mapping[str, Callable[[datetime], bool]] = {
    "weekend": lambda moment: moment.weekday() >= 5,
    "weekday": lambda moment: moment.weekday() < 5,
    "morning": lambda moment: 4 <= moment.hour < 12,
    "afternoon": lambda moment: 12 <= moment.hour < 18,
    "evening": lambda moment: 17 <= moment.hour < 24,
    "night": lambda moment: moment.hour >= 21 or moment.hour < 6,
    "noon": lambda moment: 11 <= moment.hour < 14,
    "midnight": lambda moment: moment.hour in (23, 0),
}


def judge_day_parts(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for each time without a number that is said of an incident or an alert."""
    clauses = clauses_of(reading.text)
    for match in _WHEN.finditer(reading.text):
        clause = clause_at(clauses, match.start())
        named = [
            each for each in reading.subjects if each.topic in STRONG and clause.start <= each.start < clause.end
        ] or [each for each in (reading.context.last,) if each is not None and each.topic in STRONG]
        if match["relative"] and named:
            said = reading.index.said(folded(match["relative"]), reading.question)
            verdict = FROM_PERSON if said else unsupported("no result tells which day that was")
            yield match.start("relative"), match.end(), verdict
            continue
        kind = "day" if match["day"] else next((name for name in _FITS if match[name]), "")
        times = [time for subject in named for time in _times(subject)]
        if not kind or not times:
            continue
        right = [leaf for moment, leaf in times if _fits(kind, match["day"], moment, reading)]
        start = match.start(kind)
        yield start, match.end(), derived(right[0], "a time in it") if right else unsupported("its times are others")


_SHARES = {
    "all": (0.999, 1.0), "every": (0.999, 1.0), "each": (0.999, 1.0), "most": (0.5, 1.0), "half": (0.39, 0.6)
}  # fmt: skip
"""Above the first and at most the second."""
_OF_THEM = re.compile(
    r"\b(?P<share>all|every|each|most|half)\b(?:\s+of)?(?:\s+(?:the|these|those|our))?\s+(?P<noun>incident|alert)s?\b"
    r"[^.;:?!]{0,20}?\b(?:created|opened|raised|occurred|happened|date|from)\b[^.;:?!\d]{0,12}?$",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(r"\b(?:not|nearly|almost|at least|more than|less than|over)\s+$", re.IGNORECASE)


def judge_shares_of_time(reading: Reading) -> Iterator[tuple[int, int, Verdict]]:
    """A verdict, with its place, for "all incidents were created in July" and the like."""
    for atom in reading.atoms:
        named = atom.value
        match = _OF_THEM.search(reading.text[: atom.start])
        if match is None or not isinstance(named, Moment) or _NOT_BEFORE.search(reading.text[: match.start()]):
            continue
        low, high = _SHARES[match["share"].lower()]
        noun = match["noun"].lower()
        verdict: Verdict | None = None
        for rows in row_sets(noun, reading.index):
            moments = [moment_of(leaf.value) for row in rows if (leaf := row.first(_TIME_OF[noun])) is not None]
            known = [moment for moment in moments if moment is not None]
            if len(known) < 2:
                continue
            fitting = sum(named.fits(moment, reading.index.zone) for moment in known)
            if low < fitting / len(known) <= high:
                verdict = derived(None, f"{fitting} of {len(known)}")
                break
            verdict = unsupported("the times of the others say otherwise")
        if verdict is not None:
            yield match.start(), atom.end, verdict


_TIME_OF = {"incident": "created_time", "alert": "time"}


def _times(subject: Subject) -> Iterator[tuple[datetime, Leaf]]:
    for key in _KEYS:
        for leaf in subject.values(key):
            moment = moment_of(leaf.value)
            if moment is not None:
                yield moment, leaf


def _fits(kind: str, day: str | None, moment: datetime, reading: Reading) -> bool:
    for local in (moment.astimezone(reading.index.zone), moment.astimezone(UTC)):
        if local.strftime("%A").lower() == day.lower() if day else _FITS[kind](local):
            return True
    return False
