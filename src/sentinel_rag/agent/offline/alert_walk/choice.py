"""Whether the alerts that a question means single out one value of what it asks for, and by which reason.

The rules are few and each can be said in a sentence of the answer. Where none leaves exactly one value the choice is
left to the person: a value that merely stands first or near is never proposed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sentinel_rag.agent.offline.alert_walk import roles
from sentinel_rag.agent.offline.alert_walk.focus import focus_of
from sentinel_rag.agent.offline.alert_walk.pool import Alert, alerts_in, says
from sentinel_rag.agent.offline.alert_walk.values import Value, attributes_of, is_person, told_elsewhere, values_in
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.offline.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS


class Reason(StrEnum):
    """Why one value is the answer."""

    ONLY = "only"
    ONLY_WITH_NAMES = "only_with_names"
    NOT_YET_TOLD = "not_yet_told"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class Choice:
    """`values` that fit, the one that is singled out alone if `reason` is set; `alerts` are those that were compared.

    `beside` are further properties of the same process that the question asks for, each with its label.
    """

    attribute: Attribute
    values: tuple[Value, ...]
    reason: Reason | None
    alerts: tuple[Alert, ...]
    beside: tuple[tuple[str, Value], ...] = ()


def choose(plan: Plan, runs: Sequence[ToolRun]) -> Choice | None:
    """The choice, or None where no alert fits the words or none of those tells the property."""
    every = alerts_in(runs)
    focus = focus_of(plan, runs, every)
    question, told = focus.question.lower(), " ".join(plan.told).lower()
    for attribute in attributes_of(plan):
        if not _asked_directly(attribute, plan.reading.text):
            return None
        alerts = _of_the_same(_naming_most(attribute, focus.meant, question), plan)
        values = [value for alert in alerts for value in values_in(attribute, alert)]
        values = values or told_elsewhere(attribute, alerts, focus.alerts)
        if attribute.label in _FILES and (sort := roles.endings_asked(plan.reading.text)):
            values = roles.with_ending(values, sort) or roles.files_of_commands(alerts, sort)
        if values:
            kept, reason = _singled_out(attribute, values, question, told)
            if reason is Reason.ONLY and len(alerts) < len(focus.meant):
                reason = Reason.ONLY_WITH_NAMES
            beside = [_beside(plan, attribute, value) for value in kept]
            if len({tuple(part.text for _, part in each) for each in beside}) > 1:
                reason = None  # the same program in several processes
            return Choice(attribute, tuple(_distinct(kept)), reason, alerts, beside[0])
    return None


def _asked_directly(attribute: Attribute, question: str) -> bool:
    """False where the word for the property stands far behind the word that asks: "which service was started by the
    command ..." asks for no command."""
    cue = list(re.finditer(rf"\b(?:{attribute.cue})\b", question, re.IGNORECASE))
    for match in cue:
        before = re.split(_ASK_WORD, question[: match.start()])
        if len(before) > 1 and len(re.findall(r"[\w'-]+", before[-1])) <= _FARTHEST:
            return True
    return not cue


_ASK_WORD = re.compile(
    r"\b(?:what|which|whose|who|identify|find(?:\s+out)?|provide|determine|retrieve|obtain|get|tell|name|specify|reveal|"
    r"confirm|give|when)\b",
    re.IGNORECASE,
)
_FARTHEST = 6
"""Words between the asking word and what it asks for."""


def _beside(plan: Plan, attribute: Attribute, value: Value) -> tuple[tuple[str, Value], ...]:
    """What else the question asks of the process that was singled out: its id, its command line, when it began."""
    if attribute.label not in _PROCESSES:
        return ()
    wanted = [
        (label, key)
        for label, (key, words) in _OF_A_PROCESS.items()
        if label != attribute.label and words.search(plan.reading.text)
    ]
    told = [(label, key, str(value.entity[key])) for label, key in wanted if value.entity.get(key)]
    return tuple(
        (label, replace(value, key=text, text=text, pointer=f"{value.at}/{key}", others=()))
        for label, key, text in told
    )


_OF_A_PROCESS = {
    "process id": ("process_id", re.compile(r"\bprocess\s*ids?\b|\bpids?\b", re.IGNORECASE)),
    "command line": ("command_line", re.compile(r"\bcommand[\s-]*lines?\b", re.IGNORECASE)),
    "creation time": ("created_time", re.compile(r"\bcreat(?:ed|ion)\s*(?:date|time)|\bwhen\b", re.IGNORECASE)),
}


_SAME = re.compile(r"\b(?:same|this)\s+(?:device|host|machine|endpoint|computer|system|server)\b", re.IGNORECASE)


def _of_the_same(alerts: tuple[Alert, ...], plan: Plan) -> tuple[Alert, ...]:
    """Of the alerts those on the host that was told of, where the question says "on the same device"."""
    if not _SAME.search(plan.reading.text):
        return alerts
    told = " ".join(plan.told).lower()
    others = tuple(kind for kind in ENTITY_KINDS if kind != "host")
    return tuple(alert for alert in alerts if alert.said_in(told, without=others)) or alerts


def asks_for_several(plan: Plan) -> bool:
    """True if the question asks for all values there are: "which hosts", "what are the URLs"."""
    if re.search(r"\b(?:one|name|an?\s+\w+)\s+of\s+(?:the|these|those)\b", plan.reading.text, re.IGNORECASE):
        return False
    cue = attributes_of(plan)[0].cue
    asked = re.search(rf"\b(?:{cue})\b", plan.reading.text, re.IGNORECASE)
    word = "" if asked is None else asked[0].lower()
    return word.endswith("s") and not word.endswith("ss") and word not in ("who accesses", "senders")


def _naming_most(attribute: Attribute, alerts: Sequence[Alert], question: str) -> tuple[Alert, ...]:
    """The alerts that name the most of the things that the question names, apart from things of the kind asked for."""
    said = [alert.said_in(question, without=attribute.kinds) for alert in alerts]
    most = max(map(len, said), default=0)
    return tuple(alert for alert, names in zip(alerts, said, strict=True) if len(names) == most)


def _singled_out(
    attribute: Attribute, values: Sequence[Value], question: str, told: str
) -> tuple[Sequence[Value], Reason | None]:
    """The values that the first rule leaves alone, or all of them and no reason."""
    file_like = attribute.label in _FILES
    if _one(values):
        plain_system_file = file_like and not roles.not_of_the_system(values)
        return values, None if plain_system_file else Reason.ONLY
    if attribute.label == "account":
        persons = [value for value in values if is_person(value)]
        if _one(persons):
            return persons, Reason.ROLE
    if attribute.label in _PROCESSES and roles.asks_for_starter(question):
        return values, None
    untold = [value for value in values if not says(f"{told} {question}", value.text.lower())]
    if _one(untold) and attribute.label not in _PROCESSES | _FILES:
        return untold, Reason.NOT_YET_TOLD
    if attribute.label in _PROCESSES:
        named = roles.named_in(values, question) if attribute.label != "process" else []
        if _one(named):
            return named, Reason.ONLY_WITH_NAMES
        last = roles.last_of_chain(values)
        if _one(last):
            return last, Reason.ROLE
    if file_like:
        foreign = roles.not_of_the_system(values)
        if _one(foreign):
            return foreign, Reason.ROLE
    return values, None


_FILES = frozenset({"file", "malware"})
_PROCESSES = frozenset({"process", "command line", "process id"})


def _one(values: Sequence[Value]) -> bool:
    return len({value.key for value in values}) == 1


def _distinct(values: Sequence[Value]) -> list[Value]:
    return list({value.key: value for value in reversed(values)}.values())[::-1]
