"""What the journal says of tool definitions: pinned at first sight, found changed, accepted by a person.

A record holds hashes; the definitions themselves lie in the gateway's state. All records of a tool carry
`tool:SERVER/NAME` as their `audit_id`, so one search shows its whole story.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPinned:
    """A definition was taken as it is: seen for the first time, or changed by an upgrade of this product itself
    (then `previous_sha256` is the one before)."""

    kind: ClassVar[str] = "tool_pinned"
    audit_id: str
    server: str
    tool: str
    sha256: str
    previous_sha256: str | None = None

    def fields(self) -> dict[str, JsonValue]:
        return {
            "server": self.server,
            "tool": self.tool,
            "sha256": self.sha256,
            "previous_sha256": self.previous_sha256,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuarantined:
    """Its server describes the tool otherwise than it was pinned; it is not offered and its calls are denied."""

    kind: ClassVar[str] = "tool_quarantined"
    audit_id: str
    server: str
    tool: str
    pinned_sha256: str
    served_sha256: str

    def fields(self) -> dict[str, JsonValue]:
        return {
            "server": self.server,
            "tool": self.tool,
            "pinned_sha256": self.pinned_sha256,
            "served_sha256": self.served_sha256,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAccepted:
    """The holder of `key_id` accepted the changed definition; it is the pinned one from now on."""

    kind: ClassVar[str] = "tool_accepted"
    audit_id: str
    key_id: str
    server: str
    tool: str
    sha256: str
    previous_sha256: str

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "server": self.server,
            "tool": self.tool,
            "sha256": self.sha256,
            "previous_sha256": self.previous_sha256,
        }
