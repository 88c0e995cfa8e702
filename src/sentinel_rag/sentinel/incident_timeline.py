"""What happened to an incident and when: activity, alerts, changes between its versions, comments, closing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.incidents import is_merged, owner_name
from sentinel_rag.sentinel.log_tables import parse_datetime
from sentinel_rag.sentinel.results import shortened

_WATCHED = (("Status", "Status"), ("Severity", "Severity"), ("Title", "Title"))


def incident_timeline(
    record: Mapping[str, Any],
    versions: Sequence[Mapping[str, Any]],
    alerts: Sequence[Alert],
    comments: Sequence[JsonValue],
) -> list[JsonValue]:
    """`{time, event}` in order of time; alerts of one name and one minute are one event."""
    events: list[tuple[datetime, str]] = []

    def add(moment: Any, event: str) -> None:
        if isinstance(moment, str):
            try:
                moment = parse_datetime(moment)
            except ValueError:
                return
        if isinstance(moment, datetime):
            events.append((moment, event))

    add(record["FirstActivityTime"], "First activity")
    add(record["LastActivityTime"], "Last activity")
    add(record["CreatedTime"], "Incident created")
    starts: Counter[tuple[datetime, str]] = Counter()
    for alert in alerts:
        start = alert.record["StartTime"] or alert.record["TimeGenerated"]
        if isinstance(start, datetime):
            starts[(start.replace(second=0, microsecond=0), alert.name)] += 1
    for (minute, name), count in starts.items():
        add(minute, f"Alert: {name}" + (f" ({count} times)" if count > 1 else ""))
    for before, after in pairwise(versions):
        for change in _changes(before, after):
            add(after["TimeGenerated"], change)
    for comment in comments:
        if isinstance(comment, Mapping):
            add(comment["time"], f"Comment by {comment['author'] or 'an unnamed author'}")
    closed = "Merged into another incident by Microsoft Defender" if is_merged(record) else "Closed"
    add(record["ClosedTime"], closed if record["Status"] == "Closed" else "Closed (and open again later)")
    events.sort(key=lambda event: event[0])
    return [{"time": format_time(moment), "event": event} for moment, event in events]


def incident_durations(record: Mapping[str, Any]) -> dict[str, JsonValue]:
    """Seconds from creation to closing (null while open, whatever closing time is left over, and for a merged one), and
    to the first change (null where the workspace keeps no FirstModifiedTime)."""
    closed = record["ClosedTime"] if record["Status"] == "Closed" and not is_merged(record) else None
    return {
        "open_duration_s": _seconds_between(record["CreatedTime"], closed),
        "first_response_s": _seconds_between(record["CreatedTime"], record.get("FirstModifiedTime")),
    }


def _seconds_between(start: Any, end: Any) -> float | None:
    if not isinstance(start, datetime) or not isinstance(end, datetime):
        return None
    return round((end - start).total_seconds(), 3)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Sentences for what differs between two versions that follow each other."""
    by = f" by {after['ModifiedBy']}" if after["ModifiedBy"] else ""
    changes = [
        f"{label} changed from {_shown(before[column])} to {_shown(after[column])}{by}"
        for column, label in _WATCHED
        if before[column] != after[column]
    ]
    owners = owner_name(before["Owner"]), owner_name(after["Owner"])
    if owners[0] != owners[1]:
        changes.append(f"Owner changed from {owners[0] or 'none'} to {owners[1] or 'none'}{by}")
    return changes


def _shown(value: Any) -> str:
    return shortened(value, 120) or "none"
