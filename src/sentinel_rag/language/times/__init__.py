"""What a sentence says about time: moments, spans of the calendar, windows, zones. Pure; the clock is an argument."""

import re
from dataclasses import replace

from sentinel_rag.language.text import blank
from sentinel_rag.language.times.kinds import MANY_ZONES, ZONES, Now, TimeQuestion, TimeReading, WindowSlot, zone_of
from sentinel_rag.language.times.reader import read_time

__all__ = ["MANY", "SHORT", "Now", "TimeQuestion", "TimeReading", "WindowSlot", "read_time_in_its_zone"]


_NAMES = "|".join(sorted((name for name in ZONES if len(name) > 2), key=len, reverse=True))
SHORT = re.compile(
    rf"(?<![\w/@.-])(?:in\s+)?\(?((?:utc|gmt)\s?[+-]\s?\d{{1,2}}(?::?\d\d)?|{_NAMES}|(?<=\s)[+-]\d\d:\d\d)\)?(?:\s+time)?(?![\w@/-]|\.\w)",
    re.IGNORECASE,
)
"""A zone by its abbreviation or its offset; `MANY` are those that mean several."""
MANY = re.compile(rf"(?<![\w/@.-])({'|'.join(name.upper() for name in MANY_ZONES)})(?![\w@/.-])")
_LOCAL = re.compile(r"\b(?:in\s+)?(?:my\s+|our\s+)?local\s+time(?:\s+zone)?\b", re.IGNORECASE)


def read_time_in_its_zone(text: str, now: Now) -> TimeReading:
    """`read_time`, with a zone that stands apart applied to every time that names none of its own."""
    plain = read_time(text, now)
    if plain.window is None:
        return plain
    many = MANY.search(plain.rest)
    if many is not None:
        sentence = (
            f"{many[1]} is the name of more than one time zone. Write its offset instead, such as UTC+05:30, or give "
            "the times in UTC."
        )
        return TimeReading(text, question=TimeQuestion(sentence, many[1], ("UTC",)))
    local = _LOCAL.search(plain.rest)
    if local is not None:
        return replace(plain, rest=blank(plain.rest, local.start(), local.end()))
    left = SHORT.search(plain.rest)
    zone = zone_of(left[1]) if left is not None else None
    if left is None:
        return plain
    if zone is None:
        sentence = f"{left[1]} is no offset of a time zone. Write it such as UTC+02:00."
        return TimeReading(text, question=TimeQuestion(sentence, left[1]))
    return read_time(blank(text, left.start(), left.end()), Now(now.moment, zone))
