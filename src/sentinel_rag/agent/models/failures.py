"""Every way in which a model's answer can fail, as one family. No exception of a provider's library leaves the port.

Each says who acts next, whether trying again can help (`retry_possible`) and after how long. Messages are written here
and hold no provider text, key or prompt: a provider's own words may quote all three. `FailureKind` is stable.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from sentinel_rag.agent.models.usage import ModelUsage
from sentinel_rag.contracts.errors import Actor, SentinelError


class FailureKind(StrEnum):
    """What failed; the code of a `ModelError` is `model_` and this."""

    NOT_INSTALLED = "not_installed"
    ACCESS = "access"
    NOT_FOUND = "not_found"
    RATE_LIMITED = "rate_limited"
    CREDIT = "credit"
    CONTEXT_OVERFLOW = "context_overflow"
    PROMPT_FILTERED = "prompt_filtered"
    REQUEST_REFUSED = "request_refused"
    PROVIDER = "provider"
    LOADING = "loading"
    UNREACHABLE = "unreachable"
    TIMED_OUT = "timed_out"
    CUT_OFF = "cut_off"
    BAD_ANSWER = "bad_answer"
    EMPTY_ANSWER = "empty_answer"
    BUDGET = "budget"


class ModelError(SentinelError):
    """A model did not answer. `delivered` is True if a part of the answer had been given out before: then trying again
    would say things twice, and only the caller can decide. `usage` is what the failed tries took. `patience_s`: tries
    go on for so long, however many they are; None leaves that to who tries."""

    kind: ClassVar[FailureKind]
    retry_possible: bool = False
    patience_s: float | None = None

    def __init__(self, message: str, *, next_step: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, next_step=next_step, code=f"model_{self.kind.value}")
        self.retry_after_s = retry_after_s
        self.delivered = False
        self.usage = ModelUsage()


class ModelNotInstalledError(ModelError):
    """The library that speaks to models is an extra and is not there."""

    kind = FailureKind.NOT_INSTALLED


class ModelAccessError(ModelError):
    """The key or the identity is not accepted, or not allowed to use this model."""

    kind = FailureKind.ACCESS


class ModelNotFoundError(ModelError):
    """There is no such model or deployment, or the address is not a model endpoint."""

    kind = FailureKind.NOT_FOUND


class ModelRateLimitedError(ModelError):
    """Asked too often; `retry_after_s` is the provider's word, None if it gave none."""

    kind = FailureKind.RATE_LIMITED
    retry_possible = True


class ModelCreditError(ModelError):
    """The account's quota or credit is used up: waiting does not help."""

    kind = FailureKind.CREDIT


class Overflowing(StrEnum):
    """What does not fit into a model's context: earlier turns (they can be left out), the rows of this question (it can
    be asked more narrowly), or what every question takes: rules and tools (only a larger context helps)."""

    CONVERSATION = "conversation"
    ROWS = "rows"
    FIXED_PART = "fixed_part"


class ContextOverflowError(ModelError):
    """A request is longer than the model reads. Numbers are the provider's; None where it gave none. `overflowing` says
    what can be done: nothing that a person says helps against FIXED_PART. `local`: the server is of this machine."""

    kind = FailureKind.CONTEXT_OVERFLOW

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
        super().__init__(
            what + reads + sent,
            next_step=next_step or (_LARGER_SERVER if local else _LARGER_MODEL),
        )
        self.actor = Actor.OPERATOR if overflowing is Overflowing.FIXED_PART else Actor.USER
        self.limit_tokens = limit_tokens
        self.used_tokens = used_tokens
        self.overflowing = overflowing
        self.local = local

    def because(self, overflowing: Overflowing) -> ContextOverflowError:
        """The same failure for another reason, where the caller found out more, such as that nothing is left to leave
        out."""
        other = ContextOverflowError(
            limit_tokens=self.limit_tokens, used_tokens=self.used_tokens, overflowing=overflowing, local=self.local
        )
        other.usage, other.delivered = self.usage, self.delivered
        return other


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


class PromptFilteredError(ModelError):
    """The provider's content filter refused what was sent to it, such as attack text in a row of a log.

    `categories` maps what tripped (`jailbreak`, `violence`, ...) to a severity, `detected` or an empty text.
    """

    kind = FailureKind.PROMPT_FILTERED
    actor = Actor.MODEL

    def __init__(self, categories: Mapping[str, str]) -> None:
        named = f" ({', '.join(sorted(categories))})" if categories else ""
        super().__init__(
            f"The provider's content filter stopped the question{named}.",
            next_step="Rows with attack text can trip it: ask for fewer columns or a narrower question.",
        )
        self.categories = dict(categories)


class RequestRefusedError(ModelError):
    """The provider does not take the request as it is. `parameter` is the field it names, if any."""

    kind = FailureKind.REQUEST_REFUSED
    actor = Actor.DEVELOPER

    def __init__(self, message: str, *, next_step: str = "", parameter: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.parameter = parameter


class ProviderFailedError(ModelError):
    """The provider failed on its side, before or amid an answer."""

    kind = FailureKind.PROVIDER
    retry_possible = True


class ModelLoadingError(ModelError):
    """The server is up and still loads its model; `patience_s` is how long it is waited for."""

    kind = FailureKind.LOADING
    retry_possible = True

    def __init__(self, *, patience_s: float) -> None:
        super().__init__(
            "The model server is still loading its model.",
            next_step="Ask again in a moment; SENTINEL_MODEL_TIMEOUT_S and SENTINEL_QUESTION_TIMEOUT_S bound the wait.",
        )
        self.patience_s = patience_s


class ModelUnreachableError(ModelError):
    """No connection: nothing listens, no such host, TLS refused, or the line broke before an answer began."""

    kind = FailureKind.UNREACHABLE
    retry_possible = True


class ModelTimedOutError(ModelError):
    """Too slow. `waited_for` is `connection`, `first_token`, `next_token` or `whole_answer`.

    Only a connection is tried again: a person has waited for the rest already, and would wait as long once more.
    """

    kind = FailureKind.TIMED_OUT

    def __init__(self, message: str, *, next_step: str = "", waited_for: str) -> None:
        super().__init__(message, next_step=next_step)
        self.waited_for = waited_for
        self.retry_possible = waited_for == "connection"


class AnswerCutOffError(ModelError):
    """The stream ended before the answer did."""

    kind = FailureKind.CUT_OFF
    retry_possible = True


class BadAnswerError(ModelError):
    """What came back is not in the form that was agreed (a web page, no JSON, no choices, without end)."""

    kind = FailureKind.BAD_ANSWER
    retry_possible = True


class EmptyAnswerError(ModelError):
    """The model ended its answer and said nothing."""

    kind = FailureKind.EMPTY_ANSWER
    retry_possible = True


class BudgetSpentError(ModelError):
    """The turn's own budget (tries, tokens or money) is used up; raised by wrappers, never by a provider."""

    kind = FailureKind.BUDGET
    actor = Actor.USER
