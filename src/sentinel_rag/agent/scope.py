"""What a reading call left out that nobody asked to leave out: narrowing arguments without a word of the question.

Small models fill in every optional argument ("last 7 days", "Open"), and the rows that come back make a true-sounding
false answer. `unsupported` finds such arguments, `scope_line` says them before the answer. Only the languages that a
question is written in are read, and English, whose terms all use. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sentinel_rag.agent.row_text import data_line, quoted
from sentinel_rag.agent.tool_runs import READING_TOOLS
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import KNOWLEDGE_TOOLS
from sentinel_rag.contracts.tool_calls import ToolCall
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, SEVERITIES
from sentinel_rag.language.lexicon import Words, everything, fold, scope_words

_JUDGED = {tool.name: tool.required() for tool in (*SENTINEL_TOOLS, *KNOWLEDGE_TOOLS) if tool.name in READING_TOOLS}
_UNITS = ("hour", "day", "week", "month", "year")
_HOURS = {"h": 1, "d": 24, "hour": 1, "day": 24, "week": 168, "month": 720, "year": 8760}
_TOKEN = re.compile(r"\d+|[^\W\d_]+")
_WINDOW = re.compile(r"last_(\d+)([hd])")
_DATE = re.compile(
    r"(?<![\d.:])(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}:\d{2}|\d{1,2}[./]\d{1,2}(?:[./](?:\d{4}|\d{2})?)?)(?![\d:]|\.\d)"
)


class NarrowingCode(StrEnum):
    """What an argument narrows. `SHORTER_TIME`: the question names a time, and a longer one."""

    TIME = "time"
    SHORTER_TIME = "shorter_time"
    SEVERITY = "severity"
    STATUS = "status"
    OWNER = "owner"
    NAME = "name"
    LIMIT = "limit"


_MOMENTS = frozenset({"start_time", "end_time", "since", "until"})
_PAGE = frozenset({"limit", "offset", "order", "detail"})
_CODES: Mapping[str, NarrowingCode] = {
    **dict.fromkeys(("time_window", "start_time", "end_time", "since", "until"), NarrowingCode.TIME),
    **dict.fromkeys(("severity", "min_severity"), NarrowingCode.SEVERITY),
    **dict.fromkeys(
        ("entity", "title_contains", "name_contains", "product", "tactic", "technique"), NarrowingCode.NAME
    ),
    **dict.fromkeys(("incident", "alert_id", "classification"), NarrowingCode.NAME),
    "status": NarrowingCode.STATUS,
    **dict.fromkeys(("owner", "closed_by"), NarrowingCode.OWNER),
    "limit": NarrowingCode.LIMIT,
}


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One argument of a call that no word of the question supports; `value` as the model gave it."""

    code: NarrowingCode
    argument: str
    value: str


def unsupported(
    questions: Sequence[str], call: ToolCall, *, known: Collection[str] | None = None, cut: bool = False
) -> tuple[Narrowing, ...]:
    """The narrowing arguments of a reading call that no word of `questions` (the conversation's, the newest last)
    supports, in the order of the call. Calls that change something, and other makers' tools, have none.

    `known` are texts of results in hand: a name, an id or a date that stands there was looked up, and not made up.
    Without them names are not judged, nor moments beside a name. `cut`: the limit left rows out; else it narrows
    nothing.
    """
    if call.tool_name not in _JUDGED:
        return ()
    said = _Said(questions, known or ())
    unjudged = _JUDGED[call.tool_name] | (frozenset() if cut else {"limit"})
    if known is None:
        named = {name for name, code in _CODES.items() if code in (NarrowingCode.NAME, NarrowingCode.OWNER)}
        unjudged |= named | (_MOMENTS if named & set(call.arguments) else frozenset())
    return tuple(
        Narrowing(code, name, str(value))
        for name, value in call.arguments.items()
        if (argument := _CODES.get(name)) and name not in unjudged and isinstance(value, str | int) and value != ""
        if (code := said.lacks(argument, name, value, call.arguments))
    )


def names_it(questions: Sequence[str], value: str) -> bool:
    """True if a word of `value` that tells something (no "incident", no "user") stands in a question."""
    return _Said(questions, ()).holds(value)


def narrowed(
    questions: Sequence[str], calls: Sequence[ToolCall], *, known: Collection[str] | None = None
) -> tuple[Narrowing, ...]:
    """What all reading calls of a question together left out that nobody asked to leave out. What one call narrows and
    another of the same tool asks for without it was looked at all the same, and so was what fewer than half of the
    calls narrow: a step of an investigation."""
    found = []
    narrow = [(call, unsupported(questions, call, known=known)) for call in calls]
    if 2 * sum(bool(narrowings) for _, narrowings in narrow) < len(calls):
        return ()
    for call, narrowings in narrow:
        for each in narrowings:
            wider = (
                other for other in calls if other.tool_name == call.tool_name and each.argument not in other.arguments
            )
            if not any(_asked(other) <= _asked(call) for other in wider):
                found.append(each)
    return tuple(dict.fromkeys(found))


def _asked(call: ToolCall) -> set[tuple[str, str]]:
    return {(name, str(value)) for name, value in call.arguments.items() if value is not None and name not in _PAGE}


def scope_line(narrowings: Sequence[Narrowing], *, calls: int = 1) -> str:
    """One sentence that tells what was looked at and who chose it; empty for none. Of several `calls` it is told as
    the narrowest part: the others may have looked further."""
    if not narrowings:
        return ""
    window = [each for each in narrowings if each.code in (NarrowingCode.TIME, NarrowingCode.SHORTER_TIME)]
    parts = [_window(window)] if window else []
    parts += [_told(each) for each in dict.fromkeys(narrowings) if each not in window]
    longer = any(each.code is NarrowingCode.SHORTER_TIME for each in window)
    unnamed = list(dict.fromkeys(_NOUNS[each.code] for each in narrowings if each.code in _NOUNS))
    why = [f"names no {_joined(unnamed, 'or')}"] if unnamed else []
    why += ["names a longer time"] if longer else []
    chosen = f"(chosen by the model; the question {_joined(why, 'and')})"
    if calls > 1:
        return f"Some of the {calls} calls looked only at {', '.join(parts)} {chosen}."
    return f"Looked at only: {', '.join(parts)} {chosen}."


_NOUNS = {
    NarrowingCode.TIME: "time",
    NarrowingCode.SEVERITY: "severity",
    NarrowingCode.STATUS: "status",
    NarrowingCode.OWNER: "owner",
    NarrowingCode.NAME: "such name",
    NarrowingCode.LIMIT: "number of rows",
}


def _told(each: Narrowing) -> str:
    value = data_line(each.value, limit=80)
    match each.code:
        case NarrowingCode.SEVERITY if each.argument == "min_severity":
            return f"severity {value} and above"
        case NarrowingCode.NAME:
            return f"what {each.argument} {quoted(each.value, limit=80)} selects"
        case NarrowingCode.LIMIT:
            return "the first row" if value == "1" else f"the first {value} rows"
        case _:
            return f"{each.argument} {value}"


def _window(window: Sequence[Narrowing]) -> str:
    values = {each.argument: data_line(each.value, limit=40) for each in window}
    if match := _WINDOW.fullmatch(next((each.value for each in window if each.argument == "time_window"), "")):
        number, unit = int(match[1]), {"h": "hour", "d": "day"}[match[2]]
        return f"the last {unit}" if number == 1 else f"the last {number} {unit}s"
    start = values.get("start_time") or values.get("since")
    end = values.get("end_time") or values.get("until")
    sides = [f"what came since {start}"] if start and not end else [f"the time from {start} to {end}"] if start else []
    return " ".join(sides) or (f"the time up to {end}" if end else f"the time {values.get('time_window', '')}".strip())


def _joined(parts: Sequence[str], word: str) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


class _Said:
    """The words of questions, looked up in the tables of their languages."""

    def __init__(self, questions: Sequence[str], known: Collection[str]) -> None:
        self._words = [word for question in questions for word in (*_tokens(question), "")]
        self._dated = any(_DATE.search(question) for question in questions)
        self._known = known
        every = scope_words()
        written = [name for name, each in every.items() if any(word in each["marks"] for word in self._words)]
        self._languages = [every[name] for name in dict.fromkeys((*written, "en"))] if written else [*every.values()]

    def lacks(
        self, code: NarrowingCode, name: str, value: str | int, arguments: Mapping[str, JsonValue]
    ) -> NarrowingCode | None:
        """The code of what has no support; None where there is some."""
        text = str(value)
        match code:
            case NarrowingCode.TIME:
                return self._lacks_time(text, arguments)
            case NarrowingCode.SEVERITY:
                supported = self._names_severity(text, threshold=name == "min_severity")
            case NarrowingCode.STATUS:
                unclosed = text == "Open" and self._says("status.Closed") and self._says("beyond")  # "not closed"
                supported = unclosed or self._says(f"status.{text}")
            case NarrowingCode.OWNER:
                supported = self._says("owner.person", "owner.nobody") or self.holds(text)
            case NarrowingCode.LIMIT:
                supported = text in self._words or self._says("first")
                supported = supported or any(map(everything().numbers.get, self._words))
            case _:
                supported = self.holds(text)
        return None if supported else code

    def _says(self, *tables: str) -> bool:
        """Whether a word of the questions stands in one of the tables."""
        return any(self._is(word, *tables) for word in self._words)

    def _is(self, word: str, *tables: str) -> bool:
        return any(word in language.get(table, Words()) for language in self._languages for table in tables)

    def _lacks_time(self, value: str, arguments: Mapping[str, JsonValue]) -> NarrowingCode | None:
        lengths = list(self._lengths())
        known = len(value) >= 10 and _DATE.match(value) and any(value[:10] in text for text in self._known)
        if not (lengths or self._dated or self._says("time") or known):
            return NarrowingCode.TIME
        hours = _window_hours(arguments)
        return NarrowingCode.SHORTER_TIME if hours is not None and lengths and hours < min(lengths) else None

    def _lengths(self) -> Iterator[int]:
        """Hours of each length of time that is named; 0 for how long ago something was, which any window may hold."""
        for place, word in enumerate(self._words):
            for unit in (unit for unit in _UNITS if self._is(word, f"units.{unit}")):
                before, behind = self._words[max(0, place - 2) : place], self._words[place + 1 : place + 2]
                number = next((count for each in before if (count := self._number(each)) is not None), None)
                led = any(self._is(each, "before") for each in before) or any(
                    self._is(each, "after") for each in behind
                )
                if number is not None or led:
                    ago = any(self._is(each, "ago") for each in self._words[max(0, place - 4) : place + 2])
                    yield 0 if ago else (1 if number is None else number) * _HOURS[unit]

    def _number(self, word: str) -> int | None:
        if word.isascii() and word.isdigit():
            return min(int(word[:6]), 10_000)
        return 1 if everything().has("one", word) else everything().numbers.get(word)

    def _names_severity(self, value: str, *, threshold: bool) -> bool:
        if value == SEVERITIES[0] and threshold:
            return True  # everything is at least that
        named = [level for level, severity in enumerate(SEVERITIES) if self._says(f"severity.{severity}")]
        wanted = SEVERITIES.index(value) if value in SEVERITIES else len(SEVERITIES) + 1
        if not threshold:
            return wanted in named
        return any(level >= wanted - self._says("beyond") for level in named)

    def holds(self, value: str) -> bool:
        """True if a word of the value that tells something stands in a question, or the value in a result."""
        folded = fold(value).strip()
        if any(folded in fold(text) for text in self._known):
            return True
        words = (word for word in _tokens(_spaced(value)) if word.isdigit() or len(word) > 1)
        return any(_alike(word, said) for word in words if not self._is(word, "generic") for said in self._words)


def _alike(word: str, said: str) -> bool:
    """The same word, or one the beginning of the other ("phish", "phishing")."""
    short, long = sorted((word, said), key=len)
    return word == said or (len(short) >= 4 and not short.isdigit() and long.startswith(short))


def _window_hours(arguments: Mapping[str, JsonValue]) -> float | None:
    """The length of the window of a call; None if it is open at its start, or cannot be read."""
    if match := _WINDOW.fullmatch(str(arguments.get("time_window") or "")):
        return int(match[1]) * _HOURS[match[2]]
    try:
        start, end = (datetime.fromisoformat(str(arguments[name])) for name in ("start_time", "end_time"))
        return (end - start).total_seconds() / 3600 + 1  # an end at 23:59:59 is the day's
    except (KeyError, ValueError, TypeError):
        return None


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(fold(text))


def _spaced(value: str) -> str:
    """`LateralMovement` as two words."""
    return "".join(f" {sign}" if sign.isupper() else sign for sign in value) if value.isalpha() else value
