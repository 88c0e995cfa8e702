"""A property of a thing that the question names: the SID of an account, the hash of a file, the address a user had.

Every distinct value is told with the number of alerts that it stands in. A property of the named thing itself is read
from that thing alone; a thing of another kind (the address of a user) from the alerts that name both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact, phrase
from sentinel_rag.agent.offline.attributes import ATTRIBUTES, HASHES, IDENTITIES, Attribute, values_of
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue

IN_SENTENCE = 5
MOST_VALUES = 50


@dataclass(slots=True)
class FoundValue:
    """A value as it is shown, and the places where it stands, one for each alert."""

    fact: Fact
    run: ToolRun
    pointers: dict[int, str] = field(default_factory=dict)


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The property asked for; where no alert holds it, what the alerts do say of the thing."""
    name = plan.frame.all("name")[0]
    incident = runs[0].call.arguments.get("incident")
    focus = None if incident is None else str(incident)
    filled = [run for run in runs if run.rows]
    if not filled:
        return scope.compose_empty(writer, plan, runs[0], "alerts")
    wanted = [each for label in plan.aspects for each in ATTRIBUTES if each.label == label]
    items: tuple[ListItem, ...] = ()
    for run in filled:
        for attribute in wanted[:1]:
            found, own = values_in(writer, run, attribute, name)
            if not found:
                writer.say_none([run], "The alerts that name {} hold no {} of it.", Echo(name), Fact(attribute.label))
                continue
            _say_found(writer, run, attribute, Echo(name), found, own=own)
            items += tuple(alert_item(run.rows[place]) for place in found[0].pointers)[:1]
        _say_how_many(writer, run, Echo(name))
        scope.say_window(writer, run)
        scope.say_partial(writer, run)
    outcome = Outcome.ANSWERED if items else Outcome.NO_DATA
    suggestions = () if items else (f"Show the alerts that name {plain(name)}",)
    entity = ListItem("entity", name, entity_kind=str(runs[0].call.arguments.get("entity_kind") or ""))
    return Composed(outcome=outcome, incident=focus, entity=entity, suggestions=suggestions)


def values_in(writer: AnswerWriter, run: ToolRun, attribute: Attribute, name: str) -> tuple[list[FoundValue], bool]:
    """Distinct values in the rows of query_alerts, commonest first; True if they are the named thing's own."""
    own = _collect(writer, run, attribute, name, of_named=True)
    if own or attribute.label in IDENTITIES | HASHES:
        # Another account's SID or another file's hash is no answer.
        return own, True
    return _collect(writer, run, attribute, name, of_named=False), False


def _collect(
    writer: AnswerWriter, run: ToolRun, attribute: Attribute, name: str, *, of_named: bool
) -> list[FoundValue]:
    found: dict[str, FoundValue] = {}
    for place, row in enumerate(run.rows):
        entities = row.get("entities")
        for index, entity in enumerate(entities if isinstance(entities, list | tuple) else ()):
            if not isinstance(entity, Mapping) or is_named(entity, name) is not of_named:
                continue
            for pointer, value in values_of(attribute, entity):
                shown = plain(str(value)).lower()
                if shown == name.lower():
                    continue
                at = f"/rows/{place}/entities/{index}{pointer}"
                if shown not in found:
                    found[shown] = FoundValue(writer.exact(run, at), run)
                found[shown].pointers.setdefault(place, at)
    return sorted(found.values(), key=lambda each: -len(each.pointers))


def is_named(entity: Mapping[str, JsonValue], name: str) -> bool:
    """True if one of the entity's values is `name`, whole, or its last or first part (`user` of `user@domain`)."""
    wanted = name.lower()
    for value in entity.values():
        text = str(value).lower()
        if wanted in (text, text.rpartition("\\")[2], text.rpartition("/")[2], text.partition("@")[0]):
            return True
        if text.partition(".")[0] == wanted and entity.get("kind") in ("host", "dns"):
            return True
    return False


def _say_found(
    writer: AnswerWriter, run: ToolRun, attribute: Attribute, name: Echo, found: Sequence[FoundValue], *, own: bool
) -> None:
    headed = Fact(_headed(attribute))
    link = "of" if own else "in the alerts that name"
    if len(found) == 1:
        value = found[0]
        count = writer.tally([(run, at) for at in value.pointers.values()])
        noun = "alert" if count.text == "1" else "alerts"
        writer.say(f"{{}} {link} {{}}: {{}} (in {{}} {noun}).", headed, name, value.fact, count)
        return
    distinct = writer.tally([(run, next(iter(each.pointers.values()))) for each in found])
    if len(found) <= IN_SENTENCE:
        facts = []
        for each in found:
            count = writer.tally([(run, at) for at in each.pointers.values()])
            noun = "alert" if count.text == "1" else "alerts"
            facts.append(phrase(f"{{}} (in {{}} {noun})", each.fact, count))
        writer.say(f"{{}} {link} {{}}, {{}} distinct: {{}}.", headed, name, distinct, facts)
        return
    writer.say(f"{{}} {link} {{}}: {{}} distinct, in the table below.", headed, name, distinct)
    rows = [
        [writer.cell(run, next(iter(places)), limit=600), writer.tally([(run, at) for at in places])]
        for places in (list(each.pointers.values()) for each in found[:MOST_VALUES])
    ]
    writer.table("", (_headed(attribute), "Alerts"), rows)


def _headed(attribute: Attribute) -> str:
    return attribute.label[0].upper() + attribute.label[1:]


def _say_how_many(writer: AnswerWriter, run: ToolRun, name: Echo) -> None:
    total = scope.total_of(writer, run)
    returned = writer.number(run, "/coverage/rows_returned")
    noun = "alert names" if total.text == "1" else "alerts name"
    if returned.text == total.text:
        writer.say(f"{{}} {noun} {{}}; I looked at all of them.", total, name)
    else:
        writer.say(f"{{}} {noun} {{}}; I looked at the newest {{}}.", total, name, returned)
