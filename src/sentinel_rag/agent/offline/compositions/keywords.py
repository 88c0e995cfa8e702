"""A word or two alone, found in the titles of incidents, in the names of alerts, or behind a technique.

Says for each of the two where it was looked for and what was found; if neither holds it, offers to look for an entity
of that name. Rows of alerts come with the incidents that they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.alerts import alert_table
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incidents import incident_items, incident_table
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.planner import offer
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.things import ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MOST_ALERTS = 10
MOST_NUMBERS = 12


def compose(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> Composed:
    """Incidents first, then alerts; one plain sentence where neither holds the words."""
    found = [run for run in runs if run.rows]
    if not found:
        return _say_nowhere(writer, runs)
    items: list[ListItem] = []
    for run in runs:
        if run.call.tool_name == "query_incidents":
            items += _say_incidents(writer, run)
        else:
            items += _say_alerts(writer, run)
    scope.say_window(writer, found[0])
    for run in runs:
        scope.say_partial(writer, run)
    only = items[0] if len(items) == 1 else None
    suggestions = tuple(f"What is incident {item.value} about?" for item in items[:1] if item.kind == "incident")
    return Composed(
        items=tuple(items),
        incident=only.value if only is not None and only.kind == "incident" else None,
        alert=only if only is not None and only.kind == "alert" else None,
        suggestions=suggestions,
        shown=len(items),
    )


def _words(run: ToolRun) -> Echo:
    arguments = run.call.arguments
    return Echo(str(arguments.get("title_contains") or arguments.get("name_contains") or arguments.get("tactic", "")))


def _say_nowhere(writer: AnswerWriter, runs: Sequence[ToolRun]) -> Composed:
    words = _words(runs[0])
    if all(run.at("/coverage/table_rows") == 0 for run in runs):
        writer.say_none(
            runs, "The tables of incidents and alerts hold no rows at all: nothing was collected or imported yet."
        )
        scope.say_how_to_fill(writer)
        return Composed(outcome=Outcome.NO_DATA, suggestions=("What data do you have?",))
    writer.say_none(runs, "No incident has {} in its title and no alert has it in its name.", words)
    scope.say_window(writer, runs[0])
    for run in runs:
        scope.say_partial(writer, run)
    question = f'Show the alerts that name an entity called "{words.text}"'
    proposed = offer(question, "query_alerts", {"entity": words.text}, View.ALERTS)
    writer.fixed("It may be the name of an account, a host or a file: answer yes and I look for that.")
    scope.say_numbered(writer, [proposed])
    return Composed(outcome=Outcome.NO_DATA, offers=(proposed,), suggestions=(question,))


def _say_incidents(writer: AnswerWriter, run: ToolRun) -> tuple[ListItem, ...]:
    if not run.rows:
        writer.say_none([run], "No incident has {} in its title.", _words(run))
        return ()
    total = scope.total_of(writer, run)
    noun = "incident has" if total.text == "1" else "incidents have"
    writer.say(f"{{}} {noun} {{}} in the title.", total, _words(run))
    places = list(range(len(run.rows)))
    incident_table(writer, run, places, first=0, title="Incidents")
    return incident_items(run, places)


def _say_alerts(writer: AnswerWriter, run: ToolRun) -> tuple[ListItem, ...]:
    by_technique = "tactic" in run.call.arguments
    where = "as technique" if by_technique else "in the name"
    if not run.rows:
        writer.say_none([run], f"No alert has {{}} {where}.", _words(run))
        return ()
    total = scope.total_of(writer, run)
    noun = "alert has" if total.text == "1" else "alerts have"
    numbers = incident_numbers(writer, run)
    if numbers:
        writer.say(f"{{}} {noun} {{}} {where}; of incidents: {{}}.", total, _words(run), numbers)
    else:
        writer.say(f"{{}} {noun} {{}} {where}; no incident holds them.", total, _words(run))
    places = list(range(min(len(run.rows), MOST_ALERTS)))
    alert_table(writer, run, "/rows", places, title="Alerts" if len(places) == len(run.rows) else "The first alerts")
    return tuple(alert_item(run.rows[place]) for place in places)


def incident_numbers(writer: AnswerWriter, run: ToolRun) -> list[Fact]:
    """The incidents that the returned alerts belong to, each once."""
    seen: dict[str, Fact] = {}
    for place, row in enumerate(run.rows):
        number = row.get("incident_number")
        if number is not None and str(number) not in seen:
            seen[str(number)] = writer.number(run, f"/rows/{place}/incident_number")
    return list(seen.values())[:MOST_NUMBERS]
