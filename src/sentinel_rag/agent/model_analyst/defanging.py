"""Rows of a result without what trips a provider's content filter: attack text, encoded payloads, long free text.

Works on the text that a model was given, whole or cut, so that every earlier result of a conversation can be sent again
in this form. Ids, numbers, times, addresses and short names stay: an answer can still be checked against the rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.models.port import ModelMessage, ToolResultMessage

LONGEST_KEPT = 80
"""Characters of a text with spaces that are kept: titles and names are shorter, command lines and scripts longer."""
_CELL = re.compile(r"^(\s*(?:\[c\d+(?:\.\d+)?\]\s|[\w ]{1,40}(?:: |=))?)(.*)$")
"""What stands before a value: the number of its row, or its column."""
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{64,}")
_HASH_OR_PATH = re.compile(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|/subscriptions/\S*", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:powershell|cmd(?:\.exe)?\s|/c\s|wscript|mshta|rundll32|regsvr32|certutil|bash\s+-|curl\s|wget\s|<script|"
    r"javascript:|\bunion\s+select\b|\bdrop\s+table\b|\$\(|\|\||&&|invoke-|iex\b|-enc\b|mimikatz)",
    re.IGNORECASE,
)


def defanged(text: str) -> str:
    """`text`, a result as `answers.view` writes it, with each value that could be an attack replaced by its length."""
    return "\n".join(" | ".join(map(_value, line.split(" | "))) for line in text.split("\n"))


def defanged_messages(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """The conversation with its tool results defanged."""
    return tuple(
        replace(message, text=defanged(message.text)) if isinstance(message, ToolResultMessage) else message
        for message in messages
    )


def _value(cell: str) -> str:
    found = _CELL.match(cell)
    before, value = (found[1], found[2]) if found else ("", cell)
    return f"{before}[text of {len(value)} characters left out]" if _is_dangerous(value) else cell


def _is_dangerous(value: str) -> bool:
    if len(value) > LONGEST_KEPT and " " in value:
        return True
    if _ENCODED.search(value) and not _HASH_OR_PATH.fullmatch(value):
        return True
    return _COMMAND.search(value) is not None or reads_like_instruction(value)
