"""Reads the numbered lists out of an answer that a model wrote, and ties each line to the thing that it names.

A line is tied only to an id that this conversation's tool results hold and that the line plainly leads with, or that is
the only one in it. Any other line stays a line without a thing: "[2]" of it is asked back, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.references.occurrences import occurrences
from sentinel_rag.agent.references.state import MAX_LISTED, References
from sentinel_rag.agent.references.tool_things import learn, things_of
from sentinel_rag.agent.references.wording import LINE, NOUN
from sentinel_rag.agent.things import ALERT, INCIDENT, LONGEST_WORDS, ListItem
from sentinel_rag.agent.tool_runs import ToolRun

_LINE = re.compile(
    r"^\s{0,12}(?:[-*+]\s+)?(?:\|\s*)?(?:\*\*|__)?\s*(?:\[(?P<bracket>\d{1,4})\]|(?P<plain>\d{1,4})(?:[.)](?=\s|\*)|(?=\s*\|)))"
    r"(?:\*\*|__)?[\s|:–—-]*(?P<rest>.*)$"
)
_LEAD = re.compile(
    rf"[\W_]*(?:(?:the|sentinel|{NOUN}|{LINE}|id|no|number|high|medium|low|informational|new|active|closed|"
    r"\d{4}-\d{2}-\d{2}(?:[t ]\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:z|\s*utc)?)?)[\W_]*)*",
    re.IGNORECASE,
)
UNKNOWN = "line"


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
    return tuple(tuple(each[:MAX_LISTED]) for each in lists if len(each) > 1 or each[0].value)


def _thing_of(line: str, known: Sequence[ListItem]) -> ListItem:
    named = sorted(_names_in(line, known), key=lambda name: (name.begin, -name.end))
    certain = {name.item.key: name.item for name in named if name.certain}
    leading = [name for name in named if _LEAD.fullmatch(line[: name.begin])]
    if leading:
        first = leading[0]
        same = {name.item.key for name in leading if name.begin == first.begin and name.end == first.end}
        if len(same) == 1 and (first.certain or _stands_for_an_incident(first, line, named)):
            return first.item
    elif len(certain) == 1:
        return next(iter(certain.values()))
    return ListItem(UNKNOWN, "", title=line.strip()[:LONGEST_WORDS])


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
        for words in {item.value, item.guid, item.title if len(item.title) > 8 else ""} - {""}:
            for begin in occurrences(words.casefold(), folded):
                number = item.kind == INCIDENT and words.isdigit()
                said = re.search(r"(?:\bincidents?\b[\W_]*|\bcase\b[\W_]*|#\s?)$", folded[:begin]) is not None
                yield _Name(item, begin, begin + len(words), not number or said)


def show_answer(references: References, text: str, runs: Sequence[ToolRun], *, earlier: Iterable[ToolRun] = ()) -> None:
    """Register what a model's final answer lists and names; `earlier` runs of the conversation lend their ids too."""
    learn(references, runs, shown=text)
    known = _known(references, (*runs, *earlier))
    for items in numbered_lists(text, known):
        references.show_list(items)
        if len(items) == 1 and items[0].kind in (INCIDENT, ALERT):
            references.focus_on(items[0])


def _known(references: References, runs: Sequence[ToolRun]) -> tuple[ListItem, ...]:
    listed = [item for shown in references.lists for item in shown.items if item.value and item.kind != "question"]
    talked = [each.item for each in (*references.focused, *references.mentioned)]
    return tuple({item.key: item for item in (*talked, *listed, *things_of(runs))}.values())
