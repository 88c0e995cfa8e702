"""The things that tool results hold, which of them an answer names, and the numbered lists that a model wrote.

A line of such a list is tied only to an id that this conversation's tool results hold and that the line plainly leads
with, or that is the only one in it. Any other line stays a line without a thing: "[2]" of it is asked back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.knowledge_hits import hits_of
from sentinel_rag.agent.things import (
    ALERT,
    INCIDENT,
    LONGEST_WORDS,
    ListItem,
    entity_item,
    hit_item,
    incident_item,
    inner_items,
    row_items,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames.phrases import WORD, phrase_book
from sentinel_rag.language.lexicon import fold

UNKNOWN = "line"
MOST_LINES = 1000
_LINE = re.compile(
    r"^\s{0,12}(?:[-*+]\s+)?(?:\|\s*)?(?:\*\*|__)?\s*(?:\[(?P<bracket>\d{1,4})\]|(?P<plain>\d{1,4})(?:[.)](?=\s|\*)|(?=\s*\|)))"
    r"(?:\*\*|__)?[\s|:–—-]*(?P<rest>.*)$"
)
_LEADING = frozenset({"f", "definite", "kind", "severity", "status"})
"""Types of words that may stand before the thing that a line is about."""
_GOES_ON, _BEGAN = re.compile(r"[\w@]|[.-]\w"), re.compile(r"[\w@.-]")
_LONGEST_TITLE_OF_WORDS = 8
"""Characters that a title must have more of to stand for its incident."""
_PARAMETER_KINDS = {
    "account": "account", "user": "account", "actor": "account", "caller": "account", "host": "host", "ip": "ip",
    "domain": "dns", "process": "", "sender": "", "destination": "", "address": "", "indicator": "",
}  # fmt: skip
"""Parameters of stored queries that name a thing, and its kind where alerts hold such a value under no other kind."""


def occurrences(words: str, text: str) -> Iterator[int]:
    """Where `words` begin in `text`; both in one case. "web-3" is not found in "web-30" or in "web-3.example"."""
    begin = text.find(words) if words else -1
    while begin >= 0:
        end = begin + len(words)
        if not _BEGAN.match(text[max(begin - 1, 0) : begin]) and not _GOES_ON.match(text[end : end + 2]):
            yield begin
        begin = text.find(words, begin + 1)


def things_of(runs: Iterable[ToolRun]) -> tuple[ListItem, ...]:
    """Every thing that these results name, each once: rows, the alerts and entities inside them, their incidents."""
    found: dict[tuple[str, str, str], ListItem] = {}
    for run in runs:
        rows = row_items(run.call.tool_name, run.call.arguments, run.rows, run.call.call_id)
        for item in (*rows, *map(hit_item, hits_of(run)), *inner_items(run.rows), *_ranked(run)):
            if item.value and (item.key not in found or item.title):
                found.setdefault(item.key, item)
    return tuple(found.values())


def _ranked(run: ToolRun) -> Iterator[ListItem]:
    for kind, name in (("account", "top_accounts"), ("host", "top_hosts"), ("ip", "top_ips")):
        rows = run.at(f"/summary/{name}")
        for entity in rows if isinstance(rows, list | tuple) else ():
            if isinstance(entity, Mapping):
                yield entity_item(kind, str(entity.get("name") or ""))


def told_in(runs: Iterable[ToolRun], text: str) -> list[ListItem]:
    """The things of these results that a text names."""
    folded = text.casefold()
    return [item for item in things_of(runs) if next(occurrences(item.value.casefold(), folded), None) is not None]


def asked_about(runs: Sequence[ToolRun]) -> Iterator[ListItem]:
    """What calls that found something were about: entities before incidents and alerts, so that "it" is the incident in
    which the alerts of a host were asked for."""
    worked = [run for run in runs if run.rows]
    for run in worked:
        entity = run.call.arguments.get("entity")
        if isinstance(entity, str) and entity:
            yield entity_item(str(run.call.arguments.get("entity_kind") or ""), entity)
        yield from _named_to_a_query(run.call.arguments.get("parameters"))
    for run in worked:
        incident, alert = run.call.arguments.get("incident"), run.call.arguments.get("alert_id")
        if run.call.tool_name == "get_incident_detail" and len(run.rows) == 1:
            yield incident_item(run.rows[0])
        elif isinstance(incident, str | int) and incident:
            yield ListItem(INCIDENT, str(incident), incident=str(incident))
        only = row_items(run.call.tool_name, run.call.arguments, run.rows)[:1] if len(run.rows) == 1 else ()
        if only and only[0].kind in (INCIDENT, ALERT) and "limit" not in run.call.arguments:
            yield only[0]
        if isinstance(alert, str) and alert:
            yield ListItem(ALERT, alert)


def _named_to_a_query(parameters: JsonValue) -> Iterator[ListItem]:
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        if name in _PARAMETER_KINDS and isinstance(value, str) and value:
            yield entity_item(_PARAMETER_KINDS[name], value)


def shown_text(answer: Answer) -> str:
    """Everything that a person reads of an answer above its footnote."""
    cells = (cell for table in answer.tables for row in (table.columns, *table.rows) for cell in row)
    return "\n".join((answer.text, *cells))


@dataclass(frozen=True, slots=True)
class _Name:
    """One way in which a line may name a thing."""

    item: ListItem
    begin: int
    end: int
    certain: bool


def numbered_lists(text: str, known: Sequence[ListItem]) -> tuple[tuple[ListItem, ...], ...]:
    """The lists of `text`, each numbered from 1 without a gap; a line without a known thing has the kind `line`."""
    lists: list[list[ListItem]] = []
    expected = 0
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        number = int(match["bracket"] or match["plain"])
        if number == 1:
            lists.append([])
        elif number != expected:
            expected = 0
            continue
        lists[-1].append(_thing_of(match["rest"], known))
        expected = number + 1
    return tuple(tuple(each[:MOST_LINES]) for each in lists if len(each) > 1 or each[0].value)


def _thing_of(line: str, known: Sequence[ListItem]) -> ListItem:
    named = sorted(_names_in(line, known), key=lambda name: (name.begin, -name.end))
    certain = {name.item.key: name.item for name in named if name.certain}
    leading = [name for name in named if _leads(line[: name.begin])]
    if leading:
        first = leading[0]
        same = {name.item.key for name in leading if name.begin == first.begin and name.end == first.end}
        if len(same) == 1 and (first.certain or _stands_for_an_incident(first, line, named)):
            return first.item
    elif len(certain) == 1:
        return next(iter(certain.values()))
    return ListItem(UNKNOWN, "", title=line.strip()[:LONGEST_WORDS])


def _leads(before: str) -> bool:
    """True if only nouns, levels, states and times stand before a name."""
    book = phrase_book("en")
    return all(
        word[0].isdigit() or any(type_ in _LEADING for type_, _ in book.senses(word))
        for word in WORD.findall(fold(before))
    )


def _stands_for_an_incident(name: _Name, line: str, named: Sequence[_Name]) -> bool:
    """True for a bare number that leads its line and cannot be a count: its incident's title is there too, or no word
    follows it and no other thing is named."""
    if name.item.title and name.item.title.casefold() in line.casefold():
        return True
    others = {each.item.key for each in named} - {name.item.key}
    return not others and re.match(r"\s*[^\W\d_]", line[name.end :]) is None


def _names_in(line: str, known: Sequence[ListItem]) -> Iterator[_Name]:
    """A number counts as an incident's for certain behind that word or a `#`; elsewhere it may be a count."""
    folded = line.casefold()
    for item in known:
        for words in {item.value, item.guid, item.title if len(item.title) > _LONGEST_TITLE_OF_WORDS else ""} - {""}:
            for begin in occurrences(words.casefold(), folded):
                number = item.kind == INCIDENT and words.isdigit()
                yield _Name(item, begin, begin + len(words), not number or _called_incident(folded[:begin]))


def _called_incident(before: str) -> bool:
    words = WORD.findall(before)
    behind = before.rstrip(" *_#:-")
    said = bool(words) and behind.endswith(words[-1]) and ("kind", "incident") in phrase_book("en").senses(words[-1])
    return said or before.rstrip().endswith("#")
