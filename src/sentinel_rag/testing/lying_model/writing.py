"""How models write times, days, counts and names, each in many styles, true and with a fault beside it.

The random generator is shared by all parts of one lying model, so that its seed decides every word.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo

from sentinel_rag.contracts.query_results import parse_time

_NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)


@dataclass(slots=True)
class Slot:
    """A place of a wording: its true words, and false words by fault kind."""

    true: str
    false: dict[str, str] = field(default_factory=dict)


class Writing:
    """Writes values for a session in `zone`."""

    def __init__(self, zone: tzinfo, source: random.Random) -> None:
        self.zone = zone
        self.random = source

    def time(self, text: str) -> str:
        """A time of a result in a random style."""
        return self.written(parse_time(text))

    def written(self, moment: datetime, style: int | None = None) -> str:
        """A moment in the style of this number, or a random one."""
        zone = self.zone
        utc, local = moment.astimezone(UTC), moment.astimezone(zone)
        name = local.strftime("%Z")
        styles: tuple[Callable[[], str], ...] = (
            lambda: utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
            lambda: utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            lambda: f"on {utc.day} {utc:%B %Y} at {utc:%H:%M} UTC",
            lambda: utc.strftime("%Y-%m-%d %H:%M UTC"),
            lambda: f"on {utc:%B} {utc.day}, {utc.year} at {utc.strftime('%I:%M %p').lstrip('0')} UTC",
            lambda: f"on {local.day} {local:%b %Y}, {local:%H:%M} {name}",
            lambda: f"at {utc:%H:%M:%S} UTC on {utc.day} {utc:%B %Y}",
            lambda: f"on {utc:%A}, {utc.day} {utc:%B}, at {utc:%H:%M} UTC",
            lambda: f"{utc:%Y-%m-%d %H:%M:%S} UTC ({local:%Y-%m-%d %H:%M:%S} {name})",
            lambda: f"at {local:%H:%M} on the {_ordinal(local.day)} of {local:%B}",
        )
        return styles[self.random.randrange(len(styles)) if style is None else style]()

    def day(self, text: str) -> str:
        """A day, in UTC."""
        moment = parse_time(text).astimezone(UTC)
        return self.random.choice(
            (
                f"{moment.day} {moment:%B %Y}",
                f"{moment:%Y-%m-%d}",
                f"{moment:%B} {moment.day}, {moment.year}",
                f"{moment:%A}, {moment.day} {moment:%B %Y}",
            )
        )

    def count(self, value: int, noun: str = "") -> str:
        """A number with its noun."""
        plural = noun if value == 1 else f"{noun}s"
        text = self.number(value)
        return f"{text} {plural}" if noun else text

    def number(self, value: int) -> str:
        """A number in digits or in words."""
        if value < len(_NUMBER_WORDS) and self.random.random() < 0.4:
            return _NUMBER_WORDS[value]
        return f"{value:,}"

    def name(self, text: str) -> str:
        """A name in quotation marks, in bold or as it is."""
        text = text.replace("\u200b", "")
        return self.random.choice((f"“{text}”", f'"{text}"', f"**{text}**", text))

    def count_slot(self, value: int, noun: str = "", known: Sequence[int] = ()) -> Slot:
        """A count, and one that is off by one and none of `known`."""
        other = self.random.choice(
            [each for each in (value - 1, value + 1) if each > 0 and each not in known] or [value + 1]
        )
        return Slot(self.count(value, noun), {"off_by_one": self.count(other, noun)})

    def time_slot(self, text: str, others: Sequence[str]) -> Slot:
        """A time, and one that is shifted and none of `others`."""
        moment = parse_time(text)
        shifts = [timedelta(hours=hours) for hours in (1, -1, 2, 3, -5, 24, -24)] + [
            timedelta(minutes=minutes) for minutes in (7, -13, 30)
        ]
        taken = {parse_time(other).astimezone(UTC).replace(second=0, microsecond=0) for other in others if other}
        self.random.shuffle(shifts)
        style = self.random.randrange(10)
        for shift in shifts:
            wrong = moment + shift
            apart = all(abs(wrong.replace(second=0, microsecond=0) - each) >= timedelta(minutes=2) for each in taken)
            if apart:
                return Slot(self.written(moment, style), {"shifted_time": self.written(wrong, style)})
        return Slot(self.written(moment, style))

    def day_slot(self, text: str, others: Sequence[str]) -> Slot:
        """A day, and another one that no time of `others` falls on."""
        taken = {parse_time(other).astimezone(zone).date() for other in others if other for zone in (UTC, self.zone)}
        for shift in (1, -1, 2, -2, 9, -11, 40):
            wrong = parse_time(text) + timedelta(days=shift)
            if wrong.astimezone(UTC).date() not in taken:
                state = self.random.getstate()
                true = self.day(text)
                self.random.setstate(state)
                return Slot(true, {"shifted_time": self.day(wrong.isoformat())})
        return Slot(self.day(text))

    def percent_slot(self, part: int, whole: int) -> Slot:
        """A share, and another one."""
        true = round(100 * part / whole)
        wrong = true + self.random.choice((7, 12, -8)) if 15 < true < 85 else (true + 9) % 100
        return Slot(f"{true}%", {"off_by_one": f"{wrong}%"})


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 <= day % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def minutes_in_words(minutes: int) -> str:
    if minutes < 60:
        return f"{minutes} minutes"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} hour{'' if hours == 1 else 's'}" + (f" {rest} minutes" if rest else "")
    days, hours = divmod(hours, 24)
    return f"{days} day{'' if days == 1 else 's'}" + (f" {hours} hours" if hours else "")
