"""Dates and times of day as people write them, found in a sentence.

Knows ISO 8601, European and US dates with month names, dotted and slashed dates, weekdays, "yesterday", "last month",
"3 days ago" and times of day. Below it lies `spans`; `time_windows` above joins what is found here into a window. A
date that two countries read differently is not guessed: it comes back as a `DateProblem`.
"""

from __future__ import annotations

import re
from datetime import time, timedelta

from sentinel_rag.language.times.date_builders import (
    Build,
    ago,
    calendar,
    clock,
    clock_of_half,
    clock_twelve,
    day_month_year,
    day_of_month,
    day_range,
    dotted,
    dotted_without_year,
    edge,
    iso_date,
    iso_instant,
    month_day_range,
    month_day_year,
    month_year,
    named_clock,
    named_day,
    numbered_week,
    part_of_day,
    part_of_today,
    quarter,
    slashed,
    this_moment,
    week_before_last,
    week_from,
    week_of_month,
    weekday,
    weekday_of_week,
    weekend,
    whole_year,
    year_month,
)
from sentinel_rag.language.times.kinds import (
    DASH,
    DAY_PARTS,
    DAY_WORD,
    MONTH,
    NTH,
    NUMBER,
    WEEKDAY,
    YEAR,
    ZONE,
    Clock,
    Day,
    FoundTime,
    Now,
)


def find_moments(text: str, now: Now) -> list[FoundTime]:
    """Every date and time in `text`, from left to right, none overlapping; at one place the longest wins."""
    found: list[FoundTime] = []
    taken_to = 0
    for begin in (match.start() for match in _STARTS.finditer(text)):
        if begin < taken_to:
            continue
        best: FoundTime | None = None
        for pattern, build in _PATTERNS:
            match = pattern.match(text, begin)
            if match is None or (best is not None and match.end() <= best.end):
                continue
            moment = build(match, now)
            if moment is not None:
                best = FoundTime(begin, match.end(), moment)
        if best is not None:
            found.append(best)
            taken_to = best.end
    return _with_bare_hours(text, [_with_part_of_day(text, each, now) for each in _dated(text, found)])


_BESIDE = re.compile(r"\s*,?\s*(?:the\s+)?", re.IGNORECASE)


def _dated(text: str, found: list[FoundTime]) -> list[FoundTime]:
    """The moments without the day of the week that a date says too: "Sunday 21 July"."""
    kept: list[FoundTime] = []
    for each in found:
        before = kept[-1] if kept else None
        named = before is not None and isinstance(before.moment, Day) and before.moment.weekday
        if (
            before is not None
            and named
            and isinstance(each.moment, Day)
            and _BESIDE.fullmatch(text, before.end, each.begin)
        ):
            kept[-1] = FoundTime(before.begin, each.end, each.moment)
        else:
            kept.append(each)
    return kept


_PART_BEHIND = re.compile(rf"\s*,?\s*(?:in\s+the\s+|at\s+)?({DAY_PARTS})\b(?!\s+(?:of|on)\b)", re.IGNORECASE)
_PART_BEFORE = re.compile(
    rf"(?:\b(?:in|on|during|over)\s+)?(?:\bthe\s+)?\b({DAY_PARTS})\s+(?:(?:of|on|from)\s+)?(?:the\s+)?$", re.IGNORECASE
)


_RANGES = re.compile(rf"\s*{DASH}\s", re.IGNORECASE)
"""What makes a day the first of several."""


def _with_part_of_day(text: str, found: FoundTime, now: Now) -> FoundTime:
    """The moment with the part of its day that stands beside it: "20 July in the morning", "the night of Friday"."""
    behind, before = _PART_BEHIND.match(text, found.end), _PART_BEFORE.search(text[: found.begin])
    match = behind or before
    if match is None or not isinstance(found.moment, Day) or _RANGES.match(text, found.end):
        return found
    part = part_of_day(found.moment.span, match[1].lower(), now)
    if part is None:
        return found
    return FoundTime(found.begin if behind else match.start(), behind.end() if behind else found.end, part)


_BARE_HOURS = re.compile(
    r"(?:\b(?:between|from)\s+|(?<=,)\s*)(?P<first>\d\d?)\s*(?:and|to|until|till|-|–|—)\s*(?P<last>\d\d?)"
    r"(?=\s*(?:$|[?!.,]\s|[?!.,]$|(?:hours|o'?clock)\b))",
    re.IGNORECASE,
)
_SINCE_HOUR = re.compile(r"\b(?:since|until|till)\s+(?P<first>\d\d?)(?=\s*(?:$|[?!.,]\s|[?!.,]$))", re.IGNORECASE)


def _with_bare_hours(text: str, found: list[FoundTime]) -> list[FoundTime]:
    """Numbers alone as hours: "between 8 and 12" beside a day, "since 6" in any sentence."""
    on_a_day = any(isinstance(each.moment, Day) for each in found)
    match = (_BARE_HOURS.search(text) if on_a_day else None) or _SINCE_HOUR.search(text)
    if match is None or any(each.begin < match.end() and match.start() < each.end for each in found):
        return found
    places = [place for place in ("first", "last") if place in match.groupdict()]
    if any(int(match[place]) > 23 for place in places):
        return found
    hours = [
        FoundTime(match.start(place), match.end(place), Clock(time(int(match[place])), timedelta(minutes=1)))
        for place in places
    ]
    return sorted([*found, *hours], key=lambda each: each.begin)


_STARTS = re.compile(
    r"(?<![\w.:/\\@#-])\w|(?:(?<=\d[-–—])|(?<=[ap]m[-–—]))(?=\d\d?(?::|\s*[ap]\.?m\b)|\d{4}\b|noon\b|mid(?:night|day)\b)",
    re.IGNORECASE,
)


_PATTERNS: list[tuple[re.Pattern[str], Build]] = [
    (re.compile(pattern, re.IGNORECASE), build)
    for pattern, build in (
        (rf"{YEAR}-(\d\d)-(\d\d)(?:T|\s+)(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{{1,7}}))?)?(?:{ZONE})?(?!\w)", iso_instant),
        (rf"{YEAR}-(\d\d?)-(\d\d?)(?![\w-])", iso_date),
        (rf"{YEAR}/(\d\d?)/(\d\d?)(?![\w/])", iso_date),
        (rf"{YEAR}-(\d\d)(?![\w-])", year_month),
        (rf"{NTH}\s*{DASH}\s*{NTH}\s+(?:of\s+)?({MONTH})\b\.?(?:,?\s+{YEAR})?", day_range),
        (rf"({MONTH})\.?\s+{NTH}\s*{DASH}\s*{NTH}(?:,?\s+{YEAR})?(?![\w:.])", month_day_range),
        (
            rf"(?:the\s+)?week\s+(?:of|from|starting|beginning|commencing)\s+(?:on\s+)?(?:the\s+)?"
            rf"{NTH}[\s-]+(?:of\s+)?({MONTH})\b\.?(?:[,\s-]*{YEAR})?",
            week_from,
        ),
        (rf"(?:the\s+)?{NTH}[\s-]+(?:of\s+)?({MONTH})\b\.?(?:[,\s-]*{YEAR})?", day_month_year),
        (rf"({MONTH})\.?\s+(?:the\s+)?{NTH}(?:,?\s+{YEAR})?(?![\w:.])", month_day_year),
        (rf"({MONTH})\.?,?\s+{YEAR}\b", month_year),
        (r"(january|february|april|june|july|august|september|october|november|december)()\b", month_year),
        (
            r"(?:(?<=in )|(?<=of )|(?<=from )|(?<=until )|(?<=through ))"
            r"(march|may|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)()\b",
            month_year,
        ),
        (r"(?<=since )(march|april|may)()\b", month_year),
        (r"(?:(?<=and )|(?<=to )|(?<=between ))(march|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)()\b", month_year),
        (
            rf"(?:(?<=in )|(?<=of )|(?<=for )|(?<=since )|(?<=during )|(?:the\s+)?(?:calendar\s+)?year\s+){YEAR}"
            r"(?![\w:-])",
            whole_year,
        ),
        (
            rf"(?:the\s+)?(?:very\s+)?(start|beginning|first\s+days|end|middle)\s+(?:of|in)\s+(?:(?:the|this|current)\s+|(last|previous)\s+)?"
            rf"(?:(week|month|quarter|year)|({MONTH})(?:\s+{YEAR})?)\b",
            edge,
        ),
        (
            rf"(?:the\s+)?(?:calendar\s+week|cw|week\s+(?:number|no\.?))\s*(\d\d?)(?:(?:\s*/\s*|\s+(?:of\s+)?){YEAR})?(?![\w:])",
            numbered_week,
        ),
        (rf"(?<!per )(?:the\s+)?week\s+(\d\d?)(?:\s+(?:of\s+)?{YEAR})?(?![\w:])", numbered_week),
        (r"(\d\d?)/(\d\d?)/(\d{4}|\d\d)(?![\w/])", slashed),
        (r"(\d\d?)\.(\d\d?)\.(\d{4}|\d\d)(?![\w.])", dotted),
        (r"(\d\d?)\.(\d\d?)\.(?![\w.])", dotted_without_year),
        (r"(?:the\s+)?day\s+before\s+yesterday\b|yesterday\b|today\b", named_day),
        (
            r"this\s+(?:morning|afternoon|evening|night)\b|(?:last|over)\s*night\b|tonight\b",
            part_of_today,
        ),
        (rf"({WEEKDAY})\s+of\s+(this|last|previous)\s+week\b", weekday_of_week),
        (r"(?:(last|previous|this|past)\s+)?(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b", weekday),
        (r"(?:(last|previous|this)\s+)(mon|tues?|wed|thu|thurs?|fri|sat|sun)\b", weekday),
        (r"(?<=since )()(mon|tues?|wed|thu|thurs?|fri|sat|sun)\b", weekday),
        (r"(this|the\s+current|current|last|previous|the\s+previous|prev)\s+(week|month|quarter|year)\b", calendar),
        (r"(?:the\s+)?week\s+before\s+last\b", week_before_last),
        (r"(?:the|this|last|past)\s+week\s*-?end\b|weekend\b", weekend),
        (rf"({NUMBER})(?:\s+|(?<=\d))(minutes?|mins?|hours?|hrs?|h|days?|d|weeks?|months?)\s+(?:ago|back)\b", ago),
        (r"now\b", this_moment),
        (rf"(?:the\s+)?q([1-4])(?:[\s/-]*{YEAR})?\b", quarter),
        (
            rf"(?:(?<=from )|(?<=between ))(\d\d?)(?::(\d\d))?(?=\s*{DASH}\s*(\d\d?)(?::\d\d)?\s*([ap])\.?m\b)",
            clock_of_half,
        ),
        (r"(\d\d?)(?::(\d\d))?(?=\s*(?:-|–|—|to|until|till)\s*(\d\d?)(?::\d\d)?\s*([ap])\.?m\b)", clock_of_half),
        (rf"(\d\d?):(\d\d)(?::(\d\d))?\s*(am|pm|a\.m\.|p\.m\.)?(?:(?!\s*-\d){ZONE})?(?![\w:])", clock),
        (
            rf"(?:(?<=since )|(?<=from )|(?<=between )|(?<=at )|(?<=to )|(?<=and )|(?<=-)|(?<=after )|(?<=before )"
            rf"|(?<=until )|(?<=till )|(?=\d{{4}}\s*{DASH}\s*\d{{4}}\b))"
            rf"(0\d|1[0-8]|2[1-3])([0-5]\d)((?!))?((?!))?(?:\s?(?:h|hrs|hours)\b)?(?:(?!\s*-\d){ZONE})?(?![\w:.])",
            clock,
        ),
        (rf"(?<=at )(\d\d?)()(?:{ZONE})(?![\w:])", clock_twelve),
        (rf"(\d\d?)\s*(am|pm|a\.m\.|p\.m\.)(?:{ZONE})?(?!\w)", clock_twelve),
        (rf"(?:(?<=from )|(?<=between ))(\d\d?)()()(?=\s*(?:-|to|and|until)\s*\d\d?\s+(?:{DAY_WORD}))", clock_twelve),
        (rf"(?:(?<=before )|(?<=after )|(?<=since )|(?<=by ))(\d\d?)()()(?=\s+(?:{DAY_WORD}))", clock_twelve),
        (rf"(?:(?<=to )|(?<=and )|(?<=until )|(?<=-))(\d\d?)()()(?=\s+(?:{DAY_WORD}))", clock_twelve),
        (r"(?:12\s*)?(midnight|noon|midday)\b", named_clock),
        (
            r"(?:the\s+)?(\d\d?)(?:st|nd|rd|th)\b(?!\s+(?:of\s+)?(?:alert|incident|one|entry|row|line|host|account))",
            day_of_month,
        ),
        (
            rf"(?:the\s+)?(first|second|third|fourth|last)\s+(?:week|half)\s+(?:of|in)\s+({MONTH})\b(?:\s+{YEAR})?",
            week_of_month,
        ),
    )
]
