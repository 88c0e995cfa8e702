"""What the journal says about the policy itself: which version is in force, and which file was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sentinel_rag.contracts.json_values import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoaded:
    """A policy came into force; calls after this record are judged by it. `by` is a key id, `start` or `file`."""

    kind: ClassVar[str] = "policy_loaded"
    audit_id: str
    by: str
    policy_sha256: str
    previous_sha256: str | None
    source: str
    tools: int
    rules: int

    def fields(self) -> dict[str, JsonValue]:
        return {
            "by": self.by,
            "policy_sha256": self.policy_sha256,
            "previous_sha256": self.previous_sha256,
            "source": self.source,
            "tools": self.tools,
            "rules": self.rules,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRefused:
    """A policy file did not load, and `policy_sha256` stays in force. `refused_sha256` is None where the file could not
    be read."""

    kind: ClassVar[str] = "policy_refused"
    audit_id: str
    by: str
    policy_sha256: str
    refused_sha256: str | None
    source: str
    problems: tuple[str, ...]
    problems_in_all: int

    def fields(self) -> dict[str, JsonValue]:
        return {
            "by": self.by,
            "policy_sha256": self.policy_sha256,
            "refused_sha256": self.refused_sha256,
            "source": self.source,
            "problems": list(self.problems),
            "problems_in_all": self.problems_in_all,
        }
