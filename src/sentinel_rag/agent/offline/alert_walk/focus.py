"""Which incident a briefing is about, and which of its alerts the question means.

An incident that the person names is it. Otherwise the words of context and question and the things they name decide;
incidents that fit nearly alike stay side by side, so that a value that differs between them is not singled out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.offline.alert_walk.fitting import Fit, clearly_best, fits, name_of, near_best
from sentinel_rag.agent.offline.alert_walk.pool import Alert
from sentinel_rag.agent.offline.alert_walk.values import attributes_of
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

MOST_INCIDENTS = 2
MOST_BEFORE = 2
"""Sentences before the last that may belong to the question."""
CLEAR = 0.5
"""How much of an alert's name a question says at least, to be read without the sentences before it."""
TELLING = 6.0
"""Weight of shared words that does as well: two words that few alerts have."""
_NEAR = 0.9
"""Incidents that fit at least this share of the best one's score stay side by side."""
_CONTEXT_WEIGHT = 0.7
"""What the story says counts less than the question: it tells of another alert of the incident."""


@dataclass(frozen=True, slots=True)
class Focus:
    """`incidents` in question (their numbers), `alerts` of them, and `meant`: those whose name fits the question.

    `question` are the sentences that were taken for the question; `best` is the one name that fits them clearly better
    than any other, or empty.
    """

    incidents: tuple[str, ...]
    alerts: tuple[Alert, ...]
    meant: tuple[Alert, ...]
    question: str
    best: str = ""


def focus_of(plan: Plan, runs: Sequence[ToolRun], alerts: Sequence[Alert]) -> Focus:
    """The incident and the alerts that the question means, as far as the results so far tell."""
    told = told_incidents(plan)
    if not told:
        numbers = _likely(plan, runs, alerts)
        alerts = [alert for alert in alerts if not numbers or alert.incident in numbers]
    else:
        listed = {
            str(row.get("alert_id")): str(row.get("incident_number"))
            for run in runs
            if "incident" in run.call.arguments
            for row in run.rows
        }
        numbers = tuple(dict.fromkeys(listed.values()))
        alerts = [alert for alert in alerts if alert.alert_id in listed]
    silent = _silent_names(plan, alerts)
    rows = [alert.row for alert in alerts]
    question, fitting = _best_reading(plan, [row for row in rows if name_of(row) not in silent], rows)
    names = near_best(fitting)
    meant = tuple(alert for alert in alerts if name_of(alert.row) in names)
    return Focus(numbers, tuple(alerts), meant, question, clearly_best(fitting))


def _best_reading(
    plan: Plan, rows: Sequence[Mapping[str, JsonValue]], every: Sequence[Mapping[str, JsonValue]]
) -> tuple[str, list[Fit]]:
    """The last sentence and how it fits, or with it those before where alone it hardly tells of an alert."""
    for before in range(min(len(plan.told), MOST_BEFORE) + 1):
        text = " ".join([*plan.told[len(plan.told) - before :], plan.frame.text])
        fitting = fits(without_asked(text, plan), rows, among=every)
        if fitting and (fitting[0].cover >= CLEAR or fitting[0].shared >= TELLING or _stands_out(fitting)):
            break
    return text, fitting


def _stands_out(fitting: Sequence[Fit]) -> bool:
    """True if one name fits twice as well as any other, by more than a single word."""
    second = fitting[1].score if len(fitting) > 1 else 0.0
    return fitting[0].shared >= 0.75 * TELLING and fitting[0].score >= 2.0 * second


def without_asked(text: str, plan: Plan) -> str:
    """`text` without the words of what is asked for: "which IP address" tells of no alert on addresses."""
    for attribute in attributes_of(plan)[:1]:
        matches = list(re.finditer(rf"\b(?:{attribute.cue})\b", text, re.IGNORECASE))
        for match in matches[-1:] if len(matches) > 1 else matches:
            text = f"{text[: match.start()]} {text[match.end() :]}"
    return text


def _silent_names(plan: Plan, alerts: Sequence[Alert]) -> frozenset[str]:
    """Names all of whose alerts were read in full and name nothing of the kind that is asked for."""
    kinds = {kind for attribute in attributes_of(plan) for kind in attribute.kinds}
    telling = {
        name_of(alert.row)
        for alert in alerts
        if not alert.whole or any(entity.get("kind") in kinds for _, entity in alert.entities)
    }
    return frozenset(name_of(alert.row) for alert in alerts) - telling


def told_incidents(plan: Plan) -> tuple[str, ...]:
    """Incidents that the first calls were about: the person named them."""
    return tuple(dict.fromkeys(str(call.arguments["incident"]) for call in plan.calls if "incident" in call.arguments))


def _likely(plan: Plan, runs: Sequence[ToolRun], alerts: Sequence[Alert]) -> tuple[str, ...]:
    """Numbers of the incidents that fit best."""
    score: dict[str, float] = defaultdict(float)
    rows = [alert.row for alert in alerts]
    question, _ = _best_reading(plan, rows, rows)
    for text, weight in ((without_asked(question, plan), 1.0), (" ".join(plan.told), _CONTEXT_WEIGHT)):
        fitting = fits(text, rows)
        if not fitting or fitting[0].score <= 0:
            continue
        of_name = {fit.name: weight * fit.score / fitting[0].score for fit in fitting}
        best: dict[str, float] = defaultdict(float)
        for alert in alerts:
            best[alert.incident] = max(best[alert.incident], of_name[name_of(alert.row)])
        for incident, value in best.items():
            score[incident] += value
    named = [run for run in runs if "entity" in run.call.arguments]
    for run in named:
        for incident in {str(row.get("incident_number")) for row in run.rows}:
            score[incident] += 1.0 / len(named)
    score.pop("", None)
    score.pop("None", None)
    if not score:
        return ()
    top = max(score.values())
    near = [incident for incident, value in score.items() if value >= _NEAR * top]
    return tuple(sorted(near, key=lambda incident: -score[incident])[:MOST_INCIDENTS])
