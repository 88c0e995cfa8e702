"""Arguments of a tool, checked against its schema at the handler so that a model can correct itself, and the window of
a call against a clock that is passed in.

The check covers the part of JSON Schema that `contracts.tool_schemas` uses and answers in sentences: the field, what
is wrong with it, what would have been taken. Null and the empty string count as "left out", as models send both.

`time_window` ends now; `start_time` and `end_time` are absolute and win. With none of them the window is open on both
sides. Everything is UTC and half open. A schema names six windows; any other length is taken as well, however it is
written, because a model or a person who asks for four hours must not get none or twenty-four.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import TimeWindow, format_time, invalid_argument, parse_time
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.contracts.tool_schemas import BOUNDS, CHOICES, LONGEST_TEXT, SEVERITIES, TIME_WINDOWS
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.sentinel.logs.kql_literals import datetime_literal
from sentinel_rag.sentinel.logs.log_analytics import parse_timespan

# Lengths of time as people, models and APIs write them: `4h`, `PT4H`, `P7D`, `last 4 hours`, `last_24h`, `two weeks`.
# One reader for the tools' `time_window` and for the options of the command line. What is nearly ISO 8601 is refused
# with what was meant: `P1H` would otherwise be a window that finds nothing. Months and years have no one length.
LONGEST = timedelta(days=36_500)

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_UNIT = r"(?P<unit>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?|fortnights?|months?|years?)"
_WORDS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "twelve": 12}
_PLAIN = re.compile(
    rf"(?:(?:in|over|during|for)\s+)?(?:the\s+)?(?:(?P<last>last|past|previous|trailing)[\s_-]*)?"
    rf"(?P<count>[0-9]{{1,7}}(?:\.[0-9]{{1,6}})?|{'|'.join(_WORDS)})?[\s_-]*{_UNIT}(?:\s+ago)?",
    re.IGNORECASE | re.ASCII,
)
_PART = r"([0-9]{1,7}(?:[.,][0-9]{1,6})?)"
_ISO = re.compile(rf"P(?:{_PART}W)?(?:{_PART}D)?(?:T(?:{_PART}H)?(?:{_PART}M)?(?:{_PART}S)?)?", re.IGNORECASE)
_CLOCK = re.compile(r"(?:([0-9]{1,5})\.)?([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_LIKE_ISO = re.compile(r"P[0-9TWDHMSY.,]*", re.IGNORECASE)
HOW_TO_WRITE = "Write it like 30m, 4h, 7d, PT4H or P7D."


def read_duration(text: str) -> timedelta:
    """The length that `text` means, more than nothing. Raises ValueError with a sentence for a person."""
    span = _length(text.strip())
    if not timedelta(0) < span <= LONGEST:
        raise ValueError(
            f"{_quoted(text.strip())} is no length of time that can be asked for; it may be a hundred years."
        )
    return span


def read_span(text: str) -> timedelta:
    """A length that may be nothing or less, in Kusto's form or in another. Raises ValueError or OverflowError."""
    try:
        return parse_timespan(text.strip())
    except ValueError:
        return _length(text.strip())


def _length(text: str) -> timedelta:
    if _LIKE_ISO.fullmatch(text):
        return _iso(text)
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return _plain(text)


def _iso(text: str) -> timedelta:
    match = _ISO.fullmatch(text)
    if match is None or text[-1:] in "PpTt":
        raise ValueError(f"{_quoted(text)} is not an ISO 8601 duration{_meant(text)}.")
    weeks, days, hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _meant(text: str) -> str:
    """What a slip in ISO 8601 was to say: hours, minutes and seconds stand behind a T, days and weeks before it."""
    upper = text.upper()
    if match := re.fullmatch(r"P([0-9]+(?:\.[0-9]+)?)([HS])", upper):
        return f": hours, minutes and seconds stand behind a T, so write PT{match[1]}{match[2]}"
    if match := re.fullmatch(r"P([0-9]+(?:\.[0-9]+)?)M", upper):
        return f": PT{match[1]}M is minutes, and months have no one length, so write them as days"
    if match := re.fullmatch(r"PT([0-9]+(?:\.[0-9]+)?)([DW])", upper):
        return f": days and weeks stand before the T, so write P{match[1]}{match[2]}"
    if re.fullmatch(r"P[0-9]+Y.*", upper):
        return ": years have no one length, so write them as days, such as P365D"
    if match := re.fullmatch(r"P([0-9]+)D([0-9]+)H", upper):
        return f": hours stand behind a T, so write P{match[1]}DT{match[2]}H"
    return ""


def _plain(text: str) -> timedelta:
    match = _PLAIN.fullmatch(text)
    if match is None or not (match["count"] or match["last"]):
        raise ValueError(f"{_quoted(text)} is no length of time.")
    unit = match["unit"].lower()
    if unit.startswith(("month", "year")):
        days = "30d" if unit.startswith("month") else "365d"
        raise ValueError(f"{_quoted(text)} has no one length: write it in days, such as {days}.")
    said = (match["count"] or "1").lower()
    count = float(_WORDS.get(said, 0) or said)
    seconds = 1_209_600.0 if unit.startswith("fortnight") else _SECONDS[unit[0]]
    return timedelta(seconds=count * seconds)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")


_LIKE_A_DURATION = re.compile(r"P[0-9TWDHMSY.]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChosenWindow:
    """A window with the sentences that a reader should know about how it was chosen."""

    window: TimeWindow
    notes: tuple[CodedNote, ...] = ()


def window_from(arguments: Mapping[str, Any], now: datetime) -> ChosenWindow:
    """Raises QueryFailedError INVALID_ARGUMENT for a time that does not parse or a window without length."""
    start = _time(arguments, "start_time")
    end = _time(arguments, "end_time")
    name = arguments.get("time_window")
    if start is None and end is None:
        return ChosenWindow(TimeWindow() if name is None else TimeWindow(_back(now, length_of(name)), now))
    if start is not None and end is not None and start >= end:
        raise invalid_argument(
            "end_time",
            f"The window ends ({format_time(end)}) at or before its start ({format_time(start)}).",
            next_step="Give an end_time after start_time.",
        )
    notes = (note("absolute_window_used", time_window=name),) if name else ()
    return ChosenWindow(TimeWindow(start, end), notes)


def read_time_window(text: str) -> str:
    """A `time_window` in the form that it is kept in: a name of the schema where there is one for its length, else the
    text itself. Raises QueryFailedError INVALID_ARGUMENT."""
    span = length_of(text)
    return next((name for name, hours in TIME_WINDOWS.items() if span == timedelta(hours=hours)), text)


def length_of(time_window: str) -> timedelta:
    """The length of a `time_window`. Raises QueryFailedError INVALID_ARGUMENT for a text that is none."""
    try:
        return read_duration(time_window)
    except ValueError as error:
        raise invalid_argument(
            "time_window",
            f"time_window cannot be {time_window[:60]!r}: {error}",
            allowed=tuple(TIME_WINDOWS),
            next_step=f"{HOW_TO_WRITE} For a window that does not end now give start_time and end_time.",
        ) from None


def _back(now: datetime, span: timedelta) -> datetime:
    try:
        return now - span
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)


def _time(arguments: Mapping[str, Any], field: str) -> datetime | None:
    text = arguments.get(field)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        pass
    message = f"{field} {text!r} is not an ISO 8601 time with a zone."
    if _LIKE_A_DURATION.fullmatch(text):
        try:
            read_duration(text)
            message = f"{field} {text!r} is a duration, not a time; time_window takes durations."
        except ValueError as error:
            message = f"{field} {text!r} is a duration, not a time, and a wrong one: {error}"
    raise invalid_argument(field, message, next_step="Write it like 2024-07-02T09:45:00Z.")


def within(column: str, window: TimeWindow) -> str:
    """A KQL predicate, `true` for an open window. `column` is a name of our own text, never a value."""
    bounds = []
    if window.start is not None:
        bounds.append(f"{column} >= {datetime_literal(window.start)}")
    if window.end is not None:
        bounds.append(f"{column} < {datetime_literal(window.end)}")
    return " and ".join(bounds) or "true"


def since_before(window: TimeWindow, by: timedelta) -> TimeWindow:
    """From `by` before the start of `window` on, without an end; all that there is if that lies before the year 1."""
    try:
        return TimeWindow(None if window.start is None else window.start - by)
    except OverflowError:
        return TimeWindow()


def previous_window(window: TimeWindow) -> TimeWindow | None:
    """The window of the same length that ends where this one starts; None if a side is open or it would begin before
    the year 1."""
    if window.start is None or window.end is None:
        return None
    try:
        return TimeWindow(window.start - (window.end - window.start), window.start)
    except OverflowError:
        return None


_HALF_PAIR = re.compile("[\ud800-\udfff]")
_TYPE_NAMES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "object": "an object",
    "boolean": "true or false",
}
_AS_WRITTEN = frozenset({"kql"})
"""Texts whose blanks at the ends stay: places in errors count from the first character."""


def checked_arguments(tool: ToolSchema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments, left-out ones absent or at their default. Raises QueryFailedError INVALID_ARGUMENT."""
    schemas = tool.parameter_schemas()
    for name in arguments:
        if name not in schemas:
            raise _unknown_argument(tool.name, name, tuple(schemas))
    checked: dict[str, Any] = {}
    for name, schema in schemas.items():
        value = arguments.get(name)
        if isinstance(value, str) and (name not in _AS_WRITTEN or not value.strip()):
            value = value.strip()
        if value is None or value == "":
            if name in tool.required():
                raise invalid_argument(name, f"{tool.name} needs {name}: {_description(schema)}")
            if "default" in schema:
                checked[name] = schema["default"]
            continue
        checked[name] = _checked_value(name, schema, value)
    return checked


def _checked_value(name: str, schema: JsonObject, value: Any) -> Any:
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one kind of number
    if not _has_type(kind, value):
        raise invalid_argument(
            name,
            f"{name} must be {_TYPE_NAMES.get(str(kind), kind)}, not {_shown(value)}.",
            next_step="Correct the type.",
        )
    if isinstance(value, str) and _HALF_PAIR.search(value):
        raise invalid_argument(name, f"{name} holds half of a surrogate pair, which no query can carry.")
    allowed = schema.get("enum", CHOICES.get(name))
    if name == "time_window":
        return read_time_window(value)
    if isinstance(allowed, list | tuple) and value not in allowed:
        raise _not_allowed(name, value, tuple(str(item) for item in allowed))
    if isinstance(value, int) and not isinstance(value, bool):
        least, most = BOUNDS[name]
        most = int(str(schema.get("maximum", most)))
        if not least <= value <= most:
            word, bound = ("least", least) if value < least else ("most", most)
            raise invalid_argument(
                name, f"{name} must be at {word} {bound}, not {value}.", next_step=f"Use {least} to {most}."
            )
    longest = int(str(schema.get("maxLength", LONGEST_TEXT)))
    if isinstance(value, str) and len(value) > longest:
        raise invalid_argument(name, f"{name} may be {longest} characters long, not {len(value)}.")
    return value


def _has_type(kind: Any, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, Mapping)
        case _:
            return True


def _not_allowed(name: str, value: str, allowed: tuple[str, ...]) -> Exception:
    return invalid_argument(
        name,
        f"{name} cannot be {_shown(value)}.{nearest_hint(value, allowed)}",
        allowed=allowed,
    )


def _unknown_argument(tool: str, name: str, known: tuple[str, ...]) -> Exception:
    takes = f"It takes: {', '.join(known)}." if known else "It takes no arguments."
    return invalid_argument(
        name,
        f"{tool} has no argument {name!r}. {takes}{nearest_hint(name, known)}",
        allowed=known,
        next_step="Use the names that the tool declares.",
    )


def nearest_hint(name: str, known: tuple[str, ...]) -> str:
    """` Did you mean 'limit'?`, or nothing when no known name is near."""
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def severities_from(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The severities that `severity` and `min_severity` leave, lowest first; all four when neither is given.

    Raises QueryFailedError INVALID_ARGUMENT if the exact severity lies below the threshold.
    """
    exact, threshold = arguments.get("severity"), arguments.get("min_severity")
    kept = SEVERITIES[SEVERITIES.index(threshold) :] if threshold else SEVERITIES
    if exact is None:
        return kept
    if exact not in kept:
        raise invalid_argument(
            "severity",
            f"severity {exact} and min_severity {threshold} exclude each other.",
            allowed=kept,
            next_step="Give one of the two.",
        )
    return (exact,)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _description(schema: JsonObject) -> str:
    text = str(schema.get("description", ""))
    return text[:1].lower() + text[1:]
