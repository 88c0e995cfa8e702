"""Text of KQL to tokens, each with its place, and what literals hold.

The only regular expression over KQL text. What a word means is decided by the parser, which knows where it stands;
only literals with a form of their own (`1h`, `datetime(...)`) and names with a hyphen (`mv-expand`) are known here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple
from uuid import UUID

from kql_duckdb.syntax.grammar import HYPHENATED
from kql_duckdb.time_texts import TIME_UNITS, parse_datetime, span_ticks

NEGATED: Final = """between contains contains_cs endswith endswith_cs has has_cs has_all has_any hasprefix hasprefix_cs
    hassuffix hassuffix_cs in in~ startswith startswith_cs""".split()  # noqa: SIM905 - a word list reads better
"""Words of operators that may follow an exclamation mark."""

TYPED: Final = """bool boolean int int32 long int64 real double float decimal datetime date time timespan guid uuid
    uniqueid""".split()  # noqa: SIM905 - a word list reads better
"""Names of types that, before brackets, make a literal of what the brackets hold."""


def _words(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_TOKEN: Final = re.compile(
    rf"""
      (?P<space>   (?:[\s\ufeff\u200b]+ | //[^\n]*)+ )
    | (?P<string>  [hH]?(?: @"(?:[^"]|"")*" | @'(?:[^']|'')*' | ```.*?``` | ~~~.*?~~~
                          | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) )
    | (?P<typed>   (?:{_words(TYPED)}) [ \t]* \( (?: [^()"']* | [ \t]*"[^"\n]*"[ \t]* | [ \t]*'[^'\n]*'[ \t]* ) \) )
    | (?P<span>    \d+(?:\.\d+)?(?:{_words(TIME_UNITS)})(?![\w]) )
    | (?P<real>    \d+\.(?:\d+(?:[eE][+-]?\d+)?(?!\w) | (?![.\w])) | \d+[eE][+-]?\d+(?!\w) )
    | (?P<long>    0[xX][0-9a-fA-F]+(?!\w) | \d+(?!\w) )
    | (?P<name>    (?:{_words(HYPHENATED)})(?![\w-]) | in~ | \$?[^\W\d]\w* | \d+\w+ )
    | (?P<mark>    !(?:{_words(NEGATED)})(?!\w) | == | != | <> | =~ | !~ | <= | >= | => | \.\.
                   | [][|(){{}},;:.+\-*/%=<>?@\#&~^] )
    | (?P<bad>     . )
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is space, string, typed, span, real, long, name, mark, bad or end; `text` is as written."""

    kind: str
    text: str
    start: int
    end: int


class Source:
    """A text, its tokens without blanks and comments, and the place of an offset."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = ((one.lastgroup or "", one) for one in _TOKEN.finditer(text))
        self.tokens = [Token(kind, one.group(), one.start(), one.end()) for kind, one in found if kind != "space"]
        self.tokens.append(Token("end", "", len(text), len(text)))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, counted from 1."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)


_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{1,4}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)


def string_value(text: str) -> str:
    """What a string literal holds, given as it is written: with quotes, and with `h` (hidden) and `@` before them."""
    if text[0] in "hH":
        text = text[1:]
    if text[:3] in ("```", "~~~"):
        return text[3:-3]
    if text[0] == "@":
        return text[2:-1].replace(text[1] * 2, text[1])
    body = text[1:-1]
    if "\\" not in body:
        return body
    text = _ESCAPE.sub(_unescaped, body)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    # A character beyond 16 bits is written as two escapes; half of one is no character.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "ux" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


_NAN: Final = float("nan")
"""The one NaN of every tree, so that equal trees compare as equal."""
_TICKS_PER_DAY: Final = 864_000_000_000
_QUOTED_NULLS: Final = ("datetime", "timespan", "guid", "decimal")


def typed_value(kind: str, text: str) -> Any:
    """The value of `kind(text)` as a tree keeps it. Raises ValueError if it is none."""
    bare = text.strip()
    inner = bare
    if kind != "bool" and len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in "'\"":
        inner = bare[1:-1].strip()
    if inner == "null" and (bare == inner or kind in _QUOTED_NULLS):
        return None
    value = _READERS[kind](inner)
    if value is None:
        raise ValueError(text)
    return value


def _whole(bits: int) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        text = text.replace(" ", "")
        value = int(text, 16 if "0x" in text.lower() else 10)
        return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None

    return read


def _real(text: str) -> float:
    value = float(text)
    return _NAN if math.isnan(value) else value


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    held = value.is_finite() and value.adjusted() <= 27 and -int(value.as_tuple().exponent) <= 10
    return value if held else None


def _timespan(text: str) -> int | None:
    body = text.lstrip("+-").strip()
    ticks = int(body) * _TICKS_PER_DAY if body.isdigit() else span_ticks(body)
    return -ticks if ticks and text.startswith("-") else ticks


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "bool": lambda text: {"true": True, "1": True, "false": False, "0": False}.get(text.lower()),
    "int": _whole(32), "long": _whole(64), "real": _real, "decimal": _decimal, "guid": UUID,
    "datetime": parse_datetime, "timespan": _timespan,
}  # fmt: skip
"""Type of a literal -> its value; what none is gives None or raises ValueError."""
