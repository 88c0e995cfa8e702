"""A time zone that a question names for its answer: "per day in Berlin time", "in Europe/Berlin", a trend "in CEST".

Such a zone holds for the whole question: its days begin at midnight there and its times are shown there. What stands
beside one time only ("on 2 July, CEST") is read with that time, see `zone_words`. A name that is no zone, or the name
of several, is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.frames.phrases import phrase_book
from sentinel_rag.language.text import blank
from sentinel_rag.language.times.kinds import MANY_ZONES, ZONES, zone_of

_SHORT = re.compile(
    rf"(?<![\w/@.-])(?:in\s+)?\(?((?:utc|gmt)\s?[+-]\s?\d{{1,2}}(?::?\d\d)?|"
    rf"{'|'.join(sorted((name for name in ZONES if len(name) > 2), key=len, reverse=True))})\)?(?:\s+time)?"
    r"(?![\w@/-]|\.\w)",
    re.IGNORECASE,
)
_MANY = re.compile(rf"(?<![\w/@.-])({'|'.join(name.upper() for name in MANY_ZONES)})(?![\w@/.-])")
_OFFSET = "Write its offset instead, such as UTC+05:30, or an IANA name such as Europe/Berlin."


@dataclass(frozen=True, slots=True)
class NamedZone:
    """`zone` is None where none is named; `rest` is the question without it; `sentence` asks back."""

    rest: str
    zone: ZoneInfo | None = None
    sentence: str = ""


def read_named_zone(question: str, *, trend: bool) -> NamedZone:
    """The zone that `question` names for its answer, a `trend` by its days too. Total."""
    for match in asides(question, "zone", "iana"):
        if match["iana"] in available_timezones():
            return NamedZone(blank(question, match.start(), match.end()), ZoneInfo(match["iana"]))
    for match in asides(question, "zone", "city"):
        words = match["city"].split()
        for first in range(len(words)):
            name = _cities().get(" ".join(words[first:]).lower())
            if name is not None:
                begin = match.start("city") + match["city"].rindex(words[first]) if first else match.start()
                return NamedZone(blank(question, begin, match.end()), ZoneInfo(name))
    for match in asides(question, "zone", "unknown"):
        name = match["unknown"]
        if not phrase_book("en").knows(name.lower()) and name.lower() not in ZONES:
            return NamedZone(question, sentence=f"I know no time zone of the name {name}. {_OFFSET}")
    return _of_trend(question) if trend else NamedZone(question)


def _of_trend(question: str) -> NamedZone:
    """A trend has days, so an abbreviation or an offset is about them, whether or not a time is said."""
    many, match = _MANY.search(question), _SHORT.search(question)
    if many is not None:
        return NamedZone(question, sentence=f"{many[1]} is the name of more than one time zone. {_OFFSET}")
    if match is None:
        return NamedZone(question)
    offset = zone_of(match[1])
    shift = None if offset is None else datetime(2024, 1, 1, tzinfo=UTC).astimezone(offset).utcoffset()
    if shift is None:
        return NamedZone(question, sentence=f"{match[1]} is no offset of a time zone. {_OFFSET}")
    minutes = int(shift.total_seconds() // 60)
    if minutes % 60:
        sentence = f"Days begin at midnight of a named zone or of whole hours from UTC, not of {match[1]}. {_OFFSET}"
        return NamedZone(question, sentence=sentence)
    # The sign of the zones of the Etc area counts hours west of Greenwich.
    name = f"Etc/GMT{-minutes // 60:+d}" if minutes else "UTC"
    return NamedZone(blank(question, match.start(), match.end()), ZoneInfo(name))


@cache
def _cities() -> Mapping[str, str]:
    """The last part of each IANA name, in lower case and with blanks: "new york" -> America/New_York."""
    named = [name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))]
    named.sort(key=lambda name: (-len(name), name))
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in named}
