"""Times that move from one asking of a question to the next, taken out of its text so that its translation is reused.

`Time >= datetime(2024-07-02T09:45:00Z)` becomes a comparison with a declared parameter, and the time its value. Only a
plain column compared with a whole time stands for this, because there a literal and a parameter mean the same to
duckdb-kql; every other literal stays in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sentinel_rag.workspace.kql.translation import Translation

_NAME = "sentinel_time_"
_QUOTED_OR_COMMENT = r"""@"(?:[^"]|"")*"|@'(?:[^']|'')*'|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|//[^\n]*"""
_MOVING = re.compile(
    rf"{_QUOTED_OR_COMMENT}|"
    r"(?P<before>(?<![\w.\])])[A-Za-z_]\w*\s*(?:>=|<=|<|>)\s*)"
    r"datetime\((?P<time>[1-9]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6}0?)?)Z\)"
    r"(?=\s*(?:and\b|or\b|[)|,;]|\Z))"
)
_OTHER_QUOTES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class TimedQuery:
    """A query without its moving times, and these in the order of their parameters."""

    kql: str
    times: tuple[datetime, ...]

    def timed(self, translation: Translation) -> Translation:
        """The translation of `kql` with the times as values."""
        values: Mapping[str, datetime] = {f"kqlp{place}": time for place, time in enumerate(self.times)}
        used = {slot: time for slot, time in values.items() if slot in translation.slots}
        return replace(translation, parameters={**translation.parameters, **used})


def without_moving_times(kql: str) -> TimedQuery | None:
    """None for a query in which no time moves, or whose quotes are of a kind that is not looked through here."""
    if "datetime(" not in kql or "declare" in kql or _NAME in kql or any(quotes in kql for quotes in _OTHER_QUOTES):
        return None
    times: list[datetime] = []

    def named(found: re.Match[str]) -> str:
        if found["time"] is None:
            return found[0]
        try:
            moment = datetime.fromisoformat(found["time"][:26])
        except ValueError:  # the thirtieth of February: the translation says so
            return found[0]
        times.append(moment)
        return f"{found['before']}{_NAME}{len(times) - 1}"

    text = _MOVING.sub(named, kql)
    if not times:
        return None
    declared = ", ".join(f"{_NAME}{place}: datetime = datetime(1970-01-01)" for place in range(len(times)))
    return TimedQuery(f"declare query_parameters({declared});\n{text}", tuple(times))
