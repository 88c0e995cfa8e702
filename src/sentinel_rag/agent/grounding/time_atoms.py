"""Times and durations in an answer, in the many ways in which people and models write them.

A `Moment` holds what was written and no more: without a year it matches any year, without seconds the whole minute. A
time without a zone may be meant in UTC or in the session's zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from sentinel_rag.agent.grounding.atoms import Atom, Kind

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OFFSETS = {
    "utc": 0, "gmt": 0, "z": 0, "wet": 0, "bst": 60, "cet": 60, "west": 60, "cest": 120, "eet": 120, "eest": 180,
    "msk": 180, "ist": 330, "sgt": 480, "jst": 540, "kst": 540, "aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780,
    "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480, "pdt": -420,
}  # fmt: skip
"""Minutes east of UTC for the letters that answers use."""

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?\s+)?"
_ZONE = (
    r"(?:\s*(?P<zone>utc\s?[+-]\d{1,2}(?::?\d\d)?|[+-]\d\d:?\d\d|z\b|(?:"
    + "|".join(sorted((name for name in _OFFSETS if name != "z"), key=len, reverse=True))
    + r")\b))?"
)
_CLOCK = (
    r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,](?P<fraction>\d{1,7}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?" + _ZONE
)
_JOIN = r"(?:\s*,?\s*(?:at|@|around|about|-|–|T)?\s*)"
_DATE_ISO = r"(?P<year>\d{4})-(?P<monthno>\d\d)-(?P<day>\d\d)"
_DATE_DMY = (
    _WEEKDAY + r"(?:the\s+)?(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s+" + _MONTH + r"(?:,?\s+(?P<year>\d{4}))?"
)
_DATE_MDY = _WEEKDAY + _MONTH + r"\s+(?:the\s+)?(?P<day>\d{1,2})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<year>\d{4})\b)?"
_DATE_SLASH = r"(?P<first>\d{1,2})[/.](?P<other>\d{1,2})[/.](?P<year>\d{4})"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(r"(?<![\w.:/-])" + text + r"(?![\w/])(?!\.\d|:\d)", re.IGNORECASE)


_PATTERNS = (
    *(
        _pattern(text)
        for date in (_DATE_ISO, _DATE_DMY, _DATE_MDY, _DATE_SLASH)
        for text in (f"{date}{_JOIN}{_CLOCK}", _CLOCK + r"\s*,?\s*(?:on|of|,)\s+(?:the\s+)?" + date, date)
    ),
    _pattern(_CLOCK),
    _pattern(r"(?P<hour>1[0-2]|[1-9])\s*(?P<half>[ap])\.?m\b\.?" + _ZONE),
    _pattern(r"(?:on|this|last|next)\s+(?P<weekday>monday|tuesday|wednesday|thursday|friday|saturday|sunday)"),
    _pattern(_MONTH + r"\s+(?P<year>\d{4})"),
    _pattern(r"(?:in|of|during|since|until)\s+" + _MONTH),
)


_MAY_HOLD = re.compile(r"\d|day\b|\b(?:in|of|during|since|until)\s+[A-Z]")


@dataclass(frozen=True, slots=True)
class Moment:
    """A time as far as it was written; None for what was not. `offset` is the zone that was written beside it."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    fraction: str = ""
    offset: tzinfo | None = None
    swapped: bool = False
    """True where day and month may be meant the other way round."""

    @property
    def dated(self) -> bool:
        return self.day is not None or self.month is not None

    @property
    def timed(self) -> bool:
        return self.hour is not None

    def zones(self, session: tzinfo) -> tuple[tzinfo, ...]:
        """The zones that the time may be meant in."""
        return (self.offset,) if self.offset is not None else (UTC, session)

    def fits(self, moment: datetime, session: tzinfo) -> bool:
        """True if `moment` (aware) can be written like this."""
        return any(self._fits(moment.astimezone(zone)) for zone in self.zones(session)) or (
            self.swapped and replace(self, month=self.day, day=self.month, swapped=False).fits(moment, session)
        )

    def near(self, moment: datetime, session: tzinfo, tolerance: timedelta) -> bool:
        """True if `moment` lies within `tolerance` of the time; for "about" and "around"."""
        if not self.timed:
            return self.fits(moment, session)
        for zone in self.zones(session):
            local = moment.astimezone(zone)
            try:
                written = local.replace(
                    year=self.year or local.year, month=self.month or local.month, day=self.day or local.day,
                    hour=self.hour or 0, minute=self.minute or 0, second=self.second or 0,
                )  # fmt: skip
            except ValueError:
                continue
            if abs(local - written) <= tolerance:
                return True
        return False

    def _fits(self, local: datetime) -> bool:
        pairs = (
            (self.year, local.year), (self.month, local.month), (self.day, local.day), (self.weekday, local.weekday()),
            (self.hour, local.hour), (self.minute, local.minute), (self.second, local.second),
        )  # fmt: skip
        if any(written is not None and written != actual for written, actual in pairs):
            return False
        return f"{local.microsecond:06d}0".startswith(self.fraction[:6])


def times_in(text: str) -> Iterator[Atom]:
    """The times of `text`; one that is written longer wins over its parts."""
    taken: list[Atom] = []
    if not _MAY_HOLD.search(text):
        return
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            moment = _moment(match)
            if moment is None:
                continue
            atom = Atom(Kind.TIME, match[0], match.start(), match.end(), moment)
            if not any(atom.same_place(other) for other in taken):
                taken.append(atom)
    yield from taken


def _moment(match: re.Match[str]) -> Moment | None:
    part = {name: value for name, value in match.groupdict().items() if value is not None}
    year = int(part["year"]) if "year" in part else None
    month, day, swapped = None, None, False
    if "monthno" in part:
        month = int(part["monthno"])
    elif "month" in part:
        month = next(place for place, name in enumerate(_MONTHS, 1) if name.startswith(part["month"].lower()[:3]))
    if "day" in part:
        day = int(part["day"])
    if "first" in part:
        month, day = int(part["first"]), int(part["other"])
        swapped = day <= 12
        if month > 12:
            month, day, swapped = day, month, False
    weekday = None
    if "weekday" in part:
        weekday = next(place for place, name in enumerate(_DAYS) if name.startswith(part["weekday"].lower()[:3]))
    hour = int(part["hour"]) if "hour" in part else None
    if hour is not None and "half" in part:
        if hour > 12:
            return None
        hour = hour % 12 + (12 if part["half"].lower() == "p" else 0)
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return Moment(
        year, month, day, weekday, hour,
        int(part["minute"]) if "minute" in part else None,
        int(part["second"]) if "second" in part else None,
        part.get("fraction", ""), _offset(part.get("zone", "")), swapped,
    )  # fmt: skip


def _offset(zone: str) -> tzinfo | None:
    zone = zone.lower().replace(" ", "")
    if not zone:
        return None
    if zone in _OFFSETS:
        return timezone(timedelta(minutes=_OFFSETS[zone]))
    sign = -1 if "-" in zone else 1
    digits = re.sub(r"\D", "", zone)
    hours, minutes = (digits, "0") if len(digits) <= 2 else (digits[:-2], digits[-2:])
    total = sign * (int(hours) * 60 + int(minutes))
    return timezone(timedelta(minutes=total)) if abs(total) < 24 * 60 else None


@dataclass(frozen=True, slots=True)
class Span:
    """A duration of `seconds`, written down to `unit` seconds. `window` for "the last 24 hours", `ago` for an age."""

    seconds: float
    unit: float
    window: bool = False
    ago: bool = False


_UNITS = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "m": 60, "hour": 3600, "hr": 3600, "h": 3600,
          "day": 86400, "d": 86400, "week": 604800, "month": 2592000}  # fmt: skip
_NUMBER = (
    r"(?:\d+(?:[.,]\d+)?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    r"fifteen|twenty|twenty[- ]four|thirty|forty|forty[- ]eight|fifty|sixty|ninety|half an?)"
)
_WORDS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "twenty": 20,
    "twenty-four": 24, "thirty": 30, "forty": 40, "forty-eight": 48, "fifty": 50, "sixty": 60, "ninety": 90,
    "half a": 0.5, "half an": 0.5,
}  # fmt: skip
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|months?)(?![a-z])"
_ONE = rf"(?:(?P<n>{_NUMBER})[\s-]+(?P<u>{_UNIT})|(?P<d>\d+(?:[.,]\d+)?)\s?(?P<v>{_UNIT}|[smhd](?![a-z])))"
_ANY = re.sub(r"\?P<\w>", "?:", _ONE)
_DURATION = re.compile(
    rf"(?<![\w.:#-])(?!an? second\b){_ANY}(?:(?:\s*,?\s*(?:and\s+)?){_ANY})*(?![\w])",
    re.IGNORECASE,
)
_STEP = re.compile(_ONE, re.IGNORECASE)
_WINDOW = re.compile(r"(?:last|past|previous|next|every|within|recent|rolling|trailing)\s*$", re.IGNORECASE)
_WINDOW_WORD = re.compile(r"\b(?:last|past|previous)[ _]?(?P<n>\d{1,3})[ _]?(?P<u>h|d|hours?|days?)\b", re.IGNORECASE)
_AGO = re.compile(r"^\s*(?:ago|old|earlier today)\b", re.IGNORECASE)


def durations_in(text: str) -> Iterator[Atom]:
    """The durations of `text`, such as "2 days 3 hours", "45 min" and "the last 24 hours"."""
    for match in _WINDOW_WORD.finditer(text):
        unit = _unit(match["u"])
        yield Atom(Kind.DURATION, match[0], match.start(), match.end(), Span(int(match["n"]) * unit, unit, window=True))
    for match in _DURATION.finditer(text):
        seconds, smallest = 0.0, float(_UNITS["month"])
        for step in _STEP.finditer(match[0]):
            unit = _unit(step["u"] or step["v"])
            written = re.sub(r"\s+", " ", (step["n"] or step["d"]).lower())
            written = written.replace("twenty four", "twenty-four").replace("forty eight", "forty-eight")
            number = _WORDS[written] if written in _WORDS else float(written.replace(",", "."))
            seconds += number * unit
            smallest = min(smallest, unit if float(number).is_integer() else unit / 10)
        window = bool(_WINDOW.search(text[: match.start()]))
        ago = bool(_AGO.match(text[match.end() :]))
        yield Atom(Kind.DURATION, match[0], match.start(), match.end(), Span(seconds, smallest, window, ago))


def _unit(word: str) -> float:
    word = word.lower()
    return _UNITS.get(word) or _UNITS[word.rstrip("s")]
