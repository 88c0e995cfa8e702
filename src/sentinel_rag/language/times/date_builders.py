"""From the groups of a matched pattern to a moment, one builder for each way of writing a date or a time.

`moments` holds the patterns. A builder returns None where the digits are no date after all, and a `DateProblem` where
they are one in form but not in the calendar, or two.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time, timedelta

from sentinel_rag.language.times import spans
from sentinel_rag.language.times.kinds import (
    MONTHS,
    WEEKDAYS,
    Clock,
    DateProblem,
    Day,
    Instant,
    Moment,
    Now,
    number_of,
    zone_of,
)
from sentinel_rag.language.times.spans import TimeSpan


def day_without_year(month: int, day: int, now: Now, *, year: int | None = None) -> Day | None:
    """That day of `year`, else the latest one that has begun; None if the calendar has no such day."""
    years = (year,) if year is not None else (now.today.year, now.today.year - 1, now.today.year - 2)
    for candidate in years:
        try:
            when = date(candidate, month, day)
        except ValueError:
            continue
        if year is not None or when <= now.today:
            return Day(spans.days(when, when, now.zone), (month, day))
    return None


def _day(year: int, month: int, day: int, text: str, now: Now) -> Moment:
    try:
        when = date(year, month, day)
    except ValueError:
        return DateProblem(text)
    return Day(spans.days(when, when, now.zone))


def iso_date(match: re.Match[str], now: Now) -> Moment:
    """`2024-07-02`."""
    return _day(int(match[1]), int(match[2]), int(match[3]), match[0], now)


def iso_instant(match: re.Match[str], now: Now) -> Moment:
    """`2024-07-02T09:45:00Z`; without a zone it is in the session's."""
    try:
        day = date(int(match[1]), int(match[2]), int(match[3]))
        clock = time(int(match[4]), int(match[5]), int(match[6] or 0), int((match[7] or "0")[:6].ljust(6, "0")))
    except ValueError:
        return DateProblem(match[0])
    said = zone_of(match[8])
    width = timedelta(seconds=1) if match[6] else timedelta(minutes=1)
    return Instant(spans.at(day, clock, said or now.zone, width), said, unzoned=said is None)


def day_month_year(match: re.Match[str], now: Now) -> Moment | None:
    """`2 July 2024`."""
    return _named(match[1], match[2], match[3], match[0], now)


def month_day_year(match: re.Match[str], now: Now) -> Moment | None:
    """`July 2, 2024`."""
    return _named(match[2], match[1], match[3], match[0], now)


def _named(day: str, month: str, year: str | None, text: str, now: Now) -> Moment:
    number = MONTHS[month.lower()]
    if year:
        return _day(int(year), number, int(day), text, now)
    return day_without_year(number, int(day), now) or DateProblem(text)


def day_range(match: re.Match[str], now: Now) -> Moment | None:
    """`1 to 5 July`."""
    return _range_in_month(match[1], match[2], match[3], match[4], match[0], now)


def month_day_range(match: re.Match[str], now: Now) -> Moment | None:
    """`July 1-5`."""
    return _range_in_month(match[2], match[3], match[1], match[4], match[0], now)


def _range_in_month(first: str, last: str, month: str, year: str | None, text: str, now: Now) -> Moment:
    begin, end = _named(first, month, year, text, now), _named(last, month, year, text, now)
    if not isinstance(begin, Day) or not isinstance(end, Day) or begin.span.start > end.span.start:
        return DateProblem(text)
    return Day(TimeSpan(begin.span.start, end.span.end, whole_days=True))


def month_year(match: re.Match[str], now: Now) -> Moment:
    """`July 2024`, or the latest July."""
    return Day(_month(match[1], match[2], now))


def _month(name: str, year: str | None, now: Now) -> TimeSpan:
    """That month of the year, or the latest one that has begun."""
    number = MONTHS[name.lower()]
    return spans.month(int(year) if year else now.today.year - (number > now.today.month), number, now.zone)


def quarter(match: re.Match[str], now: Now) -> Moment:
    """`Q2 2024`, or the latest second quarter that has begun."""
    first = 3 * int(match[1]) - 2
    year = int(match[2]) if match[2] else now.today.year - (first > now.today.month)
    begin, last = spans.month(year, first, now.zone), spans.month(year, first + 2, now.zone)
    return Day(TimeSpan(begin.start, last.end, whole_days=True))


def year_month(match: re.Match[str], now: Now) -> Moment:
    """`2024-07`."""
    return Day(spans.month(int(match[1]), int(match[2]), now.zone))


def whole_year(match: re.Match[str], now: Now) -> Moment:
    """`2023`."""
    return Day(spans.year(int(match[1]), now.zone))


def slashed(match: re.Match[str], now: Now) -> Moment:
    """`25/04/2024`; a problem with two readings where both are dates."""
    first, second = int(match[1]), int(match[2])
    year = int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3])
    readings = []
    for day, month in ((first, second), (second, first)):
        try:
            when = date(year, month, day)
        except ValueError:
            continue
        if when not in readings:
            readings.append(when)
    if len(readings) == 1:
        return Day(spans.days(readings[0], readings[0], now.zone))
    return DateProblem(match[0], tuple(readings))


def dotted(match: re.Match[str], now: Now) -> Moment:
    """`25.04.2024`: the day comes first everywhere."""
    year = int(match[3]) if len(match[3]) == 4 else 2000 + int(match[3])
    return _day(year, int(match[2]), int(match[1]), match[0], now)


def dotted_without_year(match: re.Match[str], now: Now) -> Moment | None:
    """`25.04.`, the latest one."""
    return day_without_year(int(match[2]), int(match[1]), now) if 1 <= int(match[2]) <= 12 else None


def named_day(match: re.Match[str], now: Now) -> Moment:
    """`yesterday`."""
    back = {"today": 0, "yesterday": 1}.get(match[0].lower(), 2)
    when = now.today - timedelta(days=back)
    return Day(spans.days(when, when, now.zone))


_PARTS = {"morning": (0, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""Parts of a day by the hours with which they begin and end."""
_OVER_NIGHT = timedelta(days=2)


def part_of_day(whole: TimeSpan, part: str, now: Now) -> Day | None:
    """The part of one day; the night of two days lies between them."""
    if whole.end - whole.start > (_OVER_NIGHT if part == "night" else timedelta(days=1, hours=1)):
        return None
    day = whole.start.astimezone(now.zone).date()
    begin, end = _PARTS[part]
    last = day + timedelta(days=end // 24)
    start = spans.at(day, time(begin), now.zone, timedelta(0)).start
    return Day(TimeSpan(start, spans.at(last, time(end % 24), now.zone, timedelta(0)).start))


def part_of_today(match: re.Match[str], now: Now) -> Moment | None:
    """`this morning`, `last night`; the night is the one that has begun."""
    part = next((part for part in _PARTS if match[0].lower().endswith(part)), "")
    day = now.today - timedelta(days=part == "night")
    return part_of_day(spans.days(day, day, now.zone), part, now)


def weekday(match: re.Match[str], now: Now) -> Moment:
    """`Monday`: the latest one that has begun."""
    back = (now.today.weekday() - WEEKDAYS[match[2].lower()]) % 7
    if back == 0 and (match[1] or "").lower() in ("last", "previous"):
        back = 7
    when = now.today - timedelta(days=back)
    return Day(spans.days(when, when, now.zone), weekday=True)


def weekday_of_week(match: re.Match[str], now: Now) -> Moment:
    """`Monday of last week`."""
    back = now.today.weekday() - WEEKDAYS[match[1].lower()] + 7 * (match[2].lower() != "this")
    when = now.today - timedelta(days=back)
    return Day(spans.days(when, when, now.zone))


def calendar(match: re.Match[str], now: Now) -> Moment:
    """`last week`, `this month`: whole calendar units."""
    which, unit = " ".join(match[1].lower().split()), match[2].lower()
    return Day(_unit(unit, {"this": 0, "the current": 0, "current": 0, "the week before": 2}.get(which, 1), now))


def _unit(unit: str, back: int, now: Now) -> TimeSpan:
    """The whole calendar unit that many before the present one."""
    today = now.today
    if unit == "week":
        return spans.week(today, now.zone, back=back)
    if unit == "month":
        return spans.month(today.year, today.month - back, now.zone)
    if unit == "quarter":
        first = today.month - (today.month - 1) % 3 - 3 * back
        begin, last = spans.month(today.year, first, now.zone), spans.month(today.year, first + 2, now.zone)
        return TimeSpan(begin.start, last.end, whole_days=True)
    return spans.year(today.year - back, now.zone)


def edge(match: re.Match[str], now: Now) -> Moment:
    """`start of the quarter`, `end of July`: a third of it."""
    whole = _month(match[4], match[5], now) if match[4] else _unit(match[3].lower(), int(bool(match[2])), now)
    first = whole.start.astimezone(now.zone).date()
    days = (whole.end.astimezone(now.zone).date() - first).days
    third = max(1, days // 3)
    begin = {"end": days - third, "middle": third}.get(match[1].lower(), 0)
    return Day(spans.days(first + timedelta(begin), first + timedelta(begin + third - 1), now.zone))


def numbered_week(match: re.Match[str], now: Now) -> Moment | None:
    """`calendar week 28` of ISO 8601, the latest one that has begun."""
    years = (int(match[2]),) if match[2] else (now.today.isocalendar().year, now.today.isocalendar().year - 1)
    for year in years:
        try:
            monday = date.fromisocalendar(year, int(match[1]), 1)
        except ValueError:
            continue
        if match[2] or monday <= now.today:
            return Day(spans.week(monday, now.zone))
    return None


def week_before_last(match: re.Match[str], now: Now) -> Moment:
    """`the week before last`."""
    return Day(spans.week(now.today, now.zone, back=2))


def weekend(match: re.Match[str], now: Now) -> Moment:
    """`the weekend`: the latest one that has begun."""
    return Day(spans.weekend(now.today, now.zone))


def ago(match: re.Match[str], now: Now) -> Moment:
    """`3 days ago`: that day; `2 hours ago`: that instant."""
    count, unit = number_of(match[1]), match[2].lower()
    if unit.startswith(("h", "m")) and not unit.startswith("mo"):
        step = timedelta(hours=count) if unit.startswith("h") else timedelta(minutes=count)
        return Instant(TimeSpan(now.moment - step, now.moment - step + timedelta(minutes=1)))
    when = now.today - timedelta(days=count * (7 if unit.startswith("w") else 30 if unit.startswith("mo") else 1))
    return Day(spans.days(when, when, now.zone))


def day_of_month(match: re.Match[str], now: Now) -> Moment | None:
    """ "The 19th": the latest one that has begun."""
    for back in range(3):
        first = now.today.replace(day=1)
        month, year = (first.month - back - 1) % 12 + 1, first.year + (first.month - back - 1) // 12
        try:
            when = date(year, month, int(match[1]))
        except ValueError:
            continue
        if when <= now.today:
            return Day(spans.days(when, when, now.zone))
    return None


def week_of_month(match: re.Match[str], now: Now) -> Moment:
    """`first week of July`: its first seven days; `first half of July`: to the fifteenth."""
    number = MONTHS[match[2].lower()]
    year = int(match[3]) if match[3] else now.today.year - (number > now.today.month)
    whole = spans.month(year, number, now.zone)
    if "half" in match[0].lower():
        middle = date(year, number, 15)
        if match[1].lower() == "first":
            return Day(spans.days(date(year, number, 1), middle, now.zone))
        return Day(TimeSpan(spans.midnight(date(year, number, 16), now.zone), whole.end, whole_days=True))
    if match[1].lower() == "last":
        last = (whole.end.astimezone(now.zone) - timedelta(days=1)).date()
        return Day(spans.days(last - timedelta(days=6), last, now.zone))
    begin = date(year, number, 1) + timedelta(weeks=("first", "second", "third", "fourth").index(match[1].lower()))
    return Day(spans.days(begin, begin + timedelta(days=6), now.zone))


def week_from(match: re.Match[str], now: Now) -> Moment:
    """`week of 8 July`: the seven days from it."""
    first = _named(match[1], match[2], match[3], match[0], now)
    if not isinstance(first, Day):
        return first
    begin = first.span.start.astimezone(now.zone).date()
    return Day(spans.days(begin, begin + timedelta(days=6), now.zone))


def this_moment(match: re.Match[str], now: Now) -> Moment:
    """`now`."""
    return Instant(TimeSpan(now.moment, now.moment))


def clock(match: re.Match[str], now: Now) -> Moment | None:
    """`09:45`."""
    if int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        return None
    hour = _hour(int(match[1]), match[4])
    if hour is None:
        return None
    width = timedelta(seconds=1) if match[3] else timedelta(minutes=1)
    return Clock(time(hour, int(match[2]), int(match[3] or 0)), width, zone_of(match[5]))


def clock_twelve(match: re.Match[str], now: Now) -> Moment | None:
    """`2 pm`."""
    hour = _hour(int(match[1]), match[2] or None)
    return None if hour is None or hour > 23 else Clock(time(hour), timedelta(minutes=1), zone_of(match[3]))


def clock_of_half(match: re.Match[str], now: Now) -> Moment | None:
    """The 2 of "2 to 4 pm": in the half of the day of the other end, unless that lies before it ("11 to 1 pm")."""
    hour, last = int(match[1]), int(match[3])
    if not 1 <= hour <= 12 or not 1 <= last <= 12 or int(match[2] or 0) > 59:
        return None
    half = match[4].lower()
    if hour % 12 > last % 12:
        half = "a" if half == "p" else "p"
    return Clock(time(hour % 12 + (12 if half == "p" else 0), int(match[2] or 0)), timedelta(minutes=1))


def named_clock(match: re.Match[str], now: Now) -> Moment:
    """`midnight`, with which the day begins, and `noon`."""
    return Clock(time(0 if match[1].lower() == "midnight" else 12), timedelta(minutes=1))


def _hour(hour: int, half: str | None) -> int | None:
    if half is None:
        return hour
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half.lower().startswith("p") else 0)


Build = Callable[[re.Match[str], Now], Moment | None]
