"""From an order to one change of one incident with exact values, or a question back for what is missing.

One incident, one call: an order for several, for a value that is missing or with words that were not understood is
asked back with whole changes to pick from. A change that is offered is kept with its values, so picking it parses
nothing; its sentence reads as exactly that change. Sentinel's rules between fields are known here, so that no person is
asked to approve a call which cannot be made. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sentinel_rag.agent.planner.context import Context
from sentinel_rag.agent.planner.decisions import Call
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ALERT, INCIDENT, ListItem
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS
from sentinel_rag.language.frames.orders import Act, Order, Problem

MOST_OFFERED = 10
CLASSIFICATION_WORDS: Mapping[tuple[str, str | None], str] = {
    ("TruePositive", "SuspiciousActivity"): "true positive (suspicious activity)",
    ("BenignPositive", "SuspiciousButExpected"): "benign positive (suspicious but expected)",
    ("FalsePositive", "IncorrectAlertLogic"): "false positive (incorrect alert logic)",
    ("FalsePositive", "InaccurateData"): "false positive (inaccurate data)",
    ("Undetermined", None): "undetermined",
}
"""Every classification with its reason, in the words in which it can be asked for."""
_REFERENCE = re.compile(r"\d{1,9}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|https://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be changed of one incident."""

    incident: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Arguments of an update."""
    note: str = ""
    message: str = ""
    comments: bool = False
    workspace: str = ""
    """As the words name it."""
    person: str = ""
    """Who "me" is by the words."""
    reclassifies: bool = False

    @property
    def call(self) -> Call:
        """The call that makes the change."""
        if self.comments:
            return Call("add_incident_comment", {"incident": self.incident, "message": self.message})
        note = {"classification_comment": self.note} if self.note else {}
        return Call("update_incident", {"incident": self.incident, **self.changes, **note})

    @property
    def sentence(self) -> str:
        """The order for exactly this change."""
        incident = f"{self.incident} in workspace {self.workspace}" if self.workspace else self.incident
        if self.comments:
            return f"Comment on incident {incident}: {self.message}"
        changes = {name: value.removeprefix("?") for name, value in self.changes.items() if value}
        classification, reason = changes.pop("classification", None), changes.pop("classification_reason", None)
        closes = changes.pop("status", None) == "Closed"
        if not closes and "status" in self.changes:
            changes["status"] = self.changes["status"]
        parts = [f"{name} {value}" for name, value in changes.items()]
        if classification is None:
            beginning = f"Close incident {incident}" if closes else f"Set incident {incident} to"
        else:
            words = next(words for pair, words in CLASSIFICATION_WORDS.items() if _fits(pair, classification, reason))
            words = words if reason or len(CLASSIFICATION_REASONS[classification]) < 2 else words.partition(" (")[0]
            beginning = f"{'Close' if closes else 'Reclassify'} incident {incident} as {words}"
        joints = [" " if beginning.endswith(" to") and place == 0 else ", " for place in range(len(parts))]
        sentence = beginning + "".join(f"{joint}{part}" for joint, part in zip(joints, parts, strict=True))
        return f"{sentence} with comment: {self.note}" if self.note else sentence


def _ordered(order: Order, incident: str = "") -> Change:
    """The change of an incident as an order says it."""
    comments = order.act is Act.COMMENT
    message = order.message if comments else ""
    return Change(
        incident, order.changes, order.note, message, comments, order.workspace, order.person, order.reclassifies
    )


def change_of(tool: str, arguments: Mapping[str, JsonValue]) -> Change:
    """The change that became a call."""
    told = {name: str(value) for name, value in arguments.items()}
    incident, workspace = told.pop("incident"), told.pop("workspace", "")
    if tool == "add_incident_comment":
        return Change(incident, message=told["message"], comments=True, workspace=workspace)
    note = told.pop("classification_comment", "")
    return Change(incident, told, note=note, workspace=workspace)


@dataclass(frozen=True, slots=True)
class Missing:
    """A question back: changes to pick from, or the change that `slot` alone completes."""

    sentence: str
    offers: tuple[Change, ...] = ()
    waits: Change | None = None
    slot: str = ""


_WHICH = (
    "Which incident do you mean? I change one at a time, by its number or as a line of a list: ask for the list first, "
    "then say it of [n]."
)
FORMS = (
    "I change one incident by one sentence, such as: close incident N as benign positive; set the severity of "
    "incident N to low; assign incident N to somebody@example.com; reopen incident N; comment on incident N: and "
    "the text."
)
_ONE = "I change one incident at a time, so that each is approved by itself. Which one first?"
_PLAINLY = "I change nothing before you say so plainly. If you want it done"
_PROBLEMS = {
    Problem.CLASSES: "The order names more than one classification. Which one do you mean?",
    Problem.VALUES: "The order names more than one value for one field. Which one do you mean?",
    Problem.NO_CRITICAL: "Sentinel has no severity Critical, its highest is High. Ask for High if you mean that.",
    Problem.NEW_OR_ACTIVE: "An open incident is New or Active. Which of the two do you mean?",
    Problem.WHICH_SEVERITY: "To which severity: High, Medium, Low or Informational?",
}


def plan_change(order: Order, talk: Context, person: str = "") -> Change | Missing | None:
    """What an order for a change becomes; `person` is who "me" is, if that is known. None where it names no incident
    and says something of another kind ("close port 22")."""
    change = _ordered(order)
    if order.parts:
        return _one_of_several(order, talk)
    if order.problem is not None and order.aims:
        return Missing(_PROBLEMS[order.problem], waits=_waiting(change, order, talk), slot="severity")
    named = _aimed_at(order, talk)
    if isinstance(named, Missing):
        return named
    if order.act is Act.COMMENT and not order.message and named:
        said = f"What should the comment say? Write it behind a colon: comment on incident {plain(named[0])}: ..."
        return Missing(said, waits=replace(change, incident=named[0]) if len(named) == 1 else None, slot="message")
    lacks = _lacks_person(change, named, person)
    if lacks is not None:
        return lacks
    if len(named) > 1 or (order.every and (named or not order.unread)):
        return _one_of(change, named, unclear=order.pointed == ("it",))
    if not named:
        return _unaimed(order, change, talk)
    change = replace(change, incident=named[0])
    if order.tail:
        noted = replace(change, note=order.tail)
        gap = gap_in(noted)
        offers = gap.offers if gap is not None else (noted,)
        return Missing(f"Is “{plain(order.tail)}” to be the comment? If so:", offers)
    if order.unread:
        words = plain(" ".join(order.unread))
        return Missing(f"I did not understand {words} in this order, so I change nothing. {FORMS}")
    line = _line_of_that_number(order, talk)
    if line is not None:
        return line
    return checked(change, order.message if order.act is Act.CHANGE else "", person, unsure=order.unsure)


def checked(change: Change, beside: str = "", person: str = "", *, unsure: bool = False) -> Change | Missing:
    """A change of one incident, or what it lacks by the rules between its fields. `beside` is a comment that was
    ordered with it."""
    lacks = _lacks_person(change, (change.incident,), person)
    if lacks is not None:
        return lacks
    gap = gap_in(change, beside)
    if gap is not None and unsure:
        examples = "; ".join(offer.sentence for offer in gap.offers[:3]) or gap.sentence
        return Missing(f"{_PLAINLY}, write it whole, such as: {examples}.")
    if gap is not None:
        return gap
    if change.changes.get("owner") == "me":
        change = replace(change, changes={**change.changes, "owner": change.person or person})
    return Missing(f"{_PLAINLY}:", (change,)) if unsure else change


def filled(missing: Change, slot: str, values: Mapping[str, str]) -> Change | None:
    """The change that waited for one slot; None if the values are of others."""
    if set(values) != {slot}:
        return None
    if slot == "message":
        return replace(missing, message=values[slot])
    person = values[slot] if missing.changes.get(slot) == "me" else ""
    return replace(missing, changes={**missing.changes, **values}, person=person)


def fitting(offers: Sequence[Change], values: Mapping[str, str]) -> tuple[Change, ...]:
    """The offered changes that hold all of the values."""
    if not values:
        return ()
    return tuple(one for one in offers if all(one.changes.get(name) == value for name, value in values.items()))


# --- which incident


def _current(talk: Context) -> str:
    """The incident that is spoken of."""
    current = talk.current(INCIDENT)
    return current.value if current is not None and _REFERENCE.fullmatch(current.value) else ""


def _lines(talk: Context) -> Sequence[ListItem]:
    return talk.lists[-1].items if talk.lists else ()


def _listed(talk: Context) -> tuple[str, ...]:
    """The incidents of the list on the screen."""
    found = (line.value for line in _lines(talk) if line.kind == INCIDENT and _REFERENCE.fullmatch(line.value))
    return tuple(dict.fromkeys(found))


def _waiting(change: Change, order: Order, talk: Context) -> Change | None:
    """The change that lacks nothing but a severity."""
    incidents = _aimed_at(order, talk)
    one = not isinstance(incidents, Missing) and len(incidents) == 1 and order.problem is Problem.WHICH_SEVERITY
    return replace(change, incident=incidents[0]) if one and not isinstance(incidents, Missing) else None


def _aimed_at(order: Order, talk: Context) -> tuple[str, ...] | Missing:
    """The incidents that an order names or points at."""
    found = [*order.incidents, *order.numbers]
    for word in order.pointed:
        if word == "them":
            if not (listed := _listed(talk)):
                return Missing(_WHICH)
            found += listed
        elif word == "it":
            found += [current] if (current := _current(talk)) else _listed(talk)
        else:
            line = _line(talk, int(word))
            if isinstance(line, Missing):
                return line
            found.append(line)
    if order.pointed and not found:
        return Missing(_WHICH)
    return tuple(dict.fromkeys(found))


def _line(talk: Context, place: int) -> str | Missing:
    at = place - 1 if place > 0 else place
    lines = _lines(talk)
    if not -len(lines) <= at < len(lines):
        return Missing(f"There is no such line as [{place}] on the screen. Ask for the list first, or give the number.")
    line = lines[at]
    if line.kind == INCIDENT and _REFERENCE.fullmatch(line.value):
        return line.value
    if line.kind == ALERT and _REFERENCE.fullmatch(line.incident):
        return Missing(
            f"That is an alert, and what I can change are incidents; it belongs to incident {line.incident}. Name the "
            "incident if you mean that."
        )
    return Missing("That is no incident. Name one by its number; I change nothing else.")


def _line_of_that_number(order: Order, talk: Context) -> Missing | None:
    """A number alone is an incident's, unless it may as well be a line of the list on the screen."""
    if len(order.numbers) != 1 or order.incidents or order.numbers[0] in talk.known_incidents():
        return None
    number, lines = order.numbers[0], _lines(talk)
    if not 0 < int(number) <= len(lines) or lines[int(number) - 1].kind != INCIDENT:
        return None
    return Missing(
        f"Do you mean incident {number}, or line [{number}] of the list, which is incident "
        f"{plain(lines[int(number) - 1].value)}? Write incident and its number."
    )


def _unaimed(order: Order, change: Change, talk: Context) -> Missing | None:
    current = _current(talk)
    if current and not order.unread:
        return Missing(f"Do you mean incident {current}? If so:", (replace(change, incident=current),))
    return Missing(_WHICH) if order.noun or not order.unread else None


def _one_of(change: Change, incidents: Sequence[str], *, unclear: bool = False) -> Missing:
    """Several are meant, or one of several: each is offered by itself, none is taken."""
    if not incidents:
        return Missing(_WHICH)
    return _first_of(
        [replace(change, incident=each) for each in incidents], "Which incident do you mean?" if unclear else _ONE
    )


def _first_of(changes: Sequence[Change], sentence: str) -> Missing:
    more = "" if len(changes) <= MOST_OFFERED else " These are the first of them."
    return Missing(sentence + more, tuple(changes[:MOST_OFFERED]))


def _one_of_several(order: Order, talk: Context) -> Missing:
    """An order that holds several, each for an incident of its own."""
    changes: list[Change] = []
    for part in order.parts:
        named = _aimed_at(part, talk)
        if isinstance(named, Missing):
            return named
        if part.problem is not None:
            return Missing(_PROBLEMS[part.problem])
        if part.unread or not named or (part.act is Act.COMMENT and not part.message):
            return Missing(f"I change one incident by one order. Say each by itself. {FORMS}")
        changes += [_ordered(part, each) for each in named]
    return _first_of(changes, _ONE)


# --- what is missing


def _lacks_person(change: Change, incidents: Sequence[str], person: str) -> Missing | None:
    """Who is to own it, where the words do not tell a user for certain."""
    owner = change.changes.get("owner", "")
    if not owner.startswith("?") and (owner != "me" or person or change.person):
        return None
    unknown = (
        "I do not know who you are in this workspace."
        if owner == "me"
        else f"{plain(owner[1:])} names no user for certain, since several people may have a name."
    )
    waits = replace(change, incident=incidents[0]) if len(incidents) == 1 else None
    return Missing(f"{unknown} Give the user principal name, e-mail address or object id.", waits=waits, slot="owner")


def gap_in(change: Change, beside: str = "") -> Missing | None:
    """What a change lacks or holds too much of: closing needs a classification, a false positive its reason, and an
    incident that stays open has none. `beside` is a comment of its own that was ordered with it."""
    if change.comments:
        return None
    classification, status = change.changes.get("classification"), change.changes.get("status")
    reason = change.changes.get("classification_reason")
    if status in ("New", "Active") and (classification or reason):
        return Missing("An incident that is open has no classification. Ask for the one or the other.")
    if beside or (change.note and status != "Closed" and not classification):
        comment = replace(change, changes={}, note="", message=beside or change.note, comments=True)
        alone = change if beside else replace(change, note="")
        return Missing("That is a change and a comment. Which one first?", (alone, comment))
    pairs = [pair for pair in CLASSIFICATION_WORDS if _fits(pair, classification, reason)]
    if not pairs:
        return Missing(
            f"{plain(str(classification))} does not take the reason {plain(str(reason))}. Which one do you mean?",
            _classified(change, list(CLASSIFICATION_WORDS)),
        )
    if classification is None and (status == "Closed" or reason is not None):
        sentence = "Closing needs a classification. These are the ones that Sentinel takes, with their reasons:"
        return Missing(sentence, _classified(change, pairs))
    if classification is not None and status is None and not change.reclassifies:
        closing = replace(change, changes={**change.changes, "status": "Closed"})
        sentence = "Only a closed incident has a classification. Is it to be closed, or closed already?"
        return Missing(sentence, (closing, replace(change, reclassifies=True)))
    if classification is not None and reason is None and len(CLASSIFICATION_REASONS[classification]) > 1:
        sentence = "For which reason? Sentinel takes two for a false positive:"
        return Missing(sentence, _classified(change, pairs))
    return None


def _classified(change: Change, pairs: Sequence[tuple[str, str | None]]) -> tuple[Change, ...]:
    """The change with each of the classifications."""
    return tuple(
        replace(
            change,
            changes={
                **{name: value for name, value in change.changes.items() if name != "classification_reason"},
                "classification": kind,
                **({"classification_reason": reason} if reason else {}),
            },
        )
        for kind, reason in pairs
    )


def _fits(pair: tuple[str, str | None], classification: str | None, reason: str | None) -> bool:
    """True if a classification with its reason is one of those that are left open."""
    return classification in (None, pair[0]) and reason in (None, pair[1])
