"""The short table of an incident's own alerts."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.things import ListItem, alert_item
from sentinel_rag.agent.tool_runs import ToolRun

COLUMNS = ("", "Time", "Severity", "Status", "Entity", "Alert")


def brief_alert_table(writer: AnswerWriter, run: ToolRun, base: str, *, limit: int) -> tuple[ListItem, ...]:
    """The first `limit` alerts of the list at `base` as a numbered table; the items for the conversation."""
    alerts = run.at(base)
    number = str(run.at("/rows/0/number") or "")
    items: list[ListItem] = []
    rows: list[list[Fact]] = []
    start = writer.listed + 1
    for place, alert in enumerate(alerts if isinstance(alerts, list | tuple) else ()):
        if place == limit or not isinstance(alert, Mapping):
            break
        at = f"{base}/{place}"
        rows.append(
            [
                Fact(f"[{start + place}]"),
                writer.time_cell(run, scope.event_time(run, at)),
                writer.cell(run, f"{at}/severity"),
                writer.cell(run, f"{at}/status"),
                writer.cell(run, f"{at}/compromised_entity", limit=50),
                writer.cell(run, f"{at}/name"),
            ]
        )
        items.append(alert_item(alert, incident=number))
    writer.listed += len(rows)
    if rows:
        writer.table("Its alerts" if len(rows) < limit else "Its first alerts", COLUMNS, rows)
    return tuple(items)
