"""Windows that end now or were counted from now: "last 24 hours", "past fortnight", "PT1H", "older than 3 days".

A length that the tools know by name is asked for by name, every other one by its two ends.
"""

from __future__ import annotations

import re
from datetime import timedelta

from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.text import blank
from sentinel_rag.language.times.kinds import NUMBER, FoundTime, Now, number_of
from sentinel_rag.language.times.windows import TimeReading, WindowSlot

_UNITS = {"mi": 1 / 60, "m": 1 / 60, "h": 1, "d": 24, "w": 168, "f": 336, "mo": 720, "mt": 720, "y": 8760}
_UNIT = r"(minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|wks?|w|fortnights?|months?|mths?|mos?|years?|yrs?|m)"
_RELATIVE = re.compile(
    rf"\b(?:(?:with)?in|over|during|for|from|of)?\s?\s?(?:the\s+)?"
    rf"\b(?:last|past|previous|recent|latest|trailing|prior)[\s_-]+"
    rf"(?:({NUMBER})[\s_-]*)?{_UNIT}\b",
    re.IGNORECASE,
)
_OLDER = re.compile(
    rf"\b(?:(?:since|for)\s+(?:more\s+than|over|longer\s+than|at\s+least)|older\s+than|longer\s+than|more\s+than(?=.*\bago\b))\s+"
    rf"({NUMBER})\s*{_UNIT}\b(?:\s+ago\b)?",
    re.IGNORECASE,
)
_SINCE = re.compile(rf"\bsince\s+({NUMBER})\s+{_UNIT}\b(?!\s+(?:ago|back))", re.IGNORECASE)
_COUNTED = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_WITHIN = re.compile(
    rf"\b(?:within|in|for|over)\s+(?:the\s+)?(\d{{1,4}}|{_COUNTED})\s*{_UNIT}\b(?!\s+(?:of|around|ago|back))", re.I
)
_BARE = re.compile(
    r"(?<![\w.:-])(?<!per )(\d{1,3})\s*(h|hrs?|hours|d|days|w|wks?|weeks|months)\b(?!\s*(?:of|around|ago|back|old))",
    re.I,
)
_ISO_DURATION = re.compile(r"\b(?:last\s+|past\s+)?(P(?:\d+W|(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?)?))(?!\w)", re.IGNORECASE)


def read_relative(text: str, now: Now, moments: list[FoundTime]) -> TimeReading | None:
    """The first window counted from now; None if there is none outside of `moments`."""
    older = _OLDER.search(text)
    if older is not None:
        hours = number_of(older[1]) * _unit_hours(older[2].lower())
        end = now.moment - timedelta(minutes=round(hours * 60))
        return TimeReading(blank(text, older.start(), older.end()), WindowSlot(None, end))
    iso = _ISO_DURATION.search(text)
    if iso is not None and len(iso[1]) > 2:
        hours = _iso_hours(iso[1])
        if hours:
            return TimeReading(blank(text, iso.start(), iso.end()), _window_of(hours, now))
    for pattern in (_RELATIVE, _SINCE, _WITHIN, *(() if moments else (_BARE,))):
        for match in pattern.finditer(text):
            if any(found.begin < match.end() and match.start() < found.end for found in moments):
                continue
            unit = match[2].lower()
            if not match[1] and (unit in ("d", "m") or unit[0] == "y"):
                continue
            hours = (number_of(match[1]) if match[1] else 1) * _unit_hours(unit)
            if not hours:
                continue  # "0h" is no window
            return TimeReading(blank(text, match.start(), match.end()), _window_of(hours, now))
    return None


def _unit_hours(unit: str) -> float:
    for prefix in ("mo", "mt", "mi", "m", "h", "d", "w", "f", "y"):
        if unit.startswith(prefix):
            return _UNITS[prefix]
    raise AssertionError(unit)


def _iso_hours(text: str) -> float:
    units = {"W": 168.0, "D": 24.0, "H": 1.0, "M": 1 / 60}
    return sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([WDHM])", text.upper()))


def _window_of(hours: float, now: Now) -> WindowSlot:
    for name, known in TIME_WINDOWS.items():
        if known == hours:
            return WindowSlot(now.moment - timedelta(hours=hours), now.moment, name)
    return WindowSlot(now.moment - timedelta(minutes=round(hours * 60)), now.moment)
