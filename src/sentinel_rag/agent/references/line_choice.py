"""Which line of which list is meant: by its number or place, by the line beside it, by what it says."""

from __future__ import annotations

import re

from sentinel_rag.agent.references.choices import (
    MOST_TOGETHER,
    Choice,
    Context,
    Found,
    Unclear,
    of_kinds,
    unique,
    wanted_kinds,
    which,
)
from sentinel_rag.agent.references.descriptions import fitting, superlative
from sentinel_rag.agent.references.mention_forms import Form, ListChoice, Mention
from sentinel_rag.agent.references.mentions import whole
from sentinel_rag.agent.references.state import References, ShownList
from sentinel_rag.agent.references.wording import ENTITY_NOUNS, ORDINALS
from sentinel_rag.agent.things import ALERT, INCIDENT, QUESTION, ListItem, shown_words


def _list_for(mention: Mention, context: Context) -> ShownList | None:
    """The list in which the line stands: the one named, else the screen's, else the newest of the kind asked for."""
    references = context.references
    if mention.chosen is not None:
        return _named_list(mention.chosen, references)
    screen = references.screen
    kinds: tuple[str, ...] = (mention.kind,) if mention.kind else ()
    if not kinds and mention.in_words:
        kinds = wanted_kinds(mention, context)
    if screen is None or not kinds or any(item.of_kind in kinds for item in screen.items):
        return screen
    older = [each for each in references.lists if any(item.of_kind in kinds for item in each.items)]
    return older[-1] if older else screen


def _named_list(chosen: ListChoice, references: References) -> ShownList | None:
    if chosen.unknown:
        return None
    lists = list(references.lists)
    if chosen.earlier and references.choices is None:
        lists = lists[:-1]  # behind choices to pick from, the list before is the one that they were taken from
    if chosen.kind:
        lists = [each for each in lists if any(item.of_kind == chosen.kind for item in each.items)]
    elif chosen.place > 0:
        place = chosen.place - 1 - references.dropped
        return lists[place] if 0 <= place < len(lists) else None
    if chosen.place > 0:
        return lists[chosen.place - 1] if chosen.place <= len(lists) and not references.dropped else None
    return lists[-1] if lists else None


def by_places(mention: Mention, context: Context) -> Choice:
    """Lines by their numbers or places; asked back where one stands for several things, or for none."""
    shown = _list_for(mention, context)
    told = _told_in_a_row(mention, shown, context.references)
    if told is not None:
        return told
    if shown is not None and _only_questions(shown) and mention.chosen is None and not whole(mention, context.masked):
        # Options stand on the screen, and "details of [2]" is asked of a thing: the list of things before them.
        shown = next((each for each in reversed(context.references.lists) if not _only_questions(each)), None)
        if shown is None:
            return Unclear("Those lines are questions to pick from. Name the incident, alert or host that you mean.")
    if shown is None:
        if mention.chosen is not None:
            return Unclear(
                "I do not know which list you mean, or do not have it any more. Name the thing itself, please."
            )
        return None
    found = []
    for place in mention.places:
        line = shown.line(place)
        if line is None:
            return None
        if mention.chosen is None and (twin := _twin(line, place, shown, context.references)) is not None:
            return Unclear(f"The last answer has more than one line [{place}]. Which do you mean?", (twin, line))
        if not line.value:
            return Unclear(f"I cannot tell which thing line [{place}] names. Give its number or its name, please.")
        if mention.kind and line.kind != QUESTION and line.of_kind != mention.kind:
            return _of_another_kind(mention, line, place)
        found.append(line)
    return Found(tuple(found), context.references.number_of(shown))


def _only_questions(shown: ShownList) -> bool:
    return bool(shown.items) and all(item.kind == QUESTION for item in shown.items)


def _told_in_a_row(mention: Mention, shown: ShownList | None, references: References) -> Choice:
    """The nth of the hosts, accounts and the like that an answer told of in one line without numbers. Asked back where
    there is no such line, or not so many in it."""
    kind = mention.kind
    if mention.chosen is not None or not mention.in_words or mention.plural or kind not in ENTITY_NOUNS:
        return None
    row = next((each for each in references.rows if each.items[0].of_kind == kind), None)
    listed = shown is not None and any(item.of_kind == kind for item in shown.items)
    if listed and (row is None or (shown is not None and shown.turn >= row.turn)):
        return None
    place = mention.places[0]
    if row is not None and abs(place) <= len(row.items):
        return Found((row.items[place - 1 if place > 0 else place],))
    told = [each for each in references.mentioned if each.item.of_kind == kind]
    newest = max((each.turn for each in told), default=0)
    pool = unique(each.item for each in told if each.turn == newest) if row is None else row.items
    if place == 1 and len(pool) < 2:
        return Found(pool) if pool else None  # "the first host" may be the one that was hit first
    if pool:
        return which(kind, pool)
    return Unclear(f"Which {kind} do you mean? I have listed none. Name it, or ask for a list first.")


def _twin(line: ListItem, place: int, shown: ShownList, references: References) -> ListItem | None:
    """Another line of the same number in the same answer, which a model may have written as two lists."""
    for other in references.lists:
        if other is not shown and other.turn == shown.turn:
            twin = other.line(place)
            if twin is not None and twin.value and twin.key != line.key:
                return twin
    return None


def _of_another_kind(mention: Mention, line: ListItem, place: int) -> Choice:
    if mention.soft:
        return None
    if mention.kind == INCIDENT and line.kind == ALERT and line.incident:
        owner = ListItem(INCIDENT, line.incident, incident=line.incident)
        return Unclear(f"Line [{place}] is an alert, of incident {line.incident}. Do you mean that incident?", (owner,))
    return Unclear(f"Line [{place}] of the last list is of another kind: {shown_words(line)}. Do you mean it?", (line,))


def by_numbers(mention: Mention, context: Context) -> Choice:
    """A bare number: a line where there is one, an incident where one of that number is known; both are asked back."""
    number = mention.places[0]
    screen = context.references.screen
    line = None if screen is None else screen.line(number)
    known = str(number) in context.references.numbers_known()
    incident = ListItem(INCIDENT, str(number), incident=str(number))
    if len(mention.places) > 1:
        return by_places(mention, context)
    if line is not None and line.kind == INCIDENT and line.value == str(number):
        return Found((line,))
    if line is not None and line.value and (known or mention.form is Form.HASHED) and line.kind != QUESTION:
        return Unclear(
            f"Do you mean line [{number}] of the list, or the incident with the number {number}?", (line, incident)
        )
    if line is not None and line.value and mention.form is not Form.HASHED:
        return Found((line,))
    return Found((incident,)) if known else None


def by_beside(mention: Mention, context: Context) -> Choice:
    """The line before or after the thing that was talked about, if both are on the screen."""
    screen = context.references.screen
    focus = context.references.focus()
    if screen is None or focus is None:
        return None
    keys = [item.key for item in screen.items]
    if focus.item.key not in keys:
        return None
    place = keys.index(focus.item.key) + mention.places[0]
    return Found((screen.items[place],)) if 0 <= place < len(keys) else None


_COUNTS = re.compile(r"\b(?:most|fewest|many|more|fewer|least)\b", re.IGNORECASE)
"""Words that count what a line does not say, as in "the one with the most alerts": a question for a query."""


def by_described(mention: Mention, context: Context) -> Choice:
    """The one line that the description fits; asked back where several do, or only lines of earlier lists."""
    shown = _list_for(mention, context)
    if shown is None or mention.words.lower().strip() in ORDINALS:
        return None
    kinds = (mention.kind,) if mention.kind else ()
    lines = of_kinds(shown.items, kinds)
    if not lines or (mention.kind and superlative(mention.words)):
        return None
    found = fitting(mention.words, lines, context.now)
    if len(found) == 1:
        return Found(found, context.references.number_of(shown))
    if found:
        return which("one", found)
    if mention.soft or _COUNTS.search(mention.words):
        return None
    earlier = unique(line for each in context.references.lists for line in each.items)
    fit = fitting(mention.words, earlier, context.now)
    if len(fit) == 1:
        return Unclear("No line of the last list fits that. Do you mean this one, shown before?", fit)
    return Unclear("No line of the last list fits that. Name the line by its number, or the thing itself.")


def by_earlier(mention: Mention, context: Context) -> Choice:
    """All lines of the newest list that has things of that kind."""
    lists = [of_kinds(each.items, (mention.kind,)) for each in context.references.lists]
    known = [each for each in lists if each]
    if not known:
        return None
    if len(known[-1]) > MOST_TOGETHER:
        return Unclear(f"That list has {len(known[-1])} lines. Which of them do you mean, for example [1] and [3]?")
    return Found(known[-1])
