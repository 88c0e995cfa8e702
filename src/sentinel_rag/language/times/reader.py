"""The times of a sentence, absolute and relative to now, as one window.

Joins the moments that `moments` finds ("between A and B on C", "since", "before", "around"); `relative_windows` reads
what is counted from now. What cannot be read without guessing comes back as a question.

A length that the tools know by name is asked for by name, every other one by its two ends.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta, tzinfo

from sentinel_rag.contracts.tool_schemas import TIME_WINDOWS
from sentinel_rag.language.text import blank
from sentinel_rag.language.times import spans
from sentinel_rag.language.times.date_builders import day_without_year
from sentinel_rag.language.times.kinds import (
    NUMBER,
    Clock,
    DateProblem,
    Day,
    FoundTime,
    Instant,
    Now,
    TimeQuestion,
    TimeReading,
    WindowSlot,
    number_of,
)
from sentinel_rag.language.times.moments import find_moments
from sentinel_rag.language.times.spans import TimeSpan

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
_SINCE_WHEN = re.compile(rf"\bsince\s+({NUMBER})\s+{_UNIT}\b(?!\s+(?:ago|back))", re.IGNORECASE)
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
    for pattern in (_RELATIVE, _SINCE_WHEN, _WITHIN, *(() if moments else (_BARE,))):
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


_DAY = timedelta(days=1)
DEFAULT_AROUND = timedelta(minutes=10)
_WRONG_DURATION = re.compile(r"\b(P(\d+)H|PT(\d+)([DW]))\b", re.IGNORECASE)
_AROUND = re.compile(
    rf"(?:(?:\+\s*/?\s*-|±|-\s*/?\s*\+|plus\s*/?\s*(?:or\s+)?minus|within)\s*)({NUMBER})\s*"
    r"(minutes?|mins?|m|hours?|hrs?|h|seconds?|secs?|s)\b(?:\s+(?:around|of|from|about|near|before\s+and\s+after))?",
    re.IGNORECASE,
)
_AROUND_AFTER = re.compile(
    rf"\b({NUMBER})\s*(minutes?|mins?|m|hours?|hrs?|h|seconds?|secs?|s)\s+"
    r"(?:around|either\s+side\s+of|before\s+and\s+after)\b",
    re.IGNORECASE,
)
_AROUND_IT = re.compile(
    r"\b(?:around|at\s+the\s+time\s+of|close\s+to)\s+(?=(?:alert|incident)\s|\[|(?:that|this|the\s+(?:first|second|third|last|same))\s+"
    r"(?:alert|incident|one|time)\b|it\b|then\b)",
    re.IGNORECASE,
)
_NEAR = re.compile(r"\b(?:around|about|near|close\s+to|at\s+the\s+time\s+of)\s*$", re.IGNORECASE)
_PART_OF_A_DAY = timedelta(hours=6)
"""What is as long as a morning is a stretch, near which nothing is: "worried about last night"."""
_RANGE = re.compile(r"\s*(?:-|–|—|\b(?:to|and|until|till|through|thru|up\s+to)\b)\s*", re.IGNORECASE)
_OPENS = r"from|since|after|later\s+than|starting(?:\s+(?:from|at))?"
_CLOSES = r"before|earlier\s+than|until|till|up\s+to"
_ATTACH = re.compile(rf"\s*,?\s*(?:\b(?:at|on|of|the|between|{_OPENS}|{_CLOSES})\b\s*)*", re.IGNORECASE)
_PART_OPENS, _PART_CLOSES = (re.compile(rf"\b(?:{one})\s*$", re.IGNORECASE) for one in (_OPENS, _CLOSES))
"""Between a day and a time of it: "today after 8 am" is the rest of the day, "yesterday until 9" what came before."""
_BOUNDED = re.compile(r"\b(?:between|from)\s+(?:the\s+)?$", re.IGNORECASE)
_SINCE = re.compile(r"\b(?:since|starting(?:\s+(?:from|at|on))?|beginning|as\s+of)\s+(?:the\s+)?$", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\s+(?:the\s+)?$", re.IGNORECASE)
"""From a time onward; "alerts from last week" are those of last week."""
_ONWARDS = re.compile(r"\s*,?\s*(?:onwards?\b|forwards?\b|and\s+later\b)", re.IGNORECASE)
"""Behind a time that opens a window: "from 3 July onwards"."""
_ON = re.compile(r"\s*on\b(?=\s*(?:$|[,.;?!]))", re.IGNORECASE)
_AFTER = re.compile(r"\b(?:after|later\s+than|newer\s+than|following)\s+(?:the\s+)?$", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|prior\s+to|earlier\s+than|older\s+than)\s+(?:the\s+)?$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till|up\s+to(?:\s+and\s+including)?|through)\s+(?:the\s+)?$", re.IGNORECASE)
_AND = re.compile(r"\b(?:and|but)\s+$", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:on|in|at|during|for|over|from|of|between|the|dated|throughout|within)\s{1,2}$", re.IGNORECASE
)
"""Right before the time: where a name was taken out ("mails from X yesterday") the word belongs to the name."""


def read_time(text: str, now: Now) -> TimeReading:
    """The window of `text`. Relative windows first: "last 24 hours" holds no calendar date."""
    wrong = _WRONG_DURATION.search(text)
    if wrong is not None:
        right = f"PT{wrong[2]}H" if wrong[2] else f"P{wrong[3]}{wrong[4].upper()}"
        sentence = (
            f"{wrong[0]} is not a duration of ISO 8601: hours stand behind a T and days before it. Write {right}."
        )
        return TimeReading(text, question=TimeQuestion(sentence, wrong[0], (right,)))
    around, rest = _read_around(text)
    moments = find_moments(rest, now)
    relative = None if around is not None else read_relative(rest, now, moments)
    if relative is not None:
        return relative
    problem = next((found for found in moments if isinstance(found.moment, DateProblem)), None)
    if problem is not None:
        assert isinstance(problem.moment, DateProblem)
        return TimeReading(text, question=_ask_date(problem.moment))
    if not moments:
        return TimeReading(rest, around=around)
    return _read_absolute(rest, moments, now, around)


def _read_around(text: str) -> tuple[timedelta | None, str]:
    match = _AROUND.search(text) or _AROUND_AFTER.search(text)
    if match is None:
        bare = _AROUND_IT.search(text)
        return (None, text) if bare is None else (DEFAULT_AROUND, blank(text, bare.start(), bare.end()))
    unit = match[2].lower()
    width = timedelta(
        **{"hours" if unit[0] == "h" else "seconds" if unit[0] == "s" else "minutes": number_of(match[1])}
    )
    if match[0].lower().startswith("within") and not match[0].lower().endswith(
        ("of", "around", "from", "about", "near")
    ):
        return None, text
    return width, blank(text, match.start(), match.end())


def _ask_date(problem: DateProblem) -> TimeQuestion:
    if not problem.readings:
        return TimeQuestion(f"{problem.text} is not a date of the calendar. Write it as year-month-day.", problem.text)
    shown = tuple(when.isoformat() for when in problem.readings)
    return TimeQuestion(
        f"{problem.text} is one date in Europe and another in the United States. Which one do you mean?",
        problem.text,
        shown,
    )


def _read_absolute(text: str, moments: list[FoundTime], now: Now, around: timedelta | None) -> TimeReading:
    shape, first, last = _first_shape(text, moments)
    parts = [found.moment for found in moments[first : last + 1]]
    begin, end = moments[first].begin, moments[last].end
    head = text[:begin]
    left, right = _sides(shape, parts, now)
    rest = text
    if right is not None:
        window = WindowSlot(left.start, right.end if right.whole_days else right.start)
        begin = _strip(head, re.compile(r"\b(?:between|from|in|on)\s+(?:the\s+)?$", re.IGNORECASE))
    elif around is not None or (_NEAR.search(head) and left.end - left.start < _PART_OF_A_DAY):
        width = around or DEFAULT_AROUND
        window = WindowSlot(left.start - width, left.start + width)
        begin = _strip(head, _NEAR)
    elif shape == "DAT" and _PART_OPENS.search(text, moments[first].end, moments[last].begin):
        window, begin = WindowSlot(left.start, _day_of(parts, now).end), _strip(head, _PREPOSITION)
    elif shape == "DAT" and _PART_CLOSES.search(text, moments[first].end, moments[last].begin):
        window, begin = WindowSlot(_day_of(parts, now).start, left.start), _strip(head, _PREPOSITION)
    elif match := _SINCE.search(head) or (_FROM.search(head) if shape in ("T", "I", "DAT", "TAD") else None):
        window, begin = WindowSlot(left.start, None), match.start()
    elif (after := _ONWARDS.match(text, end) or (_FROM.search(head) and _ON.match(text, end))) is not None:
        window, end = WindowSlot(left.start, None), after.end()
        begin = _strip(head, _FROM)
    elif match := _AFTER.search(head):
        until = _day_of(parts, now).end if shape == "TAD" else None
        window, begin = WindowSlot(left.end if left.whole_days else left.start, until), match.start()
    elif match := _BEFORE.search(head):
        since = _day_of(parts, now).start if shape == "TAD" else None
        window, begin = WindowSlot(since, left.start), match.start()
    elif match := _UNTIL.search(head):
        window, begin = WindowSlot(None, left.end if left.whole_days else left.start), match.start()
    else:
        if left.start == left.end:
            return TimeReading(blank(rest, begin, end))
        window, begin = WindowSlot(left.start, left.end), _strip(head, _PREPOSITION)
    bounded = _with_other_bound(text, moments[last + 1 :], window)
    for found in moments[first:]:
        rest = blank(rest, found.begin if bounded == window else _bound_begins(text, found.begin), found.end)
    rest = blank(rest, begin, end)
    if right is not None and _are_two_periods(text, moments[first], moments[last], window):
        said = text[moments[last].begin : moments[last].end]
        return TimeReading(
            rest, WindowSlot(left.start, left.end), other=said, other_window=WindowSlot(right.start, right.end)
        )
    if window.start is not None and window.end is not None and window.start >= window.end:
        said = text[begin:end].strip()
        return TimeReading(text, question=TimeQuestion(f"The window “{said}” ends before it starts.", said))
    later = None
    if right is not None and left.whole_days and right.whole_days and not _BOUNDED.search(head):
        later = WindowSlot(right.start, right.end)
    apart = [] if bounded != window else _other_times(moments, first, last, window)
    if not apart:
        return TimeReading(rest, bounded, later=later)
    said = text[apart[0].begin : apart[0].end].strip()
    span = next(found.moment.span for found in apart if isinstance(found.moment, Day | Instant))
    between = (end, apart[0].begin) if len(apart) == 1 else (0, 0)
    return TimeReading(rest, bounded, None, None, said, WindowSlot(span.start, span.end), between, later)


def _are_two_periods(text: str, first: FoundTime, last: FoundTime, window: WindowSlot) -> bool:
    """True for "this week and last week", "July to June": no range, since the second lies before the first."""
    whole = isinstance(first.moment, Day) and isinstance(last.moment, Day)
    backwards = window.start is not None and window.end is not None and window.start >= window.end
    listed = text[first.end : last.begin].strip().lower() == "and"
    long = whole and all(_is_period(found.moment) for found in (first, last))
    return whole and backwards and (long or (listed and not _BOUNDED.search(text[: first.begin])))


def _is_period(moment: Day | Clock | Instant | DateProblem) -> bool:
    """True for a week, a month and the like, and False for a day."""
    return isinstance(moment, Day) and moment.span.end - moment.span.start > 2 * _DAY


def _with_other_bound(text: str, later: list[FoundTime], window: WindowSlot) -> WindowSlot:
    """An open window closed by a later bound of the other side: "before B and after A"."""
    for found in later:
        if not isinstance(found.moment, Day | Instant):
            continue
        head, span = text[: found.begin], found.moment.span
        if window.start is None and (_AFTER.search(head) or _SINCE.search(head)):
            return WindowSlot(span.end if _AFTER.search(head) and span.whole_days else span.start, window.end)
        if window.end is None and (_BEFORE.search(head) or _UNTIL.search(head)):
            return WindowSlot(window.start, span.end if _UNTIL.search(head) and span.whole_days else span.start)
    return window


def _bound_begins(text: str, begin: int) -> int:
    """Where the words of a second bound begin: "and before" of "after A and before B"."""
    for words in (_AFTER, _SINCE, _BEFORE, _UNTIL, _AND):
        begin = _strip(text[:begin], words)
    return begin


def _other_times(moments: list[FoundTime], first: int, last: int, window: WindowSlot) -> list[FoundTime]:
    """The days and instants that are no part of the window that is read and do not hold it."""
    return [
        found
        for place, found in enumerate(moments)
        if not first <= place <= last
        and isinstance(found.moment, Day | Instant)
        and (
            (window.end is not None and found.moment.span.start >= window.end)
            or (window.start is not None and found.moment.span.end <= window.start)
        )
    ]


_SHAPES = (
    "DATRDAT", "TADRTAD", "TRTAD", "DATRT", "TRI", "IRI", "IRT", "IRD", "DRI", "DATRD", "DRD", "TRT", "DAT", "TAD",
)  # fmt: skip


def _first_shape(text: str, moments: list[FoundTime]) -> tuple[str, int, int]:
    """The longest known pattern of moments and connectors, leftmost first: its name, first and last moment."""
    symbols = ""
    for position, found in enumerate(moments):
        symbols += {Day: "D", Clock: "T", Instant: "I"}[type(found.moment)]
        if position + 1 < len(moments):
            between = text[found.end : moments[position + 1].begin]
            within = isinstance(found.moment, Day) and _ends_within(text, found, moments[position + 1])
            ranges = not within and _RANGE.fullmatch(between)
            symbols += "R" if ranges else "A" if _ATTACH.fullmatch(between) else "x"
    for begin in range(0, len(symbols), 2):
        for shape in _SHAPES:
            if symbols.startswith(shape, begin):
                return shape, begin // 2, (begin + len(shape) - 1) // 2
        if symbols[begin] != "T" or begin + 1 >= len(symbols):
            return symbols[begin], begin // 2, begin // 2
    raise AssertionError(symbols)


def _ends_within(text: str, day: FoundTime, end: FoundTime) -> bool:
    """True for "yesterday until 10:00", which ends on that day; "from yesterday until 10:00" ends later."""
    head, between = text[: day.begin], text[day.end : end.begin].strip()
    opened = _BOUNDED.search(head) or _SINCE.search(head)
    return isinstance(end.moment, Clock) and bool(_PART_CLOSES.fullmatch(between)) and not opened


def _sides(shape: str, parts: list[Day | Clock | Instant | DateProblem], now: Now) -> tuple[TimeSpan, TimeSpan | None]:
    """Left and right end of a range, each as wide as written; the right one is None for a single moment."""
    days = [part for part in parts if isinstance(part, Day)]
    clocks = [part for part in parts if isinstance(part, Clock)]
    instants = [part for part in parts if isinstance(part, Instant)]
    if len(clocks) == 2 and clocks[0].zone is None:
        clocks[0] = replace(clocks[0], zone=clocks[1].zone)
    match shape:
        case "TRTAD" | "DATRT":
            left = _on(days[0].span, clocks[0], now)
            return left, _later(left, _on(days[0].span, clocks[1], now))
        case "DATRDAT" | "TADRTAD":
            return _on(days[0].span, clocks[0], now), _on(days[1].span, clocks[1], now)
        case "DATRD":
            return _on(days[0].span, clocks[0], now), days[1].span
        case "DRD":
            left, right = _with_year_of(days[0], days[1], now).span, days[1].span
            if days[0].weekday and left.start > right.start:
                left = TimeSpan(left.start - timedelta(days=7), left.end - timedelta(days=7), left.whole_days)
            return left, right
        case "IRI":
            return _in_zone(instants[0], instants[1].zone, now), instants[1].span
        case "TRI":
            return _on(spans.days(now.today, now.today, now.zone), clocks[0], now), instants[0].span
        case "IRT":
            zone = clocks[0].zone or instants[0].zone or now.zone
            left = _in_zone(instants[0], clocks[0].zone, now)
            return left, spans.at(left.start.astimezone(zone).date(), clocks[0].clock, zone, clocks[0].width)
        case "IRD":
            return instants[0].span, days[0].span
        case "DRI":
            return days[0].span, instants[0].span
        case "TRT":
            today = spans.days(now.today, now.today, now.zone)
            left = _on(today, clocks[0], now)
            right = _later(left, _on(today, clocks[1], now))
            if left.start > now.moment:
                return TimeSpan(left.start - _DAY, left.end - _DAY), TimeSpan(right.start - _DAY, right.end - _DAY)
            return left, right
        case "DAT" | "TAD":
            return _on(days[0].span, clocks[0], now), None
        case "D":
            return days[0].span, None
        case "I":
            return instants[0].span, None
        case _:
            span = _on(spans.days(now.today, now.today, now.zone), clocks[0], now)
            return (span if span.start <= now.moment else TimeSpan(span.start - _DAY, span.end - _DAY)), None


def _in_zone(instant: Instant, zone: tzinfo | None, now: Now) -> TimeSpan:
    """ "2024-07-02 09:45 to 09:48 UTC": a zone that is said once, at the end, is that of both."""
    if not instant.unzoned or zone is None:
        return instant.span
    local = instant.span.start.astimezone(now.zone)
    return spans.at(local.date(), local.time(), zone, instant.span.end - instant.span.start)


def _day_of(parts: list[Day | Clock | Instant | DateProblem], now: Now) -> TimeSpan:
    """The day on which a time was said: "after 22:00 on the 14th" ends with the 14th, "before 10:00" begins with it."""
    return next((part.span for part in parts if isinstance(part, Day)), spans.days(now.today, now.today, now.zone))


def _later(left: TimeSpan, right: TimeSpan) -> TimeSpan:
    """The right end of a range of times of day: on the next day where the clock has gone round ("22:00 to 2:00")."""
    return right if right.start > left.start else TimeSpan(right.start + _DAY, right.end + _DAY)


def _on(day: TimeSpan, clock: Clock, now: Now) -> TimeSpan:
    zone: tzinfo = clock.zone or now.zone
    on = spans.at(day.start.astimezone(now.zone).date(), clock.clock, zone, clock.width)
    if on.start < day.start and on.start + _DAY < day.end:  # "3 am last night"
        on = TimeSpan(on.start + _DAY, on.end + _DAY)
    return on


def _with_year_of(left: Day, right: Day, now: Now) -> Day:
    """The left day in the right day's year, where the left one named none ("1 July to 5 July 2023")."""
    if left.yearless is None or right.yearless is not None:
        return left
    year = right.span.start.astimezone(now.zone).year
    return day_without_year(*left.yearless, now, year=year) or left


def _strip(head: str, pattern: re.Pattern[str]) -> int:
    """Where the words that belong to the time begin, so that "on" and "during" go with it."""
    begin = len(head)
    while (match := pattern.search(head[:begin])) is not None:
        begin = match.start()
    return begin
