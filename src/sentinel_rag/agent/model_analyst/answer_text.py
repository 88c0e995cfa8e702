"""What a model wrote, as an answer may hold it: Markdown that loads nothing, links nowhere and steers no terminal.

A model repeats what it read, so its text is as untrusted as a row. Link targets become code spans: a person still sees
where they would have led. Surfaces sanitise again. `Draft` shows an answer that is still being written: its text as it
comes, marks as its sentences end.

Models behind local servers leave in their text what a server with a parser for its model takes out: their reasoning,
which is dropped, and calls of tools. A call is taken up only if the text is nothing but calls of tools that read: a
model may quote a row, and a row must not be able to change anything by looking like a call. Arguments are read as they
stand and never repaired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import Any

from msgspec import structs

from sentinel_rag.agent.answers.check import GrowingAnswer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.models.port import AssistantMessage, ModelToolCall
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.evidence import Sentence

MAX_CHARACTERS = 60_000
_LONGEST_LINE = 8_000
_CODE = re.compile(r"(?<!`)(?:```(?!`)[^`]*```|`[^`\n]+`)(?!`)")
_OPENS_CODE = re.compile(r"(?<!`)```(?!`)")
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^\S\n]*<?([^\s()<>]{0,2000})>?[^()\n]{0,300}\)")
_CITATION = r"\[{1,2}c\d{1,6}[^\[\]\n]{0,200}\]{1,2}"
_CELL = re.compile(r"c\d{1,6}\.\d{1,6}\.\w{1,80}")
"""The target of a pointer at a cell, which the check resolves."""
_STILL_A_LINK = re.compile(rf"({_CITATION}:)|!(?=\[)|(?<=\])(?=:|\((?!{_CELL.pattern}\)))")
"""What a Markdown reader could still take for a link. A citation before a colon is none: the check takes it out."""
_TAG_OR_URL = re.compile(
    r"<(?=[A-Za-z/!?])[^<>\n]{0,2000}>?|(?:[a-z][a-z0-9+.-]{0,30}://|(?<![a-z0-9])www\.)[^\s<>\"'()\[\]«»“”„]*",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"«([^«»\n]{1,600})»|“([^“”\n]{1,600})”|(?<!\w)\"([^\"\n]{1,600})\"(?!\w)")
_MAY_BE_A_CALL = re.compile(r"\s*(?:<|\{|```|\[(?!c?\d))")
_MAY_SETTLE = re.compile(r"\n|[.!?]\s")
"""Signs behind which more may be shown; a model often writes the blank behind a stop with the next word."""
_PAIRS = (("[", "]"), ("(", ")"), ("<", ">"), ("【", "】"))
MOST_CALLS = 16
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_NAMED = re.compile(r"<function=([\w-]{1,64})>\s*(.*?)\s*</function>", re.DOTALL)
_PREFIX = re.compile(r"^(?:\[TOOL_CALLS\]|<\|python_tag\|>)\s*")
_FENCE = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.DOTALL)


def shown(text: str) -> str:
    """`text` in the form in which an answer may hold it, at most MAX_CHARACTERS long. Idempotent."""
    text = _outside_code(_lines(text[:MAX_CHARACTERS]), lambda part: _without_markup(part.replace("`", "ˋ")))
    return re.sub(r"\n{3,}", "\n\n", _lines(text)).strip()


def _code_in(text: str) -> list[tuple[int, int]]:
    """The places of code in the beginning `text` of a text. A block that has not ended yet goes on to its end."""
    found = [match.span() for match in _CODE.finditer(text)]
    for match in _OPENS_CODE.finditer(text):
        outside = not any(start <= match.start() < end for start, end in found)
        if outside and "`" not in text[match.end() :].rstrip("`"):
            return [*found, (match.start(), len(text))]
    return found


def _lines(text: str) -> str:
    """The lines without controls. Their indentation stays, since Markdown reads it."""
    return "\n".join(
        " " * min(len(line) - len(line.lstrip(" ")), 12) + plain(line, limit=_LONGEST_LINE)
        for line in text.splitlines()
    )


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, change(text[end:])])


def _without_markup(text: str) -> str:
    return _outside_code(_QUOTATION.sub(_quotation, text), _unquoted)


def _quotation(found: re.Match[str]) -> str:
    """A quotation as it is, in a code span where Markdown would change it: its exact form is the evidence."""
    inner = found[found.lastindex or 0].strip()
    if _unquoted(inner) == inner:
        return found[0]
    return f"{found[0][0]}`{inner}`{found[0][-1]}"


def _unquoted(text: str) -> str:
    text = _LINK.sub(_unlinked, text)
    return _outside_code(text, lambda part: _TAG_OR_URL.sub(lambda found: _span(found[0]), _no_link(part)))


def _no_link(text: str) -> str:
    return _STILL_A_LINK.sub(lambda found: found[1] or ("" if found[0] else " "), text)


def _unlinked(found: re.Match[str]) -> str:
    text, target = found[1].strip(), found[2]
    if _CELL.fullmatch(target):
        return f"[{text}]({target})"
    if text.isdigit():  # the number of a line, as in "[1](High)"
        text = f"[{text}]"
    elif not target or target == text:
        return _span(target)
    return f"{text} ({_span(target)})"


def _span(text: str) -> str:
    """A code span with a space on both sides: two that touch would be none."""
    text = text.replace("`", "ˋ").strip()
    return f" `{text}` " if text else ""


class Draft:
    """One text of a model. `opening` stands before the answer.

    What was given out is the beginning of the answer, so nothing is shown twice. Where a later word could still change
    what the text so far looks like (an open code span, half a citation), it waits; a text that may turn out to be a
    call of a tool waits for its end.
    """

    def __init__(self, evidence: ReadResults, *, opening: str = "") -> None:
        self._growing = GrowingAnswer(evidence)
        self._opening = f"{opening}\n\n" if opening else ""
        self._text = ""
        self._taken = 0
        self._body = ""
        self._given = False

    def add(self, more: str) -> tuple[str, tuple[Sentence, ...]]:
        """What may be shown beyond what was given before, now that `more` was written, and the sentences whose check
        has ended; both are often empty."""
        self._text += more
        if not _MAY_SETTLE.search(self._text, max(0, len(self._text) - len(more) - 1)):
            return "", ()
        text = without_reasoning(self._text, growing=True)
        if _MAY_BE_A_CALL.match(text) or "<think" in text[self._taken :]:
            return "", ()
        end = _settled(text, self._taken)
        if end <= self._taken:
            return "", ()
        self._taken = end
        body = _sanitised(text[:end])
        if not body.startswith(self._body):  # what comes now would be no part of the answer; it is shown as a whole
            return "", ()
        piece, self._body = body[len(self._body) :], body
        written, sentences = self._growing.add(piece)
        if written and not self._given:
            self._given, written = True, self._opening + written
        return written, tuple(each.behind(len(self._opening)) for each in sentences)


def _settled(text: str, start: int) -> int:
    """The last place at or behind `start` at which no later character changes what stands before it: the end of a line
    or of a sentence, with nothing open."""
    code = _code_in(text)
    end = start
    for line in re.finditer(r"[^\n]*\n|[^\n]+$", text[start:]):
        if line[0].endswith("\n"):
            places = [line.end()]
        elif "|" in line[0]:
            continue
        else:
            stops = (line.start() + stop.end() for stop in re.finditer(r"[.!?](?=\s)", line[0]))
            places = [stop for stop in stops if _balanced(line[0][: stop - line.start()])]
        for place in places:
            if not any(first < start + place <= last for first, last in code):
                end = start + place
    return end


def _balanced(text: str) -> bool:
    return text.count("`") % 2 == 0 and all(text.count(left) <= text.count(right) for left, right in _PAIRS)


def _sanitised(beginning: str) -> str:
    """`shown` for the beginning of a text, with the line ends behind it."""
    body, tail = shown(beginning), beginning[len(beginning.rstrip()) :]
    return body + tail[:2] if body and not tail.strip("\n") else body


def without_reasoning(text: str, *, growing: bool = False) -> str:
    """`text` without blocks of reasoning; one that never ends takes everything behind it along. Where the text is still
    `growing`, the blank around it stays: a longer text begins with what a shorter one gave."""
    if "<" not in text:
        return text
    left = _REASONING.sub("", text)
    return left if growing else left.strip()


def with_calls(message: AssistantMessage, reading: Collection[str]) -> AssistantMessage:
    """The message with the calls that its text consists of as calls; unchanged if it has any, or is something else."""
    if message.tool_calls:
        return message
    found = _calls_in(message.text.strip())
    if not found or len(found) > MOST_CALLS or any(name not in reading for name, _ in found):
        return message
    calls = tuple(
        ModelToolCall(f"call_text_{place}", name, arguments, json.dumps(arguments))
        for place, (name, arguments) in enumerate(found, start=1)
    )
    return structs.replace(message, text="", tool_calls=calls)


def written_call(text: str, names: Collection[str]) -> str:
    """The name of the first tool of `names` that `text` calls in writing and does nothing else; empty for any other."""
    return next((name for name, _ in _calls_in(text.strip()) if name in names), "")


def _calls_in(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls, if `text` is nothing else."""
    if not text or text[0] not in "<[{`":
        return []
    if not _TAGGED.sub("", text).strip():
        return _read([_json(found) for found in _TAGGED.findall(text)])
    if not _NAMED.sub("", text).strip():
        return _read([{"name": name, "arguments": _json(given)} for name, given in _NAMED.findall(text)])
    text = _PREFIX.sub("", text)
    fenced = _FENCE.match(text)
    value = _json(fenced[1] if fenced else text)
    return _read(value if isinstance(value, list) else [value])


def _read(values: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and arguments of each value; nothing if one of them is no call."""
    found: list[tuple[str, dict[str, Any]]] = []
    for value in values:
        if not isinstance(value, dict) or not set(value) <= {"name", "arguments", "parameters", "id", "type"}:
            return []
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters"))
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return []
        found.append((name, arguments))
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
