"""What an approval is for, to the letter, and what the person who decides is shown.

A `Binding` is compared as a whole: an approval fits one call of one key in one session, with the labels, the policy and
the tool's schema that were in force when it was asked for. What is shown is derived by code from the call and from what
the gateway read of the thing, never from what a model says. A name or a text may have been written by an attacker: it
stands in its own field with a mark, and in the sentence between quotation marks that it cannot close.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.handles import says_nothing
from sentinel_rag.contracts.json_values import JsonForm, JsonObject, JsonValue, canonical_json
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.policy.model import Deed, ToolPolicy

LONGEST_NAME = 120
"""Characters of a name or an argument in the sentence; the fields beside it hold all of it."""

MOST_TOLD = 3
"""Arguments in the sentence of a tool of which the policy says no deed."""

_PLACE = re.compile(r"\{([^{}]*)\}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OPEN, _CLOSE = "“", "”"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of the thing that the call would write."""

    field: str
    before: JsonValue
    """None where the thing has no value there."""
    after: JsonValue
    """None where the value is taken away."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "before_quoted": not says_nothing(self.before),
            "after_quoted": not says_nothing(self.after),
        }


@dataclass(frozen=True, slots=True)
class CallSubject:
    """The thing that a call is for, as the gateway read it before anybody was asked."""

    number: str = ""
    """The short name by which people speak of it; empty where it has none."""
    name: str = ""
    """What the thing is called: a text of whoever wrote it."""
    state: Mapping[str, JsonValue] = field(default_factory=dict)
    """Its present values, of the fields that the policy names."""
    changes: tuple[FieldChange, ...] = ()
    """What the call would write, defaults filled in; empty where it would write nothing."""

    def sha256(self) -> str:
        """The hash, in hex, that an approval is bound to: other changes of the thing are another question."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "name": self.name,
            "name_quoted": True,
            "state": dict(self.state),
            "changes": [each.to_dict() for each in self.changes],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CallSubject:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        changes = tuple(FieldChange(each["field"], each["before"], each["after"]) for each in data["changes"])
        return cls(data["number"], data["name"], data["state"], changes)


@dataclass(frozen=True, slots=True)
class EarlierRead(JsonForm):
    """An earlier call of the conversation that read something, by its record."""

    audit_id: str
    tool: str
    at: str
    about: bool
    """Whether it asked for the very thing that the call is for."""


def title_of(tool: ToolPolicy, arguments: JsonObject, subject: CallSubject | None, person: str) -> str:
    """One sentence: who wants what, such as `anna wants to close #127 “Unfamiliar sign-in” (Low, New to Closed, benign
    positive)`."""
    return f"{_one_line(person) or 'The agent'} wants to {_deed(tool, arguments, subject)}"


def said_in(words: str, tool: ToolPolicy, arguments: JsonObject) -> tuple[str, ...]:
    """The arguments whose value stands in the words of whoever asked, as people say it: `BenignPositive` as "benign
    positive", what a deed becomes by its name. It gives no right; it tells who chose the value."""
    heard = f" {_folded(words)} "
    deeds = tool.preview.deeds if tool.preview else ()
    found: list[str] = []
    for name, value in arguments.items():
        called = (deed.say for deed in deeds if (deed.field, deed.becomes) == (name, value))
        ways = {_folded(_plain(value)), *map(_folded, called)}
        if any(way and f" {way} " in heard for way in ways):
            found.append(name)
    return tuple(found)


def _folded(text: str) -> str:
    return " ".join("".join(sign if sign.isalnum() else " " for sign in text.casefold()).split())


def _deed(tool: ToolPolicy, arguments: JsonObject, subject: CallSubject | None) -> str:
    if subject is None:
        if tool.deed:
            return _PLACE.sub(lambda place: _quoted(_text(arguments.get(place[1]))), tool.deed)
        told = [f"{_one_line(name)} {_quoted(_text(value))}" for name, value in arguments.items()]
        more = [f"{len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
        return f"use {tool.name}" + (f" with {', '.join([*told[:MOST_TOLD], *more])}" if told else "")
    said = next((deed.say for deed in tool.preview.deeds if _is(deed, subject)), "") if tool.preview else ""
    thing = " ".join(part for part in (subject.number and f"#{subject.number}", _quoted(subject.name)) if part)
    told = _state_and_changes(subject)
    return f"{said or 'change'} {thing}" + (f" ({', '.join(told)})" if told else "")


def _is(deed: Deed, subject: CallSubject) -> bool:
    return any(
        change.field == deed.field and (not deed.becomes or change.after == deed.becomes) for change in subject.changes
    )


def _state_and_changes(subject: CallSubject) -> list[str]:
    """The state that stays, then each change; a text that can say something is named and not told here."""
    changed = {change.field for change in subject.changes}
    told = [_plain(value) for name, value in subject.state.items() if name not in changed and value is not None]
    for change in subject.changes:
        if not (says_nothing(change.before) and says_nothing(change.after)):
            told.append(f"new {_spoken(change.field)}")
        elif change.before is None:
            told.append(_plain(change.after))
        elif change.after is None:
            told.append(f"no {_spoken(change.field)} any more")
        else:
            told.append(f"{_plain(change.before)} to {_plain(change.after)}")
    return told if subject.changes else [*told, "nothing would change"]


def _plain(value: JsonValue) -> str:
    """A value of a fixed list as a reader says it: `BenignPositive` is benign positive, `New` stays New."""
    text = _text(value)
    parts = _HUMP.split(text)
    return text if len(parts) == 1 else " ".join(parts).lower()


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _quoted(text: str) -> str:
    """A text of anybody's on one line, between marks that it cannot close."""
    shown = _one_line(text).replace(_OPEN, "'").replace(_CLOSE, "'")
    return f"{_OPEN}{shown if len(shown) <= LONGEST_NAME else f'{shown[:LONGEST_NAME]}…'}{_CLOSE}"


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


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
    near_duplicate_sha256: str = field(default="", compare=False)
    """What calls share that read alike. A no is for all of them, and so no part of what a yes is bound to."""

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
class Raised(JsonForm):
    """An earlier call that raised the context label to `label`; `at` is a time in ISO 8601."""

    audit_id: str
    tool: str
    label: Label
    at: str


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
    raised_by: tuple[Raised, ...] = ()


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
    raised_by: tuple[Raised, ...]
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
            "violations": [each.to_dict() for each in self.violations],
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
        return cls(
            **{name: data[name] for name in _PLAIN},
            violations=tuple(Violation(**_labelled(each)) for each in data["violations"]),
            raised_by=tuple(Raised(**_labelled(each)) for each in data["raised_by"]),
            approvers=tuple(data["approvers"]),
            decided_by=DecidedBy(data.get("decided_by", DecidedBy.OTHER)),
            asker=Asker(
                data.get("person", ""), data.get("words", ""), tuple(data.get("named", ())), tuple(data.get("said", ()))
            ),
            remembered=RememberedApproval(
                Label.from_dict(data["memory"]) if "memory" in data else BOTTOM,
                tuple(Raised(**_labelled(each)) for each in data.get("memory_raised_by", ())),
            ),
            title=data.get("title", ""),
            subject=CallSubject.from_dict(data["subject"]) if data.get("subject") else None,
            runs_at_yes=bool(data.get("runs_at_yes", False)),
            evidence=tuple(EarlierRead(**each) for each in data.get("evidence", ())),
        )


def _labelled(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Label.from_dict(value) if name in ("label", "accepts") else value for name, value in data.items()}


_PLAIN = ("effect", "server", "description", "condition", "taint_level", "why", "arguments")
