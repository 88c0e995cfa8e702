"""Text of KQL to tokens, each with its place.

The only regular expression over KQL text. What a word means is decided by the parser, which knows where it stands;
only literals with a form of their own (`1h`, `datetime(...)`) and names with a hyphen (`mv-expand`) are known here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final, NamedTuple

HYPHENATED: Final = """assert-schema execute-and-cache graph-mark-components graph-match graph-shortest-paths
    graph-to-table graph-where-edges graph-where-nodes macro-expand make-graph make-series mv-apply
    mv-expand parse-kv parse-where project-away project-by-names project-keep project-rename
    project-reorder project-smart sample-distinct top-hitters top-nested""".split()  # noqa: SIM905 - a word list reads better

NEGATED: Final = """between contains contains_cs endswith endswith_cs has has_cs has_all has_any hasprefix hasprefix_cs
    hassuffix hassuffix_cs in in~ startswith startswith_cs""".split()  # noqa: SIM905 - a word list reads better
"""Words of operators that may follow an exclamation mark."""

TYPED: Final = """bool boolean int int32 long int64 real double float decimal datetime date time timespan guid uuid
    uniqueid""".split()  # noqa: SIM905 - a word list reads better
"""Names of types that, before brackets, make a literal of what the brackets hold."""

TIME_UNITS: Final[dict[str, int]] = {
    **dict.fromkeys(("d", "day", "days"), 864_000_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 36_000_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 600_000_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 10_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisec", "millisecond", "milliseconds"), 10_000),
    **dict.fromkeys(("micro", "micros", "microsec", "microsecond", "microseconds"), 10),
    **dict.fromkeys(("nano", "nanos", "nanosec", "nanosecond", "nanoseconds"), 0),
    **dict.fromkeys(("tick", "ticks"), 1),
}
"""Unit of a timespan -> ticks of 100 ns. A nanosecond is less than one, and counted by hundreds."""


def _words(words: list[str] | dict[str, int]) -> str:
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
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is space, string, typed, span, real, long, name, mark, bad or end; `text` is as written."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Place:
    """Line and column, both counted from 1."""

    line: int
    column: int


class Source:
    """A text, its tokens without blanks and comments, and the place of an offset."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self._starts: list[int] | None = None

    def place(self, offset: int) -> Place:
        if self._starts is None:
            self._starts = [0, *(found.end() for found in re.finditer("\n", self.text))]
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position, length = 0, len(text)
    match = _TOKEN.match
    while position < length:
        one = match(text, position)
        if one is None:
            found.append(Token("bad", text[position], position, position + 1))
            position += 1
            continue
        kind = one.lastgroup or "bad"
        end = one.end()
        if kind != "space":
            found.append(Token(kind, one.group(), position, end))
        position = end
    found.append(Token("end", "", length, length))
    return found


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
    return _joined_surrogates(_ESCAPE.sub(_unescaped, body))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "ux" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code.isascii() and code.isdigit() and code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


def _joined_surrogates(text: str) -> str:
    """A character beyond 16 bits is written as two escapes; half of one is no character."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
