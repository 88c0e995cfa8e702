"""Values of properties: of a thing that is named, of an incident or an alert, or the one that alerts single out.

Every distinct value is told with where it stands. What singles one out is said in a sentence of its own, so that a
reader can judge it; nothing here chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sentinel_rag.agent.answers.renderer import (
    RenderedView,
    Scene,
    compose_empty,
    elements,
    escape,
    event_time,
    say_partial,
    say_window,
    total_of,
    view_data,
)
from sentinel_rag.agent.answers.writer import EMPTY_CELL, AnswerWriter, Echo, Fact, Part, part_of, phrase
from sentinel_rag.agent.offline.attributes import Attribute, attribute_of, entities_of, things_at, values_of
from sentinel_rag.agent.offline.relations import (
    Choice,
    RelatedAlert,
    RelatedValue,
    SelectionReason,
    alerts_in,
    began,
    choose,
    fits,
    focus_of,
    near_best,
    neighbours,
    stems,
)
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.planner.tools import asks_for_several
from sentinel_rag.agent.row_text import code, plain
from sentinel_rag.agent.things import ListItem, alert_item, entity_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT

IN_SENTENCE, MOST_VALUES, MOST_OF_ALERT, MOST_CHOICES, MOST_NAMES = 5, 50, 10, 12, 6
Entity = Mapping[str, JsonValue]


# --- of one alert or incident


def say_values_of_alert(scene: Scene, attribute: Attribute) -> bool:
    """The values of a property in one alert, each once; False if it tells none."""
    found = {
        str(value): at + pointer
        for at, entity in things_at(scene.run, f"{scene.at}/entities")
        for pointer, value in values_of(attribute, entity)
    }
    facts = [scene.writer.exact(scene.run, pointer) for pointer in list(found.values())[:MOST_OF_ALERT]]
    if facts:
        name = scene.writer.name(scene.run, f"{scene.at}/name")
        scene.writer.say("{}: {} (alert {}).", Fact(attribute.label), facts, name)
    return bool(facts)


def say_values_of_incident(scene: Scene, label: str) -> None:
    """Each distinct value in an incident, with the thing that it belongs to where that has another name; a kind with
    more members than the tool returns is told as such."""
    writer, run, attribute = scene.writer, scene.run, attribute_of(label)
    headed = Fact(attribute.heading)
    found: dict[str, tuple[str, str, Fact]] = {}
    for kind in attribute.kinds:
        base, counted = f"/rows/0/entities/{escape(kind)}", f"/rows/0/entity_counts/{escape(kind)}"
        for at, entity in entities_of(run, kind):
            for pointer, value in values_of(attribute, entity):
                other = entity.get("name") not in (value, None)
                owner = writer.cell(run, f"{at}/name", limit=200) if other else Fact(EMPTY_CELL)
                shown = plain(str(value)).lower()
                if shown not in found or (other and found[shown][2].text == EMPTY_CELL):
                    found[shown] = (at, at + pointer, owner)
        count = run.at(counted)
        if elements(run, base) and isinstance(count, int) and count > len(elements(run, base)):
            writer.say(
                f"Of {{}} entities of the kind {kind} the tool returned {{}}; values of the others are missing here.",
                writer.number(run, counted),
                writer.count(run, base),
            )
    if not found:
        writer.say_compared([(run, "/rows/0")], "{}: none recorded.", headed)
        return
    count_of_all = writer.tally([(run, pointer) for _, pointer, _ in found.values()])
    if len(found) <= IN_SENTENCE:
        told = [(writer.exact(run, pointer), owner) for _, pointer, owner in found.values()]
        facts = [fact if owner.text == EMPTY_CELL else phrase("{} ({})", fact, owner) for fact, owner in told]
        writer.say("{} ({}): {}.", headed, count_of_all, facts)
        return
    writer.say("{}: {} distinct values, in the table below.", headed, count_of_all)
    owned = any(owner.text != EMPTY_CELL for _, _, owner in found.values())
    rows = [
        [writer.cell(run, pointer, limit=600), *([owner] if owned else []), writer.cell(run, f"{at}/alerts")]
        for at, pointer, owner in found.values()
    ]
    writer.table("", (headed.text, *(["Belongs to"] if owned else []), "Alerts"), rows)


# --- of a thing that is named


@dataclass(slots=True)
class _Found:
    """A value as it is shown, and the places where it stands, one for each alert."""

    fact: Fact
    pointers: dict[int, str] = field(default_factory=dict)

    def tally(self, writer: AnswerWriter, run: ToolRun) -> Fact:
        return writer.tally([(run, at) for at in self.pointers.values()])


def compose_property(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """The property of the thing asked for; where no alert holds it, what the alerts do say of the thing. Where no thing
    is named, the values in all the alerts that match."""
    name, arguments = (plan.frame.one("name") or ""), runs[0].call.arguments
    subject = Echo(name) if name else Fact("these alerts")
    attribute, told = attribute_of(plan.aspects[0]), False
    filled = [run for run in runs if run.rows]
    if not filled:
        return compose_empty(writer, plan, runs[0], "alerts")
    for run in filled:
        found = _collect(writer, run, attribute, name, of_named=True) if name else []
        for label in plan.aspects if not name else ():  # where no account is named, a mailbox may be
            attribute = attribute_of(label)
            if _collect(writer, run, attribute, name, of_named=False):
                break
        own = bool(found) or (
            attribute.of_one and bool(name)
        )  # another account's SID or another file's hash is no answer
        found = found if own else _collect(writer, run, attribute, name, of_named=False)
        if found:
            _say_found(writer, run, attribute, subject, found, own=own)
        elif name:
            writer.say_none([run], "The alerts that name {} hold no {} of it.", subject, Fact(attribute.label))
        else:
            writer.say_none([run], "These alerts name no {}.", Fact(attribute.label))
        told |= bool(found)
        _say_how_many(writer, run, subject if name else None)
        say_window(writer, run)
        say_partial(writer, run)
    return RenderedView(
        outcome=Outcome.ANSWERED if told else Outcome.NO_DATA,
        incident=str(arguments["incident"]) if arguments.get("incident") is not None else None,
        entity=entity_item(str(arguments.get("entity_kind") or ""), name) if name else None,
        suggestions=() if told or not name else (f"Show the alerts that name {plain(name)}",),
    )


def _collect(writer: AnswerWriter, run: ToolRun, attribute: Attribute, name: str, *, of_named: bool) -> list[_Found]:
    """Distinct values in the rows, commonest first: of the named thing itself, or of the others in its alerts."""
    found: dict[str, _Found] = {}
    for place in range(len(run.rows)):
        for base, entity in things_at(run, f"/rows/{place}/entities"):
            for pointer, value in values_of(attribute, entity) if _is_named(entity, name) is of_named else ():
                shown = plain(str(value)).lower()
                if shown != name.lower():
                    each = found.setdefault(shown, _Found(writer.exact(run, base + pointer)))
                    each.pointers.setdefault(place, base + pointer)
    return sorted(found.values(), key=lambda each: -len(each.pointers))


def _is_named(entity: Entity, name: str) -> bool:
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
    writer: AnswerWriter, run: ToolRun, attribute: Attribute, name: Part, found: Sequence[_Found], *, own: bool
) -> None:
    headed, link = (
        Fact(attribute.heading),
        "of" if own else "in the alerts that name" if isinstance(name, Echo) else "in",
    )
    if len(found) <= IN_SENTENCE:
        counts = [each.tally(writer, run) for each in found]
        facts = [
            phrase(f"{{}} (in {{}} {'alert' if count.text == '1' else 'alerts'})", each.fact, count)
            for each, count in zip(found, counts, strict=True)
        ]
    if len(found) == 1:
        writer.say(f"{{}} {link} {{}}: {{}}.", headed, name, facts)
        return
    distinct = writer.tally([(run, next(iter(each.pointers.values()))) for each in found])
    if len(found) <= IN_SENTENCE:
        writer.say(f"{{}} {link} {{}}, {{}} distinct: {{}}.", headed, name, distinct, facts)
        return
    writer.say(f"{{}} {link} {{}}: {{}} distinct, in the table below.", headed, name, distinct)
    first = [(each, next(iter(each.pointers.values()))) for each in found[:MOST_VALUES]]
    rows = [[writer.cell(run, at, limit=600), each.tally(writer, run)] for each, at in first]
    writer.table("", (headed.text, "Alerts"), rows)


def _say_how_many(writer: AnswerWriter, run: ToolRun, name: Part | None) -> None:
    total, returned = total_of(writer, run), writer.number(run, "/coverage/rows_returned")
    one, named = total.text == "1", [] if name is None else [name]
    noun = (
        f"alert{'' if one else 's'} match{'es' if one else ''}"
        if name is None
        else f"alert{' names' if one else 's name'} {{}}"
    )
    if returned.text == total.text:
        writer.say(f"{{}} {noun}; I looked at all of them.", total, *named)
    else:
        writer.say(f"{{}} {noun}; I looked at the newest {{}}.", total, *named, returned)


# --- that alerts single out


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """The one value that the alerts that fit the words single out; the few that they leave, asked back; or all."""
    runs = [run for run in runs if run.call.tool_name == "query_alerts"]
    if not alerts_in(runs):
        return compose_empty(writer, plan, runs[0], "alerts")
    choice = choose(plan, runs)
    if choice is None:
        composed = _say_missing(writer, plan, runs)
    elif asks_for_several(plan.frame):
        composed = _say_all(writer, choice)
    elif choice.reason is None:
        one = len(choice.values) == 1
        writer.say(view_data()["why"]["one" if one else "several"], Fact(choice.wanted.label))
        composed = RenderedView(outcome=Outcome.CLARIFICATION, items=_say_numbered(writer, choice))
    else:
        composed = _say_one(writer, choice, choice.reason)
    _say_looked_at(writer, runs)
    return composed


def _say_one(writer: AnswerWriter, choice: Choice, reason: SelectionReason) -> RenderedView:
    """The value, why it is the one, and the alert that it stands in."""
    value, why = choice.values[0], view_data()["why"]
    alert, told = value.alert, [(choice.wanted.label, value), *choice.beside]
    said = phrase(
        " and ".join("the {} is {}" for _ in told), *(part for name, each in told for part in (Fact(name), _fact(each)))
    )
    known = ", also known as {}" if value.others else ""
    others = [writer.exact(alert.run, pointer) for _, pointer in value.others]
    # The sentence begins with the first of its parts.
    writer.say(f"{{}}{known}.", _capitalized(said), *([others] if known else []))
    writer.fixed(why.get(reason.value) or why.get(f"role_{choice.wanted.label}") or why["started_it"])
    writer.say("It stands in alert {} at {}, incident {}.", *_place(writer, alert))
    if alert.row.get("description"):
        described = writer.words(alert.run, f"{alert.pointer}/description", limit=400)
        writer.say("That alert is described so: {}", described)
    item = alert_item(alert.row)
    return RenderedView(incident=alert.incident or None, items=(item,), alert=item)


def _capitalized(fact: Fact) -> Fact:
    return Fact(fact.text[0].upper() + fact.text[1:], fact.values)


def _say_all(writer: AnswerWriter, choice: Choice) -> RenderedView:
    """Every value of the alerts that fit, where several are asked for."""
    shown = choice.values[:MOST_CHOICES]
    writer.say("{}: {}.", Fact(choice.wanted.label), [_fact(value) for value in shown])
    if len(shown) < len(choice.values):
        writer.fixed("More of them stand in these alerts.")
    return RenderedView(items=_say_numbered(writer, choice), incident=shown[0].alert.incident or None)


def _say_numbered(writer: AnswerWriter, choice: Choice) -> tuple[ListItem, ...]:
    shown = choice.values[:MOST_CHOICES]
    for place, value in enumerate(shown, start=writer.listed + 1):
        line = "{} {} (alert {} at {}, incident {})."
        writer.say(line, Fact(f"[{place}]"), _fact(value), *_place(writer, value.alert))
    writer.listed += len(shown)
    return tuple(alert_item(value.alert.row) for value in shown)


def _say_missing(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> RenderedView:
    """The property stands nowhere: says so, and shows what the alert that fits best does name."""
    meant, label = focus_of(plan, runs).meant, Fact(plan.aspects[0])
    if not meant:
        writer.say_compared([(run, "") for run in runs], "No alert fits these words, so there is no {} to tell.", label)
        return RenderedView(outcome=Outcome.NO_DATA)
    alert = meant[0]
    line = "The results hold no {} for that. The alert that fits best is {} at {}, incident {}."
    writer.say(line, label, *_place(writer, alert))
    cells = [(f"{at}/kind", f"{at}/name") for at, _ in alert.entities]
    if cells:
        rows = [[writer.cell(alert.run, kind), writer.cell(alert.run, name, limit=300)] for kind, name in cells]
        writer.table("What it names", ("Kind", "Name"), rows)
    return RenderedView(outcome=Outcome.NO_DATA, incident=alert.incident or None, alert=alert_item(alert.row))


def _say_looked_at(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """How much of the alerts was seen, in one sentence whatever the number of calls."""
    read = [each for each in runs if "alert_id" not in each.call.arguments] or runs[:1]
    listed = [each for each in read if "entity" not in each.call.arguments] or read[:1]
    returned, total = writer.number(listed[0], "/coverage/rows_returned"), total_of(writer, listed[0])
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
            say_partial(writer, each)


def _place(writer: AnswerWriter, alert: RelatedAlert) -> tuple[Fact, Fact, Fact]:
    run, at = alert.run, alert.pointer
    return writer.name(run, f"{at}/name"), writer.time(run, f"{at}/time"), writer.number(run, f"{at}/incident_number")


def _fact(value: RelatedValue) -> Fact:
    """The value as a code span, which may be the last part of what stands in the result."""
    return part_of(value.alert.run, value.pointer, code(value.text, limit=600))


# --- the alert before or after another one


_A_DAY = timedelta(days=1)


def beside(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """What follows from the alerts that another one is looked for beside: those of the incident of a named alert; the
    day before the first or after the last alert where none of them is named."""
    alerts = alerts_in(runs) if plan.view is View.NEIGHBOUR else []
    if not alerts:
        return None
    side, words = plan.aspects
    numbers = {str(alert.row.get("incident_number") or "") for alert in alerts}
    if "incident" not in plan.calls[0].arguments:
        if len(numbers) != 1 or not all(numbers):
            return replace(
                plan, view=View.ALERTS, aspects=(), opening=(*plan.opening, view_data()["sentence"]["which_alert"])
            )
        call = PlannedCall("query_alerts", {"incident": numbers.pop(), "limit": MAX_LIMIT})
        return replace(plan, calls=(call,))
    if words:
        return None
    ends = max(parse_time(str(alert.row["time"])) for alert in alerts) + timedelta(seconds=1)
    start = min(map(began, alerts)) - _A_DAY if side == "before" else ends
    window = (start, start + _A_DAY)
    call = PlannedCall("query_alerts", dict(zip(("start_time", "end_time"), map(format_time, window), strict=True)))
    opening = view_data()["sentence"][f"day_{side}"]
    return replace(plan, view=View.ALERTS, calls=(call,), aspects=(), opening=(*plan.opening, opening))


def compose_neighbour(writer: AnswerWriter, plan: Plan, run: ToolRun) -> RenderedView:
    """The alert that began right before or after another one of the incident, with both times; ties are all told. Where
    words fit several names, nothing is singled out."""
    side, words = plan.aspects
    alerts = alerts_in([run])
    if not alerts:
        return compose_empty(writer, plan, run, "alerts")
    names = near_best(fits(stems(words), alerts))
    if len(names) != 1:
        return _ask_which(writer, run, [next(each for each in alerts if each.name == name) for name in names])
    same = [alert for alert in alerts if alert.name == names[0]]
    pivot, found = neighbours(same, alerts, side)
    number = writer.number(run, f"{pivot.pointer}/incident_number")
    name, time = writer.name(run, f"{pivot.pointer}/name"), writer.time(run, event_time(run, pivot.pointer))
    if not found:
        writer.say(f"No alert of incident {{}} began {side} {{}}, which began at {{}}.", number, name, time)
    for alert in found:
        other, began = writer.name(run, f"{alert.pointer}/name"), writer.time(run, event_time(run, alert.pointer))
        writer.say(
            f"The alert that began right {side} {{}} ({{}}) is {{}}, which began at {{}}.", name, time, other, began
        )
    if len(same) > 1:
        count = writer.tally([(run, f"{alert.pointer}/name") for alert in same])
        taken = Fact("earliest" if side == "before" else "latest")
        writer.say("{} alerts of that name are there; I took the {} of them.", count, taken)
    if run.at("/coverage/rows_total") != len(alerts):
        line = "Only {} of the {} alerts of the incident were compared."
        writer.say(line, writer.number(run, "/coverage/rows_returned"), total_of(writer, run))
    items = tuple(alert_item(alert.row) for alert in found)
    outcome = Outcome.ANSWERED if found else Outcome.NO_DATA
    return RenderedView(outcome=outcome, items=items, alert=items[0] if len(items) == 1 else None, incident=number.text)


def _ask_which(writer: AnswerWriter, run: ToolRun, named: Sequence[RelatedAlert]) -> RenderedView:
    if not named:
        writer.say_none([run], "No alert of the incident is called so. Ask for its alerts to see their names.")
        return RenderedView(outcome=Outcome.NO_DATA)
    names = [writer.name(run, f"{alert.pointer}/name") for alert in named[:MOST_NAMES]]
    writer.say("Several alerts of the incident are called so; which one do you mean: {}?", names)
    return RenderedView(outcome=Outcome.CLARIFICATION)
