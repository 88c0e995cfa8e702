"""What a person picks when they were asked which of several things they mean.

An answer may be a number, a place ("the second one"), a word of a line ("the phishing one"), a name, "both" or "yes"
to the only one. Anything else is a new question, and the open one is dropped.
"""

from __future__ import annotations

import re
from datetime import datetime

from sentinel_rag.agent.references.descriptions import fitting
from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.mentions import mentions_in, whole
from sentinel_rag.agent.references.state import Choices, References
from sentinel_rag.agent.references.wording import END, START
from sentinel_rag.agent.things import INCIDENT, ListItem

_YES = re.compile(rf"{START}(?:yes|yep|yeah|yup|y|sure|ok|okay|right|exactly|correct){END}", re.IGNORECASE)
_ALL = re.compile(
    rf"{START}(?:both|all|either|any)(?:\s+(?:of\s+)?(?:them|these|those|two|three))?{END}", re.IGNORECASE
)
_INCIDENT = re.compile(rf"{START}(?:(?:the\s+)?(?:incident|case)\s*)?#?\s?(\d{{1,9}}){END}", re.IGNORECASE)
_OPENING = re.compile(rf"{START}(?:(?:i\s+mean[t]?|and|then|it\s+is|it['’]s|sorry|please)\b[\s,]*)+", re.IGNORECASE)


def picked(masked: str, references: References, now: datetime) -> tuple[ListItem, ...] | None:
    """The chosen things; None if nothing is open or the words choose nothing."""
    choices = references.choices
    if choices is None:
        return None
    words = _OPENING.sub("", masked)
    if _YES.match(words):
        return choices.items if len(choices.items) == 1 else None
    if _ALL.match(words) and len(choices.items) > 1:
        return choices.items
    if "[" not in words and (said := _INCIDENT.match(words)) is not None:
        found = tuple(item for item in choices.items if item.kind == INCIDENT and item.value == said[1])
        if found and _also_a_line(words, found[0], choices):
            return None
        if found:
            return found
    only = [mention for mention in mentions_in(words) if whole(mention, words)]
    for mention in only:
        if mention.form in (Form.PLACES, Form.NUMBERS) and not mention.chosen:
            return _by_place(mention, choices)
        of_kind = tuple(item for item in choices.items if mention.kind and item.of_kind == mention.kind)
        if mention.form is Form.THAT and len(of_kind) == 1:
            return of_kind
    described = next((mention.words for mention in only if mention.form is Form.DESCRIBED), words)
    return _by_words(described, choices, now)


def _also_a_line(words: str, incident: ListItem, choices: Choices) -> bool:
    """True for a number alone that is an incident's among the choices and the place of another of them."""
    place = int(re.sub(r"\D", "", words))
    alone = re.fullmatch(r"\W*\d+\W*", words) is not None
    return alone and place in choices.numbers and choices.items[choices.numbers.index(place)].key != incident.key


def _by_place(mention: Mention, choices: Choices) -> tuple[ListItem, ...] | None:
    """Numbers are those on the screen; places in words count the choices."""
    found = []
    for place in mention.places:
        if not mention.in_words:
            if place not in choices.numbers:
                return None
            found.append(choices.items[choices.numbers.index(place)])
        elif abs(place) <= len(choices.items):
            found.append(choices.items[place - 1 if place > 0 else place])
        else:
            return None
    return tuple(found)


def _by_words(words: str, choices: Choices, now: datetime) -> tuple[ListItem, ...] | None:
    said = words.strip(" .,;:!?").casefold()
    if not said or len(said.split()) > 5:
        return None
    named = tuple(item for item in choices.items if said in (item.value.casefold(), item.title.casefold()))
    if len(named) == 1:
        return named
    fit = fitting(re.sub(r"^the\s+|\s+one$", "", said), choices.items, now)
    return fit if len(fit) == 1 else None
