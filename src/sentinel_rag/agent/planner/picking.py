"""What was offered and is picked: by its words, its number or a yes; a value that a question back asked for."""

from __future__ import annotations

from sentinel_rag.agent.planner.decisions import Decision, Option, Unclear
from sentinel_rag.agent.planner.descriptions import fits
from sentinel_rag.agent.planner.merging import asks_of_a_thing, is_fragment, merged
from sentinel_rag.agent.planner.sentence import Done, FrameCompletion, unmarked
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.lexicon import fold

_WAIT = frozenset(
    {
        Unclear.WHICH_THING, Unclear.WHICH_OF_THESE, Unclear.WHICH_NAME, Unclear.WHO_ARE_YOU, Unclear.HOW_LONG,
        Unclear.MOST_OF_WHAT, Unclear.COMPARED_WITH_WHAT, Unclear.ONE_TIME, Unclear.TIME, Unclear.INCIDENTS_OR_ALERTS,
        Unclear.NEAR_NAME, Unclear.UNKNOWN_NAME, Unclear.AMBIGUOUS_NAME, Unclear.ONE_NAME, Unclear.ONE_SEVERITY,
        Unclear.WHICH_MOMENT,
    }
)  # fmt: skip
"""Reasons to ask back that one value answers."""
_LEANS = ("talk:more", "talk:rest", "talk:undo", "talk:back", "talk:again", "talk:draw", "talk:export", "talk:no",
          "talk:anew", "follow", "ref")  # fmt: skip


def picked(asked: FrameCompletion) -> Done | None:
    """What was offered, by its words, its number or a yes; a value that was asked for."""
    talk = asked.talk
    said = fold(asked.frame.said).strip(" .?!")
    for option in talk.offers:
        if said == fold(option.text).strip(" .?!"):
            return option
    if talk.offers and asked.only("talk:yes", "meta:small_talk") and asked.frame.has("talk:yes"):
        if talk.waiting is not None and len(talk.offers) > 1:
            return talk.waiting
        return talk.offers[0]
    if talk.waiting is None:
        return _by_number(asked) if any(option.number for option in talk.offers) else None
    return _by_number(asked) or _by_words(asked) or _fills(asked, talk.waiting)


def _by_number(asked: FrameCompletion) -> Option | None:
    """The option under the number that is all that is said."""
    if not asked.talk.offers or not asked.only("num", "digits", "ref", "lit:item", "talk:instead"):
        return None
    offers = asked.talk.offers
    ordinals = [int(ref) for ref in asked.frame.all("ref") if ref.lstrip("-").isdecimal()]
    if len(ordinals) == 1 and abs(ordinals[0]) <= len(offers):
        return offers[ordinals[0] - 1 if ordinals[0] > 0 else ordinals[0]]
    numbers = [*asked.frame.all("num"), *(each.strip("[]") for each in asked.frame.all("item"))]
    wanted = int(numbers[0]) if len(numbers) == 1 else 0
    return next((option for option in offers if option.number == wanted), None)


def _by_words(asked: FrameCompletion) -> Option | None:
    """The one option whose thing is what the words tell."""
    asks = asks_of_a_thing(asked.frame) and asked.frame.all("attr") != ["detail"]
    if not asked.talk.offers or asks or asked.frame.has("kind:alert", "op:count", "ref:them"):
        return None
    named = {*asked.frame.all("incident"), *asked.frame.all("name"), *asked.frame.all("num")}
    fitting = [
        option
        for option in asked.talk.offers
        if option.item is not None and ({option.item.value, option.item.incident} & named or fits(asked, option.item))
    ]
    return fitting[0] if len(fitting) == 1 else None


def _fills(asked: FrameCompletion, waiting: Decision) -> Frame | None:
    """The frame that waits for a value, with what is said now."""
    told, said = waiting.frame, asked.frame
    if waiting.reason not in _WAIT or not is_fragment(said) or said.has(*_LEANS):
        return None
    if waiting.reason is Unclear.HOW_LONG and said.around is None:
        return None
    if waiting.reason is Unclear.WHICH_MOMENT and not said.window:
        return None
    if waiting.reason in (Unclear.WHICH_THING, Unclear.WHICH_OF_THESE) and not said.has("name", "incident", "digits"):
        return None
    filled = merged(told, said)
    filled.around = said.around or told.around
    if waiting.reason is Unclear.WHO_ARE_YOU:
        filled.features["owner"] = said.all("name") or list(said.unread)
        filled.features["name"], filled.unread = [], []
    if waiting.reason in (Unclear.WHICH_THING, Unclear.WHICH_OF_THESE) and said.has("digits"):
        filled.features["incident"] += [n for n in said.all("digits") if n not in filled.all("incident")]
        filled.features["num"], filled.features["digits"] = [], []
    if waiting.reason is Unclear.COMPARED_WITH_WHAT:
        filled.features["incident"] = [*told.all("incident"), *said.all("incident"), *said.all("digits")]
    return unmarked(filled)
