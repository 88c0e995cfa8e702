"""Dates and times of day as people write them, found in a sentence.

Knows ISO 8601, European and US dates with month names, dotted and slashed dates, weekdays, "yesterday", "last month",
"3 days ago" and times of day. Below it lies `spans`; `time_windows` above joins what is found here into a window. A
date that two countries read differently is not guessed: it comes back as a `DateProblem`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from sentinel_rag.agent.offline import spans
from sentinel_rag.agent.offline.spans import Span
from sentinel_rag.agent.offline.word_lists import word_list

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            ("january", "jan"),
            ("february", "feb"),
            ("march", "mar"),
            ("april", "apr"),
            ("may",),
            ("june", "jun"),
            ("july", "jul"),
            ("august", "aug"),
            ("september", "sept", "sep"),
            ("october", "oct"),
            ("november", "nov"),
            ("december", "dec"),
        ),
        start=1,
    )
    for name in names
}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            ("monday", "mon"),
            ("tuesday", "tues", "tue"),
            ("wednesday", "wed"),
            ("thursday", "thurs", "thur", "thu"),
            ("friday", "fri"),
            ("saturday", "sat"),
            ("sunday", "sun"),
        )
    )
    for name in names
}
ZONES = {
    "utc": 0,
    "gmt": 0,
    "z": 0,
    "zulu": 0,
    "cet": 60,
    "cest": 120,
    "est": -300,
    "edt": -240,
    "cdt": -300,
    "pst": -480,
    "pdt": -420,
}
"""Minutes east of UTC for abbreviations that mean one thing only."""

NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        word_list(
            """
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    """
        ),
        start=1,
    )
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "twenty": 20, "thirty": 30, "sixty": 60}

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NTH = rf"({_DAY})(?:st|nd|rd|th)?"
_YEAR = r"((?:19|20)\d\d)"
_ZONE = rf"\s*({'|'.join(sorted(ZONES, key=len, reverse=True))}|[+-]\d\d:?\d\d)\b"
_DAY_WORD = r"o'?\s*clock|yesterday|today|this\s+morning|on\b|utc|last\s+(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DASH = r"(?:-|–|—|to|and|until|till|through)"
NUMBER = r"(?:\d{1,4}|" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + ")"


@dataclass(frozen=True, slots=True)
class Now:
    """When and where the question is asked."""

    moment: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        return self.moment.astimezone(self.zone).date()


@dataclass(frozen=True, slots=True)
class Day:
    """A stretch of whole days. `yearless` holds (month, day) where the year was left to us; `weekday`: only
    the day of the week was said."""

    span: Span
    yearless: tuple[int, int] | None = None
    weekday: bool = False


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day, as precise as written; `zone` where one was said."""

    clock: time
    width: timedelta
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """A full date and time."""

    span: Span


@dataclass(frozen=True, slots=True)
class DateProblem:
    """Text that is no date, or more than one: `readings` are the dates it may mean."""

    text: str
    readings: tuple[date, ...] = ()


Moment = Day | Clock | Instant | DateProblem


@dataclass(frozen=True, slots=True)
class Found:
    """A moment and where it stands in the sentence."""

    begin: int
    end: int
    moment: Moment


def number_of(word: str) -> int:
    """The value of `3`, `three`, `a` or `couple of`."""
    word = " ".join(word.lower().split())
    return int(word) if word.isdigit() else NUMBER_WORDS[word]


def find_moments(text: str, now: Now) -> list[Found]:
    """Every date and time in `text`, from left to right, none overlapping; at one place the longest wins."""
    found: list[Found] = []
    taken_to = 0
    for begin in _word_starts(text):
        if begin < taken_to:
            continue
        best: Found | None = None
        for pattern, build in _PATTERNS:
            match = pattern.match(text, begin)
            if match is None or (best is not None and match.end() <= best.end):
                continue
            moment = build(match, now)
            if moment is not None:
                best = Found(begin, match.end(), moment)
        if best is not None:
            found.append(best)
            taken_to = best.end
    return found


def _word_starts(text: str) -> Iterator[int]:
    return (match.start() for match in re.finditer(r"(?<![\w.:/\\@#-])\w|(?<=\d-)\d(?=\d?:)", text))


def day_without_year(month: int, day: int, now: Now, *, year: int | None = None) -> Day | None:
    """That day of `year`, else the latest one that has begun; None if the calendar has no such day."""
    years = (year,) if year is not None else (now.today.year, now.today.year - 1, now.today.year - 2)
    for candidate in years:
        try:
            when = date(candidate, month, day)
        except ValueError:
            continue
        if year is not None or when <= now.today:
            return Day(spans.days(when, when, now.zone), (month, day))
    return None


def zone_of(name: str | None) -> tzinfo | None:
    """The zone of an abbreviation or an offset; None for None."""
    if not name:
        return None
    name = name.strip().lower()
    if name in ZONES:
        return timezone(timedelta(minutes=ZONES[name])) if ZONES[name] else UTC
    sign = -1 if name[0] == "-" else 1
    digits = name[1:].replace(":", "")
    return timezone(sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:4])))


def _day(year: int, month: int, day: int, text: str, now: Now) -> Moment:
    try:
        when = date(year, month, day)
    except ValueError:
        return DateProblem(text)
    return Day(spans.days(when, when, now.zone))


def _iso_date(match: re.Match[str], now: Now) -> Moment:
    return _day(int(match[1]), int(match[2]), int(match[3]), match[0], now)


def _iso_instant(match: re.Match[str], now: Now) -> Moment:
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
        clock = time(int(match[4]), int(match[5]), int(match[6] or 0), int((match[7] or "0")[:6].ljust(6, "0")))
    except ValueError:
        return DateProblem(match[0])
    zone = zone_of(match[8]) or now.zone
    return Instant(spans.at(day, clock, zone, timedelta(seconds=1) if match[6] else timedelta(minutes=1)))


def _day_month_year(match: re.Match[str], now: Now) -> Moment | None:
    return _named(match[1], match[2], match[3], match[0], now)


def _month_day_year(match: re.Match[str], now: Now) -> Moment | None:
    return _named(match[2], match[1], match[3], match[0], now)


def _named(day: str, month: str, year: str | None, text: str, now: Now) -> Moment:
    number = MONTHS[month.lower()]
    if year:
        return _day(int(year), number, int(day), text, now)
    return day_without_year(number, int(day), now) or DateProblem(text)


def _day_range(match: re.Match[str], now: Now) -> Moment | None:
    return _range_in_month(match[1], match[2], match[3], match[4], match[0], now)


def _month_day_range(match: re.Match[str], now: Now) -> Moment | None:
    return _range_in_month(match[2], match[3], match[1], match[4], match[0], now)


def _range_in_month(first: str, last: str, month: str, year: str | None, text: str, now: Now) -> Moment:
    begin, end = _named(first, month, year, text, now), _named(last, month, year, text, now)
    if not isinstance(begin, Day) or not isinstance(end, Day) or begin.span.start > end.span.start:
        return DateProblem(text)
    return Day(Span(begin.span.start, end.span.end, whole_days=True))


def _month_year(match: re.Match[str], now: Now) -> Moment:
    number = MONTHS[match[1].lower()]
    if match[2]:
        return Day(spans.month(int(match[2]), number, now.zone))
    year = now.today.year if number <= now.today.month else now.today.year - 1
    return Day(spans.month(year, number, now.zone))


def _year_month(match: re.Match[str], now: Now) -> Moment:
    return Day(spans.month(int(match[1]), int(match[2]), now.zone))


def _slashed(match: re.Match[str], now: Now) -> Moment:
    first, second = int(match[1]), int(match[2])
    year = int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3])
    readings = []
    for day, month in ((first, second), (second, first)):
        try:
            when = date(year, month, day)
        except ValueError:
            continue
        if when not in readings:
            readings.append(when)
    if len(readings) == 1:
        return Day(spans.days(readings[0], readings[0], now.zone))
    return DateProblem(match[0], tuple(readings))


def _dotted(match: re.Match[str], now: Now) -> Moment:
    year = int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3])
    return _day(year, int(match[2]), int(match[1]), match[0], now)


def _named_day(match: re.Match[str], now: Now) -> Moment:
    back = {"today": 0, "yesterday": 1}.get(match[0].lower(), 2)
    when = now.today - timedelta(days=back)
    return Day(spans.days(when, when, now.zone))


def _part_of_day(match: re.Match[str], now: Now) -> Moment:
    words = match[0].lower()
    yesterday = now.today - timedelta(days=1)
    if "night" in words:
        start = spans.at(yesterday, time(18), now.zone, timedelta(0)).start
        return Day(Span(start, spans.at(now.today, time(6), now.zone, timedelta(0)).start))
    day = yesterday if "yesterday" in words else now.today
    first, last = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24)}[words.split()[-1]]
    start = spans.at(day, time(first), now.zone, timedelta(0)).start
    end = spans.midnight(day + timedelta(days=1), now.zone)
    return Day(Span(start, end if last == 24 else spans.at(day, time(last), now.zone, timedelta(0)).start))


def _weekday(match: re.Match[str], now: Now) -> Moment:
    back = (now.today.weekday() - WEEKDAYS[match[2].lower()]) % 7
    if back == 0 and (match[1] or "").lower() in ("last", "previous"):
        back = 7
    when = now.today - timedelta(days=back)
    return Day(spans.days(when, when, now.zone), weekday=True)


def _calendar(match: re.Match[str], now: Now) -> Moment:
    which, unit = " ".join(match[1].lower().split()), match[2].lower()
    back = {"this": 0, "the current": 0, "current": 0, "the week before": 2}.get(which, 1)
    today = now.today
    if unit == "week":
        return Day(spans.week(today, now.zone, back=back))
    if unit == "month":
        return Day(spans.month(today.year, today.month - back, now.zone))
    return Day(spans.year(today.year - back, now.zone))


def _week_before_last(match: re.Match[str], now: Now) -> Moment:
    return Day(spans.week(now.today, now.zone, back=2))


def _weekend(match: re.Match[str], now: Now) -> Moment:
    return Day(spans.weekend(now.today, now.zone))


def _ago(match: re.Match[str], now: Now) -> Moment:
    count, unit = number_of(match[1]), match[2].lower()
    if unit.startswith(("h", "m")) and not unit.startswith("mo"):
        step = timedelta(hours=count) if unit.startswith("h") else timedelta(minutes=count)
        return Instant(Span(now.moment - step, now.moment - step + timedelta(minutes=1)))
    when = now.today - timedelta(days=count * (7 if unit.startswith("w") else 30 if unit.startswith("mo") else 1))
    return Day(spans.days(when, when, now.zone))


def _day_of_month(match: re.Match[str], now: Now) -> Moment | None:
    """ "The 19th": the latest one that has begun."""
    for back in range(3):
        first = now.today.replace(day=1)
        month, year = (first.month - back - 1) % 12 + 1, first.year + (first.month - back - 1) // 12
        try:
            when = date(year, month, int(match[1]))
        except ValueError:
            continue
        if when <= now.today:
            return Day(spans.days(when, when, now.zone))
    return None


def _week_of_month(match: re.Match[str], now: Now) -> Moment:
    number = MONTHS[match[2].lower()]
    year = int(match[3]) if match[3] else now.today.year - (number > now.today.month)
    whole = spans.month(year, number, now.zone)
    if match[1].lower() == "last":
        last = (whole.end.astimezone(now.zone) - timedelta(days=1)).date()
        return Day(spans.days(last - timedelta(days=6), last, now.zone))
    begin = date(year, number, 1) + timedelta(weeks=("first", "second", "third", "fourth").index(match[1].lower()))
    return Day(spans.days(begin, begin + timedelta(days=6), now.zone))


def _now(match: re.Match[str], now: Now) -> Moment:
    return Instant(Span(now.moment, now.moment))


def _clock(match: re.Match[str], now: Now) -> Moment | None:
    if int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        return None
    hour = _hour(int(match[1]), match[4])
    if hour is None:
        return None
    width = timedelta(seconds=1) if match[3] else timedelta(minutes=1)
    return Clock(time(hour, int(match[2]), int(match[3] or 0)), width, zone_of(match[5]))


def _clock_twelve(match: re.Match[str], now: Now) -> Moment | None:
    hour = _hour(int(match[1]), match[2] or None)
    return None if hour is None or hour > 23 else Clock(time(hour), timedelta(minutes=1), zone_of(match[3]))


def _hour(hour: int, half: str | None) -> int | None:
    if half is None:
        return hour
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half.lower().startswith("p") else 0)


_Build = Callable[[re.Match[str], Now], Moment | None]
_PATTERNS: list[tuple[re.Pattern[str], _Build]] = [
    (re.compile(pattern, re.IGNORECASE), build)
    for pattern, build in (
        (rf"{_YEAR}-(\d\d)-(\d\d)(?:T|\s+)(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{{1,7}}))?)?(?:{_ZONE})?(?!\w)", _iso_instant),
        (rf"{_YEAR}-(\d\d?)-(\d\d?)(?![\w-])", _iso_date),
        (rf"{_YEAR}/(\d\d?)/(\d\d?)(?![\w/])", _iso_date),
        (rf"{_YEAR}-(\d\d)(?![\w-])", _year_month),
        (rf"{_NTH}\s*{_DASH}\s*{_NTH}\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+{_YEAR})?", _day_range),
        (rf"({_MONTH})\.?\s+{_NTH}\s*{_DASH}\s*{_NTH}(?:,?\s+{_YEAR})?(?![\w:.])", _month_day_range),
        (rf"{_NTH}[\s-]+(?:of\s+)?({_MONTH})\b\.?(?:[,\s-]*{_YEAR})?", _day_month_year),
        (rf"({_MONTH})\.?\s+(?:the\s+)?{_NTH}(?:,?\s+{_YEAR})?(?![\w:.])", _month_day_year),
        (rf"({_MONTH})\.?,?\s+{_YEAR}\b", _month_year),
        (r"(january|february|june|july|august|september|october|november|december)()\b", _month_year),
        (r"(?<=in )(march|april|may|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)()\b", _month_year),
        (r"(?<=since )(march|april|may)()\b", _month_year),
        (r"(\d\d?)/(\d\d?)/(\d{4}|\d\d)(?![\w/])", _slashed),
        (r"(\d\d?)\.(\d\d?)\.(\d{4}|\d\d)(?![\w.])", _dotted),
        (r"(?:the\s+)?day\s+before\s+yesterday\b|yesterday\b|today\b", _named_day),
        (r"(?:this|yesterday)\s+(?:morning|afternoon|evening)\b|(?:last|over)\s*night\b|tonight\b", _part_of_day),
        (r"(?:(last|previous|this|past)\s+)?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b", _weekday),
        (r"(?:(last|previous|this)\s+)(mon|tues?|wed|thu|thurs?|fri|sat|sun)\b", _weekday),
        (r"(?<=since )()(mon|tues?|wed|thu|thurs?|fri|sat|sun)\b", _weekday),
        (r"(this|the\s+current|current|last|previous|the\s+previous|prev)\s+(week|month|year)\b", _calendar),
        (r"(?:the\s+)?week\s+before\s+last\b", _week_before_last),
        (r"(?:the|this|last|past)\s+week\s*-?end\b|weekend\b", _weekend),
        (rf"({NUMBER})\s*(minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|months?)\s+(?:ago|back)\b", _ago),
        (r"now\b", _now),
        (rf"(\d\d?):(\d\d)(?::(\d\d))?\s*(am|pm|a\.m\.|p\.m\.)?(?:{_ZONE})?(?![\w:])", _clock),
        (rf"(\d\d?)\s*(am|pm|a\.m\.|p\.m\.)(?:{_ZONE})?(?!\w)", _clock_twelve),
        (rf"(?:(?<=from )|(?<=between ))(\d\d?)()()(?=\s*(?:-|to|and|until)\s*\d\d?\s+(?:{_DAY_WORD}))", _clock_twelve),
        (rf"(?:(?<=to )|(?<=and )|(?<=until )|(?<=-))(\d\d?)()()(?=\s+(?:{_DAY_WORD}))", _clock_twelve),
        (
            r"(?:the\s+)?(\d\d?)(?:st|nd|rd|th)\b(?!\s+(?:of\s+)?(?:alert|incident|one|entry|row|line|host|account))",
            _day_of_month,
        ),
        (
            rf"(?:the\s+)?(first|second|third|fourth|last)\s+week\s+(?:of|in)\s+({_MONTH})\b(?:\s+{_YEAR})?",
            _week_of_month,
        ),
    )
]
