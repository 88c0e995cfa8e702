"""One property out of many alerts: "the SHA256 of file X in incident 55", "which URL did host Z visit".

Alerts are ranked by how well their name, description and entities fit the words of the question; values are taken from
the best ones and each is shown with the alert that it stands in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.agent.offline.alert_ranking import NEAR_BEST, candidates_of, ranked_alerts
from sentinel_rag.agent.offline.alert_walk import asks_for_several, choose
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.attribute_catalogue import ATTRIBUTES, HASHES, Attribute
from sentinel_rag.agent.offline.attributes import values_of
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.offline.compositions.other_alerts import say_of_other_alerts
from sentinel_rag.agent.offline.compositions.singled_out import say_choices, say_singled_out
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.json_values import JsonValue

MAX_VALUES = 10


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """The property asked for, from the alerts that fit the words best."""
    details = [run for run in runs if run.call.tool_name == "get_incident_detail"]
    runs = [run for run in runs if run.call.tool_name == "query_alerts"]
    candidates = candidates_of(runs)
    if not candidates:
        return scope.compose_empty(writer, plan, (runs or details)[0], "alerts")
    chosen = choose(plan, runs)
    if chosen is not None and not asks_for_several(plan):
        composed = say_singled_out(writer, chosen) if chosen.reason is not None else say_choices(writer, chosen)
        _say_looked_at(writer, runs)
        return composed
    ranked = ranked_alerts(plan.frame, candidates)
    if chosen is None and plan.told:
        return _say_missing(writer, plan, ranked, runs, None)
    incident = runs[0].call.arguments.get("incident")
    focus = None if incident is None else str(incident)
    listed: list[ListItem] = []
    for label in plan.aspects:
        attribute = next(known for known in ATTRIBUTES if known.label == label)
        before = len(writer.lines)
        listed = _say_best(writer, plan, ranked, attribute)
        if not listed and details and attribute.deep:
            listed = say_of_other_alerts(writer, ranked, details, attribute)
        if listed:
            if label != plan.aspects[0]:
                sentence = "The results hold no {} for that. What they do hold:"
                missing = writer.line(sentence, Fact(plan.aspects[0]), cited=[(run, "") for run in runs])
                writer.lines.insert(before, missing)
            break
    if not listed:
        return _say_missing(writer, plan, ranked, runs, focus)
    _say_looked_at(writer, runs)
    return Composed(incident=focus, items=tuple(listed), alert=listed[0] if len(listed) == 1 else None)


def _say_best(
    writer: AnswerWriter, plan: Plan, ranked: Sequence[tuple[float, ToolRun, int]], attribute: Attribute
) -> list[ListItem]:
    """Values of one attribute in the alerts that fit best; the alerts they stand in."""
    best = ranked[0][0]
    shown = 0
    seen: set[str] = set()
    listed: list[ListItem] = []
    for score, run, place in ranked:
        if shown >= MAX_VALUES or (best > 0 and score < NEAR_BEST * best and shown):
            break
        if best > 0 and score <= 0:
            break
        count = say_values(writer, run, f"/rows/{place}", attribute, plan.frame.all("name"), seen=seen)
        if count:
            if not shown and run.at(f"/rows/{place}/description"):
                writer.say("That alert is described so: {}", writer.words(run, f"/rows/{place}/description", limit=400))
            shown += count
            listed.append(alert_item(run.rows[place]))
    return listed


def _say_missing(
    writer: AnswerWriter,
    plan: Plan,
    ranked: Sequence[tuple[float, ToolRun, int]],
    runs: Sequence[ToolRun],
    focus: str | None,
) -> Composed:
    """The property stands nowhere: says so, and shows what the alert that fits best does name."""
    _, run, place = ranked[0]
    at = f"/rows/{place}"
    writer.say(
        "The results hold no {} for that. The alert that fits best is {} at {}, incident {}.",
        Fact(plan.aspects[0]),
        writer.name(run, f"{at}/name"),
        writer.time(run, f"{at}/time"),
        writer.number(run, f"{at}/incident_number"),
    )
    entities = run.at(f"{at}/entities")
    count = len(entities) if isinstance(entities, list | tuple) else 0
    if count:
        writer.table(
            "What it names",
            ("Kind", "Name"),
            [
                [
                    writer.cell(run, f"{at}/entities/{each}/kind"),
                    writer.cell(run, f"{at}/entities/{each}/name", limit=300),
                ]
                for each in range(count)
            ],
        )
    _say_looked_at(writer, runs)
    return Composed(outcome=Outcome.NO_DATA, incident=focus, alert=alert_item(run.rows[place]))


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


def say_values(
    writer: AnswerWriter,
    run: ToolRun,
    at: str,
    attribute: Attribute,
    names: Sequence[str],
    *,
    seen: set[str] | None = None,
) -> int:
    """Write the values of `attribute` in the alert at `at`, each once; how many were written.

    Where the question names a thing of the attribute's own kind ("the SHA256 of file X"), only that thing's count.
    """
    entities = run.at(f"{at}/entities")
    if not isinstance(entities, list | tuple):
        return 0
    seen = set() if seen is None else seen
    wanted = [name.lower() for name in names]
    places = [place for place, entity in enumerate(entities) if isinstance(entity, Mapping)]
    named = [place for place in places if wanted and _mentions(entities[place], wanted, attribute)]
    facts: list[Fact] = []
    for place in named or places:
        for pointer, value in values_of(attribute, entities[place]):
            shown = str(value)
            if plain(shown).lower() in seen or (wanted and not named and shown.lower() in wanted):
                continue
            seen.add(plain(shown).lower())
            facts.append(writer.exact(run, f"{at}/entities/{place}{pointer}"))
    if facts and wanted and not named and attribute.label in HASHES:
        writer.fixed("The result does not say which file each of these hashes belongs to.")
    if facts:
        writer.say(
            "{}: {} (alert {} at {}, incident {}).",
            Fact(attribute.label),
            facts[:MAX_VALUES],
            writer.name(run, f"{at}/name"),
            writer.time(run, f"{at}/time"),
            writer.number(run, f"{at}/incident_number"),
        )
    return len(facts)


def _mentions(entity: Mapping[str, JsonValue], wanted: Sequence[str], attribute: Attribute) -> bool:
    if entity.get("kind") not in attribute.kinds:
        return False
    text = " ".join(str(value) for value in entity.values()).lower()
    return any(value in text for value in wanted)
