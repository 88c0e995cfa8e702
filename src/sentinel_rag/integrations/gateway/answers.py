"""Answers of the gateway to a call, and the texts that a model is shown of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from sentinel_rag.contracts.handles import as_text
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Reason


# Nothing a server sends makes it raise: what is not the gateway's form becomes `NotRun` and says so.
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

_STEP_OF_STATUS: Mapping[int, str] = {
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
        next_step=_text(error, "next_step") or _STEP_OF_STATUS.get(reply.status, ""),
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


# A block is told in the words of the source template, with the gateway's reason code and what to do; everything else
# that gave no result is `Result: SYSTEM_ERROR: ...`, so that the conversation goes on.
MAX_CHARACTERS = 100_000
"""Of a result that a model is told, unless the caller says otherwise."""

_STEP_OF_REASON: Mapping[str, str] = {
    Reason.NO_RULE_MATCHED: "No rule allows these arguments. Tell the user, or ask for something that is allowed.",
    Reason.RULE_DENIES: "Calling again changes nothing. Tell the user, or ask for something that is allowed.",
    Reason.CONDITION_UNDECIDED: "An argument that the rules need is missing. Name it, or tell the user.",
    Reason.SINK_LABEL: "This conversation has read what may not leave. Tell the user that it takes a new conversation.",
    Reason.UNKNOWN_TOOL: "There is no such tool. Use one that is offered.",
    Reason.TOOL_QUARANTINED: "An administrator has to look at this tool. Tell the user.",
    Reason.TOOL_SWITCHED_OFF: "The operator has not switched this tool on. Tell the user.",
    Reason.MISSING_SCOPE: "The agent's key may not do this. Tell the user.",
}


def told_to_model(tool_name: str, answer: Answer, *, max_characters: int = MAX_CHARACTERS) -> str:
    """The text for the model. `tool_name` is the tool that was called."""
    match answer:
        case Ran(result):
            return result_text(result, max_characters)
        case Blocked():
            return f"{block_text(tool_name, answer.detail)} {block_step(answer)}"
        case NotRun():
            return f"Result: SYSTEM_ERROR: {error_text(answer)}"
        case _:
            assert_never(answer)


def block_message(tool_name: str) -> str:
    return f"Tool '{tool_name}' was blocked by a security policy."


def block_text(tool_name: str, reason: str) -> str:
    """The source template's sentence."""
    return f"{block_message(tool_name)} Reason: {reason}"


def block_step(block: Blocked) -> str:
    """What to do about a block, with its stable code."""
    code = f"[{block.reason}] " if block.reason else ""
    if block.waits_for_a_person:
        return (
            f"{code}A person has to allow exactly this call first (approval {block.approval_id}). Tell the user; once "
            "it is approved, call again with the same arguments."
        )
    step = block.note or _STEP_OF_REASON.get(block.reason, "Tell the user, or ask for something that is allowed.")
    return f"{code}{step}"


def error_text(answer: NotRun) -> str:
    """Why there is no result, in one line."""
    return " ".join(part for part in (answer.message, *answer.hints, answer.next_step) if part)


def result_text(result: Any, max_characters: int = MAX_CHARACTERS) -> str:
    """A result for a model: texts as they are, anything else as JSON, hidden values as placeholders."""
    value = as_text(result)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= max_characters:
        return text
    return (
        f"{text[:max_characters]}\n[Cut: the first {max_characters} of {len(text)} characters. Ask for less, or for "
        "the next part, with the tool's own arguments.]"
    )
