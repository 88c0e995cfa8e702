"""Pinned tools: what a server says of a tool is held to what it said first, until a person accepts a change."""

from sentinel_rag.gateway.pins.definition import Definition, definition_of
from sentinel_rag.gateway.pins.pins import NotWaiting, Pin, Pins, Quarantined

__all__ = ["Definition", "NotWaiting", "Pin", "Pins", "Quarantined", "definition_of"]
