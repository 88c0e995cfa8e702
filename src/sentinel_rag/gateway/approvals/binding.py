"""What an approval is for, to the letter, and what the person who decides is shown.

A `Binding` is compared as a whole: an approval fits one call of one key in one session, with the labels, the policy and
the tool's schema that were in force when it was asked for. An `ApprovalQuestion` explains that call; it decides
nothing, and the store refuses one whose arguments are not those that the binding names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.approvals.subject import CallSubject, EarlierRead


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
    subject_sha256: str | None = None
    """What the call would change, as it was read when it was asked for; None where nothing was read."""
    memory: Label = BOTTOM
    """What the agent may remember of other sessions, which whoever decides is shown, also where the tool does not
    count it."""

    def sha256(self) -> str:
        """The hash, in hex, over the canonical JSON of every field."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

    def call_sha256(self) -> str:
        """The hash, in hex, of whose call it is and which one, whatever its labels are."""
        call = [self.key_id, self.session_id, self.tool, self.arguments_sha256]
        return hashlib.sha256(canonical_json(call)).hexdigest()

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
            # An approval of an older version keeps its hash.
            **({} if self.subject_sha256 is None else {"subject_sha256": self.subject_sha256}),
            **({} if self.memory == BOTTOM else {"memory": self.memory.to_dict()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Binding:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        labels = {name: Label.from_dict(label) for name, label in data["argument_labels"].items()}
        single = {name: Label.from_dict(data[name]) for name in ("context", "memory") if name in data}
        return cls(**{**data, "argument_labels": labels, **single})


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
    """An earlier call whose result raised a label; `at` is a time in ISO 8601."""

    audit_id: str
    tool: str
    label: Label
    at: str

    def to_dict(self) -> dict[str, Any]:
        return {"audit_id": self.audit_id, "tool": self.tool, "label": self.label.to_dict(), "at": self.at}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Raise:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        return cls(data["audit_id"], data["tool"], Label.from_dict(data["label"]), data["at"])


class DecidedBy(StrEnum):
    """Who decides: the person in whose session the agent asks, with their own key, or somebody else."""

    ASKER = "asker"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Asker:
    """Whom the agent asks for: the name of the key of the person who opened the session, the words that they said last,
    and which arguments hold nothing but what their words name. Empty for a session that an agent opened by itself."""

    person: str = ""
    words: str = ""
    named: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    """The arguments whose value stands in these words as people say it; see `subject.said_in`."""


@dataclass(frozen=True, slots=True)
class RememberedApproval:
    """What the agent may remember of other sessions, and the newest calls there that raised it."""

    label: Label = BOTTOM
    raised_by: tuple[Raise, ...] = ()


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
    decided_by: DecidedBy = DecidedBy.OTHER
    asker: Asker = Asker()
    remembered: RememberedApproval = RememberedApproval()
    title: str = ""
    """Who wants what, as one sentence; see `subject.title_of`."""
    subject: CallSubject | None = None
    """What the call is for and what of it changes; None where nothing could be read."""
    runs_at_yes: bool = False
    """Whether the call runs as soon as it is approved."""
    evidence: tuple[EarlierRead, ...] = ()
    """What the conversation had read, the newest first and what is about the subject before that."""

    def sha256(self) -> str:
        """The hash, in hex, of all that was shown."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

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
            "raised_by": [each.to_dict() for each in self.raised_by],
            "approvers": list(self.approvers),
            "decided_by": self.decided_by.value,
            "person": self.asker.person,
            "words": self.asker.words,
            "named": list(self.asker.named),
            "said": list(self.asker.said),
            "memory": self.remembered.label.to_dict(),
            "memory_raised_by": [each.to_dict() for each in self.remembered.raised_by],
            "title": self.title,
            "subject": None if self.subject is None else self.subject.to_dict(),
            "runs_at_yes": self.runs_at_yes,
            "evidence": [each.to_dict() for each in self.evidence],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ApprovalQuestion:
        """Inverse of `to_dict`; what an older version did not tell is empty. Raises KeyError for another missing
        field."""
        violations = tuple(
            Violation(each["parameter"], Label.from_dict(each["label"]), Label.from_dict(each["accepts"]), each["link"])
            for each in data["violations"]
        )
        return cls(
            **{name: data[name] for name in _PLAIN},
            violations=violations,
            raised_by=tuple(map(Raise.from_dict, data["raised_by"])),
            approvers=tuple(data["approvers"]),
            decided_by=DecidedBy(data.get("decided_by", DecidedBy.OTHER)),
            asker=Asker(
                data.get("person", ""), data.get("words", ""), tuple(data.get("named", ())), tuple(data.get("said", ()))
            ),
            remembered=RememberedApproval(
                Label.from_dict(data["memory"]) if "memory" in data else BOTTOM,
                tuple(map(Raise.from_dict, data.get("memory_raised_by", ()))),
            ),
            title=data.get("title", ""),
            subject=CallSubject.from_dict(data["subject"]) if data.get("subject") else None,
            runs_at_yes=bool(data.get("runs_at_yes", False)),
            evidence=tuple(map(EarlierRead.from_dict, data.get("evidence", ()))),
        )


_PLAIN = ("effect", "server", "description", "condition", "taint_level", "why", "arguments")
