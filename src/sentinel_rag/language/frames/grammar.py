"""How the parts of a sentence compose: rules over types, as data in `grammar.toml`.

The best match is taken first, wherever its rule stands in the file: one that demands more, and says it more exactly,
is better. What no rule takes is told as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from sentinel_rag.language.frames.frame import Frame
from sentinel_rag.language.frames.phrases import SILENT, Item, Sense
from sentinel_rag.language.text import toml_beside

_PASSED_OVER = (*SILENT, "modal", "ask", "op", "do", "of")
"""Types that may stand between the parts of a rule."""
_BY_TEXT, AS_SAID = ("lit", "text", "threat", "name"), ("program", "said")
"""Types of words, and a sense, that have no other value than the words."""
_ENDS = "?.!, "


@dataclass(frozen=True, slots=True)
class Part:
    """One element of a rule: `stays` for other rules, `next_to` the one before, `fits` the kind before it."""

    types: tuple[tuple[str, frozenset[str] | None], ...]
    stays: bool
    next_to: bool
    fits: bool

    def match(self, item: Item) -> Sense | None:
        """The sense of the item that this part takes."""
        for type_, values in self.types:
            found = item.sense(type_, values)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """Parts in their order, and what the frame is told: `$n` is the value of the nth part, `#n` its text."""

    parts: tuple[Part, ...]
    then: tuple[str, ...]
    score: float


Match = list[tuple[int, Item, Sense]]


def rule_of(when: str, then: list[str], weight: float = 0) -> Rule:
    """A rule as it is written: types (type:value|value), `~` stays, `!` next to, `@` fits."""
    parts = tuple(map(_part, when.split()))
    exact = sum(1 for part in parts for _, values in part.types[:1] if values)
    close = sum(part.next_to + part.fits for part in parts)
    stay = sum(part.stays for part in parts)
    return Rule(parts, tuple(then), 10 * len(parts) + 3 * exact + 2 * close - 4 * stay + weight)


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, the best first."""
    told = toml_beside(__package__, "grammar.toml")["rules"]
    made = [rule_of(rule["when"], rule["then"], rule.get("weight", 0)) for rule in told]
    return tuple(sorted(made, key=lambda rule: -rule.score))


def _part(text: str) -> Part:
    stays, next_to, fits = text.startswith("~"), "!" in text, "@" in text
    types: list[tuple[str, frozenset[str] | None]] = []
    for told in text.strip("~!@").split("/"):
        type_, _, values = told.partition(":")
        types += [(one, frozenset(values.split("|")) if values else None) for one in type_.split("|")]
    return Part(tuple(types), stays, next_to, fits)


def compose(items: list[Item], frame: Frame) -> None:
    """Tell the frame what the items say together."""
    types = {type_ for item in items for type_, _ in item.senses}
    for rule in rules():
        # Of all rules a sentence has the beginnings of a few.
        if not types.isdisjoint(type_ for type_, _ in rule.parts[0].types):
            items = _applied(rule, items, frame)
    for item in items:
        _tell(item, frame)


def _applied(rule: Rule, items: list[Item], frame: Frame) -> list[Item]:
    place = 0
    while place < len(items):
        found = _match_at(rule.parts, items, place)
        if found is None:
            place += 1
            continue
        for feature in rule.then:
            type_, _, value = _filled(feature, found).partition("=")
            frame.tell(type_, value.strip(_ENDS) if type_ in ("title", "owner") else value)
        gone = {at for (at, _, _), part in zip(found, rule.parts, strict=True) if not part.stays}
        items = [item for at, item in enumerate(items) if at not in gone]
        if not gone:
            place += 1
    return items


def _match_at(parts: tuple[Part, ...], items: list[Item], place: int) -> Match | None:
    found: Match = []
    for number, part in enumerate(parts):
        while number and not part.next_to and place < len(items) and items[place].type in _PASSED_OVER:
            if part.match(items[place]):
                break
            place += 1
        if place >= len(items):
            return None
        sense = part.match(items[place])
        if sense is None or (part.next_to and items[place].start - found[-1][1].end > 1):
            return None
        if part.fits and items[place].sense("name", frozenset({found[0][2][1]})) is None:
            return None
        found.append((place, items[place], sense))
        place += 1
    return found


def _filled(value: str, found: Match) -> str:
    def fill(match: re.Match[str]) -> str:
        _, item, sense = found[int(match[0][1:]) - 1]
        return item.text if match[0][0] == "#" or sense[0] in _BY_TEXT or sense == AS_SAID else sense[1]

    return re.sub(r"[$#]\d", fill, value)


def _tell(item: Item, frame: Frame) -> None:
    if item.type in ("text", "qualifier"):
        frame.unread.append(item.text)
        return
    for type_, value in item.senses:
        if type_ == "threat":
            frame.tell("maybe_title" if item.sense("topic") else "title", item.text)
        elif type_ not in SILENT:
            frame.tell(type_, value)
