"""Calendar days in a user's words and in arguments.

A day that is written without its year names that day of any year, as `--11-14`; in a range the year of the end is that
of the beginning. Relative days ("tomorrow") name none: the gateway would have to trust somebody's clock and zone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = "|".join(f"{name}|{name[:3]}" if name != "may" else name for name in _MONTHS)
_NUMBER = r"(?:3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:19|20)[0-9]{2}"
_WRITTEN = re.compile(
    rf"\b(?:(?P<m1>{_MONTH})\.?\s{{1,3}}(?:the\s{{1,3}})?(?P<d1>{_NUMBER})(?!\w)(?:,?\s{{1,3}}(?P<y1>{_YEAR}))?"
    rf"|(?P<d2>{_NUMBER})\s{{1,3}}(?:of\s{{1,3}})?(?P<m2>{_MONTH})(?!\w)\.?(?:,?\s{{1,3}}(?P<y2>{_YEAR}))?)(?!\d)",
    re.IGNORECASE,
)
_ISO = re.compile(r"(?<![\d-])((?:19|20)\d\d)-(\d\d)-(\d\d)(?![\d-])")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")
_RANGE = re.compile(r"\s{0,3}(?:to|until|till|through|-|–)\s{0,3}(?:the\s{1,3})?", re.IGNORECASE)


def days_in(clause: str) -> Iterator[str]:
    """The days that a clause names, as `2025-01-11`, or `--01-11` where it says no year."""
    for match in _ISO.finditer(clause):
        yield from _day(match[1], match[2], match[3])
    found = list(_WRITTEN.finditer(clause))
    for index, match in enumerate(found):
        year = match["y1"] or match["y2"]
        if year is None and index + 1 < len(found):
            following = found[index + 1]
            if _RANGE.fullmatch(clause, match.end(), following.start()):
                year = following["y1"] or following["y2"]
        name = (match["m1"] or match["m2"]).lower()
        month = next(number for number, each in enumerate(_MONTHS, 1) if each.startswith(name))
        yield from _day(year, str(month), re.sub(r"\D", "", match["d1"] or match["d2"]))


def day_of(text: str) -> str | None:
    """The day of a date, or of a moment in any zone, as `2025-01-11`; None if the text is neither."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return text if re.fullmatch(r"--\d\d-\d\d", text) else None
    return next(_day(*match[1].split("-")), None)


def without_year(day: str) -> str:
    """`--01-11` of `2025-01-11`."""
    return "-" + day[4:]


def _day(year: str | None, month: str, day: str) -> Iterator[str]:
    try:
        found = datetime.date(int(year or 2000), int(month), int(day))
    except ValueError:
        return
    yield found.isoformat() if year else without_year(found.isoformat())
