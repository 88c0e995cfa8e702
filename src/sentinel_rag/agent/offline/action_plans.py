"""From a wish to change something to one call with exact arguments, or a question back.

One incident, one call: a wish for several, for a field that is missing or for words that were not understood is asked
back with whole sentences to pick from, each of which reads as exactly the call that it would make.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.conversation import Conversation
from sentinel_rag.agent.offline.action_fields import CLASSIFICATION_WORDS
from sentinel_rag.agent.offline.action_words import NO_CHANGES, ActionWish
from sentinel_rag.agent.offline.moment_kinds import Now
from sentinel_rag.agent.offline.plan import Ask, PlannedCall
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.offline.workspace_words import read_workspace
from sentinel_rag.agent.references import Resolution
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS

MOST_OFFERED = 10
_WHICH = (
    "Which incident do you mean? I change one at a time, by its number or as a line of a list: ask for the list first, "
    "then say it of [n]."
)
_FORMS = (
    "I change one incident by one sentence, such as: close incident N as benign positive; set the severity of "
    "incident N to low; assign incident N to somebody@example.com; reopen incident N; comment on incident N: and "
    "the text."
)
_SEVERAL = re.compile(r"\b(?:all|every|each|everything|them|those|these|both|any|incidents|cases|tickets)\b", re.I)
_REFERENCE = re.compile(r"\d{1,9}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|https://\S+", re.IGNORECASE)
_ADDRESS = re.compile(r"\S+@\S+\.\S+|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


_FILLERS = frozenset(
    word_list(
        """
        a an the as to or and of on in at with for its it that this one ones is be please pls now also then from by
        incident incidents inc case cases ticket tickets number no nr id line item entry set change update make put
        turn move mark classify classification classified reclassify flag severity sev priority prio status state
        owner assignee assign reassign unassign take close resolve dismiss reopen open again comment note reason
        lower raise downgrade upgrade bump increase decrease down up back over give hand remove clear delete modify
        add leave write post thanks thank you me alert them these those all every each everything any both
        """
    )
)
"""Words of a wish that say nothing beyond what was read from it already."""


@dataclass(frozen=True, slots=True)
class Change:
    """One call of a writing tool. `workspace` is the one that the words name, `person` who "me" is by them; empty for
    none."""

    call: PlannedCall
    workspace: str = ""
    person: str = ""


def plan_change(wish: ActionWish, resolution: Resolution, conversation: Conversation, now: Now) -> Change | Ask | None:
    """The call for `wish`, whose references stand for what `resolution` tells; None where it names no incident and
    holds words of another kind ("close port 22")."""
    said = read_workspace(resolution.text)
    reading = read_question(said.rest, now, resolution)
    named = _named(reading)
    if _SEVERAL.search(wish.target) or len(named) > 1:
        return _one_of(wish, named or (_on_screen(conversation) if reading.that == "them" else ()))
    if any(thing.kind != "incident" for thing in reading.things):
        return _no_incident(reading)
    unknown = [word for word in reading.words if word not in _FILLERS]
    if wish.comments and not wish.message and (named or reading.numbers):
        number = (*named, *reading.numbers)[0]
        return Ask(f"What should the comment say? Write it behind a colon: comment on incident {plain(number)}: ...")
    if not named and not reading.numbers:
        of_an_incident = re.search(r"\b(?:incident|case|ticket|alert|it|one)\b", said.rest, re.IGNORECASE)
        return Ask(_WHICH) if of_an_incident or not unknown else None
    if named:
        unknown += (*reading.numbers, *re.findall(r"\[\d+\]", said.rest))
    if unknown or _narrowed(reading):
        words = " ".join(unknown) or "the words that narrow it down"
        return Ask(f"I did not understand {plain(words)} in this wish, so I change nothing. {_FORMS}")
    if not named:
        line = _line_of_that_number(reading.numbers[0], conversation)
        if line is not None:
            return line
        named = reading.numbers
    if len(named) != 1:
        return _one_of(wish, named)
    problem = _problem(wish, named[0], conversation)
    if problem is not None:
        return problem
    if wish.unsure:
        return Ask("I change nothing on a question. If you want it done:", (sentence_of(wish, named[0]),))
    return Change(_call(wish, named[0], conversation), said.name or "", wish.person)


def _named(reading: Reading) -> tuple[str, ...]:
    """The references of the incidents that the words name, those that they point at among them."""
    return tuple(
        each for each in reading.incidents + reading.incident_urls + reading.guids if _REFERENCE.fullmatch(each)
    )


def _on_screen(conversation: Conversation) -> tuple[str, ...]:
    screen = conversation.references.screen
    items = screen.items if screen is not None else ()
    return tuple(item.value for item in items if item.kind == "incident" and _REFERENCE.fullmatch(item.value))


def _no_incident(reading: Reading) -> Ask:
    incident = next((thing.incident for thing in reading.things if thing.kind == "alert" and thing.incident), "")
    if _REFERENCE.fullmatch(incident):
        return Ask(
            f"That is an alert, and what I can change are incidents; it belongs to incident {incident}. Name the "
            "incident if you mean that."
        )
    return Ask("That is no incident. Name one by its number; I change nothing else.")


def _line_of_that_number(number: str, conversation: Conversation) -> Ask | None:
    """A number alone is an incident's, unless it may as well be a line of the list on the screen."""
    screen = conversation.references.screen
    line = screen.line(int(number)) if screen is not None else None
    if line is None or line.kind != "incident" or number in conversation.references.numbers_known():
        return None
    return Ask(
        f"Do you mean incident {number}, or line [{number}] of the list, which is incident {plain(line.value)}? Write "
        "incident and its number."
    )


def _narrowed(reading: Reading) -> bool:
    """True if the words filter or name things instead of one incident."""
    return bool(
        reading.names or reading.window or reading.severity.arguments() or reading.status or reading.tactic
        or reading.product or reading.owner.name or reading.order or reading.around
        or reading.limit
    )  # fmt: skip


def _one_of(wish: ActionWish, incidents: tuple[str, ...]) -> Ask:
    """Several are meant: each is offered by itself, none is taken."""
    if not incidents:
        return Ask(_WHICH)
    sentences = tuple(sentence_of(wish, each) for each in dict.fromkeys(incidents))
    more = "" if len(sentences) <= MOST_OFFERED else " These are the first of them."
    return Ask(
        f"I change one incident at a time, so that each is approved by itself. Which one first?{more}",
        sentences[:MOST_OFFERED],
    )


def _problem(wish: ActionWish, incident: str, conversation: Conversation) -> Ask | None:
    """What the wish lacks or holds too much of."""
    if wish.problem:
        return Ask(wish.problem)
    if wish.comments:
        return None
    owner = wish.changes.get("owner", "")
    if owner.startswith("?") or (owner == "me" and not conversation.person):
        unknown = (
            "I do not know who you are in this workspace."
            if owner == "me"
            else f"{plain(owner[1:])} names no user for certain, since several people may have a name."
        )
        return Ask(
            f"{unknown} Give the user principal name, e-mail address or object id.",
            pending=f"Assign incident {incident} to {'me, who is' if owner == 'me' else ''}"
            if len(wish.changes) == 1
            else "",
        )
    return _classification_problem(wish, incident)


def _classification_problem(wish: ActionWish, incident: str) -> Ask | None:
    """Closing needs a classification, a false positive its reason, and an incident that stays open has none."""
    classification, status = wish.changes.get("classification"), wish.changes.get("status")
    reason = wish.changes.get("classification_reason")
    if status in ("New", "Active") and (classification or reason):
        return Ask("An incident that is open has no classification. Ask for the one or the other.")
    if wish.note and (wish.apart or (status != "Closed" and not classification)):
        comment = replace(wish, changes=NO_CHANGES, note="", message=wish.note, comments=True)
        return Ask(
            "That is a change and a comment. Which one first?",
            (sentence_of(replace(wish, note="", apart=False), incident), sentence_of(comment, incident)),
        )
    fitting = [pair for pair in CLASSIFICATION_WORDS if _fits(pair, classification, reason)]
    if not fitting:
        return Ask(
            f"{plain(str(classification))} does not take the reason {plain(str(reason))}. Which one do you mean?",
            _classified(wish, incident, list(CLASSIFICATION_WORDS)),
        )
    if classification is None and (status == "Closed" or reason is not None):
        sentence = "Closing needs a classification. These are the ones that Sentinel takes, with their reasons:"
        return Ask(sentence, _classified(wish, incident, fitting))
    if classification is not None and reason is None and len(CLASSIFICATION_REASONS[classification]) > 1:
        sentence = "For which reason? Sentinel takes two for a false positive:"
        return Ask(sentence, _classified(wish, incident, fitting))
    if classification is not None and status is None and not wish.reclassifies:
        closing = replace(wish, changes={**wish.changes, "status": "Closed"})
        sentence = "Only a closed incident has a classification. Is it to be closed, or closed already?"
        return Ask(sentence, (sentence_of(closing, incident), sentence_of(wish, incident)))
    return None


def _fits(pair: tuple[str, str | None], classification: str | None, reason: str | None) -> bool:
    return classification in (None, pair[0]) and reason in (None, pair[1])


def _classified(wish: ActionWish, incident: str, pairs: Sequence[tuple[str, str | None]]) -> tuple[str, ...]:
    """The wish with each of the classifications."""
    return tuple(
        sentence_of(replace(wish, changes={**wish.changes, **_arguments(kind, reason)}), incident)
        for kind, reason in pairs
    )


def _arguments(kind: str, reason: str | None) -> dict[str, str]:
    return {"classification": kind, "classification_reason": reason or ""}


def sentence_of(wish: ActionWish, incident: str) -> str:
    """The wish for that incident as a sentence that reads as exactly this wish again."""
    if wish.comments:
        return f"Comment on incident {incident}: {wish.message}"
    changes = {name: value for name, value in wish.changes.items() if value}
    classification, reason = changes.pop("classification", None), changes.pop("classification_reason", None)
    parts = [f"{name} {value}" for name, value in changes.items() if (name, value) != ("status", "Closed")]
    if classification is None:
        beginning = f"Close incident {incident}" if changes.get("status") == "Closed" else f"Set incident {incident} to"
    else:
        verb = "Close" if changes.get("status") == "Closed" else "Reclassify"
        words = next(words for pair, words in CLASSIFICATION_WORDS.items() if _fits(pair, classification, reason))
        words = words if reason or len(CLASSIFICATION_REASONS[classification]) < 2 else words.partition(" (")[0]
        beginning = f"{verb} incident {incident} as {words}"
    joint = " " if beginning.endswith(" to") else ", "
    sentence = beginning + "".join(f"{joint if place == 0 else ', '}{part}" for place, part in enumerate(parts))
    return f"{sentence} with comment: {wish.note}" if wish.note else sentence


def _call(wish: ActionWish, incident: str, conversation: Conversation) -> PlannedCall:
    if wish.comments:
        return PlannedCall("add_incident_comment", {"incident": incident, "message": wish.message})
    changes = dict(wish.changes)
    if changes.get("owner") == "me":
        changes["owner"] = conversation.person
    if wish.note:
        changes["classification_comment"] = wish.note
    return PlannedCall("update_incident", {"incident": incident, **changes})
