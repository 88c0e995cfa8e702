"""Counts over time, and the entities that most alerts name."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.incidents import count_facts
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.planner.plan import WITHOUT, Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MAX_BUCKETS = 60
_INTERVALS = {"1h": "hour", "6h": "six hours", "1d": "day", "7d": "week"}
_ON_THE_CLOCK = {
    "6h": "A day begins at midnight of the time zone {}.",
    "1d": "A day begins at midnight of the time zone {}.",
    "7d": "A week begins on Monday at midnight of the time zone {}.",
}
PLURALS = {
    "account": "accounts",
    "host": "hosts",
    "ip": "IP addresses",
    "url": "URLs",
    "file": "files",
    "filehash": "hashes",
    "process": "processes",
    "mailbox": "mailboxes",
    "dns": "domains",
    "mailmessage": "mails",
}


def compose_trend(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Total, peak and the buckets as a table."""
    if not run.at("/summary/total"):
        return scope.compose_empty(writer, plan, run, "alerts")
    template, parts = scope.filters_shown(run)
    filtered = f" ({template})" if template else ""
    interval = str(run.at("/summary/interval") or "")
    writer.say(
        f"{{}} alerts{filtered}, counted by {_INTERVALS.get(interval, 'bucket')}.",
        writer.number(run, "/summary/total"),
        *parts,
    )
    if interval in _ON_THE_CLOCK and run.at("/summary/timezone"):
        writer.say(_ON_THE_CLOCK[interval], writer.number(run, "/summary/timezone"))
    if run.at("/summary/peak_time"):
        writer.say(
            "The peak is the bucket that starts {} with {} alerts.",
            writer.time(run, "/summary/peak_time"),
            writer.number(run, "/summary/peak_count"),
        )
    if plan.frame.has("calm") and run.rows:
        place = min(range(len(run.rows)), key=lambda each: int(str(run.rows[each].get("count") or 0)))
        writer.say(
            "The quietest bucket starts {} with {} alerts.",
            writer.time(run, f"/rows/{place}/time"),
            writer.number(run, f"/rows/{place}/count"),
        )
    severities = count_facts(writer, run, "/summary/by_severity")
    if severities:
        writer.say("By severity: {}.", severities)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    count = len(run.rows)
    places = [place for place in range(count) if count <= MAX_BUCKETS or run.rows[place].get("count")][-MAX_BUCKETS:]
    if count > MAX_BUCKETS:
        writer.fixed("Buckets without alerts, and the oldest ones, are left out of the table.")
    rows = [
        [
            writer.time_cell(run, f"/rows/{place}/time"),
            *(
                writer.cell(run, f"/rows/{place}/{name}")
                for name in ("count", "high", "medium", "low", "informational")
            ),
        ]
        for place in places
    ]
    writer.table("", ("Start of bucket", "Alerts", "High", "Medium", "Low", "Informational"), rows)
    return Composed(shown=len(rows))


def compose_top(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The ranking as a numbered table."""
    kind = str(run.call.arguments["kind"])
    noun = PLURALS.get(kind, f"{kind} entities")
    if not run.rows:
        return scope.compose_empty(writer, plan, run, noun)
    left_out = [aspect.removeprefix(WITHOUT) for aspect in plan.aspects if aspect.startswith(WITHOUT)]
    places = [place for place, row in enumerate(run.rows) if not _is_one_of(str(row.get("name")), left_out)]
    writer.say(
        f"{{}} distinct {noun} occur in {{}} alerts; the table ranks them by distinct alerts.",
        writer.number(run, "/summary/distinct_entities"),
        writer.number(run, "/summary/alerts_considered"),
    )
    if left_out:
        _say_left_out(writer, run, left_out)
    if not places:
        writer.fixed("Nothing is left.")
        return Composed(outcome=Outcome.NO_DATA)
    if not plan.first:
        writer.say(
            "First is {} with {} alerts.",
            writer.exact(run, f"/rows/{places[0]}/name", limit=200),
            writer.number(run, f"/rows/{places[0]}/alerts"),
        )
    if not left_out:
        scope.say_shown(writer, run, scope.total_of(writer, run), first=plan.first)
    if run.at("/summary/alerts_with_unreadable_entities"):
        writer.say(
            "In {} alerts the entities could not be read, so they count for nobody.",
            writer.number(run, "/summary/alerts_with_unreadable_entities"),
        )
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    rows = []
    start = plan.first + writer.listed + 1
    writer.listed += len(places)
    for shown_as, place in enumerate(places, start=start):
        at = f"/rows/{place}"
        rows.append(
            [
                Fact(f"[{shown_as}]"),
                writer.cell(run, f"{at}/name", limit=200),
                writer.cell(run, f"{at}/alerts"),
                writer.cell(run, f"{at}/high_alerts"),
                writer.time_cell(run, f"{at}/first_seen"),
                writer.time_cell(run, f"{at}/last_seen"),
                writer.cell(run, f"{at}/incident_numbers"),
            ]
        )
    columns = ("", kind.capitalize(), "Alerts", "High", "First seen", "Last seen", "Incidents")
    writer.table("", columns, rows)
    items = tuple(ListItem("entity", str(run.rows[place].get("name")), entity_kind=kind) for place in places)
    suggestions = ("Alerts for the first one", "What happened in the last 24 hours?") if len(items) > 1 else ()
    entity = items[0] if len(items) == 1 else None
    shown = plan.first + len(items)
    return Composed(items=items, first=plan.first, entity=entity, suggestions=suggestions, shown=shown)


def _is_one_of(name: str, asked: Sequence[str]) -> bool:
    """True if one of the names that the person wrote is `name`, its host name, its user part or the name behind its
    domain."""
    name = name.casefold()
    forms = {name, name.partition("@")[0], name.rpartition("\\")[2]}
    forms |= {host for host in (name.partition(".")[0],) if not host.isdigit()}
    return any(each.casefold() in forms for each in asked)


def _say_left_out(writer: AnswerWriter, run: ToolRun, asked: Sequence[str]) -> None:
    for each in asked:
        places = [place for place, row in enumerate(run.rows) if _is_one_of(str(row.get("name")), [each])]
        if places:
            writer.say("Left out: {}.", [writer.exact(run, f"/rows/{place}/name") for place in places])
        else:
            writer.say_none([run], "No row that came is called {}, so nothing was left out for it.", Echo(each))
