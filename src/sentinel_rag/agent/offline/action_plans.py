"""From a wish to change something to one call with exact arguments, or a question back.

One incident, one call: a wish for several, for a field that is missing or for words that were not understood is asked
back with whole sentences to pick from, each of which reads as exactly the call that it would make.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sentinel_rag.agent.offline.action_gaps import gap_in, gap_in_person
from sentinel_rag.agent.offline.action_sentences import sentence_of
from sentinel_rag.agent.offline.action_words import ActionWish
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.word_lists import word_list
from sentinel_rag.agent.offline.workspace_words import read_workspace
from sentinel_rag.agent.planner.plan import Ask, PlannedCall
from sentinel_rag.agent.references import Resolution
from sentinel_rag.agent.row_text import plain
from sentinel_rag.language.times.kinds import Now

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
_FILLERS = frozenset(
    word_list(
        """
        a an the as to or and of on in at with for its it that this one ones is be please pls now also then from by
        incident incidents inc case cases ticket tickets number no nr id line item entry set change update make put
        turn move mark classify classification classified reclassify flag severity sev priority prio status state
        owner assignee assign reassign unassign take close resolve dismiss reopen open again comment note reason
        lower raise downgrade upgrade bump increase decrease down up back over give hand remove clear delete modify
        add leave write post out due thanks thank you me alert them these those all every each everything any both
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
    named, workspace = _named(reading), said.name or ""
    if wish.problem and (named or reading.numbers or reading.things or reading.that):
        return Ask(wish.problem)
    unnamed = gap_in_person(wish, named or reading.numbers, workspace, person=conversation.person)
    if unnamed is not None:
        return unnamed
    unknown = [word for word in reading.words if word not in _FILLERS]
    if len(named) > 1 or (_SEVERAL.search(wish.target) and (named or not unknown)):
        return _one_of(wish, named or (_on_screen(conversation) if reading.that == "them" else ()), workspace)
    if any(thing.kind != "incident" for thing in reading.things):
        return _no_incident(reading)
    if wish.comments and not wish.message and (named or reading.numbers):
        number = (*named, *reading.numbers)[0]
        return Ask(f"What should the comment say? Write it behind a colon: comment on incident {plain(number)}: ...")
    if not named and not reading.numbers:
        talked_about = conversation.references.current("incident")
        if talked_about is not None and not unknown and _REFERENCE.fullmatch(talked_about.value):
            sentence = sentence_of(wish, talked_about.value, workspace)
            return Ask(f"Do you mean incident {talked_about.value}? If so:", (sentence,))
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
        return _one_of(wish, named, workspace)
    gap = gap_in(wish, named[0], workspace)
    if gap is not None:
        return _unsaid(gap) if wish.unsure else gap
    if wish.unsure:
        sentence = sentence_of(wish, named[0], workspace)
        return Ask("I change nothing before you say so plainly. If you want it done:", (sentence,))
    return Change(_call(wish, named[0], conversation), workspace, wish.person)


def _unsaid(gap: Ask) -> Ask:
    """A question that is only half a wish: how to write it whole, with nothing to pick by a number."""
    examples = "; ".join(gap.options[:3]) or gap.sentence
    return Ask(f"I change nothing before you say so plainly. If you want it done, write it whole, such as: {examples}.")


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


def _one_of(wish: ActionWish, incidents: tuple[str, ...], workspace: str) -> Ask:
    """Several are meant: each is offered by itself, none is taken."""
    if not incidents:
        return Ask(_WHICH)
    sentences = tuple(sentence_of(wish, each, workspace) for each in dict.fromkeys(incidents))
    more = "" if len(sentences) <= MOST_OFFERED else " These are the first of them."
    return Ask(
        f"I change one incident at a time, so that each is approved by itself. Which one first?{more}",
        sentences[:MOST_OFFERED],
    )


def _call(wish: ActionWish, incident: str, conversation: Conversation) -> PlannedCall:
    if wish.comments:
        return PlannedCall("add_incident_comment", {"incident": incident, "message": wish.message})
    changes = dict(wish.changes)
    if changes.get("owner") == "me":
        changes["owner"] = conversation.person
    if wish.note:
        changes["classification_comment"] = wish.note
    return PlannedCall("update_incident", {"incident": incident, **changes})
