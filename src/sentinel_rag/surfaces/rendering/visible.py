"""Text of others as every surface shows it: unsafe characters as visible escapes, hosts as DNS is asked for them.

Which characters are unsafe says `contracts.visible_text`, for the agent too.
"""

from __future__ import annotations

from sentinel_rag.contracts.visible_text import visible
from sentinel_rag.surfaces.rendering.links import with_ascii_hosts


def safe(text: str) -> str:
    """`text` with every unsafe character written as an escape, and hosts of addresses as DNS is asked for them; new
    lines and tabs stay where the caller wants lines."""
    return visible(text) if text.isascii() else with_ascii_hosts(visible(text))


def safe_cell(text: str) -> str:
    """`safe` on one line, for a table cell."""
    return safe(text).replace("\n", " ").replace("\t", " ")
