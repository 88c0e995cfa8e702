"""What a person who doubts an answer does: run the query of its evidence, count, and look for the rows.

A call is compared with its query's rows by the identifiers that both have; where a tool ranks or counts by code, the
same is made out of the rows found again. A call without a query (knowledge, files, changes) is not compared.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.sentinel.entities.entities import EntityTally, parse_entities
from sentinel_rag.workspace.workspace import Workspace

Records = Sequence[Mapping[str, Any]]

CHANGES = frozenset({"update_incident", "add_incident_comment"})
"""What they return is of the change itself, which no query tells."""
_KEYS = {"alert_id": "SystemAlertId", "number": "IncidentNumber"}
_CELLS = {
    "name": "AlertName", "severity": "AlertSeverity", "status": "Status", "start_time": "StartTime", "time": "FirstRow",
    "compromised_entity": "CompromisedEntity",
}  # fmt: skip
_INCIDENT_CELLS = {
    "title": "Title", "severity": "Severity", "status": "Status", "created_time": "CreatedTime",
    "closed_time": "ClosedTime", "provider_incident_id": "ProviderIncidentId",
}  # fmt: skip
_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Characters that nobody sees: some of them are taken out on the way to the agent."""
_GROUPS = {"by_severity": ("AlertSeverity", "Severity"), "by_status": ("Status",), "by_product": ("ProductName",)}
_COUNTED = ("/coverage/rows_", "/summary/alerts_considered", "/summary/distinct_entities", "/summary/total",
            "/summary/by_", "/summary/peak_", "/summary/alert_count", "/rows/")  # fmt: skip
"""Pointers of what is compared here."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What an answer was told, and what its query gives."""

    what: str
    told: Any
    found: Any


@dataclass(slots=True)
class Reproduction:
    """What came of the calls and the numbers of answers."""

    calls: Counter[str] = field(default_factory=Counter)
    by_tool: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    """Numbers of an answer that its call's query does not give, by tool and place."""
    differences: list[dict[str, Any]] = field(default_factory=list)

    def count(self, tool: str, verdict: str) -> None:
        self.calls[verdict] += 1
        self.by_tool.setdefault(tool, Counter())[verdict] += 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "calls": dict(self.calls),
            "numbers_in_answers": dict(self.numbers),
            "numbers_that_the_query_does_not_give": dict(self.elsewhere.most_common()),
            "by_tool": {tool: dict(counts) for tool, counts in sorted(self.by_tool.items())},
            "differences": self.differences,
        }


def kept_turns(home: Path) -> list[Any]:
    """The turns of every conversation that a stopped home keeps, with answers and results."""
    file = home / "agent" / "conversations.db"
    with closing(ConversationStore(file, clock=utc_now, keep_days=1)) as store:
        kept = [
            store.load(each.conversation_id, turns=1_000, with_answers=True, with_results=True)
            for each in store.list(limit=10_000)
        ]
    return [turn for each in kept if each is not None for turn in each.turns]


def run_again(turns: Sequence[Any], workspace: Workspace) -> Reproduction:
    """Compare each call of `turns` with the rows of its query, which `workspace` runs again."""
    made = Reproduction()
    changed = {str(call["arguments"]["incident"]) for turn in turns for call in turn.results if call["tool"] in CHANGES}
    for turn in turns:
        faithful: dict[str, bool] = {}
        tools = {str(call["call_id"]): str(call["tool"]) for call in turn.results}
        for call in turn.results:
            coverage = (call.get("result") or {}).get("coverage") or {}
            tool = str(call["tool"])
            if not coverage.get("query") or tool in CHANGES:
                made.count(tool, "without a query")
                continue
            if coverage["partial"]:
                made.count(tool, "told as partial")
                continue
            if changed & {str(row.get("number")) for row in call["result"]["rows"]}:
                made.count(tool, "of an incident that was changed since")
                continue
            found = differences(call, records_of(workspace, coverage["query"]))
            faithful[str(call["call_id"])] = not found
            made.count(tool, "differs" if found else "found again")
            made.differences += [
                {"question": turn.question, "tool": tool, "what": each.what, "told": each.told, "found": each.found}
                for each in found
            ]
        for fact in (turn.shown or {}).get("evidence", ()):
            if isinstance(fact["value"], int) and not isinstance(fact["value"], bool):
                made.numbers[_verdict(fact, tools, faithful, made.elsewhere)] += 1
    return made


def _verdict(
    fact: Mapping[str, Any], tools: Mapping[str, str], faithful: Mapping[str, bool], elsewhere: Counter[str]
) -> str:
    call, pointer = str(fact["call_id"]), str(fact["pointer"])
    if call not in faithful:
        return "computed from rows of other calls" if tools.get(call) == "compute" else "without a query"
    if not pointer.startswith(_COUNTED) and tools[call] != "get_threat_summary":
        elsewhere[f"{tools[call]} {'/'.join(pointer.split('/')[:3])}"] += 1
        return "not of the query"
    return "found again" if faithful[call] else "differs"


def records_of(workspace: Workspace, query: str) -> Records:
    """The rows of `query`, each by its columns."""
    table: Any = workspace.query(query, max_rows=100_000).to_dict()
    columns = [(column["name"], column["type"] == "dynamic") for column in table["columns"]]
    return [
        {
            name: json.loads(cell) if is_json and isinstance(cell, str) and cell else cell
            for (name, is_json), cell in zip(columns, row, strict=True)
        }
        for row in table["rows"]
    ]


def differences(call: Mapping[str, Any], records: Records) -> list[Difference]:
    """In what the result of `call` differs from `records`."""
    compare = _OWN.get(call["tool"], _listed)
    told, found = (json.loads(_UNSEEN.sub("", json.dumps(each, ensure_ascii=False))) for each in (call, records))
    return [each for each in compare(told["result"], found, told["arguments"]) if not same(each.told, each.found)]


def _listed(result: Mapping[str, Any], records: Records, arguments: Mapping[str, Any]) -> list[Difference]:
    """A list of alerts or incidents, or the rows of a query as they are."""
    found = [Difference("rows", result["coverage"]["rows_total"], len(records))]
    for group, columns in _GROUPS.items():
        column = next((each for each in columns if records and each in records[0]), None)
        told = result["summary"].get(group)
        if told is not None and column is not None:
            counted = dict(Counter(record[column] for record in records))
            found.append(Difference(group, {name: count for name, count in told.items() if count}, counted))
    for name, total in result["summary"].get("totals", {}).items():
        found.append(Difference(f"sum of {name}", total, sum(record[name] or 0 for record in records)))
    offset = int(arguments.get("offset", 0))
    for place, row in enumerate(result["rows"]):
        key = next((name for name in _KEYS if name in row and records and _KEYS[name] in records[0]), None)
        if key is None:
            again = records[offset + place] if offset + place < len(records) else {}
            found += [Difference(f"row {place}, {name}", row[name], again.get(name)) for name in row if name in again]
            found.append(Difference(f"row {place}", True, bool(again)))
            continue
        again = next((each for each in records if same(each[_KEYS[key]], row[key])), {})
        found.append(Difference(f"{key} {row[key]}", True, bool(again)))
        cells = _CELLS if key == "alert_id" else _INCIDENT_CELLS
        found += [
            Difference(f"{key} {row[key]}, {name}", row[name], again[column])
            for name, column in cells.items()
            if name in row and column in again
        ]
        if key == "number" and "AlertIds" in again:
            found.append(Difference(f"alerts of {row[key]}", row["alert_count"], len(again["AlertIds"] or ())))
    return found


def _ranked(result: Mapping[str, Any], records: Records, arguments: Mapping[str, Any]) -> list[Difference]:
    tally = EntityTally()
    for record in records:
        tally.add(parse_entities(record["Entities"]).entities, record["SystemAlertId"])
    ranked = {entity.name: entity for entity in tally.ranked(arguments["kind"])}
    high = {record["SystemAlertId"] for record in records if record["AlertSeverity"] == "High"}
    found = [
        Difference("alerts considered", result["summary"]["alerts_considered"], len(records)),
        Difference("entities", result["coverage"]["rows_total"], len(ranked)),
    ]
    for row in result["rows"]:
        again = ranked.get(row["name"])
        found.append(Difference(f"alerts of {row['name']}", row["alerts"], len(again.alerts) if again else 0))
        found.append(
            Difference(f"high alerts of {row['name']}", row["high_alerts"], len(again.alerts & high) if again else 0)
        )
    return found


def _trend(result: Mapping[str, Any], records: Records, arguments: Mapping[str, Any]) -> list[Difference]:
    del arguments
    times = [name for name in records[0] if name not in ("Alerts", "AlertSeverity")][:1] if records else []
    found = [Difference("alerts", result["summary"]["total"], sum(record["Alerts"] for record in records))]
    starts = [parse_time(row["time"]) for row in result["rows"]]
    for place, row in enumerate(result["rows"]):
        end = starts[place + 1] if place + 1 < len(starts) else None
        inside = sum(
            record["Alerts"]
            for record in records
            if starts[place] <= parse_time(record[times[0]]) and (end is None or parse_time(record[times[0]]) < end)
        )
        found.append(Difference(f"alerts from {row['time']}", row["count"], inside))
    return found


def _summary(result: Mapping[str, Any], records: Records, arguments: Mapping[str, Any]) -> list[Difference]:
    del arguments
    told = result["summary"]
    now = [record for record in records if record["Window"] == "this"]
    incidents = [record for record in now if record["IncidentNumber"] is not None]
    alerts = [record for record in now if record["IncidentNumber"] is None]
    statuses = Counter(record["Status"] for record in incidents)
    listed = [record for record in records if record["Window"] == "open"]  # those of before with alerts of the window
    opened = len(listed) or statuses["New"] + statuses["Active"]
    found = [
        Difference("open incidents", result["coverage"]["rows_total"], opened),
        Difference("incidents", told["incidents"]["total"], len(incidents)),
        Difference("incidents by status", told["incidents"]["by_status"], dict(statuses)),
        Difference(
            "incidents by severity", told["incidents"]["by_severity"], Counter(each["Severity"] for each in incidents)
        ),
        Difference("alerts", told["alerts"]["total"], len(alerts)),
        Difference(
            "alerts by severity", told["alerts"]["by_severity"], Counter(each["AlertSeverity"] for each in alerts)
        ),
        Difference(
            "tactics",
            told["tactics"],
            Counter(tactic.strip() for each in alerts for tactic in each["Tactics"].split(",") if tactic.strip()),
        ),
    ]
    names = Counter(record["AlertName"] for record in alerts)
    found += [Difference(each["name"], each["count"], names[each["name"]]) for each in told["top_alert_names"]]
    tally = EntityTally()
    for record in alerts:
        tally.add(parse_entities(record["Entities"]).entities, record["SystemAlertId"])
    for kind in ("account", "host", "ip"):
        ranked = {entity.name: len(entity.alerts) for entity in tally.ranked(kind)}
        found += [Difference(each["name"], each["alerts"], ranked.get(each["name"])) for each in told[f"top_{kind}s"]]
    if told["previous"] is not None:
        earlier = [record["IncidentNumber"] is not None for record in records if record["Window"] == "before"]
        found.append(Difference("incidents before", told["previous"]["incidents"], sum(earlier)))
        found.append(Difference("alerts before", told["previous"]["alerts"], len(earlier) - sum(earlier)))
    numbers = {record["IncidentNumber"] for record in (*incidents, *listed)}
    return found + [Difference(f"number {row['number']}", True, row["number"] in numbers) for row in result["rows"]]


_OWN: Mapping[str, Callable[[Mapping[str, Any], Records, Mapping[str, Any]], list[Difference]]] = {
    "get_top_entities": _ranked,
    "get_alert_trend": _trend,
    "get_threat_summary": _summary,
}


def same(told: Any, found: Any) -> bool:
    """Whether two cells hold the same, however a time or an empty cell is written."""
    if told in (None, "") and found in (None, ""):
        return True
    if isinstance(told, str) and isinstance(found, str):
        return told == found or (_time(told) is not None and _time(told) == _time(found))
    if isinstance(told, list) and isinstance(found, list):  # a set has no order
        return sorted(map(str, told)) == sorted(map(str, found))
    return bool(told == found)


def _time(text: str) -> Any:
    try:
        return parse_time(text).astimezone(UTC).replace(microsecond=0)
    except ValueError:
        return None
