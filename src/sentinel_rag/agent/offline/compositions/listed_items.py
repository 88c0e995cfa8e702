"""Rows as things that the conversation can refer to afterwards."""

from sentinel_rag.agent.things import alert_item as alert_item
