"""The situation report: incidents and alerts, the change against the window before, the names that stand out."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, phrase
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incidents import count_facts, incident_items, incident_table
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun

_TOP = (
    ("top_alert_names", "Commonest alerts"),
    ("top_accounts", "Accounts"),
    ("top_hosts", "Hosts"),
    ("top_ips", "IP addresses"),
)


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Totals, change, names that stand out, newest open incidents."""
    if not run.at("/summary/alerts/total") and not run.at("/summary/incidents/total"):
        return scope.compose_empty(writer, plan, run, "incidents or alerts")
    writer.say(
        "Incidents: {}, of these open: {}. Alerts: {}.",
        writer.number(run, "/summary/incidents/total"),
        writer.number(run, "/summary/incidents/open"),
        writer.number(run, "/summary/alerts/total"),
    )
    for label, pointer in (
        ("Incidents by severity", "/summary/incidents/by_severity"),
        ("Incidents by status", "/summary/incidents/by_status"),
        ("Alerts by severity", "/summary/alerts/by_severity"),
    ):
        facts = count_facts(writer, run, pointer)
        if facts:
            writer.say(f"{label}: {{}}.", facts)
    if isinstance(run.at("/summary/previous"), Mapping):
        writer.say(
            "In the window of the same length before: incidents {}, alerts {}.",
            writer.number(run, "/summary/previous/incidents"),
            writer.number(run, "/summary/previous/alerts"),
        )
        _say_change(writer, run)
    tactics = run.at("/summary/tactics")
    if isinstance(tactics, Mapping) and tactics:
        ordered = sorted(tactics, key=lambda name: -int(str(tactics[name] or 0)))[:6]
        facts = []
        for name in ordered:
            fact = writer.number(run, f"/summary/tactics/{escape(name)}")
            facts.append(phrase("{} {}", Fact(name), fact))
        writer.say("Tactics by alerts: {}.", facts)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    places = list(range(min(len(run.rows), 10)))
    if places:
        incident_table(writer, run, places, first=0, title="Newest open incidents")
    for name, title in _TOP:
        _top_table(writer, run, name, title)
    items = incident_items(run, places)
    suggestions = (f"What is incident {items[0].value} about?", "Show the trend of alerts per day") if items else ()
    return Composed(items=items, suggestions=suggestions, shown=len(items))


def _say_change(writer: AnswerWriter, run: ToolRun) -> None:
    """Up or down in words; the figures stand in the lines before."""
    words = []
    for noun, now, before in (
        ("incidents", "/summary/incidents/total", "/summary/previous/incidents"),
        ("alerts", "/summary/alerts/total", "/summary/previous/alerts"),
    ):
        left, right = run.at(now), run.at(before)
        if isinstance(left, int) and isinstance(right, int):
            words.append(f"{noun} {'rose' if left > right else 'fell' if left < right else 'stayed the same'}")
    if words:
        writer.say_compared([(run, "")], f"So {' and '.join(words)}.")


def _top_table(writer: AnswerWriter, run: ToolRun, name: str, title: str) -> None:
    entries = run.at(f"/summary/{name}")
    if not isinstance(entries, list | tuple) or not entries:
        return
    count = "count" if name == "top_alert_names" else "alerts"
    rows = [
        [writer.cell(run, f"/summary/{name}/{place}/name"), writer.cell(run, f"/summary/{name}/{place}/{count}")]
        for place in range(min(len(entries), 5))
    ]
    writer.table(title, ("Name", "Alerts"), rows)
