"""What an approval is for, to the letter, and what the person who decides is shown.

A `Binding` is compared as a whole: an approval fits one call of one key in one session, with the labels, the policy and
the tool's schema that were in force when it was asked for. An `ApprovalQuestion` explains that call; it decides
nothing, and the store refuses one whose arguments are not those that the binding names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.contracts.labels import Label


@dataclass(frozen=True, slots=True)
class Binding:
    """Everything that an approval is bound to. `argument_labels` holds the label of each argument as it was judged,
    `arguments_sha256` the hex hash of the canonical arguments."""

    key_id: str
    session_id: str
    tool: str
    arguments_sha256: str
    argument_labels: Mapping[str, Label]
    context: Label
    rule_id: str
    policy_sha256: str
    schema_sha256: str | None

    def sha256(self) -> str:
        """The hash, in hex, over the canonical JSON of every field."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {
            "key_id": self.key_id,
            "session_id": self.session_id,
            "tool": self.tool,
            "arguments_sha256": self.arguments_sha256,
            "argument_labels": {name: label.to_dict() for name, label in self.argument_labels.items()},
            "context": self.context.to_dict(),
            "rule_id": self.rule_id,
            "policy_sha256": self.policy_sha256,
            "schema_sha256": self.schema_sha256,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Binding:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        labels = {name: Label.from_dict(label) for name, label in data["argument_labels"].items()}
        return cls(**{**data, "argument_labels": labels, "context": Label.from_dict(data["context"])})


@dataclass(frozen=True, slots=True)
class Violation:
    """An argument whose label is above what the tool accepts for it; `parameter` is empty for the fact of the call
    itself. `link` tells that a link in the text made its place stricter."""

    parameter: str
    label: Label
    accepts: Label
    link: bool = False


@dataclass(frozen=True, slots=True)
class Raise:
    """An earlier call of the session whose result raised its context label; `at` is a time in ISO 8601."""

    audit_id: str
    tool: str
    label: Label
    at: str


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """What the person sees. `why` says in words why a person is asked (`the rule requires it`, `sink_label`).

    `arguments` are the exact canonical arguments of the call. `approvers` are the key ids or names that may decide;
    empty for every key with the scope `approve`. It is never empty in the sense of nobody: somebody always has to.
    """

    effect: str
    server: str
    description: str
    condition: str
    taint_level: str
    why: str
    arguments: JsonObject
    violations: tuple[Violation, ...]
    raised_by: tuple[Raise, ...]
    approvers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "effect": self.effect,
            "server": self.server,
            "description": self.description,
            "condition": self.condition,
            "taint_level": self.taint_level,
            "why": self.why,
            "arguments": self.arguments,
            "violations": [
                {
                    "parameter": each.parameter,
                    "label": each.label.to_dict(),
                    "accepts": each.accepts.to_dict(),
                    "link": each.link,
                }
                for each in self.violations
            ],
            "raised_by": [
                {"audit_id": each.audit_id, "tool": each.tool, "label": each.label.to_dict(), "at": each.at}
                for each in self.raised_by
            ],
            "approvers": list(self.approvers),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ApprovalQuestion:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        violations = tuple(
            Violation(each["parameter"], Label.from_dict(each["label"]), Label.from_dict(each["accepts"]), each["link"])
            for each in data["violations"]
        )
        raised_by = tuple(
            Raise(each["audit_id"], each["tool"], Label.from_dict(each["label"]), each["at"])
            for each in data["raised_by"]
        )
        approvers = tuple(data["approvers"])
        return cls(**{**data, "violations": violations, "raised_by": raised_by, "approvers": approvers})
