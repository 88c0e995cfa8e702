"""What a sentence leaves out, filled from the question before it."""

from __future__ import annotations

from sentinel_rag.agent.planner.decisions import Decision, Reason, ask
from sentinel_rag.agent.planner.merging import asks_of_a_thing, is_fragment, merged
from sentinel_rag.agent.planner.sentence import OF_INCIDENTS, Done, Sentence, ask_which, unmarked
from sentinel_rag.agent.things import ALERT
from sentinel_rag.language.frames import Frame

_SAYS_WHICH = (
    "name", "incident", "op", "tactic", "title", "severity", "status", "know", "topic", "all", "order",
)  # fmt: skip


def leaned(asked: Sentence) -> Done | None:
    """Fill what the sentence leaves out from the question before."""
    frame = asked.frame
    if asked.talk.before is None and not asked.talk.lists:
        lost = frame.has("ref") and not frame.window and not frame.has(*_SAYS_WHICH)
        return ask(frame, Reason.WHICH_THING) if lost else None
    of_the_list = frame.has("ref:them", "ref:ones") and not frame.has("name", "incident")
    if of_the_list and asked.talk.lists:
        noun, strange = frame.one("that"), [*frame.unread, *frame.all("guess")]
        if noun is not None and asked.talk.lists[-1].items and noun != asked.talk.lists[-1].items[0].of_kind:
            return ask(frame, Reason.WHICH_THING)
        if strange:
            return ask(frame, Reason.UNREAD, *strange)
    whole = not is_fragment(frame) and not frame.has("follow") and not of_the_list and not _switches(asked)
    if whole and not (frame.has("ref:its", "ref:it", "ref:definite") and not frame.has("name", "incident", "know")):
        return None
    if not is_fragment(frame) and frame.has("name", "incident") and not asked.correcting:
        return None
    if frame.has("attr:events") and not frame.has("name", "incident", "alert_id", "kind:alert"):
        alert, _ = asked.it(ALERT)
        if alert is not None:
            return asked.bound([alert])
    implied = frame.has("attr") and not frame.has("name", "incident", "by", "group", "kind:alert", "kind:incident")
    base = asked.base(lists=of_the_list or _narrows_a_list(frame))
    if of_the_list and base is not None:
        _look_at_all(asked, base)
    if implied and not of_the_list and (base is None or not base.frame.has("incident", "name")):
        item, candidates = asked.it("")
        if item is not None:
            return asked.bound([item])
        if candidates and frame.has(*OF_INCIDENTS):
            return ask_which(frame, candidates, asked.talk)
    return _merged_with(asked, base)


def _look_at_all(asked: Sentence, base: Decision) -> None:
    """Note that the list showed a part of its rows, where it is narrowed now."""
    shown = next((each for each in reversed(asked.talk.lists) if each.by == base), None)
    part = shown is not None and shown.total is not None and shown.total > len(shown.items)
    if part and _narrows_a_list(asked.frame):
        asked.frame.tell("among", "all")


def _switches(asked: Sentence) -> bool:
    """True for a noun alone, which asks for other rows of the same: "only incidents", "alerts?"."""
    before = asked.talk.before
    return (
        before is not None
        and asked.only("kind:incident", "kind:alert", "plural", "cmp:only")
        and not before.frame.has(*(f"kind:{kind}" for kind in asked.frame.all("kind")))
    )


def _merged_with(asked: Sentence, base: Decision | None) -> Done:
    return ask(asked.frame, Reason.NOTHING_SHOWN) if base is None else unmarked(merged(base.frame, asked.frame))


def _narrows_a_list(frame: Frame) -> bool:
    """True for filters and orders that only a list takes."""
    return frame.has(
        "severity", "min", "status", "order", "limit", "owner", "class", "all", "tactic", "product", "cmp:only"
    ) and not asks_of_a_thing(frame)
