"""Every way in which a model's answer can fail, as one family. No exception of a provider's library leaves the port.

Each says who acts next, whether trying again can help (`retry_possible`) and after how long. Messages are written here
and beside what raises them, and hold no provider text, key or prompt: a provider's own words may quote all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sentinel_rag.agent.models.port import ModelUsage
from sentinel_rag.contracts.errors import Actor, SentinelError


class FailureKind(StrEnum):
    """What failed. Stable: the code of a `ModelError` is `model_` and this."""

    NOT_INSTALLED = "not_installed"
    """The library that speaks to models is an extra and is not there."""
    ACCESS = "access"
    """The key or the identity is not accepted, or not allowed to use this model."""
    NOT_FOUND = "not_found"
    """There is no such model or deployment, or the address is not a model endpoint."""
    RATE_LIMITED = "rate_limited"
    """Asked too often; `retry_after_s` is the provider's word, None if it gave none."""
    CREDIT = "credit"
    """The account's quota or credit is used up: waiting does not help."""
    CONTEXT_OVERFLOW = "context_overflow"
    PROMPT_FILTERED = "prompt_filtered"
    REQUEST_REFUSED = "request_refused"
    PROVIDER = "provider"
    """The provider failed on its side, before or amid an answer."""
    LOADING = "loading"
    """The server is up and still loads its model; `patience_s` is how long it is waited for."""
    UNREACHABLE = "unreachable"
    """No connection: nothing listens, no such host, TLS refused, or the line broke before an answer began."""
    TIMED_OUT = "timed_out"
    CUT_OFF = "cut_off"
    """The stream ended before the answer did."""
    BAD_ANSWER = "bad_answer"
    """What came back is not in the form that was agreed (a web page, no JSON, no choices, without end)."""
    EMPTY_ANSWER = "empty_answer"
    """The model ended its answer and said nothing."""


_PASSING = frozenset(["rate_limited", "provider", "loading", "unreachable", "cut_off", "bad_answer", "empty_answer"])
"""Kinds for which another try can help."""


class ModelError(SentinelError):
    """A model did not answer. `delivered` is True if a part of the answer had been given out before: then trying again
    would say things twice, and only the caller can decide. `usage` is what the failed tries took. `patience_s`: tries
    go on for so long, however many they are; None leaves that to who tries."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        next_step: str = "",
        retry_after_s: float | None = None,
        patience_s: float | None = None,
    ) -> None:
        super().__init__(message, next_step=next_step, code=f"model_{kind.value}")
        self.kind = kind
        self.retry_possible = kind in _PASSING
        self.retry_after_s = retry_after_s
        self.patience_s = patience_s
        self.delivered = False
        self.usage = ModelUsage()


class Overflowing(StrEnum):
    """What does not fit into a model's context: earlier turns (they can be left out), the rows of this question (it can
    be asked more narrowly), or what every question takes: rules and tools (only a larger context helps)."""

    CONVERSATION = "conversation"
    ROWS = "rows"
    FIXED_PART = "fixed_part"


_OVERFLOWS = {
    Overflowing.CONVERSATION: (
        "The conversation is too long for the model.",
        "Clear the conversation (/clear) or ask with a shorter time window.",
    ),
    Overflowing.ROWS: (
        "The results of this question are too long for the model.",
        "Ask a narrower question, with a shorter time window or fewer rows.",
    ),
    Overflowing.FIXED_PART: (
        "The model's context is too small for any question: rules, tools and the question alone do not fit.",
        "",
    ),
}
_LARGER_SERVER = (
    "Start the model server with a larger context (llama.cpp: --ctx-size 16384) and set SENTINEL_MODEL_CONTEXT_TOKENS "
    "to the same number."
)
_LARGER_MODEL = "Choose a model that reads 16384 tokens or more (SENTINEL_MODEL_NAME)."


class ContextOverflowError(ModelError):
    """A request is longer than the model reads. Numbers are the provider's; None where it gave none. `overflowing` says
    what can be done: nothing that a person says helps against FIXED_PART. `local`: the server is of this machine."""

    def __init__(
        self,
        *,
        limit_tokens: int | None,
        used_tokens: int | None,
        overflowing: Overflowing = Overflowing.CONVERSATION,
        local: bool = False,
    ) -> None:
        what, next_step = _OVERFLOWS[overflowing]
        reads = "" if limit_tokens is None else f" It reads {limit_tokens} tokens."
        sent = "" if used_tokens is None else f" The request has {used_tokens}."
        next_step = next_step or (_LARGER_SERVER if local else _LARGER_MODEL)
        super().__init__(FailureKind.CONTEXT_OVERFLOW, what + reads + sent, next_step=next_step)
        self.actor = Actor.OPERATOR if overflowing is Overflowing.FIXED_PART else Actor.USER
        self.limit_tokens = limit_tokens
        self.used_tokens = used_tokens
        self.overflowing = overflowing


class PromptFilteredError(ModelError):
    """The provider's content filter refused what was sent to it, such as attack text in a row of a log.

    `categories` maps what tripped (`jailbreak`, `violence`, ...) to a severity, `detected` or an empty text.
    """

    actor = Actor.MODEL

    def __init__(self, categories: Mapping[str, str]) -> None:
        named = f" ({', '.join(sorted(categories))})" if categories else ""
        super().__init__(
            FailureKind.PROMPT_FILTERED,
            f"The provider's content filter stopped the question{named}.",
            next_step="Rows with attack text can trip it: ask for fewer columns or a narrower question.",
        )
        self.categories = dict(categories)


class RequestRefusedError(ModelError):
    """The provider does not take the request as it is. `parameter` is the field it names, if any."""

    actor = Actor.DEVELOPER

    def __init__(self, message: str, *, next_step: str = "", parameter: str = "") -> None:
        super().__init__(FailureKind.REQUEST_REFUSED, message, next_step=next_step)
        self.parameter = parameter


class ModelTimedOutError(ModelError):
    """Too slow. `waited_for` is `connection`, `first_token`, `next_token` or `whole_answer`.

    Only a connection is tried again: a person has waited for the rest already, and would wait as long once more.
    """

    def __init__(self, message: str, *, next_step: str = "", waited_for: str) -> None:
        super().__init__(FailureKind.TIMED_OUT, message, next_step=next_step)
        self.waited_for = waited_for
        self.retry_possible = waited_for == "connection"
