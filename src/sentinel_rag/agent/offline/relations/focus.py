"""Which incident and which of its alerts a story and its question mean, and what to ask for next to see them whole.

An incident that the person names is it. Otherwise the words and the things named decide; incidents that fit nearly
alike stay side by side, so that a value that differs between them is not singled out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline.attributes import attribute_of
from sentinel_rag.agent.offline.relations.alerts import (
    OF_ANY_ALERT,
    TELL_NOTHING,
    WITH_PROPERTIES,
    Alert,
    Fit,
    alerts_in,
    began,
    clearly_best,
    fits,
    near_best,
    stems,
)
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.planner.views import asked_properties, label_of
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.frames.orders import read_order
from sentinel_rag.language.frames.shapes import NAMES, shaped_tokens

MOST_ROUNDS = 4
"""Rounds of calls after the first."""
MOST_LISTED = 300
"""Alerts of one incident that are listed at most; of a larger one no value is singled out."""
MOST_READ, MOST_NAMED, MOST_INCIDENTS = 8, 4, 2
MOST_BEFORE = 2
"""Sentences before the last that may belong to the question."""
LEAST_WORDS = 18
"""Words from which on several sentences tell a story; fewer are a question with a greeting."""
LEAST_TELLING = 9
"""Words from which on a question about an incident tells of one alert of it, rather than of all."""
CLEAR, TELLING = 0.5, 6.0
"""How much of an alert's name a question says at least, or the weight of words that it shares with its story, to be
read without the sentences before it."""
_NEAR, _STORY_WEIGHT = 0.9, 0.7
"""Incidents that fit this share of the best one stay side by side. A story tells of another alert of the incident."""
_OF_ASKING = ("modal", "op")
_ALERT_ID = re.compile(r"(?:[a-z]{2})?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2}\d{6,24}_-?\d{1,12}", re.I)
_SENTENCE = re.compile(r"(?<=[.?!])[\"'”`)]*\s+(?=[^\W\d_a-zà-ÿ]|[\"'`“(])|(?<=[}\]])\s+(?=[^\W\d_a-zà-ÿ])|\s*\n\s*")
_NUMBER_OF_LIST = re.compile(r"\[\d{1,3}\]")


def story_plan(text: str, reader: Reader) -> Plan | None:
    """A plan for a text that tells what happened and asks for one thing of it, or for a question about one alert of a
    named incident in words that name no field; None for any other text."""
    sentences = [each.strip() for each in _SENTENCE.split(text.replace("__", " ").strip()) if each.strip()]
    if not sentences or _NUMBER_OF_LIST.search(text):
        return None
    question, told = reader.read(sentences[-1]), sentences[:-1]
    properties = asked_properties(question)
    if not properties or question.has("op:count", "op:trend", "all") or read_order(sentences[-1]):
        return None
    tells = bool(question.unread) or question.has("title", "maybe_title")
    tells |= len(sentences[-1].split()) >= LEAST_TELLING and question.has("topic", "tactic", "claim")
    tells |= question.has("kind:alert") and question.has("order:oldest", "order:newest", "relation")
    is_story = bool(told) and len(text.split()) >= LEAST_WORDS
    if not (_incidents(question) and tells) and not is_story:
        return None
    before = reader.read(" ".join(told)) if told else Frame("")
    incidents = tuple(dict.fromkeys((*_incidents(question), *_incidents(before))))
    named = () if incidents else _named(text)
    calls = [PlannedCall("query_alerts", {"incident": each, "limit": MAX_LIMIT}) for each in incidents] or [
        PlannedCall("query_alerts", {"limit": MAX_LIMIT}),
        PlannedCall("query_alerts", {"order": "oldest", "limit": MAX_LIMIT}),
    ]
    calls += [PlannedCall("query_alerts", {"entity": name, "limit": MAX_LIMIT}) for name in named]
    return Plan(
        view=View.ATTRIBUTE, calls=tuple(calls), frame=question, aspects=properties, told=tuple(told), story=before
    )


def _incidents(frame: Frame) -> tuple[str, ...]:
    """Numbers that stand behind a word for an incident; a story holds other numbers and ids."""
    found = []
    for place, item in enumerate(frame.items):
        before = frame.items[place - 1] if place else None
        numeric = item.text.lstrip("#").isdecimal() and before is not None
        if numeric and before is not None and before.sense("kind", frozenset({"incident"})) is not None:
            found.append(item.text.lstrip("#"))
    return tuple(found)


def _named(text: str) -> tuple[str, ...]:
    """Names that tell things apart: with a digit, a dot or a path in them, each once."""
    found = [token.value for token in shaped_tokens(text) if token.shape in NAMES]
    telling = [name for name in found if any(letter.isdigit() or letter in ".\\@" for letter in name)]
    return tuple({name.lower(): name for name in reversed(telling)}.values())[::-1][:MOST_NAMED]


@dataclass(frozen=True, slots=True)
class Focus:
    """`incidents` in question, the `alerts` of them, and `meant`: those whose name fits. `question` is the text that
    was taken for the question; `best` the one name that fits it clearly better than any other, or empty."""

    incidents: tuple[str, ...]
    alerts: tuple[Alert, ...]
    meant: tuple[Alert, ...]
    question: str
    best: str = ""


def focus_of(plan: Plan, runs: Sequence[ToolRun]) -> Focus:
    """The incident and the alerts that the question means, as far as the results so far tell."""
    alerts = alerts_in(runs)
    told = _told_incidents(plan)
    numbers = told
    if not told:
        numbers = _likely(plan, runs, alerts)
        alerts = [alert for alert in alerts if not numbers or alert.incident in numbers]
    else:
        listed = {str(row.get("alert_id")): row for run in runs if "incident" in run.call.arguments for row in run.rows}
        numbers = tuple(dict.fromkeys(str(row.get("incident_number")) for row in listed.values()))
        alerts = [alert for alert in alerts if alert.alert_id in listed]
    kinds = {kind for label in plan.aspects[:1] for kind in attribute_of(label).kinds}
    telling = {
        alert.name
        for alert in alerts
        if not alert.whole or any(entity.get("kind") in kinds for _, entity in alert.entities)
    }
    question, fitting = _best_reading(plan, [each for each in alerts if each.name in telling] or alerts, alerts)
    names = near_best(fitting)
    meant = tuple(alert for alert in alerts if alert.name in names)
    if plan.frame.has("kind:alert") and not plan.told:
        meant = _in_time(plan.frame, meant, alerts)
    return Focus(numbers, tuple(alerts), meant, question, clearly_best(fitting))


def _in_time(frame: Frame, meant: tuple[Alert, ...], alerts: Sequence[Alert]) -> tuple[Alert, ...]:
    """The alert beside those that are meant, or the first or last of them, where the question says so."""
    for side in ("before", "after"):
        if frame.has(f"relation:{side}") and meant:
            return tuple(neighbours(meant, alerts, side)[1])
    for order, best in (("oldest", min), ("newest", max)):
        if frame.has(f"order:{order}") and (those := meant or tuple(alerts)):
            wanted = best(map(began, those))
            return tuple(alert for alert in those if began(alert) == wanted)
    return meant


def neighbours(meant: Sequence[Alert], alerts: Sequence[Alert], side: str) -> tuple[Alert, list[Alert]]:
    """The earliest or latest of the alerts that are meant, and those that began right before or right after it."""
    names = {alert.name for alert in meant}
    pivot = min(meant, key=began) if side == "before" else max(meant, key=began)
    beyond = [
        alert
        for alert in alerts
        if alert.name not in names
        and began(alert) != began(pivot)
        and (began(alert) < began(pivot)) == (side == "before")
    ]
    nearest = (max if side == "before" else min)(map(began, beyond), default=None)
    return pivot, [alert for alert in beyond if began(alert) == nearest]


def _best_reading(plan: Plan, alerts: Sequence[Alert], every: Sequence[Alert]) -> tuple[str, list[Fit]]:
    """The last sentence and how it fits, or with it those before where alone it hardly tells of an alert."""
    words, text = _words(plan.frame, plan.aspects[0]), plan.frame.said
    for before in range(min(len(plan.told), MOST_BEFORE) + 1):
        if before:
            text = " ".join([*plan.told[len(plan.told) - before :], plan.frame.said])
            words |= stems(plan.told[len(plan.told) - before]) & _words(plan.story)
        fitting = fits(words, alerts, among=every)
        second = fitting[1].score if len(fitting) > 1 else 0.0
        stands_out = fitting and fitting[0].shared >= 0.75 * TELLING and fitting[0].score >= 2.0 * second
        if fitting and (fitting[0].cover >= CLEAR or fitting[0].shared >= TELLING or stands_out):
            break
    return text, fitting


def _words(frame: Frame, asked: str = "") -> frozenset[str]:
    """The words of a text that tell of an alert, by their stems; those of what is asked for tell of none."""
    told = [
        item.text
        for item in frame.items
        if not any(item.sense(type_) for type_ in (*TELL_NOTHING, *_OF_ASKING))
        and item.sense("kind", OF_ANY_ALERT) is None
        and item.sense("that", OF_ANY_ALERT) is None
        and not (asked and any(label_of(sense) == asked for sense in item.senses))
    ]
    return stems(" ".join(told))


def _told_incidents(plan: Plan) -> tuple[str, ...]:
    """Incidents that the first calls were about: the person named them."""
    return tuple(dict.fromkeys(str(call.arguments["incident"]) for call in plan.calls if "incident" in call.arguments))


def _likely(plan: Plan, runs: Sequence[ToolRun], alerts: Sequence[Alert]) -> tuple[str, ...]:
    """Numbers of the incidents that fit best."""
    score: dict[str, float] = defaultdict(float)
    _, asked = _best_reading(plan, alerts, alerts)
    for fitting, weight in ((asked, 1.0), (fits(_words(plan.story), alerts), _STORY_WEIGHT)):
        if not fitting or fitting[0].score <= 0:
            continue
        of_name = {fit.name: weight * fit.score / fitting[0].score for fit in fitting}
        best: dict[str, float] = defaultdict(float)
        for alert in alerts:
            best[alert.incident] = max(best[alert.incident], of_name[alert.name])
        for incident, value in best.items():
            score[incident] += value
    named = [run for run in runs if "entity" in run.call.arguments]
    for run in named:
        for incident in {str(row.get("incident_number")) for row in run.rows}:
            score[incident] += 1.0 / len(named)
    for nothing in ("", "None"):
        score.pop(nothing, None)
    near = [incident for incident, value in score.items() if value >= _NEAR * max(score.values())]
    return tuple(sorted(near, key=lambda incident: -score[incident])[:MOST_INCIDENTS])


def next_calls(plan: Plan, runs: Sequence[ToolRun]) -> tuple[PlannedCall, ...]:
    """The calls of the next round: the incident's alerts, then those in full that are meant; none when all was read."""
    focus = focus_of(plan, runs)
    made = [
        (run.call.tool_name, {name: value for name, value in run.call.arguments.items() if name != "workspace"})
        for run in runs
    ]
    calls = [call for each in _told_incidents(plan) or focus.incidents for call in _listing(each, runs)]
    new = [call for call in calls if (call.tool, dict(call.arguments)) not in made]
    if not new:
        calls = _reading([alert for alert in focus.meant if not alert.whole])
        new = [call for call in calls if (call.tool, dict(call.arguments)) not in made]
    return tuple(new)


def all_listed(runs: Sequence[ToolRun]) -> bool:
    """False if an incident has more alerts than were listed: what was not seen may tell another value."""
    return all(_total(run) <= MOST_LISTED for run in runs if _lists(run, str(run.call.arguments.get("incident"))))


def _listing(reference: str, runs: Sequence[ToolRun]) -> list[PlannedCall]:
    """All alerts of an incident, a page at a time."""
    total = next((_total(run) for run in runs if _lists(run, reference)), 0)
    whole = {"incident": reference, "limit": MAX_LIMIT}
    pages = range(MAX_LIMIT, min(total, MOST_LISTED), MAX_LIMIT)
    return [PlannedCall("query_alerts", {**whole, **more}) for more in ({}, *({"offset": at} for at in pages))]


def _lists(run: ToolRun, reference: str) -> bool:
    arguments = run.call.arguments
    return arguments.get("incident") == reference and arguments.get("limit") == MAX_LIMIT and "offset" not in arguments


def _total(run: ToolRun) -> int:
    total = run.at("/coverage/rows_total")
    return total if isinstance(total, int) else len(run.rows)


def _reading(alerts: Sequence[Alert]) -> list[PlannedCall]:
    """These alerts in full: by the pages of their incident where that is fewer calls, else one by one."""
    pages: dict[tuple[str, int], None] = {}
    alone: list[PlannedCall] = []
    for alert in alerts:
        arguments = alert.run.call.arguments
        paged = "incident" in arguments and set(arguments) <= {"incident", "limit", "offset", "workspace"}
        if paged and len(alert.run.rows) > WITH_PROPERTIES:
            first = arguments.get("offset")
            place = alert.place + (first if isinstance(first, int) else 0)
            pages[str(arguments["incident"]), place // WITH_PROPERTIES * WITH_PROPERTIES] = None
        elif _ALERT_ID.fullmatch(alert.alert_id):
            alone.append(PlannedCall("query_alerts", {"alert_id": alert.alert_id}))
    calls = [
        PlannedCall("query_alerts", {"incident": incident, "limit": WITH_PROPERTIES, **({"offset": at} if at else {})})
        for incident, at in pages
    ]
    return (calls + alone)[:MOST_READ]
