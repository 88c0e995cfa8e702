"""Rows as things that the conversation can refer to afterwards."""

from sentinel_rag.agent.references import alert_item as alert_item
