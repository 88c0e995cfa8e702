"""Times as values: moments, days and windows, each with its bounds.

Also the names that dates are made of: months, weekdays, zones, numbers in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.language.lexicon import language_data
from sentinel_rag.language.text import toml_beside
from sentinel_rag.language.times.spans import TimeSpan

_NAMES = toml_beside(__package__, "names.toml")
MONTHS = {name: int(number) for number, said in language_data("en")["months"].items() for name in said.split()}
WEEKDAYS = {name: number for number, said in enumerate(_NAMES["days"]) for name in said.split()}
ZONES: dict[str, int] = _NAMES["offsets"]
"""Minutes east of UTC for abbreviations that mean one thing only."""
NUMBER_WORDS: dict[str, int] = _NAMES["counted"]
MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
NTH = rf"({_DAY})(?:st|nd|rd|th)?"
YEAR = r"((?:19|20)\d\d)"
MANY_ZONES = ("ist", "cst", "bst", "mst", "ast", "gst", "sst")
"""Abbreviations that stand for more than one zone; they are asked back."""
ZONE = rf"\s*((?:utc|gmt)\s?[+-]\d{{1,2}}(?::?\d\d)?|{'|'.join(sorted(ZONES, key=len, reverse=True))}|[+-]\d\d:?\d\d)\b"
DAY_PARTS = "morning|afternoon|evening|night"
WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
DAY_WORD = (
    rf"o'?\s*clock|yesterday|today|this\s+morning|on\s+(?:the\s+)?(?:\d|(?:{'|'.join(WEEKDAYS)}|{MONTH}|day|same|weekend)\b)|utc"
    rf"|last\s+{WEEKDAY}"
)
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
