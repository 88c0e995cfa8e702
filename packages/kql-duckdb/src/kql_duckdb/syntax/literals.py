"""What typed literals hold: `datetime(2024-03-01 10:00)`, `time(1.02:03:04)`, `real(nan)`, and numbers with a unit.

Used by the parser, which keeps datetimes, decimals and guids as their text, and by the binder, which needs the values.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Final
from uuid import UUID

from kql_duckdb.syntax.lexer import TIME_UNITS
from kql_duckdb.time_texts import parse_datetime

INFINITY: Final = float("inf")
NAN: Final = float("nan")
"""The one NaN of every tree, so that equal trees compare as equal."""

TICKS_PER_DAY: Final = 864_000_000_000
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")
_CLOCK_SPAN = re.compile(r"(?:(\d+)\.|(\d+):(?=\d+:\d+:\d))?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,7}))?)?")


def span_ticks(text: str) -> int:
    """The ticks of `1.5h`. Raises ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None or found[2] not in TIME_UNITS:
        raise ValueError(text)
    unit = TIME_UNITS[found[2]]
    return int(Decimal(found[1]) * unit) if unit else int(Decimal(found[1]) / 100)


def timespan_ticks(text: str) -> int | None:
    """The ticks of what stands in `time(...)`, None for null. Raises ValueError."""
    text = _unquoted(text)
    if text == "null":
        return None
    negative = text.startswith("-")
    body = text.lstrip("+-").strip()
    ticks = _positive_ticks(body)
    return -ticks if negative else ticks


def _positive_ticks(text: str) -> int:
    if text.isdigit():
        return int(text) * TICKS_PER_DAY
    clock = _CLOCK_SPAN.fullmatch(text)
    if clock is None:
        return span_ticks(text)
    days, days_before_colon, hours, minutes, seconds, fraction = clock.groups()
    whole = int(days or days_before_colon or 0) * 86_400 + int(hours) * 3_600 + int(minutes) * 60 + int(seconds or 0)
    return whole * 10_000_000 + int((fraction or "0").ljust(7, "0"))


def datetime_value(text: str) -> datetime | None:
    """The moment of what stands in `datetime(...)`, in UTC without zone; None for null. Raises ValueError."""
    text = _unquoted(text)
    if text == "null":
        return None
    moment = parse_datetime(text)
    if moment is None:
        raise ValueError(text)
    return moment


def typed_value(kind: str, text: str) -> bool | int | float | str | None:
    """The value of `kind(text)` as a tree keeps it. Raises ValueError if it is none."""
    bare = text.strip()
    if kind in ("datetime", "guid", "decimal") or bare != "null":
        return _READERS[kind](bare)
    return None


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].strip()
    return text


def _bool(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    lowered = text.lower()
    if lowered in words:
        return words[lowered]
    raise ValueError(text)


def _whole(text: str) -> int:
    text = _unquoted(text).replace(" ", "")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    return sign * (int(digits, 16) if digits[:2].lower() == "0x" else int(digits))


def _int(text: str) -> int:
    value = _whole(text)
    if not -(2**31) <= value < 2**31:
        raise ValueError(text)
    return value


def _long(text: str) -> int:
    value = _whole(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def _real(text: str) -> float:
    text = _unquoted(text)
    special = {"inf": INFINITY, "+inf": INFINITY, "-inf": -INFINITY, "nan": NAN}
    return special[text.lower()] if text.lower() in special else float(text)


def _decimal(text: str) -> str | None:
    text = _unquoted(text)
    if text == "null":
        return None
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not value.is_finite() or value.adjusted() > 27 or -int(value.as_tuple().exponent) > 10:
        raise ValueError(text)
    return f"{value:f}"


def _guid(text: str) -> str | None:
    text = _unquoted(text)
    return None if text == "null" else str(UUID(text))


def _datetime(text: str) -> str | None:
    return None if datetime_value(text) is None else _unquoted(text)


_READERS = {"bool": _bool, "int": _int, "long": _long, "real": _real, "decimal": _decimal, "guid": _guid,
            "datetime": _datetime, "timespan": timespan_ticks}  # fmt: skip
