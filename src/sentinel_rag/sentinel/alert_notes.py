"""Sentences that code adds to alerts for their reader: what the rows alone would let one miss."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sentinel_rag.contracts.query_results import TimeWindow
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.incident_links import IncidentLinks
from sentinel_rag.sentinel.incidents import MERGED
from sentinel_rag.sentinel.newest_alerts import ALERT_TIME, FIRST_ROW


def late_notes(found: Sequence[Alert], window: TimeWindow, time_column: str) -> list[str]:
    """Alerts that were recorded in the window and tell of what happened before it: the record came late."""
    start = window.start
    if start is None or time_column != ALERT_TIME:
        return []
    late = [alert for alert in found if alert.record["EndTime"] is not None and alert.record["EndTime"] < start]
    if not late:
        return []
    gap = max(alert.record[FIRST_ROW] - alert.record["EndTime"] for alert in late) / timedelta(hours=1)
    which = "1 of the alerts shown was" if len(late) == 1 else f"{len(late)} of the alerts shown were"
    return [
        f"{which} recorded ({ALERT_TIME}) in the window, after activity that ended before it (EndTime): "
        f"up to {gap:.1f} hours late."
    ]


def reader_notes(found: Sequence[Alert], links: IncidentLinks) -> list[str]:
    """What the rows alone would let a reader miss: snapshots, unreadable entities, alerts of several incidents."""
    notes: list[str] = []
    snapshots = [alert for alert in found if _disagrees(alert, links)]
    if snapshots:
        newest = max(str(alert.row_time) for alert in snapshots)
        notes.append(
            f"{len(snapshots)} alert{'s have' if len(snapshots) != 1 else ' has'} another state than the incident: an "
            f"alert row is a snapshot (ProcessingEndTime, here {newest} at the latest) and may lag behind Defender."
        )
    unreadable = sum(not alert.entities.readable for alert in found)
    if unreadable:
        notes.append(f"The entities of {unreadable} alert{'s' if unreadable != 1 else ''} do not parse as JSON.")
    dangling = sum(alert.entities.dangling for alert in found)
    if dangling:
        notes.append(f"{dangling} entity references point at nothing in their row.")
    several = links.several()
    if several:
        notes.append(
            f"{len(several)} alert{'s belong' if len(several) != 1 else ' belongs'} to more than one incident; "
            "incident_number is the one changed last."
        )
    return notes


def _disagrees(alert: Alert, links: IncidentLinks) -> bool:
    number = links.number_of(alert.alert_id)
    if number is None:
        return False
    alert_closed = alert.record["Status"] in ("Resolved", "Dismissed")
    return alert_closed != (links.statuses.get(number) in ("Closed", MERGED))
