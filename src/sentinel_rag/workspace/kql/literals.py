"""Literals of KQL that duckdb-kql misreads: escapes and prefixes of strings, decimals, and times that are none.

Source: the Kusto pages "The string data type", "The decimal data type" and "The datetime data type". Used by `dialect`.
"""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module reads that library's query form


@dataclasses.dataclass(frozen=True)
class TypeName(ir.Expr):
    """The type in `typeof(long)`, the last argument of `extract`."""

    name: str


_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{1,4}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_FENCES = ("```", "~~~")


def string_value(text: str) -> str:
    """What one string literal holds, given as it is written: with quotes, and with `h` (hidden) and `@` before them."""
    if text[:1] in ("h", "H"):
        text = text[1:]
    for fence in _FENCES:
        if text.startswith(fence) and text.endswith(fence) and len(text) >= 2 * len(fence):
            return text[len(fence) : -len(fence)]
    verbatim = text.startswith("@")
    text = text.removeprefix("@")
    quote = text[:1]
    if quote not in ("'", '"') or len(text) < 2 or text[-1] != quote:
        return text
    body = text[1:-1]
    if verbatim:
        return body.replace(quote * 2, quote)
    return _joined_surrogates(_ESCAPE.sub(_unescaped, body))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "ux" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code.isdigit():
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def _joined_surrogates(text: str) -> str:
    """A character beyond 16 bits is written as two escapes; half of one is no character."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decimal_text(text: str) -> str:
    """The plain digits of a decimal literal, which a double would not keep. Raises ValueError for anything else."""
    value = Decimal(text)
    if not value.is_finite() or value.adjusted() > 27 or -int(value.as_tuple().exponent) > 10:
        raise ValueError(text)
    return f"{value:f}"


_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_DAY_NAME = r"(?:[A-Za-z]{3,9},?\s+)?"
_MONTH_NAME = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATETIME_TEXTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}(?:[T ]+{_CLOCK}\s*(?:Z|UTC|GMT|[+-]\d{{2}}(?::?\d{{2}})?)?)?",
        rf"\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{4}}(?: {_CLOCK})?",
        rf"{_DAY_NAME}\d{{1,2}}[ -]{_MONTH_NAME}[ -]\d{{2,4}}(?: {_CLOCK}(?: GMT)?)?",
        rf"{_MONTH_NAME} \d{{1,2}}, \d{{4}}",
        r"\d{8}",
    )
)


def datetime_text(text: str) -> str:
    """Four digits alone are a year."""
    return f"{text.strip()}-01-01" if re.fullmatch(r"\s*(?:19|20)\d{2}\s*", text) else text


def is_datetime_text(text: str) -> bool:
    """Whether a datetime literal is written in a form that is read; any other would silently be null."""
    return any(pattern.fullmatch(text.strip()) for pattern in _DATETIME_TEXTS)


_DATES = ("%d %b %y", "%a, %d %b %y", "%d %b %Y", "%a, %d %b %Y", "%d-%b-%y", "%A, %d-%b-%y")
_MORE_FORMATS = (
    *(f"{date} {clock}{zone}" for date in _DATES for clock in ("%H:%M:%S", "%H:%M") for zone in ("", " GMT")),
    *(f"%Y-%m-%d{gap}{clock} GMT" for gap in (" ", "T") for clock in ("%H:%M:%S", "%H:%M")),
    "%m/%d/%Y %H:%M",
)


def with_more_formats(template: str) -> str:
    """duckdb-kql's SQL for `todatetime` with RFC 822 and RFC 850 before its list, whose %Y takes 14 for a year.

    What is still not read is read again without the space before its offset, as in `2024-01-01 00:00 +02:00`.
    """
    more = ", ".join(f"'{text}'" for text in _MORE_FORMATS)
    wider = template.replace("['%m-%d-%Y'", f"[{more}, '%m-%d-%Y'")
    closer = r"regexp_replace(CAST({0} AS VARCHAR), '\s+([+-][0-9]{{2}}:?[0-9]{{2}})\s*$', '\1')"
    return f"coalesce({wider}, TRY_CAST({closer} AS TIMESTAMPTZ) AT TIME ZONE 'UTC')"


def literal_sql(literal: Any) -> str | None:
    """SQL for the kinds that duckdb-kql writes otherwise; None for the rest."""
    if literal.kind == "dynamic" and literal.value is None:
        return "CAST(NULL AS JSON)"
    if literal.kind == "decimal" and literal.value is not None:
        return f"CAST('{literal.value}' AS DECIMAL(38, 10))"
    return None
