"""Rows as things that the conversation can refer to afterwards."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.conversation import ListItem
from sentinel_rag.contracts.json_values import JsonValue


def alert_item(row: Mapping[str, JsonValue]) -> ListItem:
    """A row of query_alerts as something that can be referred to."""
    return ListItem(
        "alert",
        str(row.get("alert_id") or ""),
        time=str(row.get("time") or ""),
        incident=str(row.get("incident_number") or ""),
    )
