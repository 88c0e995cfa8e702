"""What a sentence says about time: moments, spans of the calendar, windows, zones. Pure; the clock is an argument."""

from sentinel_rag.language.times.kinds import Now
from sentinel_rag.language.times.windows import TimeQuestion, TimeReading, WindowSlot
from sentinel_rag.language.times.zone_words import read_time_in_its_zone

__all__ = ["Now", "TimeQuestion", "TimeReading", "WindowSlot", "read_time_in_its_zone"]
