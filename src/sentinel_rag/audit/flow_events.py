"""Records about information flow that belong to no single call's decision: what a person's words named, which hidden
values a person was shown, and a context label that rose although no tool ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesNamed:
    """Values, as (kind, text), that count as the user's own from now on. `source` is `user` for the user's words, else
    the endorsement rule that derived them from the result of the call with this `audit_id`."""

    kind: ClassVar[str] = "values_named"
    audit_id: str
    key_id: str
    session_id: str
    source: str
    values: tuple[tuple[str, str], ...]

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "source": self.source,
            "values": [{"kind": kind, "text": text} for kind, text in self.values],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlesResolved:
    """A person was shown hidden values: which, and the label of each. The values are not here."""

    kind: ClassVar[str] = "handles_resolved"
    audit_id: str
    key_id: str
    session_id: str
    handles: tuple[tuple[str, Label], ...]
    refused: tuple[str, ...] = ()

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "handles": [{"handle": handle, "label": label.to_dict()} for handle, label in self.handles],
            "refused": list(self.refused),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRaised:
    """The decision about a call depended on a hidden value that its arguments held, so the answer itself tells a bit of
    it: the context label rises although no tool ran."""

    kind: ClassVar[str] = "context_raised"
    audit_id: str
    key_id: str
    session_id: str
    tool: str
    context_before: Label
    context_after: Label

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "tool": self.tool,
            "context_before": self.context_before.to_dict(),
            "context_after": self.context_after.to_dict(),
        }
