"""An approval as a value: its states, its wire form, and the question that a judged call becomes.

Pending becomes approved or denied by a person, approved becomes used by the one call that it is bound to, and both
pending and approved become expired by the clock. Nothing leads back.

Whoever denied a call read its arguments, and no reader tells apart what is folded here: case, blanks, invisible signs,
accents, letters of other scripts that look alike, escapes, quotation marks, and the ways to write one link or one
thing. Two calls that differ in more are two questions; how many of those are asked is bounded elsewhere.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonForm, JsonObject, JsonValue, canonical_json
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals.binding import (
    ApprovalQuestion,
    Asker,
    Binding,
    CallSubject,
    DecidedBy,
    EarlierRead,
    Raised,
    RememberedApproval,
    title_of,
)
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.policy.model import TaintRule, ToolPolicy

WEBHOOK = "webhook"
"""The id under which the webhook's receiver decides; a policy names it so among its `approvers`."""


ELICITED = "elicitation"
"""How the person at a client of MCP decides, whose client the policy attests to let no model answer."""


class ApprovalState(StrEnum):
    """Where an approval stands."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    USED = "used"
    EXPIRED = "expired"


class ApprovalVerdict(StrEnum):
    """What a person can say; each value is the state that it leads to."""

    APPROVE = "approved"
    DENY = "denied"


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides: a key by its id and name, or the webhook's receiver (`via` is then `webhook`), who says that
    `actor` decided; that name is the receiver's word. `only_own` is a person without the scope `approve`, who confirms
    what was asked for them."""

    key_id: str
    name: str = ""
    via: str = "api"
    actor: str = ""
    only_own: bool = False

    def is_one_of(self, approvers: tuple[str, ...]) -> bool:
        """True if the policy's list of approvers allows this one; an empty list allows every key with the scope."""
        return not approvers or self.key_id in approvers or (bool(self.name) and self.name in approvers)


@dataclass(frozen=True, slots=True)
class Ruling(JsonForm):
    """A verdict that was given, and by whom; see `Decider`."""

    by: str
    via: str
    actor: str
    comment: str
    at: datetime


@dataclass(frozen=True, slots=True)
class YesOutcome:
    """What became of a call that ran when it was approved."""

    status: str
    """`success`, `error`, or `denied` where it may not run as it was approved."""
    audit_id: str
    reason: str = ""
    approval_id: str = ""
    """The approval that was asked for instead; empty where none was."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "audit_id": self.audit_id,
            "reason": self.reason or None,
            "approval_id": self.approval_id or None,
        }


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval. `ends_at` is when a pending one lapses, or an approved one that nobody used. `person` is the key of
    the person in whose session the agent asked, if it is a person's. `sent` are the arguments as they came, handles
    included: nobody is shown them. `ran` is what became of a call that runs at the yes."""

    approval_id: str
    state: ApprovalState
    binding: Binding
    question: ApprovalQuestion
    asked_at: datetime
    ends_at: datetime
    ruling: Ruling | None = None
    used_at: datetime | None = None
    person: str | None = None
    sent: JsonObject | None = None
    ran: YesOutcome | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will become of it but what the agent does: it was decided, or has lapsed, and a call
        that runs at the yes has run."""
        runs = self.question.runs_at_yes and self.state in (ApprovalState.APPROVED, ApprovalState.USED)
        return self.state is not ApprovalState.PENDING and (self.ran is not None or not runs)

    def to_dict(self) -> dict[str, Any]:
        """The wire form of `GET /v1/approvals/{id}`."""
        return {
            "approval_id": self.approval_id,
            "state": self.state.value,
            "asked_at": format_time(self.asked_at),
            "ends_at": format_time(self.ends_at),
            **self.binding.to_dict(),
            **self.question.to_dict(),
            "binding_sha256": self.binding.sha256(),
            "shown_sha256": self.question.sha256(),
            "decision": None if self.ruling is None else self.ruling.to_dict(),
            "used_at": None if self.used_at is None else format_time(self.used_at),
            "outcome": None if self.ran is None else self.ran.to_dict(),
        }


class ApprovalSpent(SentinelError):
    """The call may not run on this approval: it is not approved (any more), used, expired, or for another call."""

    code = "approval_spent"


class DecisionRefused(SentinelError):
    """The verdict was not taken; `reason` is the stable code for the caller, and nothing has changed."""

    def __init__(self, reason: Reason, message: str, *, next_step: str = "") -> None:
        super().__init__(message, next_step=next_step, code=reason.value)
        self.reason = reason


RULE_REQUIRES = "the rule requires it"
"""`ApprovalQuestion.why` of a rule with `requires_approval`; any other is the reason code of the denial that it
replaces."""


NOBODY = Asker()


def question_about(
    tool: ToolPolicy,
    rule: TaintRule,
    reason: Reason,
    arguments: JsonObject,
    violations: Iterable[Violation],
    raised_by: Iterable[Raised],
    *,
    asker: Asker = NOBODY,
    memory: Label = BOTTOM,
    remembered: Iterable[Raised] = (),
    subject: CallSubject | None = None,
    evidence: Iterable[EarlierRead] = (),
) -> ApprovalQuestion:
    """What a person is asked about a call of `tool` that `rule` lets nobody run alone. `reason` is why it was denied,
    `arguments` are those that would be sent, whole; `memory` is what the agent may remember of other sessions, and
    `remembered` are the calls there that raised it; `subject` is what the call would change, `evidence` what the
    conversation had read."""
    return ApprovalQuestion(
        effect=tool.effect.value,
        server=tool.server,
        description=tool.description,
        condition=rule.condition,
        taint_level=rule.taint_level.name,
        why=RULE_REQUIRES if reason is Reason.APPROVAL_REQUIRED else reason.value,
        arguments=arguments,
        violations=tuple(violations),
        raised_by=tuple(raised_by),
        approvers=tool.approvers,
        decided_by=DecidedBy.ASKER if rule.asks_the_asker else DecidedBy.OTHER,
        asker=asker,
        remembered=RememberedApproval(memory, tuple(remembered)),
        title=title_of(tool, arguments, subject, asker.person),
        subject=subject,
        runs_at_yes=rule.runs_at_yes,
        evidence=tuple(evidence),
    )


MAX_UNFOLDING = 3
"""How often escapes are taken away: what is nested deeper is shown to a reader as escapes."""

_PLACE = re.compile(r"\{([^{}]*)\}")
_DEFANGED = re.compile(r"[\[({]\s*(?:\.|dot)\s*[\])}]")
_SCHEME = re.compile(r"\bh(?:tt|xx)ps?\[?:\]?[/\\]*|(?<![\w.-])www\.")
_END = re.compile(r":(?:80|443)(?=[\s/?#]|\Z)|(?<![/\\.,;!])[/\\.,;!]++(?=[\s?#:]|\Z)")
"""What may end a link or a sentence and says nothing: a default port, a slash, a full stop."""
_UNSEEN = frozenset(("Cc", "Cf", "Mn", "Me", "Pi", "Pf"))
_ALIKE = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u2010\u2011\u2012\u2013\u2014\u2212",
    "abekmhopctyxijshdqwaikvoptuxi------",
    "\"'`\u00b4\u115f\u1160\u2800",
)
"""Cyrillic and Greek letters as the Latin ones that they look like, dashes as one, quotation marks and what is drawn as
a blank (fillers of Hangul, Braille without a dot) as nothing."""


def near_duplicate_sha256(tool: ToolPolicy, arguments: JsonObject, number: str = "") -> str:
    """The hash, in hex, that calls share which read alike. `number` is the thing's own, where the gateway has read it:
    whichever of its names the call writes to it by, it is one thing."""
    named = {place for template in tool.writes for place in _PLACE.findall(template)} if number else set()
    read = {name: number if name in named else value for name, value in arguments.items()}
    return hashlib.sha256(canonical_json([tool.name, _folded(read)])).hexdigest()


def _folded(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _folded_text(value)
    if isinstance(value, dict):
        parts = {_folded_text(name): _folded(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in (None, "", [], {})}
    return [_folded(part) for part in value] if isinstance(value, list) else value


def _folded_text(text: str) -> str:
    for _ in range(MAX_UNFOLDING):
        unfolded = unicodedata.normalize("NFKD", html.unescape(unquote(text)))
        if unfolded == text:
            break
        text = unfolded
    seen = (sign for sign in text if sign.isspace() or unicodedata.category(sign) not in _UNSEEN)
    text = "".join(seen).casefold()
    text = _SCHEME.sub("", _DEFANGED.sub(".", text.translate(_ALIKE)))
    return "".join(_END.sub("", text).split())
