"""Times as values: moments, days and windows, each with its bounds.

Also the names that dates are made of: months, weekdays, zones, numbers in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.language.times.spans import TimeSpan

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
    "utc": 0, "gmt": 0, "z": 0, "zulu": 0, "cet": 60, "cest": 120, "est": -300, "edt": -240, "cdt": -300, "pst": -480,
    "pdt": -420, "mdt": -360, "eet": 120, "eest": 180, "msk": 180, "jst": 540, "sgt": 480, "hkt": 480, "aest": 600,
    "aedt": 660, "nzst": 720, "nzdt": 780,
}  # fmt: skip
"""Minutes east of UTC for abbreviations that mean one thing only."""
_COUNTED = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
NUMBER_WORDS = {word: value for value, word in enumerate(_COUNTED.split(), start=1)} | {
    "a": 1,
    "an": 1,
    "couple of": 2,
    "a couple of": 2,
    "few": 3,
    "a few": 3,
    "twenty": 20,
    "thirty": 30,
    "sixty": 60,
}
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
NTH = rf"({_DAY})(?:st|nd|rd|th)?"
YEAR = r"((?:19|20)\d\d)"
MANY_ZONES = ("ist", "cst", "bst", "mst", "ast", "gst", "sst")
"""Abbreviations that stand for more than one zone; they are asked back."""
ZONE = rf"\s*((?:utc|gmt)\s?[+-]\d{{1,2}}(?::?\d\d)?|{'|'.join(sorted(ZONES, key=len, reverse=True))}|[+-]\d\d:?\d\d)\b"
DAY_WORD = r"o'?\s*clock|yesterday|today|this\s+morning|on\b|utc|last\s+(?:mon|tues|wednes|thurs|fri|satur|sun)day"
DAY_PARTS = "morning|afternoon|evening|night"
WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
DASH = r"(?:-|–|—|to|and|until|till|through)"
NUMBER = r"(?:\d{1,4}|" + "|".join(sorted(NUMBER_WORDS, key=len, reverse=True)) + ")"


@dataclass(frozen=True, slots=True)
class Now:
    """When and where the question is asked."""

    moment: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        """The date in the session's time zone."""
        return self.moment.astimezone(self.zone).date()


@dataclass(frozen=True, slots=True)
class Day:
    """A stretch of whole days. `yearless` holds (month, day) where the year was left to us; `weekday`: only
    the day of the week was said."""

    span: TimeSpan
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
    """A full date and time; `zone` where one was said, `unzoned` if it was written without one and read in the
    session's."""

    span: TimeSpan
    zone: tzinfo | None = None
    unzoned: bool = False


@dataclass(frozen=True, slots=True)
class DateProblem:
    """Text that is no date, or more than one: `readings` are the dates it may mean."""

    text: str
    readings: tuple[date, ...] = ()


Moment = Day | Clock | Instant | DateProblem


@dataclass(frozen=True, slots=True)
class FoundTime:
    """A moment and where it stands in the sentence."""

    begin: int
    end: int
    moment: Moment


def number_of(word: str) -> int:
    """The value of `3`, `three`, `a` or `couple of`."""
    word = " ".join(word.lower().split())
    return int(word) if word.isdigit() else NUMBER_WORDS[word]


def zone_of(name: str | None) -> tzinfo | None:
    """The zone of an abbreviation or an offset; None for None."""
    if not name:
        return None
    name = "".join(name.lower().split())
    if name in ZONES:
        return timezone(timedelta(minutes=ZONES[name])) if ZONES[name] else UTC
    name = name.removeprefix("utc").removeprefix("gmt")
    sign = -1 if name[0] == "-" else 1
    hours, colon, minutes = name[1:].partition(":")
    if not colon and len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    if int(hours) > 14 or int(minutes or 0) > 59:
        return None
    return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes or 0)))


@dataclass(frozen=True, slots=True)
class WindowSlot:
    """A window as asked. `relative` is the tools' own name for it; a side that is None is open."""

    start: datetime | None = None
    end: datetime | None = None
    relative: str | None = None

    def arguments(self) -> dict[str, str]:
        """The window as arguments of a tool."""
        if self.relative is not None:
            return {"time_window": self.relative}
        sides = {"start_time": self.start, "end_time": self.end}
        return {name: format_time(side) for name, side in sides.items() if side is not None}


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """Why the time cannot be read, in one sentence, and texts that could stand in the place of `said`."""

    sentence: str
    said: str = ""
    replacements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeReading:
    """What a sentence says about time. `around` is the half width asked for around a thing that has no time yet;
    `rest` is the sentence with the time blanked out, of the same length; `other` is a second time, as it was said and
    as a window, and `between` where the words between the two begin and end."""

    rest: str
    window: WindowSlot | None = None
    question: TimeQuestion | None = None
    around: timedelta | None = None
    other: str = ""
    other_window: WindowSlot | None = None
    between: tuple[int, int] = (0, 0)
    later: WindowSlot | None = None
    """The second of two whole periods that one window joins: "june and july" are two, where they are compared."""
