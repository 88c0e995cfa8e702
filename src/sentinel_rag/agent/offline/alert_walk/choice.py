"""Whether the alerts that a question means single out one value of what it asks for, and by which reason.

The rules are few and each can be said in a sentence of the answer. Where none leaves exactly one value the choice is
left to the person: a value that merely stands first or near is never proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.offline.alert_walk import roles
from sentinel_rag.agent.offline.alert_walk.asking import (
    asked_directly,
    asks_for_person,
    asks_of_mailbox,
    asks_of_same_host,
)
from sentinel_rag.agent.offline.alert_walk.fitting import name_of
from sentinel_rag.agent.offline.alert_walk.focus import focus_of
from sentinel_rag.agent.offline.alert_walk.pool import Alert, alerts_in, says
from sentinel_rag.agent.offline.alert_walk.process_details import PROCESSES, details_beside
from sentinel_rag.agent.offline.alert_walk.rounds import all_listed
from sentinel_rag.agent.offline.alert_walk.values import Value, attributes_of, is_person, told_elsewhere, values_in
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS


class Reason(StrEnum):
    """Why one value is the answer."""

    ONLY = "only"
    ONLY_WITH_NAMES = "only_with_names"
    NOT_YET_TOLD = "not_yet_told"
    ROLE = "role"
    FITS_BEST = "fits_best"
    ANOTHER_ALERT = "another_alert"
    DESCRIBED = "described"


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
    focus = focus_of(plan, runs, alerts_in(runs))
    question, told = plan.frame.text, " ".join(plan.told).lower()
    for attribute in attributes_of(plan):
        if not asked_directly(attribute, question):
            return None
        alerts = _naming_most(attribute, focus.meant, focus.question.lower())
        if asks_of_same_host(question):
            alerts = _on_a_host_of(told, alerts)
        values = _values(attribute, alerts, focus.alerts, question)
        if not values:
            continue
        kept, reason = _singled_out(attribute, values, focus.question.lower(), told)
        if reason is Reason.ONLY and len(alerts) < len(focus.meant):
            reason = Reason.ONLY_WITH_NAMES
        if reason is None and attribute.label not in PROCESSES:
            kept, reason = _by_its_alert(values, focus.best, told) or (kept, None)
        beside = [details_beside(question, attribute, value) for value in kept]
        several_processes = len({tuple(part.text for _, part in each) for each in beside}) > 1
        if several_processes or not all(alert.whole for alert in alerts) or not all_listed(runs):
            reason = None
        return Choice(attribute, tuple(_distinct(kept)), reason, alerts, beside[0])
    return None


def _values(attribute: Attribute, alerts: Sequence[Alert], others: Sequence[Alert], question: str) -> list[Value]:
    """What `alerts` tell of the property, in the sort that the question says; else what `others` tell of their
    things."""
    values = [value for alert in alerts for value in values_in(attribute, alert)]
    values = values or told_elsewhere(attribute, alerts, others)
    if attribute.label in _FILES and (sort := roles.endings_asked(question)):
        return roles.with_ending(values, sort) or roles.files_of_commands(alerts, sort)
    if asks_of_mailbox(question):
        return [value for value in values if value.entity.get("kind") == "mailbox"] or values
    return values


def _on_a_host_of(told: str, alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
    """The alerts on a host that was told of, or all if there is none."""
    others = tuple(kind for kind in ENTITY_KINDS if kind != "host")
    return tuple(alert for alert in alerts if alert.said_in(told, without=others)) or alerts


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
        plain_system_file = attribute.label in _FILES | PROCESSES and not roles.not_of_the_system(values)
        return values, None if plain_system_file else Reason.ONLY
    if attribute.label == "account" and asks_for_person(question):
        persons = [value for value in values if is_person(value)]
        if _one(persons):
            return persons, Reason.ROLE
    if attribute.label in PROCESSES and roles.asks_for_starter(question):
        return values, None
    untold = [value for value in values if not says(f"{told} {question}", value.text.lower())]
    if _one(untold) and attribute.label not in PROCESSES | _FILES:
        return untold, Reason.NOT_YET_TOLD
    if attribute.label in PROCESSES:
        named = roles.named_in(values, question) if attribute.label != "process" else []
        if _one(named):
            return named, Reason.ONLY_WITH_NAMES
        if attribute.label != "process" and roles.names_a_program(question):
            return values, None
        last = roles.last_of_chain(values)
        if _one(last):
            return last, Reason.ROLE
    if file_like and not roles.asks_for_process(question):
        foreign = roles.not_of_the_system(values)
        if _one(foreign):
            return foreign, Reason.ROLE
    return values, None


def _by_its_alert(values: Sequence[Value], best: str, told: str) -> tuple[Sequence[Value], Reason] | None:
    """The value that the alerts called `best`, those that share nothing with the story, or a description leave alone.

    A story tells of one alert and its question of another, so an alert that names nothing told of is the likelier one.
    """
    for kept, reason in (
        ([value for value in values if name_of(value.alert.row) == best], Reason.FITS_BEST),
        ([value for value in values if told and not value.alert.said_in(told)], Reason.ANOTHER_ALERT),
        ([value for value in values if _described(value)], Reason.DESCRIBED),
    ):
        if _one(kept):
            return kept, reason
    return None


def _described(value: Value) -> bool:
    return says(str(value.alert.row.get("description") or "").lower(), value.text.lower())


_FILES = frozenset({"file", "malware"})


def _one(values: Sequence[Value]) -> bool:
    return len({value.key for value in values}) == 1


def _distinct(values: Sequence[Value]) -> list[Value]:
    return list({value.key: value for value in reversed(values)}.values())[::-1]
