"""Texts that queries are of: KQL from typed values, the only way in which a value enters a query, and names near
to a given one.

Each function returns one complete literal that reads back as the value it was given, whatever quotes, backslashes,
newlines or Unicode it holds, so that no value can end its literal and become an operator. There is no function for
identifiers on purpose: names of tables and columns are our own text, never a value.

Asked only where the name as it was given finds no row. A name counts as like it if it holds every word of it, letters
and digits alone compared ("obrien" in "siobhan.o'brien@..."). Exactly one such name is used and said; of several, or
where a given domain is not that of the name, none is: to read nothing of them is no sign that they did nothing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.notes import CodedNote, note

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


MOST_NAMES = 5
"""Names that are told of those that are like the given one."""
MOST_READ = 500
_SHORTEST_USED = 3
"""Letters and digits of a part that may stand for the one name that holds it."""
_PLAIN_NAME = re.compile(r"[\w.@'$+\\-]{1,100}")
"""What reads as a name and no sentence: an attacker may have written it, and what a note says is ours."""
_OWNER_NAME = re.compile(r"[\w.@'-]{1,60}(?: [\w.'-]{1,40}){0,3}")
"""Who owns an incident is chosen in the directory, by the words of their name."""
_WHOLE = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}|[0-9a-fA-F]*:[0-9a-fA-F:.]+|[0-9a-fA-F-]{32,}")
"""Addresses, hashes and GUIDs: another one that holds it is another thing."""
_SIGNS = r"[^\p{L}\p{N}]+"


class NameCode(StrEnum):
    """What became of a name that found no row."""

    COMPLETED = "name_completed"
    UNCLEAR = "name_unclear"
    KNOWN = "name_known"
    UNKNOWN = "name_unknown"


@dataclass(frozen=True, slots=True)
class NameReading:
    """What a given name stands for. `names` are those like it; `what` is what it names ("user")."""

    what: str
    given: str
    code: NameCode
    names: tuple[str, ...] = ()

    @property
    def used(self) -> str | None:
        """The full name to read in its place."""
        return self.names[0] if self.code is NameCode.COMPLETED else None

    def note(self, where: str) -> CodedNote:
        """What a reader is told; `where` is what was looked through."""
        told: dict[NameCode, dict[str, JsonValue]] = {
            NameCode.COMPLETED: {"name": self.used},
            NameCode.UNCLEAR: {"names": self.names},
        }
        return note(self.code, what=self.what, given=self.given, **told.get(self.code, {"where": where}))


def readings_summary(*readings: NameReading | None) -> dict[str, JsonValue]:
    """For a result's summary: what became of each name, and the names that it speaks of; nothing for none."""
    told = (each for each in readings if each is not None)
    names: dict[str, JsonValue] = {
        each.what: {"code": each.code.value, "given": each.given, "like": list(each.names)} for each in told
    }
    return {"names": names} if names else {}


def read_name(what: str, given: str, names: Iterable[str]) -> NameReading:
    """What `given` stands for among `names`."""
    form = _OWNER_NAME if what == "owner" else _PLAIN_NAME
    known = [name for name in dict.fromkeys(names) if form.fullmatch(name)]
    exact = [name for name in known if given.casefold() in (name.casefold(), short_name(name).casefold())]
    if exact:
        return NameReading(what, given, NameCode.KNOWN, tuple(exact[:MOST_NAMES]))
    wanted = pieces(given)
    like = [] if is_whole(given) else _distinct(name for name in known if holds_all(name, wanted))
    if len(like) == 1 and sum(map(len, wanted)) >= _SHORTEST_USED and "@" not in given and _ends_well(like[0], wanted):
        return NameReading(what, given, NameCode.COMPLETED, (like[0],))
    if is_whole(given):
        return NameReading(what, given, NameCode.UNKNOWN)
    # Another domain may be another person or machine: such a name is told and never used.
    like = like or _distinct(name for name in known if holds_all(short_name(name), pieces(short_name(given))))
    return NameReading(what, given, NameCode.UNCLEAR if like else NameCode.UNKNOWN, tuple(like[:MOST_NAMES]))


def is_plain(name: str) -> bool:
    """Whether it reads as a name and no sentence, so that a note of ours may say it."""
    return _PLAIN_NAME.fullmatch(name) is not None


def is_whole(given: str) -> bool:
    """Whether it is an address, a hash or a GUID, of which no part stands for the whole."""
    return _WHOLE.fullmatch(given) is not None


def pieces(text: str) -> tuple[str, ...]:
    """Letters and digits of each word, folded."""
    return tuple(folded for word in re.split(r"[\s\\]+", text) if (folded := _letters(word)))


def holds_all(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether a name holds every piece; False where there is none."""
    letters = _letters(name)
    return bool(wanted) and all(piece in letters for piece in wanted)


def _ends_well(name: str, wanted: tuple[str, ...]) -> bool:
    """Whether no number of a piece is the beginning or the end of a longer one: srv-1 is no part of srv-12."""
    ends = ((r"(?<!\d)" if piece[0].isdigit() else "", r"(?!\d)" if piece[-1].isdigit() else "") for piece in wanted)
    letters = _letters(name)
    if wanted[-1] not in _letters(short_name(name)):  # the name of a domain is no part of one of its machines
        return False
    return all(
        re.search(f"{before}{piece}{after}", letters) for piece, (before, after) in zip(wanted, ends, strict=True)
    )


def holding(expression: str, given: str) -> str:
    """A KQL predicate that holds for texts with a name like `given` in them, and for some others."""
    wanted = pieces(short_name(given))
    letters = f"replace_regex({expression}, {string_literal(_SIGNS)}, '')"
    return " and ".join(f"{letters} contains {string_literal(piece)}" for piece in wanted) or "false"


def short_name(name: str) -> str:
    """The user of a UPN, the host name of an FQDN, the account of `DOMAIN\\account`; anything else as it is."""
    name = name.rpartition("\\")[2]
    return name.partition("@")[0] if "@" in name else name.partition(".")[0] if name.count(".") > 1 else name


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())


def _distinct(names: Iterable[str]) -> list[str]:
    """One name for each thing: of `srv-01` and `srv-01.corp.example` the longer."""
    longest: dict[str, str] = {}
    for name in names:
        short = short_name(name).casefold()
        longest[short] = max(longest.get(short, ""), name, key=len)
    return list(longest.values())
