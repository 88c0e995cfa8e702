"""The one value that the alerts single out, said first; the few that they leave, asked back; or all there are.

What singles it out is said in the second sentence, so that a reader can judge it. Nothing here chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, part_of
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.offline.relations import Choice, Reason, choose
from sentinel_rag.agent.offline.relations.alerts import Alert, alerts_in
from sentinel_rag.agent.offline.relations.focus import focus_of
from sentinel_rag.agent.offline.relations.values import Value
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.planner.views import asks_for_several
from sentinel_rag.agent.row_text import code
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MOST_CHOICES = 12
_WHY = {
    Reason.ONLY: "The alerts that fit the question name no other.",
    Reason.ONLY_WITH_NAMES: "Of the alerts that fit, those that name what you named tell no other.",
    Reason.FITS_BEST: "Other alerts fit your words too, but less; the one whose name fits best tells no other.",
    Reason.ANOTHER_ALERT: "Other alerts that fit tell another, but they name what your story tells of already.",
    Reason.DESCRIBED: "Of the values that fit, the description of an alert says this one alone.",
    Reason.NOT_YET_TOLD: "The others that fit stand in your question already.",
}
_WHY_ROLE = {
    "account": "The other accounts of these alerts belong to a machine or a service.",
    "file": "The other files of these alerts belong to the system or to installed programs.",
    "malware": "The other files of these alerts belong to the system or to installed programs.",
}
_SEVERAL = "More than one {} fits, and nothing in the alerts singles one out. Which alert do you mean? Answer with [n]."
_ONE = "One {} fits, but I cannot tell whether it is the one you mean. Answer with [n] to see its alert."
_STARTED_IT = "The other processes of these alerts are those that started it."


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The property asked for, from the alerts that fit the words."""
    runs = [run for run in runs if run.call.tool_name == "query_alerts"]
    if not alerts_in(runs):
        return scope.compose_empty(writer, plan, runs[0], "alerts")
    choice = choose(plan, runs)
    if choice is None:
        composed = _say_missing(writer, plan, runs)
    elif asks_for_several(plan.frame):
        composed = _say_all(writer, choice)
    elif choice.reason is None:
        composed = _say_choices(writer, choice)
    else:
        composed = _say_one(writer, choice, choice.reason)
    _say_looked_at(writer, runs)
    return composed


def _say_one(writer: AnswerWriter, choice: Choice, reason: Reason) -> Composed:
    """The value, why it is the one, and the alert that it stands in."""
    value = choice.values[0]
    template = "The {} is {}"
    parts: list[Fact | list[Fact]] = [Fact(choice.wanted.label), _fact(value)]
    for label, beside in choice.beside:
        template += " and the {} is {}"
        parts += [Fact(label), _fact(beside)]
    if value.others:
        template += ", also known as {}"
        parts.append([writer.exact(value.alert.run, pointer) for _, pointer in value.others])
    writer.say(template + ".", *parts)
    writer.fixed(_WHY.get(reason) or _WHY_ROLE.get(choice.wanted.label, _STARTED_IT))
    writer.say("It stands in alert {} at {}, incident {}.", *_place(writer, value.alert))
    if value.alert.row.get("description"):
        described = writer.words(value.alert.run, f"{value.alert.pointer}/description", limit=400)
        writer.say("That alert is described so: {}", described)
    item = alert_item(value.alert.row)
    return Composed(incident=value.alert.incident or None, items=(item,), alert=item)


def _say_choices(writer: AnswerWriter, choice: Choice) -> Composed:
    """The values that fit, each with an alert that names it, as a question back."""
    writer.say(_ONE if len(choice.values) == 1 else _SEVERAL, Fact(choice.wanted.label))
    shown = choice.values[:MOST_CHOICES]
    _say_numbered(writer, shown)
    return Composed(outcome=Outcome.CLARIFICATION, items=tuple(alert_item(value.alert.row) for value in shown))


def _say_all(writer: AnswerWriter, choice: Choice) -> Composed:
    """Every value of the alerts that fit, where several are asked for."""
    shown = choice.values[:MOST_CHOICES]
    writer.say("{}: {}.", Fact(choice.wanted.label), [_fact(value) for value in shown])
    if len(shown) < len(choice.values):
        writer.fixed("More of them stand in these alerts.")
    _say_numbered(writer, shown)
    items = tuple(alert_item(value.alert.row) for value in shown)
    return Composed(items=items, incident=shown[0].alert.incident or None)


def _say_numbered(writer: AnswerWriter, values: Sequence[Value]) -> None:
    start = writer.listed + 1
    writer.listed += len(values)
    for place, value in enumerate(values, start=start):
        line = "{} {} (alert {} at {}, incident {})."
        writer.say(line, Fact(f"[{place}]"), _fact(value), *_place(writer, value.alert))


def _say_missing(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The property stands nowhere: says so, and shows what the alert that fits best does name."""
    meant = focus_of(plan, runs).meant
    label = Fact(plan.aspects[0])
    if not meant:
        writer.say_compared([(run, "") for run in runs], "No alert fits these words, so there is no {} to tell.", label)
        return Composed(outcome=Outcome.NO_DATA)
    alert = meant[0]
    line = "The results hold no {} for that. The alert that fits best is {} at {}, incident {}."
    writer.say(line, label, *_place(writer, alert))
    rows = [
        [writer.cell(alert.run, f"{at}/kind"), writer.cell(alert.run, f"{at}/name", limit=300)]
        for at, _ in alert.entities
    ]
    if rows:
        writer.table("What it names", ("Kind", "Name"), rows)
    return Composed(outcome=Outcome.NO_DATA, incident=alert.incident or None, alert=alert_item(alert.row))


def _say_looked_at(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """How much of the alerts was seen, in one sentence whatever the number of calls."""
    read = [each for each in runs if "alert_id" not in each.call.arguments] or runs[:1]
    listed = [each for each in read if "entity" not in each.call.arguments] or read[:1]
    run = listed[0]
    returned, total = writer.number(run, "/coverage/rows_returned"), scope.total_of(writer, run)
    if returned.text == total.text:
        writer.say("I looked at {} of {} alerts.", returned, total)
    elif len(listed) > 1 and any(each.call.arguments.get("order") == "oldest" for each in listed):
        writer.say("I looked at the newest {} and the oldest ones of {} alerts.", returned, total)
    else:
        writer.say("I looked at the newest {} of {} alerts.", returned, total)
    said: set[str] = set()
    for each in read:
        if each.result is not None and not said.issuperset(each.result.notes):
            said.update(each.result.notes)
            scope.say_partial(writer, each)


def _place(writer: AnswerWriter, alert: Alert) -> tuple[Fact, Fact, Fact]:
    at = alert.pointer
    return (
        writer.name(alert.run, f"{at}/name"),
        writer.time(alert.run, f"{at}/time"),
        writer.number(alert.run, f"{at}/incident_number"),
    )


def _fact(value: Value) -> Fact:
    """The value as a code span, which may be the last part of what stands in the result."""
    return part_of(value.alert.run, value.pointer, code(value.text, limit=600))
