"""Replaces what a question points at by the ids it stands for, before any analyst sees the question.

Pure and total: it never raises, names no id that is neither in the references nor in the question, and changes nothing
in its own output. `remember` keeps what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sentinel_rag.agent.references.choices import Context, Found, Unclear
from sentinel_rag.agent.references.choosing import choose
from sentinel_rag.agent.references.corrections import corrected, only_denied, repeated_part, replaced_number
from sentinel_rag.agent.references.mention_forms import Form, Mention
from sentinel_rag.agent.references.mentions import mentions_in, whole
from sentinel_rag.agent.references.picking import picked
from sentinel_rag.agent.references.resolution import Resolution, Resolved
from sentinel_rag.agent.references.state import AskedQuestion, References
from sentinel_rag.agent.references.wording import ENTITY_NOUNS, INCIDENT_SAID, ORDINAL, mask
from sentinel_rag.agent.things import INCIDENT, QUESTION, ListItem, joined_words, shown_line, shown_words
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS

_COMPARES = re.compile(
    r"\b(?:compare|versus|vs|differ\w*|(?:worse|better|bigger|newer|older|same)\s+(?:than|as))\b", re.IGNORECASE
)
"""Words that set things side by side; those of different kinds are hardly meant."""
_ONLY_A_PLACE = re.compile(rf"\W*(?:the\s+)?(?:{ORDINAL})(?:\s+one)?\W*$", re.IGNORECASE)
"""A place without a noun: "and the second?" behind a question about a host asks for a host."""
MOST_MENTIONS = 60
"""A text that points more often than this is pasted, not asked; nothing in it is resolved."""


def resolve(question: str, references: References, *, now: datetime) -> Resolution:
    """What `question` points at. `now` is aware and in the session's time zone: "yesterday" is a day of it."""
    if len(question) > MAX_QUESTION_CHARACTERS:
        return Resolution(question)
    masked = mask(question)
    chosen = picked(masked, references, now)
    if chosen is not None:
        assert references.choices is not None
        pending = references.choices.question
        return _put(pending, question.strip(), chosen, fallback=question)
    if only_denied(masked):
        return _another_one(question, references)
    correction = corrected(masked)
    if correction is not None and references.asked is not None:
        said = question[correction[0] : correction[1]].strip()
        target = _by_incident_number(said, references.asked) or _instead(said, references, references.asked, now)
        if isinstance(target, Unclear):
            return _asked_back(question, target, references, references.asked)
        if target is not None:
            return _put(references.asked, said, target.items, fallback=question)
    again = repeated_part(masked)
    if again and references.asked is not None:
        repeated = _repeated(question, again, references, references.asked, now)
        if repeated is not None:
            return repeated
    return _in_place(question, masked, references, now)


def _in_place(question: str, masked: str, references: References, now: datetime) -> Resolution:
    """Each mention replaced where it stands; the first that is unclear is asked back."""
    context = Context(references, masked, now)
    text = ""
    at = 0
    resolved: list[Resolved] = []
    unclear: list[tuple[Unclear, int, int]] = []
    screen = 0
    for mention, choice in _chosen(masked, context):
        said = question[mention.start : mention.end]
        text += question[at : mention.start]
        at = mention.end
        if isinstance(choice, Unclear):
            unclear.append((choice, len(text), len(text) + len(said)))
            text += said
            continue
        if choice.items[0].kind == QUESTION:
            if whole(mention, masked):
                return Resolution(choice.items[0].value, (Resolved(said, choice.items, 0, len(choice.items[0].value)),))
            text += said
            continue
        screen = choice.screen
        words = _words(choice.items, mention)
        shown = said if words is None else words
        resolved.append(Resolved(said.strip(), choice.items, len(text), len(text) + len(shown)))
        text += shown
    text += question[at:]
    if unclear:
        first, begin, end = unclear[0]
        waiting = AskedQuestion(text, ((begin, end),), "", references.screen_number)
        if len(unclear) > 1:
            first = replace(first, choices=())
        return _asked_back(question, first, references, waiting)
    if len({item.of_kind for each in resolved for item in each.items}) > 1 and _COMPARES.search(masked):
        named = "; ".join(f"“{each.said}” is {shown_words(each.items[0])}" for each in resolved)
        return Resolution(question, ask=f"Those are things of different kinds: {named}. Which ones do you mean?")
    return Resolution(text, tuple(resolved), screen=screen if len(resolved) == 1 else 0)


def _chosen(masked: str, context: Context) -> list[tuple[Mention, Found | Unclear]]:
    """The mentions that point at something, in their order, no two of them sharing a word."""
    kept: list[tuple[Mention, Found | Unclear]] = []
    mentions = mentions_in(masked)
    for mention in mentions if len(mentions) <= MOST_MENTIONS else ():
        if any(mention.start < other.end and other.start < mention.end for other, _ in kept):
            continue
        choice = _of_the_sentence(mention, kept) or choose(mention, context)
        if choice is not None and (isinstance(choice, Unclear) or choice.items):
            kept.append((mention, choice))
    return sorted(kept, key=lambda each: each[0].start)


def _of_the_sentence(mention: Mention, kept: Sequence[tuple[Mention, Found | Unclear]]) -> Found | None:
    """What a pronoun stands for that follows a reference: "who owns [2] and is it open"."""
    before = [each for each in kept if each[0].end <= mention.start]
    if mention.form not in (Form.IT, Form.THAT) or not before:
        return None
    choice = max(before, key=lambda each: each[0].end)[1]
    if not isinstance(choice, Found) or len(choice.items) != 1:
        return None
    return choice if mention.kind in ("", choice.items[0].of_kind) else None


def _words(items: tuple[ListItem, ...], mention: Mention) -> str | None:
    words = joined_words(items)
    if words is None or not mention.genitive or len(items) > 1 or words.endswith('"'):
        return words
    return f"{words}'s"


def _single(words: str, references: References, now: datetime) -> Found | Unclear | None:
    """The things that `words` name, if they name nothing else: a reference, or an incident by its number."""
    masked = mask(words)
    said = INCIDENT_SAID.search(masked)
    if said is not None and not re.search(r"\w", masked[: said.start()] + masked[said.end() :]):
        return Found((ListItem(INCIDENT, said[1], incident=said[1]),))
    chosen = _chosen(masked, Context(references, masked, now))
    if len(chosen) == 2:
        chosen = [each for each in chosen if not _denied(masked, each[0])]
    elif len(chosen) == 1 and not whole(chosen[0][0], masked):
        return None
    return chosen[0][1] if len(chosen) == 1 else None


def _instead(words: str, references: References, asked: AskedQuestion, now: datetime) -> Found | Unclear | None:
    """What `words` put in the place of the last question's thing. A question that pointed into an earlier list ("the
    first one of the first list") is corrected in that list, unless only the list on the screen has a thing of its kind.
    """
    shown = references.corrected_list()
    here = _single(words, shown, now)
    if not asked.spans or not asked.screen or asked.screen == shown.screen_number:
        return here
    there = _single(words, references.as_of(asked.screen), now)
    if not isinstance(there, Found) or not isinstance(here, Found):
        return there if isinstance(there, Found) else here
    if there.items[0].key == here.items[0].key:
        return here
    fitting = [found for found in (there, here) if found.items[0].of_kind == asked.kind]
    if len(fitting) == 1:
        return fitting[0]
    return Unclear("Do you mean the line of the last list, or of the list before?", (here.items[0], there.items[0]))


def _by_incident_number(words: str, asked: AskedQuestion) -> Found | None:
    """The incident of "not 55, 38" or "38, not 55" after a question about incident 55: both are numbers of incidents.
    So is a number alone that corrects a question which named its incident by a number, where no list was shown."""
    said = replaced_number(words)
    if said is None or asked.kind != INCIDENT or len(asked.spans) != 1:
        return None
    denied, meant = said
    begin, end = asked.spans[0]
    about = INCIDENT_SAID.fullmatch(asked.text[begin:end].removesuffix("'s"))
    if about is None or (about[1] != denied if denied else asked.screen):
        return None
    return Found((ListItem(INCIDENT, meant, incident=meant),))


def _denied(masked: str, mention: Mention) -> bool:
    return (
        re.search(r"\b(?:not|n['’]t\s+mean|instead\s+of|rather\s+than)\W+$", masked[: mention.start], re.I) is not None
    )


def _repeated(
    question: str, begin: int, references: References, asked: AskedQuestion, now: datetime
) -> Resolution | None:
    """ "And [3]?": the last question about another thing of the same kind; None if it is not that."""
    words = question[begin:]
    if asked.kind in ENTITY_NOUNS and _ONLY_A_PLACE.match(mask(words)):
        words = f"{re.sub(r'[^a-z]*(?:one)?[^a-z]*$', '', words, flags=re.IGNORECASE)} {asked.kind}"
    here = _single(words, references, now)
    if not isinstance(here, Found) or here.items[0].kind == QUESTION:
        return None
    before = references.as_of(asked.screen)
    there = _single(words, before, now) if before.screen_number != references.screen_number else here
    if isinstance(there, Found) and there.items[0].key != here.items[0].key and there.items[0].of_kind == asked.kind:
        both = Unclear("Do you mean the line of the last list, or of the list before?", (here.items[0], there.items[0]))
        return _asked_back(question, both, references, asked)
    if here.items[0].of_kind != asked.kind:
        return None
    return replace(_put(asked, question[begin:].strip(" .?!"), here.items, fallback=""), screen=here.screen)


def _put(asked: AskedQuestion, said: str, items: tuple[ListItem, ...], *, fallback: str) -> Resolution:
    """The earlier question with `items` in the place of its one thing; the things alone if it has no such place."""
    words = joined_words(items)
    if words is None:
        place = asked.about(said)
        text = said if place is None else place
        begin = 0 if place is None else asked.spans[0][0]
        return Resolution(text or fallback, (Resolved(said, items, begin, begin + len(said)),), screen=asked.screen)
    place = asked.about(words)
    begin = 0 if place is None else asked.spans[0][0]
    resolved = Resolved(said, items, begin, begin + len(words))
    return Resolution(words if place is None else place, (resolved,), screen=asked.screen)


def _another_one(question: str, references: References) -> Resolution:
    """ "Not that one" without the one that is meant: the other of two, else asked back."""
    focus = references.focus()
    asked = references.asked
    if focus is None or asked is None:
        return Resolution(question)
    before = references.corrected_list().screen
    pool = () if before is None else before.items
    left = tuple(item for item in pool if item.key != focus.item.key and item.of_kind == focus.item.of_kind)
    if len(left) == 1 and len(pool) == 2:
        return _put(asked, question.strip(" .?!"), left, fallback=question)
    choices = left if len(left) <= 9 else ()
    return _asked_back(question, Unclear("Which one do you mean instead?", choices), references, asked)


def _asked_back(question: str, unclear: Unclear, references: References, waiting: AskedQuestion) -> Resolution:
    """The question back with its choices, under their numbers on the screen where they all stand there."""
    if not unclear.choices:
        return Resolution(question, ask=unclear.sentence)
    numbers = _numbers_on_screen(unclear.choices, references)
    lines = [shown_line(number, item) for number, item in zip(numbers, unclear.choices, strict=True)]
    ask = "\n".join([f"{unclear.sentence} Answer with [n].", *lines])
    return Resolution(question, ask=ask, choices=unclear.choices, numbers=numbers, question=waiting)


def _numbers_on_screen(choices: Sequence[ListItem], references: References) -> tuple[int, ...]:
    keys = [] if references.screen is None else [item.key for item in references.screen.items]
    if all(item.key in keys for item in choices):
        return tuple(keys.index(item.key) + 1 for item in choices)
    return tuple(range(1, len(choices) + 1))


def remember(question: str, resolution: Resolution, references: References) -> None:
    """Keep what `question` was about, and what is open; call it once a turn, before the answer is made. Words that say
    nothing are no turn."""
    if not question.strip():
        return
    references.begin_turn()
    references.choices = None
    if resolution.ask:
        references.ask_to_choose(resolution.choices, resolution.numbers, resolution.question)
        return
    spans = [(each.start, each.end) for each in resolution.resolved]
    items = list(resolution.items)
    for said in INCIDENT_SAID.finditer(mask(resolution.text)):
        if all(said.end() <= begin or said.start() >= end for begin, end in spans):
            spans.append(said.span())
            items.append(ListItem(INCIDENT, said[1], incident=said[1]))
    kinds = {item.of_kind for item in items}
    kind = kinds.pop() if len(kinds) == 1 else ""
    references.asked = AskedQuestion(
        resolution.text, tuple(sorted(spans)), kind, resolution.screen or references.screen_number
    )
    for item in items:
        references.focus_on(item)
    if len(items) > 1:
        references.talk_about(items)
