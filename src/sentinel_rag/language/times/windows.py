"""A time window as it was asked for, a question about one, and what a sentence says about time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel_rag.contracts.query_results import format_time


@dataclass(frozen=True, slots=True)
class WindowSlot:
    """A window as asked. `relative` is the tools' own name for it; a side that is None is open."""

    start: datetime | None = None
    end: datetime | None = None
    relative: str | None = None

    def arguments(self) -> dict[str, str]:
        """The window as arguments of a tool."""
        if self.relative is not None:
            return {"time_window": self.relative}
        sides = {"start_time": self.start, "end_time": self.end}
        return {name: format_time(side) for name, side in sides.items() if side is not None}


@dataclass(frozen=True, slots=True)
class TimeQuestion:
    """Why the time cannot be read, in one sentence, and texts that could stand in the place of `said`."""

    sentence: str
    said: str = ""
    replacements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeReading:
    """What a sentence says about time. `around` is the half width asked for around a thing that has no time yet;
    `rest` is the sentence with the time blanked out, of the same length; `other` is a second time, as it was said and
    as a window."""

    rest: str
    window: WindowSlot | None = None
    question: TimeQuestion | None = None
    around: timedelta | None = None
    other: str = ""
    other_window: WindowSlot | None = None
    later: WindowSlot | None = None
    """The second of two whole periods that one window joins: "june and july" are two, where they are compared."""
