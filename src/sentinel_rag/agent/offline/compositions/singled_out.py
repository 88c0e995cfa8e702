"""The one value that the alerts single out, said first and short; or the few that they leave, asked back.

What singles it out is said in the second sentence, so that a reader can judge it. Nothing here chooses.
"""

from __future__ import annotations

from sentinel_rag.agent.offline.alert_walk.choice import Choice, Reason
from sentinel_rag.agent.offline.alert_walk.pool import Alert
from sentinel_rag.agent.offline.alert_walk.values import Value
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, part_of
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.row_text import code
from sentinel_rag.contracts.evidence import Outcome

MOST_CHOICES = 8
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
_STARTED_IT = "The other processes of these alerts are those that started it."


def say_singled_out(writer: AnswerWriter, choice: Choice) -> Composed:
    """The value, why it is the one, and the alert that it stands in."""
    value = choice.values[0]
    template = "The {} is {}"
    parts: list[Fact | list[Fact]] = [Fact(choice.attribute.label), _fact(value)]
    for label, beside in choice.beside:
        template += " and the {} is {}"
        parts += [Fact(label), _fact(beside)]
    if value.others:
        template += ", also known as {}"
        parts.append([writer.exact(value.alert.run, pointer) for _, pointer in value.others])
    writer.say(template + ".", *parts)
    assert choice.reason is not None
    writer.fixed(_WHY.get(choice.reason) or _WHY_ROLE.get(choice.attribute.label, _STARTED_IT))
    _say_place(writer, value.alert)
    if value.alert.row.get("description"):
        writer.say(
            "That alert is described so: {}",
            writer.words(value.alert.run, f"{value.alert.pointer}/description", limit=400),
        )
    item = alert_item(value.alert.row)
    return Composed(incident=value.alert.incident or None, items=(item,), alert=item)


def say_choices(writer: AnswerWriter, choice: Choice) -> Composed:
    """The values that fit, each with an alert that names it, as a question back."""
    if len(choice.values) == 1:
        opening = "One {} fits, but I cannot tell whether it is the one you mean. Answer with [n] to see its alert."
    else:
        opening = _SEVERAL
    writer.say(
        opening,
        Fact(choice.attribute.label),
    )
    shown = choice.values[:MOST_CHOICES]
    start = writer.listed + 1
    writer.listed += len(shown)
    for place, value in enumerate(shown, start=start):
        alert = value.alert
        writer.say(
            "{} {} (alert {} at {}, incident {}).",
            Fact(f"[{place}]"),
            _fact(value),
            writer.name(alert.run, f"{alert.pointer}/name"),
            writer.time(alert.run, f"{alert.pointer}/time"),
            writer.number(alert.run, f"{alert.pointer}/incident_number"),
        )
    return Composed(outcome=Outcome.CLARIFICATION, items=tuple(alert_item(value.alert.row) for value in shown))


def _say_place(writer: AnswerWriter, alert: Alert) -> None:
    writer.say(
        "It stands in alert {} at {}, incident {}.",
        writer.name(alert.run, f"{alert.pointer}/name"),
        writer.time(alert.run, f"{alert.pointer}/time"),
        writer.number(alert.run, f"{alert.pointer}/incident_number"),
    )


def _fact(value: Value) -> Fact:
    """The value as a code span, which may be the last part of what stands in the result."""
    return part_of(value.alert.run, value.pointer, code(value.text, limit=600))
