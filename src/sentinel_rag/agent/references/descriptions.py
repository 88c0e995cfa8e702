"""Tells the lines of a list apart by what they say: "the high one", "the one from yesterday", "the phishing one".

The words of a line are what the screen showed. A description selects lines; whether it selects one is for the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta

from sentinel_rag.agent.things import ListItem
from sentinel_rag.contracts.query_results import parse_time

Test = Callable[[ListItem], bool]
_RANKS = {"informational": 0, "low": 1, "medium": 2, "high": 3}
_SEVERITIES = {
    "high": "high", "medium": "medium", "low": "low", "informational": "informational", "info": "informational",
}  # fmt: skip
_STATUSES = {
    "new": ("new",), "active": ("active",), "open": ("new", "active", "inprogress"), "closed": ("closed",),
    "resolved": ("resolved",), "dismissed": ("dismissed",), "unresolved": ("new", "active", "inprogress"),
}  # fmt: skip
_SUPERLATIVE = re.compile(
    r"\b(?:(?P<new>newest|latest|(?:most\s+)?recent(?:ly\s+\w+)?)|(?P<old>oldest|earliest)|(?P<severe>most\s+(?:severe|serious|critical)|"
    r"highest(?:[\s-]severity)?|worst)|(?P<mild>least\s+(?:severe|serious|critical)|lowest(?:[\s-]severity)?))\b",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"\b(?:assigned\s+to|owned\s+by|owner\s+is|belonging\s+to|of\s+owner)\s+(?P<who>[\w.@'’ -]+)$", re.IGNORECASE
)
_UNOWNED = re.compile(
    r"\b(?:unassigned|unowned|without\s+(?:an?\s+)?owner|(?:not|never)\s+assigned|no\s+owner|nobody\s+owns)\b",
    re.IGNORECASE,
)
_IN_PROGRESS = re.compile(r"\bin[\s-]?progress\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ISO = re.compile(r"\b(?P<year>\d{4})-(?P<m>\d{2})-(?P<day>\d{2})\b")
_DAY_MONTH = re.compile(
    rf"\b(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b(?:\s+(?P<year>\d{{4}}))?", re.I
)
_MONTH_DAY = re.compile(
    rf"\b{_MONTH}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?", re.I
)
_CLOCK = re.compile(r"\b(?P<hour>\d{1,2}):(?P<minute>\d{2})\b")
_FILLERS = frozenset(
    """
    a an the of about with on from for in at by to that is was which has have severity status level named called titled
    mentioning involving created opened raised naming mentions involves names came happened one still and incident
    alert case ticket priority
    """.split()  # noqa: SIM905 - read as words
)


def superlative(words: str) -> bool:
    """True if a description ranks lines, such as "newest"."""
    return _SUPERLATIVE.search(words) is not None


def fitting(words: str, lines: Sequence[ListItem], now: datetime) -> tuple[ListItem, ...]:
    """The lines that `words` describe; `now` is in the time zone of the session, which days are of."""
    tests: list[Test] = []
    rest = words
    if match := _OWNED.search(rest):
        who = [part.casefold() for part in re.findall(r"[\w@'’-]+", match["who"])]
        tests.append(lambda line: bool(line.owner) and all(part in line.owner.casefold() for part in who))
        rest = rest[: match.start()]
    if match := _UNOWNED.search(rest):
        tests.append(lambda line: line.owner.casefold() in ("", "unassigned"))
        rest = rest[: match.start()] + " " + rest[match.end() :]
    if match := _IN_PROGRESS.search(rest):
        tests.append(lambda line: line.status.casefold().replace(" ", "") == "inprogress")
        rest = rest[: match.start()] + " " + rest[match.end() :]
    rank = _SUPERLATIVE.search(rest)
    if rank is not None:
        rest = rest[: rank.start()] + " " + rest[rank.end() :]
    days, rest = _days(rest, now)
    if days:
        tests.append(lambda line: _local_day(line, now) in days)
    if match := _CLOCK.search(rest):
        clock = f"{int(match['hour']):02d}:{match['minute']}"
        tests.append(lambda line: _local(line, now).strftime("%H:%M") == clock if line.time else False)
        rest = rest[: match.start()] + " " + rest[match.end() :]
    for word in re.findall(r"[\w.@'’\\:-]+", rest):
        test = _word_test(word.strip(".:'’").casefold())
        if test is not None:
            tests.append(test)
    if not tests and rank is None:
        return ()
    left = [line for line in lines if all(test(line) for test in tests)]
    return tuple(left if rank is None else _ranked(rank, left))


def _word_test(word: str) -> Test | None:
    if not word or word in _FILLERS:
        return None
    if word in _SEVERITIES:
        return lambda line: line.severity.casefold() == _SEVERITIES[word]
    if word in _STATUSES:
        return lambda line: line.status.casefold() in _STATUSES[word]
    if len(word) < 3:
        return lambda line: False
    begins = re.compile(rf"(?<![^\W_]){re.escape(word)}")
    return lambda line: begins.search(_said_of(line)) is not None


def _said_of(line: ListItem) -> str:
    return f"{line.title}\n{line.place}\n{line.value if line.kind == 'entity' else ''}".casefold()


def _ranked(rank: re.Match[str], lines: Sequence[ListItem]) -> list[ListItem]:
    """The lines that are first in the ranking; more than one where they tie, none where a line cannot be ranked."""
    if rank["new"] or rank["old"]:
        if not all(line.time for line in lines):
            return []
        times = {line: parse_time(line.time) for line in lines}
        best = max(times.values(), default=None) if rank["new"] else min(times.values(), default=None)
        return [line for line in lines if times[line] == best]
    if not all(line.severity.casefold() in _RANKS for line in lines):
        return []
    ranks = {line: _RANKS[line.severity.casefold()] for line in lines}
    wanted = max(ranks.values(), default=None) if rank["severe"] else min(ranks.values(), default=None)
    return [line for line in lines if ranks[line] == wanted]


def _local(line: ListItem, now: datetime) -> datetime:
    return parse_time(line.time).astimezone(now.tzinfo)


def _local_day(line: ListItem, now: datetime) -> date | None:
    return _local(line, now).date() if line.time else None


def _days(words: str, now: datetime) -> tuple[frozenset[date], str]:
    """The days that `words` name, and the words without them. A date without a year is the last one before now."""
    today = now.date()
    for pattern, day in ((r"\byesterday\b", today - timedelta(days=1)), (r"\btoday\b|\bthis\s+morning\b", today)):
        if match := re.search(pattern, words, re.IGNORECASE):
            return frozenset({day}), words[: match.start()] + " " + words[match.end() :]
    if match := re.search(rf"\b(?:last\s+)?({'|'.join(_DAYS)})\b", words, re.IGNORECASE):
        back = (today.weekday() - _DAYS.index(match[1].lower())) % 7
        day = today - timedelta(days=back or 7)
        days = {day} if back or match[0].lower().startswith("last") else {day, today}
        return frozenset(days), words[: match.start()] + " " + words[match.end() :]
    for found in (_ISO.search(words), _DAY_MONTH.search(words), _MONTH_DAY.search(words)):
        if found is not None:
            rest = words[: found.start()] + " " + words[found.end() :]
            return _named_day(found, today), rest
    return frozenset(), words


def _named_day(found: re.Match[str], today: date) -> frozenset[date]:
    month = int(found["m"]) if "m" in found.re.groupindex else _MONTHS.index(found["month"].lower()[:3]) + 1
    try:
        if found["year"]:
            return frozenset({date(int(found["year"]), month, int(found["day"]))})
        day = date(today.year, month, int(found["day"]))
        return frozenset({day if day <= today else day.replace(year=today.year - 1)})
    except ValueError:
        return frozenset({date.max})
