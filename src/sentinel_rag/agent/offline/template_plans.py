"""Plans that run a KQL template: the one that fits best, or a question back where two fit or a value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import cues, template_match, template_names, template_parameters
from sentinel_rag.agent.offline.arguments import MOST_NAMES, are_meant_together, window_arguments
from sentinel_rag.agent.offline.plan import Decision, NeedTemplates
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.template_match import Template
from sentinel_rag.agent.planner.plan import Ask, Plan, PlannedCall, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.contracts.json_values import JsonValue

SURE = 0.45
"""Score from which a template is preferred to looking through alerts, where the words fit both."""


_NEARLY = 0.7
"""Part of the best score from which a reading of a name that comes earlier, as an account, is kept."""


def logs_plan(reading: Reading, templates: Sequence[Template] | None) -> Decision | None:
    """A template, if the question is about raw logs; None if it is not, or none fits."""
    if not reading.has(cues.LOGS) and not reading.has(r"run|templates?|who\s+changed|resources?"):
        return None
    if templates is None:
        return NeedTemplates()
    return template_plan(reading, templates, floor=template_match.THRESHOLD)


def template_plan(reading: Reading, templates: Sequence[Template], *, floor: float) -> Decision | None:
    """The best template whose score reaches `floor`, or a question back; None if none does."""
    reading = template_names.with_named(reading, templates)
    fitting = []
    for of_kind in template_names.as_kinds(reading):
        matches = template_match.rank(of_kind, templates)
        if matches and matches[0].score >= floor:
            fitting.append((of_kind, matches, *_best_fitting(matches, of_kind, floor)))
    if not fitting:
        return None
    whole = [fit for fit in fitting if not fit[3].unused and not fit[3].missing]
    likely = [fit for fit in whole if fit[2].score >= _NEARLY * max(other[2].score for other in whole)]
    reading, matches, best, filled = (likely or fitting[-1:])[0]
    each = None if are_meant_together(reading) else _for_each_name(matches, reading, floor)
    if each is not None:
        return each
    close = [
        match
        for match in matches[:3]
        if match.name != best.name
        and best.score < 1
        and abs(best.score - match.score) < template_match.MARGIN
        and not template_parameters.fill(match.template, reading).missing
    ]
    if close and filled.missing:
        return Ask(
            "More than one query could answer that. Which one do you want?",
            tuple(f"Run the template {match.name} on: {reading.text}" for match in (best, *close)),
        )
    if filled.missing and reading.names and not filled.parameters and best.score < 1:
        return None
    if filled.missing:
        wanted = " and ".join(str(spec.get("name", "")).replace("_", " ") for spec in filled.missing)
        described = " ".join(str(spec.get("description", "")) for spec in filled.missing)
        sentence = plain(f"The query {best.name} needs a value for {wanted}. {described} Which one?")
        return Ask(sentence, pending=f"run the template {best.name} on {reading.text}")
    if filled.unused:
        return template_names.ask_without(filled.unused)
    if (which := template_names.ask_for_one(reading, best)) is not None:
        return which
    others = []
    for match in matches[:6]:
        if match.name != best.name and match.score >= max(floor, 0.6 * best.score):
            parameters = template_parameters.fill(match.template, reading)
            if not parameters.missing and match.template.get("tables") != best.template.get("tables"):
                others.append(_kql_call(match.name, parameters, reading))
    call = _kql_call(best.name, filled, reading)
    opening = _not_narrowed(reading, best.template)
    return Plan(view=View.KQL, calls=(call,), reading=reading, opening=opening, others=tuple(others[:2]))


def _for_each_name(matches: Sequence[template_match.Match], reading: Reading, floor: float) -> Plan | None:
    """The best query that takes every thing that the question names alone, run once for each; None if there is none."""
    names = reading.names
    if not 2 <= len(names) <= MOST_NAMES or any(name.quoted for name in names):
        return None
    told = template_match.named(reading)
    kinds = {template_match.kind_of(name) for name in told} - {""}
    if len(kinds) > 1:
        return None
    # "On A and B" are two hosts, though only the first stands behind "on".
    like = next(iter(kinds), "")
    kind = like if like in ("host", "account", "mailbox") else None
    alone = [
        replace(reading, names=(name if template_match.kind_of(name) else replace(name, kind=kind),)) for name in told
    ]
    for match in matches[:6]:
        if match.score < max(floor, 0.7 * matches[0].score):
            return None
        filled = [template_parameters.fill(match.template, each) for each in alone]
        if all(len(each.parameters) == 1 and not each.missing for each in filled):
            calls = tuple(_kql_call(match.name, each, reading) for each in filled)
            return Plan(view=View.KQL, calls=calls, reading=reading, opening=_not_narrowed(reading, match.template))
    return None


def _not_narrowed(reading: Reading, template: Template) -> tuple[str, ...]:
    """A sentence where the question wants one outcome and the query that fits returns every one."""
    return tuple(
        f"This query cannot be narrowed to {word} ones: its rows have every outcome."
        for word in template_match.other_outcomes(reading, template)
    )


def _best_fitting(
    matches: Sequence[template_match.Match], reading: Reading, floor: float
) -> tuple[template_match.Match, template_parameters.Filled]:
    """The best of those that score nearly as well as the first and take every value that the question names."""
    first = matches[0]
    for match in matches[:6] if reading.names else ():
        filled = template_parameters.fill(match.template, reading)
        near = match.score >= max(floor, 0.7 * first.score)
        if near and not filled.missing and len(filled.parameters) >= len(reading.names):
            return match, filled
    return first, template_parameters.fill(first.template, reading)


def _kql_call(name: str, filled: template_parameters.Filled, reading: Reading) -> PlannedCall:
    arguments: dict[str, JsonValue] = {"template": name}
    if filled.parameters:
        arguments["parameters"] = dict(filled.parameters)
    arguments |= window_arguments(reading)
    if reading.limit is not None:
        arguments["limit"] = reading.limit
    return PlannedCall("run_kql_query", arguments)
