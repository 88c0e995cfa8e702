"""Whether the alerts that a question means single out one value of what it asks for, and by which reason.

The rules are few and each can be said in a sentence of the answer. Where none leaves exactly one value the choice is
left to the person: a value that merely stands first or near is never proposed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sentinel_rag.agent.offline.attributes import Attribute, attribute_of
from sentinel_rag.agent.offline.relations.alerts import Alert, base_name, names_of, relation_data, says
from sentinel_rag.agent.offline.relations.focus import all_listed, focus_of
from sentinel_rag.agent.offline.relations.values import Value, is_person, told_elsewhere, values_in
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS
from sentinel_rag.language.frames import Frame

PROCESSES = frozenset({"process", "command line", "process id"})
_FILES = frozenset({"file", "malware"})
_INSTEAD = {"sender IP": "IP address", "recipient": "email address"}
"""What may stand for a property where no alert tells it."""
_OF_THE_SYSTEM = re.compile(r"(?:^|\\)windows\\|\\program files(?: \(x86\))?\\|^/(?:usr/)?s?bin/", re.IGNORECASE)
_PROGRAM = re.compile(r"[\w-]\.(?:exe|com|scr|elf|ps1|dll)\b", re.IGNORECASE)
_DETAILS = (("process id", "process_id", "prop:process_id"), ("command line", "command_line", "prop:command_line"),
            ("creation time", "created_time", "attr:created", "ask:when"))  # fmt: skip
"""Further properties of a process: label, name in the entity, and the features that ask for it."""


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

    wanted: Attribute
    values: tuple[Value, ...]
    reason: Reason | None
    alerts: tuple[Alert, ...]
    beside: tuple[tuple[str, Value], ...] = ()


def choose(plan: Plan, runs: Sequence[ToolRun]) -> Choice | None:
    """The choice, or None where no alert fits the words or none of those tells the property."""
    focus = focus_of(plan, runs)
    frame, told, question = plan.frame, " ".join(plan.told).lower(), focus.question.lower()
    for label in (plan.aspects[0], _INSTEAD.get(plan.aspects[0])):
        if label is None:
            continue
        wanted = attribute_of(label)
        alerts = _naming_most(focus.meant, question, wanted.kinds)
        if frame.has("same:host"):
            others = tuple(kind for kind in ENTITY_KINDS if kind != "host")
            alerts = tuple(alert for alert in alerts if alert.said_in(told, without=others)) or alerts
        values = _values(wanted, alerts, focus.alerts, frame)
        if not values:
            continue
        kept, reason = _singled_out(wanted, values, frame, question, told)
        if reason is Reason.ONLY and len(alerts) < len(focus.meant):
            reason = Reason.ONLY_WITH_NAMES
        if reason is None and label not in PROCESSES:
            kept, reason = _by_its_alert(kept, focus.best, told)
        beside = [_details_beside(frame, wanted, value) for value in kept]
        several_processes = len({tuple(part.text for _, part in each) for each in beside}) > 1
        if several_processes or not all(alert.whole for alert in alerts) or not all_listed(runs):
            reason = None
        return Choice(wanted, _distinct(kept), reason, alerts, beside[0])
    return None


def _naming_most(alerts: Sequence[Alert], question: str, without: Sequence[str]) -> tuple[Alert, ...]:
    """The alerts that name the most of the things that the question names, apart from things of the kind asked for."""
    said = [alert.said_in(question, without=without) for alert in alerts]
    most = max(map(len, said), default=0)
    return tuple(alert for alert, names in zip(alerts, said, strict=True) if len(names) == most)


def _values(wanted: Attribute, alerts: Sequence[Alert], others: Sequence[Alert], frame: Frame) -> list[Value]:
    """What `alerts` tell of the property, in the sort that the question says; else what `others` tell of their
    things."""
    values = [value for alert in alerts for value in values_in(wanted, alert)] or told_elsewhere(wanted, alerts, others)
    endings = tuple(ending for sort in frame.all("sort") for ending in relation_data()["endings"].get(sort, ()))
    if wanted.label in _FILES and endings:
        of_sort = [value for value in values if value.text.lower().rpartition(".")[2] in endings]
        return of_sort or _files_of_commands(alerts, endings)
    if frame.has("kind:mailbox"):
        return [value for value in values if value.entity.get("kind") == "mailbox"] or values
    return values


def _files_of_commands(alerts: Sequence[Alert], endings: tuple[str, ...]) -> list[Value]:
    """Files of that sort that the alerts' command lines name."""
    pattern = re.compile(rf"[^\s\"'=:;,|<>(){{}}]+\.(?:{'|'.join(endings)})\b", re.IGNORECASE)
    found = []
    for alert in alerts:
        for at, entity in alert.entities:
            for match in pattern.finditer(str(entity.get("command_line") or "")):
                name = base_name(match[0])
                found.append(Value(name.casefold(), name, alert, f"{at}/command_line", entity, at))
    return found


def _singled_out(
    wanted: Attribute, values: Sequence[Value], frame: Frame, question: str, told: str
) -> tuple[Sequence[Value], Reason | None]:
    """The values that the first rule leaves alone, or all of them and no reason."""
    if _one(values):
        plain_system_file = wanted.label in _FILES | PROCESSES and not _not_of_the_system(values)
        return values, None if plain_system_file else Reason.ONLY
    if wanted.label == "account" and frame.has("person", "ask:who"):
        persons = [value for value in values if is_person(value)]
        if _one(persons):
            return persons, Reason.ROLE
    if wanted.label in PROCESSES:
        return _of_processes(wanted, values, frame, question)
    if wanted.label in _FILES:
        foreign = _not_of_the_system(values)
        return (foreign, Reason.ROLE) if _one(foreign) and not frame.has("kind:process") else (values, None)
    untold = [value for value in values if not says(f"{told} {question}", value.text.lower())]
    return (untold, Reason.NOT_YET_TOLD) if _one(untold) else (values, None)


def _by_its_alert(values: Sequence[Value], best: str, told: str) -> tuple[Sequence[Value], Reason | None]:
    """The value that the alerts called `best`, those that share nothing with the story, or a description leave alone.

    A story tells of one alert and its question of another, so an alert that names nothing told of is the likelier one.
    """
    for kept, reason in (
        ([value for value in values if value.alert.name == best], Reason.FITS_BEST),
        ([value for value in values if told and not value.alert.said_in(told)], Reason.ANOTHER_ALERT),
        ([value for value in values if _described(value)], Reason.DESCRIBED),
    ):
        if _one(kept):
            return kept, reason
    return values, None


def _described(value: Value) -> bool:
    return says(str(value.alert.row.get("description") or "").lower(), value.text.lower())


def _of_processes(
    wanted: Attribute, values: Sequence[Value], frame: Frame, question: str
) -> tuple[Sequence[Value], Reason | None]:
    """Of processes, those that are named by id or program, else those at the end of a chain."""
    if frame.has("starter"):
        return values, None
    if wanted.label != "process":
        said = set(re.findall(r"\d{1,7}", question))
        named = [value for value in values if str(value.entity.get("process_id")) in said] or [
            value
            for value in values
            if any(says(question, name) for name in names_of(value.entity) if "." in name or " " in name)
        ]
        if _one(named):
            return named, Reason.ONLY_WITH_NAMES
        if _PROGRAM.search(question):
            return values, None
    started = {
        (value.alert.alert_id, str(parent))
        for value in values
        for _, entity in value.alert.entities
        if (parent := entity.get("parent_process_id"))
    }
    last = [value for value in values if (value.alert.alert_id, str(value.entity.get("process_id"))) not in started]
    return (last, Reason.ROLE) if _one(last) else (values, None)


def _not_of_the_system(values: Sequence[Value]) -> list[Value]:
    """Files and processes whose image did not come with the operating system."""

    def own(value: Value) -> bool:
        path = str(value.entity.get("image_file") or value.entity.get("name") or "")
        return _OF_THE_SYSTEM.search(path) is None and value.text.lower() not in relation_data()["system"]["names"]

    return [value for value in values if own(value)]


def _details_beside(frame: Frame, wanted: Attribute, value: Value) -> tuple[tuple[str, Value], ...]:
    """(label, value) of each further property of its process that the question asks for and the alert tells."""
    if wanted.label not in PROCESSES:
        return ()
    asked = [(label, key) for label, key, *senses in _DETAILS if label != wanted.label and frame.has(*senses)]
    told = [(label, key, str(value.entity[key])) for label, key in asked if value.entity.get(key)]
    return tuple(
        (label, replace(value, key=text, text=text, pointer=f"{value.at}/{key}", others=()))
        for label, key, text in told
    )


def _one(values: Sequence[Value]) -> bool:
    return len({value.key for value in values}) == 1


def _distinct(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple({value.key: value for value in reversed(values)}.values())[::-1]
