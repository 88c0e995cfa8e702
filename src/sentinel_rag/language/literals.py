"""What can be compared: the literals of a text in one pass (ids, names, numbers with their unit, moments in any zone,
durations, shares, states, quotations, handles), in any language and script. What words mean is the lexicon's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import cache, cached_property
from typing import Any

from sentinel_rag.language.lexicon import (
    CANONICAL,
    Lexicon,
    date_words,
    everything,
    fold,
    lexicon_of,
    months,
    plain_words,
    words_in,
    zones,
)

_TOKEN = re.compile(r"[^\W_]+")
_GROUP = re.compile(r"\d{1,3}[.,]\d{3}(?![.,]?\d)")
MOST_WORDS_OF_A_NAME = 16
FILE_ENDINGS = frozenset(
    words_in(
        "exe dll sys bat cmd ps1 psm1 vbs js hta msi lnk scr jar py sh txt log md json xml csv html htm pdf doc docx "
        "docm xls xlsx xlsm ppt pptx rtf zip rar iso img tmp dat bin db cs cpp yaml yml ini cfg reg evtx kql"
    )
)
"""Endings that make `name.ending` a file and no host."""


def tokens(text: str) -> list[str]:
    """The folded words of a text; letters and digits of any script."""
    return _TOKEN.findall(fold(text))


def key(text: str) -> str:
    """A text as its folded words with one space between them: two spellings of one thing have one key."""
    return " ".join(tokens(text))


class Kind(StrEnum):
    """What a literal is."""

    ID = "id"
    NAME = "name"
    TEXT = "text"
    NUMBER = "number"
    PERCENT = "percent"
    DURATION = "duration"
    MOMENT = "moment"
    STATE = "state"
    SPOKEN = "spoken"


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a time, or both, as far as stated. `offset` is in minutes east of UTC, None where no zone stands."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    offset: int | None = None

    @property
    def begins(self) -> datetime | None:
        """Its first minute in UTC; None for one that is no whole day, or none of the calendar."""
        if not (self.year and self.month and self.day):
            return None
        try:
            at = datetime(self.year, self.month, self.day, self.hour or 0, self.minute or 0, tzinfo=UTC)
        except ValueError:
            return None
        return at - timedelta(minutes=self.offset or 0)

    def fits(self, at: datetime, zone: tzinfo = UTC) -> bool:
        """Whether a time of a row is meant; without a zone in UTC or in the reader's `zone`."""
        if self.offset is not None:
            return self._is(at + timedelta(minutes=self.offset))
        if self._is(at):
            return True
        return zone is not UTC and self._is(at.astimezone(zone))

    def _is(self, local: datetime) -> bool:
        if self._equals(local):
            return True
        # A time without seconds may be rounded to the minute.
        return self.second is None and self.minute is not None and self._equals(local + timedelta(seconds=30))

    def _equals(self, seen: datetime) -> bool:
        return (
            (self.hour is None or self.hour == seen.hour)
            and (self.minute is None or self.minute == seen.minute)
            and (self.day is None or self.day == seen.day)
            and (self.month is None or self.month == seen.month)
            and (self.year is None or self.year == seen.year)
            and (self.second is None or self.second == seen.second)
        )


@dataclass(frozen=True, slots=True)
class Literal:
    """One comparable piece of a text, at `text[start:end]`.

    `value` is a key (id, name, text), a number, a `Moment`, or the name of a state of `domain`. `bound` is =, <, >, >=
    or ~.
    `unit` is what one of the number is, in bytes or seconds. `domain` of an id tells its form (mail, ip, url, ...).
    """

    kind: Kind
    value: Any
    raw: str
    start: int
    end: int
    bound: str = "="
    unit: float = 1.0
    domain: str = ""
    quoted_by: str = ""
    """The quotation mark or backtick before a `TEXT`."""

    @property
    def number(self) -> float:
        """The value of a number, share or duration."""
        return float(self.value)

    @property
    def other_reading(self) -> Literal | None:
        """`16.143` with a decimal mark, where it was read as thousands."""
        if self.kind not in (Kind.NUMBER, Kind.DURATION) or not _GROUP.match(self.raw):
            return None
        if self.number < 1_000 or self.number % 1:  # read with a decimal mark already
            return None
        return replace(self, value=self.number / 1000, raw=self.raw.replace(",", "."))


@dataclass(frozen=True, slots=True)
class Word:
    """An ordinary word of a text: folded, and where it stands."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Scan:
    """The literals of a text in their order, and the words between them."""

    text: str
    literals: tuple[Literal, ...]
    words: tuple[Word, ...]
    lexicon: Lexicon

    @cached_property
    def bag(self) -> frozenset[str]:
        """The words, each once."""
        return frozenset(word.text for word in self.words)


class Names:
    """Values of a workspace that a text may name, found by their words; a trie, so that a text is read once."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        """Keys of display names with the key of the account that they belong to."""
        self.short: dict[str, str] = {}
        """Keys of accounts with the key of their part before the @."""
        self.small: set[str] = set()
        """Single words that are names in small letters, too."""

    def add(self, value: str) -> None:
        """Take a value up as a name; one of fewer than three letters or of many words is none."""
        words = tokens(value.rpartition(": ")[2])  # what a label is put before is the name
        least = 3 if value.isascii() else 2
        if not 1 <= len(words) <= MOST_WORDS_OF_A_NAME or sum(map(len, words)) < least:
            return
        if words[-1].isdigit() and all(word.isdigit() or word in everything().number_of for word in words):
            return  # `incident 124` and a day are read as what they are, which sentences write in other ways
        node = self._root
        for word in words:
            node = node.setdefault(word, {})
        node[""] = {}

    def length_at(self, words: list[tuple[str, int, int]], at: int) -> int:
        """How many words from `at` on are the longest name there; 0 for none."""
        node: Any = self._root
        best = 0
        for length in range(1, min(MOST_WORDS_OF_A_NAME, len(words) - at) + 1):
            node = node.get(words[at + length - 1][0])
            if node is None:
                break
            if "" in node:
                best = length
        return best


ELLIPSIS = "…"
"""Stands in the value of a `TEXT` where words were left out."""
_ELLIPSIS = re.compile(r"[\[(]?(?:…|\.{3})[\])]?")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})")
"""How a control or an invisible character is made visible."""
_MARKS = "\u0300-\u036f\u200b-\u200f\u2060\ufeff\u00ad"
_OPENING = '"“”„«»‟‹›「『'
_CLOSING = '"”“»«‟‹›」』'
_TIME = r"(?P<H{0}>[01]?\d|2[0-3]):(?P<M{0}>[0-5]\d)(?::(?P<S{0}>[0-5]\d)(?:[.,]\d{{1,9}})?)?(?P<P{0}>\s?(?i:{1}))?"
_ZONE = r"(?:(?=\s?(?:{1}|[+-]\d))\s?(?P<Z{0}>(?:{1})(?![^\W_]))?(?P<O{0}>[+-]\d{{1,2}}(?::?\d{{2}})?(?!\d))?)?"


def _any_of(words: Iterator[str] | tuple[str, ...] | list[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in words) or r"(?!)"


@cache
def _scanner() -> re.Pattern[str]:
    """The pattern of all forms. Every repetition is bounded, so that no text takes more than linear time."""
    month = _any_of(sorted(months(), key=lambda word: (-len(word), word)))
    zone = _any_of(sorted(zones(), key=lambda word: (-len(word), word)))
    half = _any_of(
        [form for word in (*date_words("am"), *date_words("pm")) for form in (word, f"{word[0]}.{word[1]}.")]
    )
    at, of, span = (_any_of(date_words(table)) for table in ("at", "of", "range"))
    join = rf"(?:T|,?\s{{1,3}}(?:(?:{at})\s{{1,3}})?)"

    def time(number: int) -> str:
        return _TIME.format(number, half) + _ZONE.format(number, zone)

    forms = (
        r"(?P<code>(?P<ticks>`{1,2})[^`\n]{1,400}(?P=ticks))",
        rf"(?P<quote>«[^«»\n]{{2,600}}»|“[^“”\n]{{2,600}}”|[{_OPENING}][^{_OPENING}{_CLOSING}\n]{{1,600}}[{_CLOSING}])",
        r"(?P<trade>\b(?:SHA-?\d{1,3}|MD5|Base64|(?:Microsoft|Office) 365|Windows (?:Server )?\d{2,4})\b(?![-:.]\d))",
        r"(?P<handle>⟦r\d{1,9}#[^⟦⟧\n]{0,300}⟧)",
        r"(?P<url>\b(?:https?|hxxps?|ftp)(?:://|\[:\]//)[^\s<>()|\"”“`]{1,500})",
        r"(?P<mail>(?<![\w.+'’-])[\w.+'’-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})",
        r"(?P<guid>\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b(?=[a-fA-F]{0,63}\d)[0-9a-fA-F]{32,64}\b|\bS-1-\d{1,3}(?:-\d{1,12}){1,12})",
        r"(?P<ip>(?<![\w.])\d{1,3}(?:\[?\.\]?\d{1,3}){3}(?![\w])(?::\d{1,5})?|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}(?::?[0-9a-fA-F]{1,4}){1,4}(?![\w:])"
        r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){1,6}(?::[0-9a-fA-F]{1,4}){1,6}(?![\w:]))",
        r"(?P<path>\b[A-Za-z]:\\[^\s|,;`\"”“]{1,300}|\\\\[\w.$-]{1,64}\\[^\s|,;`\"”“]{0,300})",
        r"(?P<tech>\bT\d{4}(?:\.\d{3})?\b)",
        rf"(?P<iso>\b(?P<Y1>\d{{4}})-(?P<m1>\d{{2}})-(?P<d1>\d{{2}})(?:{join}{time(1)})?(?!\d))",
        rf"(?P<yearless>(?<![\w-])(?P<m8>[01]\d)-(?P<d8>[0-3]\d){join}{time(8)})",
        r"(?P<month_first>(?<![\w.,:-])(?P<m9>0[1-9]|1[0-2])-(?P<d9>0[1-9]|[12]\d|3[01])(?![\w:-]|[.,]\d))",
        rf"(?P<dmy>\b(?P<d2>\d{{1,2}}(?:(?:\.?\s?,\s?|\.?\s?[–-]\s?|\.?\s(?:{span})\s)\d{{1,2}}){{0,6}})(?:\.|st|nd|rd|th|er)?(?:\s(?:{of}))?\s(?P<m2>(?i:{month}))(?![^\W\d_])\.?"
        rf"(?:(?:\s(?:{of})|,)?\s(?P<Y2>\d{{4}}))?(?:{join}{time(2)})?)",
        rf"(?P<mdy>\b(?P<m3>(?i:{month}))\.?\s(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])(?:,?\s(?P<Y3>\d{{4}}))?(?:{join}{time(3)})?)",
        rf"(?P<my>\b(?P<m4>(?i:{month}))\s(?:(?:{of})\s)?(?P<Y4>\d{{4}})\b)",
        rf"(?P<clock>\b{time(5)}(?!\w|:\d)(?:,?\s(?:(?:on|am|el|le|del)\s)?(?P<d5>\d{{1,2}})\.?(?:\s(?:{of}))?\s(?P<m5>(?i:{month}))(?![^\W\d_])(?:\s(?:(?:{of})\s)?(?P<Y5>\d{{4}}))?)?)",
        r"(?P<dots>\b(?P<d6>[0-3]?\d)\.(?P<m6>[01]?\d)\.(?:(?P<Y6>\d{4}))?(?!\d)" + rf"(?:{join}{time(6)})?)",
        r"(?P<slash>\b(?P<d7>\d{1,2})/(?P<m7>\d{1,2})/(?P<Y7>\d{4})\b" + rf"(?:{join}{time(7)})?)",
        r"(?P<cve>\bCVE-\d{4}-\d{1,9}\b)",
        r"(?P<host>(?<![\w.-])(?:[\w-]{1,63}(?:\.|\[\.\])){1,8}[^\W\d_]\w{1,14}\b(?![(.]\w))",
        r"(?P<times>\b\d{1,9}(?=-[^\W\d_]))",
        r"(?P<codeword>(?<![\w-])(?=[\w-]{0,80}[^\W\d_])(?=[\w-]{0,80}\d)(?!\d{1,9}[^\W\d_]{1,3}\b)\w{1,80}(?:-\w{1,80}){0,8}(?!\w))",
        r"(?P<num>(?<![\w.])(?P<figure>\d{1,20}(?:[.,’'\u00a0\u202f]\d{1,20}){0,6})(?P<pct>\s?%)?)",
        rf"(?P<word>[^\W\d_](?:[^\W\d_]|[{_MARKS}]){{0,99}}(?:['’][^\W\d_]{{1,40}})?)",
    )
    return re.compile("|".join(forms))


def figure(text: str) -> float | None:
    """`1,234`, `1.234.567`, `4.6` or `4,6` as a number; None where it is none."""
    parts = re.split("[.,’'\u00a0\u202f]", text)
    if len(parts) > 1 and len(parts[0]) <= 3 and parts[0].strip("0") and all(len(part) == 3 for part in parts[1:]):
        return float("".join(parts))
    if len(parts) == 2:
        return float(".".join(parts))
    if len(parts) > 2:
        joined = re.fullmatch(r"(\d{1,3}(?:([.,’'\u00a0\u202f])\d{3})(?:\2\d{3})*)[.,](\d+)", text)
        return None if joined is None else float(re.sub(r"\D", "", joined[1]) + "." + joined[3])
    return float(text)


def scan(text: str, names: Names | None = None) -> Scan:
    """The literals and the words of a text."""
    found: list[Literal] = []
    raws: list[tuple[str, int, int]] = []
    for match in _scanner().finditer(text):
        form, start, end = match.lastgroup or "", match.start(), match.end()
        if form == "word":
            raws.append((fold(match.group()), start, end))
        else:
            _READERS[form](match, found, raws)
    lexicon = lexicon_of(word for word, _, _ in raws) if raws else everything()
    found = [_with_unit(literal, text, raws, lexicon) for literal in found]
    named = list(_names_in(text, found, names)) if names is not None else []
    named = [name for name in named if not _is_part(name, found)]
    if named:
        found = [each for each in found if not any(name.start <= each.start and each.end <= name.end for name in named)]
    inside = _Cover(named)
    words = tuple(Word(*each) for each in raws if not inside.holds(each[1]))
    literals = [*found, *named, *_spoken_in(text, raws, lexicon, inside)]
    literals.sort(key=lambda each: (each.start, each.end))
    return Scan(text, tuple(_with_spans_joined(literals, text, lexicon)), words, lexicon)


def _with_spans_joined(literals: Found, text: str, lexicon: Lexicon) -> Iterator[Literal]:
    """`one day and three hours`, `2 h 15 min` as one length of time."""
    held: Literal | None = None
    for each in literals:
        if held is not None and each.kind is Kind.DURATION and each.unit < held.unit:
            between = text[held.end : each.start].strip()
            if not between or lexicon.has("clause", fold(between)):
                total = held.number * held.unit / each.unit + each.number
                held = replace(each, value=total, raw=text[held.start : each.end], start=held.start)
                continue
        if held is not None:
            yield held
        held = each if each.kind is Kind.DURATION else None
        if held is None:
            yield each
    if held is not None:
        yield held


def _is_part(name: Literal, found: Found) -> bool:
    """Whether a name is only a part of an id, such as the domain of an address, or ordinary words with one."""
    ids = [each for each in found if each.kind is Kind.ID]
    part = any(each.start <= name.start and name.end <= each.end and len(each.raw) > len(name.raw) for each in ids)
    return part or (name.raw[:1].islower() and any(name.start < each.start and each.end <= name.end for each in ids))


class _Cover:
    """Places that literals cover, asked in rising order or not; few, so a list will do."""

    def __init__(self, literals: list[Literal]) -> None:
        self._spans = [(each.start, each.end) for each in literals]

    def holds(self, place: int) -> bool:
        return any(start <= place < end for start, end in self._spans)


Found = list[Literal]
Raws = list[tuple[str, int, int]]


def _armed(text: str) -> str:
    """An address as the rows have it, whose links somebody broke on purpose (`hxxps://evil[.]example`)."""
    return re.sub(r"(?i)^hxxp", "http", text.replace("[.]", ".").replace("[:]", ":"))


def _read_text(match: re.Match[str], found: Found, raws: Raws) -> None:
    raw = match.group()
    parts = (key(_armed(part.strip("`"))) for part in _ELLIPSIS.split(_ESCAPE.sub("", raw)))
    if words := f" {ELLIPSIS} ".join(part for part in parts if part):
        found.append(Literal(Kind.TEXT, words, raw, match.start(), match.end(), quoted_by=raw[0]))


def _read_moment(match: re.Match[str], found: Found, raws: Raws) -> None:
    before = raws[-1][0] if raws else ""
    if match.lastgroup == "month_first" and before not in date_words("month_first"):
        for part in ("m9", "d9"):  # two numbers, unless a word says that it is a day
            found.append(Literal(Kind.NUMBER, float(match[part]), match[part], match.start(part), match.end(part)))
        return
    told = match.lastgroup == "dots" and (match["Y6"] or match["H6"] or match.string[: match.start()].endswith("("))
    if match.lastgroup == "dots" and not told and before not in date_words("before"):
        raw = match.group().rstrip(".")  # `15.6.` ends a sentence with a number, unless something says that it is a day
        value = figure(raw.split()[0].rstrip("."))
        if value is not None:
            raw = raw.split()[0].rstrip(".")
            found.append(Literal(Kind.NUMBER, value, raw, match.start(), match.start() + len(raw)))
        return
    for moment in _moments(match):
        found.append(Literal(Kind.MOMENT, moment, match.group(), match.start(), match.end()))


def _read_number(match: re.Match[str], found: Found, raws: Raws) -> None:
    raw = match["figure"] if match["num"] else match.group()
    value = figure(raw)
    if value is not None:
        kind = Kind.PERCENT if match["pct"] else Kind.NUMBER
        found.append(Literal(kind, value, match.group(), match.start(), match.end()))


def _read_host(match: re.Match[str], found: Found, raws: Raws) -> None:
    raw = match.group()
    parts = _armed(raw).split(".")
    if all(len(part) == 1 for part in parts[:-1]) or (len(parts) == 2 and parts[1][:1].isupper()):
        raws.append((fold(raw), match.start(), match.end()))  # `e.g` or a sentence without a space behind it
        return
    _read_id(match, found, raws, "file" if parts[-1].lower() in FILE_ENDINGS else "host")


def _read_id(match: re.Match[str], found: Found, raws: Raws, form: str = "") -> None:
    raw = match.group().rstrip(".,:;)'’*_")
    form = form or match.lastgroup or ""
    if words := key(_armed(raw)):
        found.append(Literal(Kind.ID, words, raw, match.start(), match.start() + len(raw), domain=form))


def _read_nothing(match: re.Match[str], found: Found, raws: Raws) -> None:
    """A name of the trade with a number in it is neither id nor number."""


_READERS = {
    **dict.fromkeys(("code", "quote"), _read_text),
    **dict.fromkeys(("iso", "yearless", "month_first", "dmy", "mdy", "my", "clock", "dots", "slash"), _read_moment),
    **dict.fromkeys(("times", "num"), _read_number),
    **dict.fromkeys(("handle", "url", "mail", "guid", "ip", "path", "tech", "cve", "codeword"), _read_id),
    "host": _read_host,
    "trade": _read_nothing,
}


def _moments(match: re.Match[str]) -> Iterator[Moment]:
    part = {name: value for name, value in match.groupdict().items() if value is not None}
    number = next(n for n in "123456789" if f"m{n}" in part or f"H{n}" in part)
    year = int(part[f"Y{number}"]) if f"Y{number}" in part else None
    month_word = part.get(f"m{number}")
    month = None if month_word is None else int(month_word) if month_word.isdigit() else months()[fold(month_word)]
    hour, minute, second = (int(part[f"{unit}{number}"]) if f"{unit}{number}" in part else None for unit in "HMS")
    half = fold(part.get(f"P{number}", "")).strip().replace(".", "")
    if half and hour is not None and hour <= 12:
        hour = hour % 12 + (12 if half in date_words("pm") else 0)
    offset, until = zones().get(part.get(f"Z{number}", "")), None
    if f"O{number}" in part and hour is not None:
        shift = part[f"O{number}"]
        digits = shift[1:].replace(":", "")
        hours, minutes = (digits[:-2], digits[-2:]) if len(digits) > 2 else (digits, "0")
        offset = (-1 if shift[0] == "-" else 1) * (int(hours) * 60 + int(minutes))
        until = -offset if second is None and len(digits) == 4 and -offset > hour * 60 + (minute or 0) else None
    days: list[int | None] = [int(day) for day in re.findall(r"\d+", part.get(f"d{number}", ""))]
    for day in days or [None]:
        if month is not None and month > 12 and day is not None and day <= 12:
            day, month = month, day
        if (day is None or 1 <= day <= 31) and (month is None or 1 <= month <= 12):
            yield Moment(year, month, day, hour, minute, second, offset if until is None else None)
            if until is not None:  # `11:36-11:47` is a span, and no zone
                yield Moment(year, month, day, until // 60, until % 60)


def _bound(before: list[str], lexicon: Lexicon) -> str:
    """What the words before a number make of it."""
    near = before[-3:]
    far = [at for at, word in enumerate(near) if not _may_stand_between(word, lexicon)]
    near = near[far[-1] + 1 :] if far else near  # `over port 443 in 8 connections` bounds nothing
    for phrases, bound in ((lexicon.at_least, ">="), (lexicon.more_than, ">")):
        if any(phrase == tuple(near[at : at + len(phrase)]) for phrase in phrases for at in range(len(near))):
            return bound
    for table, bound in (("over", ">"), ("under", "<"), ("about", "~")):
        if any(lexicon.has(table, word) for word in near):
            return bound
    return "="


def _may_stand_between(word: str, lexicon: Lexicon) -> bool:
    """Whether a word bounds a number, or is an ordinary one between such a word and the number."""
    bounds = {each for phrase in lexicon.more_than | lexicon.at_least for each in phrase}
    return word in bounds or word in plain_words() or any(lexicon.has(table, word) for table in _BOUNDS)


_BOUNDS = ("over", "under", "about", "least", "most")


def _with_unit(literal: Literal, text: str, raws: Raws, lexicon: Lexicon) -> Literal:
    """A number with the unit behind it and the bound before it."""
    if literal.kind not in (Kind.NUMBER, Kind.PERCENT):
        return literal
    place = _place(raws, literal.start)
    bound = _bound([word for word, _, end in raws[max(0, place - 3) : place] if literal.start - end < 24], lexicon)
    behind = raws[place] if place < len(raws) and raws[place][1] - literal.end <= 2 else None
    if behind is not None and lexicon.has("windows", behind[0]) and place + 1 < len(raws):
        behind = raws[place + 1]  # `7 derniers jours`
    return _quantity(literal, behind, bound, lexicon)


def _quantity(literal: Literal, behind: tuple[str, int, int] | None, bound: str, lexicon: Lexicon) -> Literal:
    word, _, end = behind or ("", 0, literal.end)
    kind, unit = literal.kind, 1.0
    if kind is Kind.NUMBER and word in lexicon.time_units:
        kind, unit = Kind.DURATION, float(lexicon.time_units[word])
    elif kind is Kind.NUMBER and word in lexicon.size_units:
        unit = float(lexicon.size_units[word])
    elif kind is Kind.NUMBER and word in ("percent", "prozent"):
        kind = Kind.PERCENT
    else:
        end = literal.end
    return Literal(kind, literal.value, literal.raw, literal.start, end, bound, unit, literal.domain)


def _place(raws: Raws, start: int) -> int:
    """The index of the first word behind a place."""
    low, high = 0, len(raws)
    while low < high:
        middle = (low + high) // 2
        if raws[middle][1] < start:
            low = middle + 1
        else:
            high = middle
    return low


def _names_in(text: str, found: Found, names: Names) -> Iterator[Literal]:
    """Names of the workspace outside quotations: of several words, with a capital, or known in small letters."""
    texts = [each for each in found if each.kind is Kind.TEXT]
    whole = {(each.start, each.end) for each in found}
    pieces: Raws = []
    at = 0
    for match in _TOKEN.finditer(text):
        while at < len(texts) and texts[at].end <= match.start():
            at += 1
        if at < len(texts) and texts[at].start <= match.start():
            pieces.append(("", match.start(), match.end()))
            continue
        word = match.group()
        folded = word.lower() if word.isascii() else "".join(_TOKEN.findall(fold(word)))
        pieces.append((folded, match.start(), match.end()))
    at = 0
    while at < len(pieces):
        length = names.length_at(pieces, at)
        first, last = pieces[at], pieces[at + max(length, 1) - 1]
        opens = not text[first[1]].islower()
        if (
            length
            and (length > 1 or opens or first[0] in names.small)
            and (first[1], last[2]) not in whole
            and not (length == 1 and _inside(found, first[1]))
            and "|" not in text[first[1] : last[2]]
        ):
            yield Literal(
                Kind.NAME,
                " ".join(each[0] for each in pieces[at : at + length]),
                text[first[1] : last[2]],
                first[1],
                last[2],
            )
            at += length
        else:
            at += 1


def _inside(found: Found, place: int) -> bool:
    return any(each.start <= place < each.end for each in found)


def _spoken_in(text: str, raws: Raws, lexicon: Lexicon, inside: _Cover) -> Iterator[Literal]:
    """Numbers, parts, durations and states that stand there as words."""
    plain = [word.split("'")[0].split("’")[0] for word, _, _ in raws]
    phrase_end = 0
    first_letter = next((at for at, letter in enumerate(text) if letter.isalnum()), 0)
    for at, (word, (_, start, end)) in enumerate(zip(plain, raws, strict=True)):
        raw = text[start:end]
        covered = inside.holds(start)
        if not covered:
            yield from _number_word(text, plain, raws, at, lexicon)
        for phrase, domain, value in lexicon.spoken.get(word, ()) if not covered else ():
            if tuple(plain[at : at + len(phrase)]) == phrase:
                phrase_end = stop = raws[at + len(phrase) - 1][2]
                yield Literal(Kind.SPOKEN, value, text[start:stop], start, stop, domain=domain)
        for domain, values in CANONICAL.items():
            if raw in values and (start != first_letter or not text[end : end + 2].strip()[:1].isalnum()):
                yield Literal(Kind.STATE, raw, raw, start, end, domain=domain)
                break
        else:
            if covered:
                continue
            for domain, value in lexicon.states.get(word, ()) if start >= phrase_end else ():
                yield Literal(Kind.SPOKEN, value, raw, start, end, domain=domain)


def _half(plain: list[str], at: int, lexicon: Lexicon) -> int:
    """How many words `and a half` takes behind a number and before its unit; 0 for none."""
    behind = plain[at + 1 : at + 4]
    words = [word for word in behind if not lexicon.has("one", word)]
    if len(words) > 1 and lexicon.has("clause", words[0]) and lexicon.fractions.get(words[1]) == _HALF:
        return behind.index(words[1]) + 1
    return 0


_HALF = 50


def _number_word(text: str, plain: list[str], raws: Raws, at: int, lexicon: Lexicon) -> Iterator[Literal]:
    word, start, end = plain[at], raws[at][1], raws[at][2]
    unit = lexicon.time_units.get(word, 1) > 1 and len(word) > 2
    if not unit and word not in lexicon.numbers and word not in lexicon.fractions:
        return
    raw = text[start:end]
    behind = plain[at + 1 : at + 4]
    before = plain[max(0, at - 4) : at]
    bound = _bound(before, lexicon)
    if word in lexicon.fractions:
        added = at > 1 and lexicon.has("clause", plain[at - 1]) and plain[at - 2] in lexicon.time_units
        if not added and not any(each in lexicon.time_units for each in behind):
            times = lexicon.numbers.get(plain[at - 1], 1) if at else 1
            one = bool(at) and lexicon.has("one", plain[at - 1])
            if times == 1 and one:
                bound = _bound(before[:-1], lexicon)
            noun = bool(behind) and behind[0] not in plain_words() and not text[end : raws[at + 1][1]].strip()
            if lexicon.fractions[word] < 50 and (times == 1 and (not one or noun)):
                return  # `third` in a row of ordinals, `a third time`
            share = min(100.0, lexicon.fractions[word] * times)
            yield Literal(Kind.PERCENT, share, raw, start, end, "~" if bound == "=" else bound)
    elif word in lexicon.numbers:
        if not (behind and behind[0] in lexicon.fractions):
            made = Literal(Kind.NUMBER, float(lexicon.numbers[word]), raw, start, end)
            if half := _half(plain, at, lexicon):
                made, at = replace(made, value=made.number + 0.5), at + half
                end = raws[at][2]
            follows = raws[at + 1] if at + 1 < len(raws) and raws[at + 1][1] - end <= 2 else None
            if follows is not None and lexicon.time_units.get(follows[0]) and _half(plain, at + 1, lexicon):
                made = replace(made, value=made.number + 0.5)  # `once horas y media`
            yield _quantity(made, follows, bound, lexicon)
    elif unit and at and lexicon.has("one", plain[at - 1]):
        counted = at > 1 and (plain[at - 2] in lexicon.numbers or lexicon.has("part_of", plain[at - 2]))
        if not counted and not text[: raws[at - 1][1]].rstrip()[-1:].isdigit():
            near = _bound(before[:-1], lexicon)
            part = lexicon.fractions.get(plain[at - 2], 100) / 100 if at > 1 else 1.0  # `half an hour`
            opened = raws[at - 1 - (part < 1)][1]
            bound, size = "~" if near == "=" else near, lexicon.time_units[word]
            yield Literal(Kind.DURATION, part, text[opened:end], opened, end, bound, size)


def row_time(text: str) -> datetime | None:
    """A cell's ISO time in UTC; None for any other text."""
    if len(text) < 16 or text[4:5] != "-" or text[10:11] != "T":
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
