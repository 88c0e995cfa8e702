"""What the journal says of keys and of requests that never reached the gate. No record holds a secret or a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.json_values import JsonObject, JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanged:
    """A key was created, rotated or revoked. `changed_at` is when; the record's own time is when the journal heard of
    it, which is later for a change made while no gateway ran. `by` says who, `detail` what the key may do since."""

    kind: ClassVar[str] = "key"
    audit_id: str
    key_id: str
    name: str
    change: str
    changed_at: str
    by: str
    detail: JsonObject

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "name": self.name,
            "change": self.change,
            "changed_at": self.changed_at,
            "by": self.by,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused:
    """A request that was answered before its body was looked at: for another host, too large, too slow, too often.

    `key_id` is None where no key was asked for yet. `not_recorded` counts the refusals since the last such record that
    were too many to record one by one.
    """

    kind: ClassVar[str] = "request_refused"
    audit_id: str
    key_id: str | None
    route: str
    method: str
    client: str
    reason: Reason
    http_status: int
    not_recorded: int = 0

    def fields(self) -> dict[str, JsonValue]:
        return {
            "key_id": self.key_id,
            "route": self.route,
            "method": self.method,
            "client": self.client,
            "reason": self.reason.value,
            "http_status": self.http_status,
            "not_recorded": self.not_recorded,
        }
