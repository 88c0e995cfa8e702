"""KQL text from typed values: the only way in which a value enters a query.

Each function returns one complete literal that reads back as the value it was given, whatever quotes, backslashes,
newlines or Unicode it holds, so that no value can end its literal and become an operator. There is no function for
identifiers on purpose: names of tables and columns are our own text, never a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

KqlScalar = str | bool | int | float | datetime | timedelta

_NAMED_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Backslash and quote, and whatever Kusto's lexer takes for a line end, which would leave the literal open.
_ESCAPED = re.compile('[\\\\"\n\r\t\u2028\u2029]')
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
"""What a `long` holds."""
MOST_IDS_IN_A_QUERY = 1000
"""Of about 40 characters each; the text of a query is bounded."""


def string_literal(text: str) -> str:
    """A double-quoted string. Raises ValueError for a lone surrogate, which no query can carry."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the text holds a lone surrogate, which has no UTF-8 form") from error
    escaped = _ESCAPED.sub(lambda match: _NAMED_ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text)
    return f'"{escaped}"'


def datetime_literal(moment: datetime) -> str:
    """`datetime(2024-07-02T09:45:00.0000000Z)`. Raises ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot go into a query: give it one")
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return f"datetime({utc.isoformat(timespec='microseconds')}0Z)"


def timespan_literal(span: timedelta) -> str:
    """`time(1.02:03:04.5000000)`, with a leading minus for a negative span."""
    sign = "-" if span < timedelta(0) else ""
    span = abs(span)
    hours, rest = divmod(span.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"time({sign}{span.days}.{hours:02d}:{minutes:02d}:{seconds:02d}.{span.microseconds:06d}0)"


def long_literal(number: int) -> str:
    """`long(-5)`. Raises ValueError outside 64 bits."""
    if not LONG_MIN <= number <= LONG_MAX:
        raise ValueError(f"{number} does not fit a 64-bit whole number")
    return f"long({number})"


def real_literal(number: float) -> str:
    """`real(1.5)`, also for NaN and the infinities."""
    if math.isnan(number):
        return "real(nan)"
    if math.isinf(number):
        return "real(+inf)" if number > 0 else "real(-inf)"
    return f"real({number!r})"


def bool_literal(value: bool) -> str:
    return "true" if value else "false"


def literal(value: KqlScalar) -> str:
    """The literal for a scalar, chosen by its Python type. Raises ValueError as the function for that type does."""
    if isinstance(value, str):
        return string_literal(value)
    if isinstance(value, bool):
        return bool_literal(value)
    if isinstance(value, int):
        return long_literal(value)
    if isinstance(value, float):
        return real_literal(value)
    if isinstance(value, datetime):
        return datetime_literal(value)
    return timespan_literal(value)


def list_literal(values: Iterable[KqlScalar]) -> str:
    """`("a", "b")`, the right side of `in`; an empty list is `(dynamic([]))`, which matches nothing."""
    items = ", ".join(literal(value) for value in values)
    return f"({items})" if items else "(dynamic([]))"
