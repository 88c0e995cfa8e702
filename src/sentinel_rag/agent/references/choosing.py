"""What a mention points at in this conversation: things, several that it may mean, or nothing.

Pure. The rule throughout: what was talked about last is meant, unless a list came after it; then one line that fits is
meant and several are asked back. Nothing is chosen because it is likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel_rag.agent.references.descriptions import fitting, superlative
from sentinel_rag.agent.references.listed import ALERT, INCIDENT, QUESTION, ListItem
from sentinel_rag.agent.references.mentions import Form, ListChoice, Mention
from sentinel_rag.agent.references.state import References, ShownList
from sentinel_rag.agent.references.wording import ENTITY_NOUNS, INCIDENT_SAID, ORDINALS
from sentinel_rag.agent.references.words_for import shown_words

MOST_TOGETHER = 10
"""Things that "them" may stand for in one question; above that the person names the lines."""
MOST_CHOICES = 9

NO_LIST = "There is no such line in the last list. Ask for a list first, or name the incident by its number."


@dataclass(frozen=True, slots=True)
class Found:
    """The things that are meant."""

    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True)
class Unclear:
    """A question back; `choices` are the things that may be meant, none where they are too many or unknown."""

    sentence: str
    choices: tuple[ListItem, ...] = ()


Choice = Found | Unclear | None
"""None if the words point at nothing here and need not."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a choice is made in: `masked` is the whole question without its quotations."""

    references: References
    masked: str
    now: datetime

    def around(self, mention: Mention) -> str:
        """The question without the mention."""
        return f"{self.masked[: mention.start]} {self.masked[mention.end :]}"


def choose(mention: Mention, context: Context) -> Choice:
    """What `mention` points at; a mention that is not soft never ends in None."""
    choice = _CHOOSERS[mention.form](mention, context)
    if choice is None and not mention.soft:
        return Unclear(_nothing(mention, context.references))
    return choice


def _nothing(mention: Mention, references: References) -> str:
    if mention.form in (Form.PLACES, Form.DESCRIBED, Form.BESIDE):
        shown = references.screen
        if shown is None or not shown.items:
            return NO_LIST
        return (
            f"There is no such line in the last list, which ends at [{len(shown.items)}]. Name the line by its number."
        )
    if mention.kind == INCIDENT:
        return "Which incident do you mean? Give its number, or ask for a list first."
    if mention.kind == ALERT:
        return "Which alert do you mean? Give its id, or ask for a list first."
    if mention.kind:
        return f"Which {mention.kind} do you mean? Name it, or ask for a list first."
    return "Which incident or alert do you mean? Give its number, or ask for a list first."


def _unique(items: Iterable[ListItem]) -> tuple[ListItem, ...]:
    return tuple({item.key: item for item in items if item.kind != QUESTION}.values())


def _of(items: Iterable[ListItem], kinds: Sequence[str]) -> tuple[ListItem, ...]:
    return _unique(item for item in items if not kinds or item.of_kind in kinds)


def _which(noun: str, pool: Sequence[ListItem]) -> Unclear:
    if len(pool) > MOST_CHOICES:
        return Unclear(
            f"Which {noun} do you mean? {len(pool)} fit. Answer with the number of its line, or with its name."
        )
    return Unclear(f"Which {noun} do you mean?", tuple(pool))


def _list_for(mention: Mention, references: References) -> ShownList | None:
    """The list in which the line stands: the one named, else the screen's, else the newest of the noun's kind."""
    chosen = mention.chosen
    if chosen is not None:
        return _named_list(chosen, references)
    screen = references.screen
    if screen is None or not mention.kind or any(item.of_kind == mention.kind for item in screen.items):
        return screen
    older = [each for each in references.lists if any(item.of_kind == mention.kind for item in each.items)]
    return older[-1] if older else screen


def _named_list(chosen: ListChoice, references: References) -> ShownList | None:
    lists = list(references.lists)
    if chosen.earlier:
        lists = lists[:-1]
    if chosen.kind:
        lists = [each for each in lists if any(item.of_kind == chosen.kind for item in each.items)]
    elif chosen.place > 0:
        place = chosen.place - 1 - references.dropped
        return lists[place] if 0 <= place < len(lists) else None
    if chosen.place > 0:
        return lists[chosen.place - 1] if chosen.place <= len(lists) and not references.dropped else None
    return lists[-1] if lists else None


def _places(mention: Mention, context: Context) -> Choice:
    shown = _list_for(mention, context.references)
    if shown is None:
        if mention.chosen is not None:
            return Unclear("I do not have that list any more. Ask for it again, or name the thing itself.")
        return None
    found = []
    for place in mention.places:
        line = shown.line(place)
        if line is None:
            return None
        if not line.value:
            return Unclear(f"I cannot tell which thing line [{place}] names. Give its number or its name, please.")
        if mention.kind and line.kind != QUESTION and line.of_kind != mention.kind:
            return _of_another_kind(mention, line, place)
        found.append(line)
    return Found(tuple(found))


def _of_another_kind(mention: Mention, line: ListItem, place: int) -> Choice:
    if mention.soft:
        return None
    if mention.kind == INCIDENT and line.kind == ALERT and line.incident:
        owner = ListItem(INCIDENT, line.incident, incident=line.incident)
        return Unclear(f"Line [{place}] is an alert, of incident {line.incident}. Do you mean that incident?", (owner,))
    return Unclear(f"Line [{place}] of the last list is of another kind: {shown_words(line)}. Do you mean it?", (line,))


def _numbers(mention: Mention, context: Context) -> Choice:
    """A bare number: a line where there is one, an incident where one of that number is known; both are asked back."""
    number = mention.places[0]
    screen = context.references.screen
    line = None if screen is None else screen.line(number)
    known = str(number) in context.references.numbers_known()
    incident = ListItem(INCIDENT, str(number), incident=str(number))
    if len(mention.places) > 1:
        return _places(mention, context)
    if line is not None and line.kind == INCIDENT and line.value == str(number):
        return Found((line,))
    if line is not None and line.value and (known or mention.form is Form.HASHED) and line.kind != QUESTION:
        return Unclear(
            f"Do you mean line [{number}] of the list, or the incident with the number {number}?", (line, incident)
        )
    if line is not None and line.value and mention.form is not Form.HASHED:
        return Found((line,))
    return Found((incident,)) if known else None


def _beside(mention: Mention, context: Context) -> Choice:
    screen = context.references.screen
    focus = context.references.focus()
    if screen is None or focus is None:
        return None
    keys = [item.key for item in screen.items]
    if focus.item.key not in keys:
        return None
    place = keys.index(focus.item.key) + mention.places[0]
    return Found((screen.items[place],)) if 0 <= place < len(keys) else None


def _newest(references: References, kinds: Sequence[str], noun: str) -> Choice:
    """The one thing of `kinds` that was talked about last, or the only one that was shown since."""
    focus = references.focus(*kinds)
    since = -1 if focus is None else focus.turn
    screen = references.screen
    pool: tuple[ListItem, ...] = ()
    if screen is not None and screen.turn > since:
        pool = _of(screen.items, kinds)
    if not pool and kinds:
        told = [each for each in references.mentioned if each.item.of_kind in kinds and each.turn > since]
        newest = max((each.turn for each in told), default=0)
        pool = _unique(each.item for each in told if each.turn == newest)
    if not pool:
        return None if focus is None else Found((focus.item,))
    if len(pool) == 1:
        return Found(pool)
    before = () if focus is None else tuple(each for each in (focus.item,) if each.key not in {p.key for p in pool})
    return _which(noun, (*pool, *before))


def _that(mention: Mention, context: Context) -> Choice:
    return _newest(context.references, (mention.kind,), mention.kind)


_NAMED_BEFORE = re.compile(r"[\ufffc@\\]|\b[\w$-]*\d[\w$-]*\b(?=.*\b\w)|\w\.\w{2,}")
"""The sentence names something itself, which its pronoun may stand for."""
_ASKS_INCIDENT = (
    r"owners?|owns?|owned|assigned|assignee|comments?|tasks?|classifi\w+|bookmarks?|closed\s+(?:it|by)|who\s+closed"
)
_ASKS_OF_ALERT = r"(?:which|what|whose)\s+incident|part\s+of|belongs?|events?\s+behind|raw\s+events?"
_NOT_ALERTS = (INCIDENT, *sorted(ENTITY_NOUNS))


def _it(mention: Mention, context: Context) -> Choice:
    references = context.references
    before = context.masked[: mention.start]
    if said := INCIDENT_SAID.findall(before):
        return Found((ListItem(INCIDENT, said[-1], incident=said[-1]),))
    if _NAMED_BEFORE.search(before):
        return Found(())
    if mention.kind and (choice := _newest(references, (mention.kind,), mention.kind)) is not None:
        return choice
    around = context.around(mention)
    kinds: tuple[str, ...] = ()
    if re.search(rf"\b(?:{_ASKS_OF_ALERT})\b", around, re.IGNORECASE):
        kinds = (ALERT, *sorted(ENTITY_NOUNS))
    elif re.search(rf"\b(?:{_ASKS_INCIDENT})\b", around, re.IGNORECASE):
        kinds = (INCIDENT,)
    elif re.search(r"\balerts\b", around, re.IGNORECASE):
        kinds = _NOT_ALERTS
    choice = _newest(references, kinds, "one")
    if choice is None and kinds:
        choice = _newest(references, (), "one")
    return choice


def _set(references: References, kinds: Sequence[str]) -> tuple[ListItem, ...]:
    """The things that were spoken of or listed together last."""
    screen = references.screen
    grouped = _of(references.group, kinds)
    listed = () if screen is None else _of(screen.items, kinds)
    if grouped and (not listed or screen is None or references.group_turn >= screen.turn):
        return grouped
    if listed:
        return listed
    told = [each for each in references.mentioned if kinds and each.item.of_kind in kinds]
    newest = max((each.turn for each in told), default=0)
    return _unique(each.item for each in told if each.turn == newest)


def _them(mention: Mention, context: Context) -> Choice:
    kinds = (mention.kind,) if mention.kind else ()
    together = _set(context.references, kinds)
    if not together:
        return None
    if mention.places and len(together) != mention.places[0]:
        return _which("ones", together)
    if len(together) > MOST_TOGETHER:
        return Unclear(f"That list has {len(together)} lines. Which of them do you mean, for example [1] and [3]?")
    return Found(together)


def _both(mention: Mention, context: Context) -> Choice:
    references = context.references
    kinds = (mention.kind,) if mention.kind else ()
    together = _set(references, kinds)
    if len(together) == 2:
        return Found(together)
    newest = references.focus(*kinds)
    if newest is not None:
        same = _unique(each.item for each in references.focused if each.item.of_kind == newest.item.of_kind)
        screen = references.screen
        if len(same) == 2 and (screen is None or screen.turn <= newest.turn):
            return Found(same)
        if len(same) > 2:
            return _which("two", tuple(reversed(same))[:MOST_CHOICES])
    return _which("two", together) if together else None


def _other(mention: Mention, context: Context) -> Choice:
    references = context.references
    kinds = (mention.kind,) if mention.kind else ()
    focus = references.focus(*kinds)
    if focus is None:
        return None
    same = (focus.item.of_kind,)
    pools = [_of(references.group, same)]
    if references.screen is not None:
        pools.append(_of(references.screen.items, same))
    told = [each for each in references.mentioned if each.item.of_kind in same]
    newest = max((each.turn for each in told), default=0)
    pools.append(_unique(each.item for each in told if each.turn == newest))
    pools.append(_unique(each.item for each in references.focused if each.item.of_kind in same))
    for pool in pools:
        left = tuple(item for item in pool if item.key != focus.item.key)
        if len(pool) == 2 and len(left) == 1:
            return Found(left)
    left = next((tuple(i for i in pool if i.key != focus.item.key) for pool in pools if len(pool) > 2), ())
    return _which(f"other {mention.kind or 'one'}", left) if left else None


def _described(mention: Mention, context: Context) -> Choice:
    shown = _list_for(mention, context.references)
    if shown is None or mention.words.lower().strip() in ORDINALS:
        return None
    kinds = (mention.kind,) if mention.kind else ()
    lines = _of(shown.items, kinds)
    if not lines or (mention.kind and superlative(mention.words)):
        return None
    found = fitting(mention.words, lines, context.now)
    if len(found) == 1:
        return Found(found)
    if found:
        return _which("one", found)
    if mention.soft:
        return None
    return Unclear("No line of the last list fits that. Name the line by its number, or the thing itself.")


def _earlier(mention: Mention, context: Context) -> Choice:
    lists = [_of(each.items, (mention.kind,)) for each in context.references.lists]
    known = [each for each in lists if each]
    if not known:
        return None
    if len(known[-1]) > MOST_TOGETHER:
        return Unclear(f"That list has {len(known[-1])} lines. Which of them do you mean, for example [1] and [3]?")
    return Found(known[-1])


_CHOOSERS = {
    Form.PLACES: _places,
    Form.NUMBERS: _numbers,
    Form.HASHED: _numbers,
    Form.BESIDE: _beside,
    Form.THAT: _that,
    Form.IT: _it,
    Form.THEM: _them,
    Form.BOTH: _both,
    Form.OTHER: _other,
    Form.DESCRIBED: _described,
    Form.EARLIER: _earlier,
}
