"""What the gateway said to one call, as a value: it ran, it was blocked, or there is no result.

Reads the answers of `POST /v1/proxy-execute`; pure. Nothing a server sends makes it raise: what is not the gateway's
form becomes `NotRun` and says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.query_results import QueryErrorCode


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An HTTP answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class NoReply:
    """The exchange failed. `sent`: the gateway may have got the request. `timed_out`: it had its time."""

    message: str
    next_step: str
    sent: bool
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """The tool ran. `result` is its JSON value as the gateway sent it: handles and quotes are in it."""

    result: Any
    audit_id: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """403. `detail` is the gateway's sentence, `reason` its stable code. `approval_id` names what a person may allow;
    `note` says why there is none, or what an operator has to do."""

    detail: str
    reason: str
    rule_id: str = ""
    audit_id: str = ""
    approval_id: str = ""
    note: str = ""

    @property
    def waits_for_a_person(self) -> bool:
        return self.reason == Reason.APPROVAL_REQUIRED and bool(self.approval_id)


@dataclass(frozen=True, slots=True)
class NotRun:
    """No result and no denial. `status` is 0 where nothing answered. `hints` help a model to call better. `later_s`:
    the gateway asks to be called again after so many seconds. `of_tool`: the tool itself says so, typed. `field`: what
    it is about, a part of the request."""

    message: str
    next_step: str = ""
    status: int = 0
    reason: str = ""
    audit_id: str = ""
    hints: tuple[str, ...] = ()
    later_s: float | None = None
    may_have_run: bool = False
    of_tool: bool = False
    field: str = ""


Answer = Ran | Blocked | NotRun

_STEPS: Mapping[int, str] = {
    401: "Check SENTINEL_API_KEY: the gateway does not accept this key.",
    404: "Begin a new conversation; if it stays, check SENTINEL_URL.",
    409: "Begin a new conversation: this one's session is closed.",
    413: "Ask for less, or with shorter values.",
    422: "Call again with other arguments.",
    429: "Wait before you call again.",
    500: "An operator finds the call under its audit id.",
    502: "An operator runs `sentinel doctor`: the tool server did not answer the gateway.",
    503: "Wait a moment before you call again.",
    504: "Ask for a shorter time window or add a filter.",
}


def read_answer(reply: HttpReply) -> Answer:
    """One HTTP answer of `POST /v1/proxy-execute`."""
    body = body_of(reply)
    if reply.status == 200:
        if body is None or "result" not in body:
            return _not_the_gateway(reply)
        return Ran(body["result"], _text(body, "audit_id"))
    if reply.status == 403:
        said = body or {}
        return Blocked(
            detail=_text(said, "detail") or "The gateway refused this call.",
            reason=_text(said, "reason"),
            rule_id=_text(said, "rule_id"),
            audit_id=_text(said, "audit_id"),
            approval_id=_text(said, "approval_id"),
            note=_text(said, "note"),
        )
    if body is None or not _text(body, "detail"):
        return _not_the_gateway(reply)
    return refusal_of(reply, body)


def refusal_of(reply: HttpReply, body: Mapping[str, Any]) -> NotRun:
    """A refusal in the gateway's common form."""
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    return NotRun(
        message=_text(body, "detail"),
        next_step=_text(error, "next_step") or _STEPS.get(reply.status, ""),
        status=reply.status,
        reason=_text(body, "reason"),
        audit_id=_text(body, "audit_id"),
        hints=tuple(_hints(error)),
        later_s=_seconds(reply.headers.get("retry-after", "")),
        # A 503 says `internal` where the gateway let the call through and then lost what it records with.
        may_have_run=reply.status in (500, 502, 504) or error.get("code") == QueryErrorCode.INTERNAL,
        of_tool=bool(error),
        field=_text(error, "field"),
    )


def body_of(reply: HttpReply) -> dict[str, Any] | None:
    """The JSON object of an answer; None for anything else."""
    try:
        body = json.loads(reply.content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _not_the_gateway(reply: HttpReply) -> NotRun:
    return NotRun(
        f"The answer with status {reply.status} is not the gateway's.",
        "Check that SENTINEL_URL is the gateway and not a proxy or another service.",
        status=reply.status,
        later_s=_seconds(reply.headers.get("retry-after", "")),
        may_have_run=reply.status == 200 or reply.status >= 500,
    )


def _hints(error: Mapping[str, Any]) -> list[str]:
    hints = []
    allowed = error.get("allowed")
    if isinstance(allowed, list) and allowed:
        hints.append(f"Allowed: {', '.join(map(str, allowed))}.")
    problems = error.get("problems")
    for problem in problems if isinstance(problems, list) else ():
        if isinstance(problem, dict) and problem.get("message"):
            nearest = problem.get("nearest")
            near = f" Nearest: {', '.join(map(str, nearest))}." if isinstance(nearest, list) and nearest else ""
            hints.append(f"{problem['message']}{near}")
    return hints


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 7 else None
