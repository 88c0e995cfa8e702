"""Lengths of time as people, models and APIs write them: `4h`, `PT4H`, `P7D`, `last 4 hours`, `last_24h`, `two weeks`.

One reader for the tools' `time_window` and for the options of the command line. What is nearly ISO 8601 is refused with
what was meant: `P1H` would otherwise be a window that finds nothing. Months and years have no one length.
"""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=36_500)

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_UNIT = r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|fortnights?|months?|years?)"
_WORDS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "twelve": 12}
_PLAIN = re.compile(
    rf"(?:(?:in|over|during|for)\s+)?(?:the\s+)?(?:(?P<last>last|past|previous|trailing)[\s_-]*)?"
    rf"(?P<count>[0-9]{{1,7}}(?:\.[0-9]{{1,6}})?|{'|'.join(_WORDS)})?[\s_-]*{_UNIT}(?:\s+ago)?",
    re.IGNORECASE | re.ASCII,
)
_PART = r"([0-9]{1,7}(?:[.,][0-9]{1,6})?)"
_ISO = re.compile(rf"P(?:{_PART}W)?(?:{_PART}D)?(?:T(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}S)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(?:([0-9]{1,5})\.)?([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_LIKE_ISO = re.compile(r"P[0-9TWDHMSY.,]*", re.IGNORECASE)
HOW_TO_WRITE = "Write it like 30m, 4h, 7d, PT4H or P7D."


def read_duration(text: str) -> timedelta:
    """The length that `text` means, more than nothing. Raises ValueError with a sentence for a person."""
    written = text.strip()
    if _LIKE_ISO.fullmatch(written):
        span = _iso(written)
    elif clock := _CLOCK.fullmatch(written):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    else:
        span = _plain(written)
    if not timedelta(0) < span <= LONGEST:
        raise ValueError(f"{_shown(written)} is no length of time that can be asked for; it may be a hundred years.")
    return span


def _iso(text: str) -> timedelta:
    match = _ISO.fullmatch(text)
    if match is None or text[-1:] in "PpTt":
        raise ValueError(f"{_shown(text)} is not an ISO 8601 duration{_meant(text)}.")
    weeks, days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _meant(text: str) -> str:
    """What a slip in ISO 8601 was to say: hours, minutes and seconds stand behind a T, days and weeks before it."""
    upper = text.upper()
    if match := re.fullmatch(r"P([0-9]+(?:\.[0-9]+)?)([HS])", upper):
        return f": hours, minutes and seconds stand behind a T, so write PT{match[1]}{match[2]}"
    if match := re.fullmatch(r"P([0-9]+(?:\.[0-9]+)?)M", upper):
        return f": PT{match[1]}M is minutes, and months have no one length, so write them as days"
    if match := re.fullmatch(r"PT([0-9]+(?:\.[0-9]+)?)([DW])", upper):
        return f": days and weeks stand before the T, so write P{match[1]}{match[2]}"
    if re.fullmatch(r"P[0-9]+Y.*", upper):
        return ": years have no one length, so write them as days, such as P365D"
    if match := re.fullmatch(r"P([0-9]+)D([0-9]+)H", upper):
        return f": hours stand behind a T, so write P{match[1]}DT{match[2]}H"
    return ""


def _plain(text: str) -> timedelta:
    match = _PLAIN.fullmatch(text)
    if match is None or not (match["count"] or match["last"]):
        raise ValueError(f"{_shown(text)} is no length of time.")
    unit = match["unit"].lower()
    if unit.startswith(("month", "year")):
        days = "30d" if unit.startswith("month") else "365d"
        raise ValueError(f"{_shown(text)} has no one length: write it in days, such as {days}.")
    said = (match["count"] or "1").lower()
    count = float(_WORDS.get(said, 0) or said)
    seconds = 1_209_600.0 if unit.startswith("fortnight") else _SECONDS[unit[0]]
    return timedelta(seconds=count * seconds)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
