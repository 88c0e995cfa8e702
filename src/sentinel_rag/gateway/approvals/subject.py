"""What an approval is about, in the words of whoever decides: the thing with its name and state, what of it changes,
and the sentence on top.

All of it is derived by code from the call and from what the gateway read of the thing, never from what a model says. A
name or a text may have been written by an attacker: it stands in its own field with a mark, and in the sentence between
quotation marks that it cannot close.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.handles import says_nothing
from sentinel_rag.contracts.json_values import JsonObject, JsonValue, canonical_json
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
class EarlierRead:
    """An earlier call of the conversation that read something, by its record."""

    audit_id: str
    tool: str
    at: str
    about: bool
    """Whether it asked for the very thing that the call is for."""

    def to_dict(self) -> dict[str, Any]:
        return {"audit_id": self.audit_id, "tool": self.tool, "at": self.at, "about": self.about}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EarlierRead:
        """Inverse of `to_dict`. Raises KeyError for a missing field."""
        return cls(data["audit_id"], data["tool"], data["at"], data["about"])


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
