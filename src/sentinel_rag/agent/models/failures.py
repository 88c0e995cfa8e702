"""Every way in which a model's answer can fail, as one family. No exception of a provider's library leaves the port.

Each says who acts next, whether trying again can help (`retry_possible`) and after how long. Its sentences stand in
`failures.toml` and hold no provider text, key or prompt: a provider's own words may quote all three.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

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


@cache
def _sentences() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files(__package__).joinpath("failures.toml").read_text(encoding="utf-8"))


class ModelError(SentinelError):
    """A model did not answer. `case` names the sentence that says so, mostly its kind's; `values` stand in it. `local`:
    the server is of this machine."""

    def __init__(self, kind: FailureKind, case: str = "", *, local: bool = False, **values: object) -> None:
        told = _sentences()[case or kind.value]
        said, next_step = (
            told.get(f"{name}_local" if local else name, told[name]).format(**values) for name in ("said", "next_step")
        )
        super().__init__(said, next_step=next_step, code=f"model_{kind.value}")
        self.actor = Actor(told.get("actor", self.actor))
        self.kind = kind
        self.retry_possible = kind in _PASSING
        self.retry_after_s: float | None = None
        self.patience_s: float | None = None
        """Tries go on for so long, however many they are; None leaves that to who tries."""
        self.delivered = False
        """True if a part of the answer had been given out before: then trying again would say things twice, and only
        the caller can decide."""
        self.usage = ModelUsage()
        """What the failed tries took."""
        self.parameter = ""
        """The field that a provider does not take, if it names one."""


class Overflowing(StrEnum):
    """What does not fit into a model's context: earlier turns (they can be left out), the rows of this question (it can
    be asked more narrowly), or what every question takes: rules and tools (only a larger context helps)."""

    CONVERSATION = "conversation"
    ROWS = "rows"
    FIXED_PART = "fixed_part"


class ContextOverflowError(ModelError):
    """A request is longer than the model reads. Numbers are the provider's; None where it gave none. `overflowing` says
    what can be done: nothing that a person says helps against FIXED_PART."""

    def __init__(
        self,
        *,
        limit_tokens: int | None,
        used_tokens: int | None,
        overflowing: Overflowing = Overflowing.CONVERSATION,
        local: bool = False,
    ) -> None:
        reads = "" if limit_tokens is None else f" It reads {limit_tokens} tokens."
        sent = "" if used_tokens is None else f" The request has {used_tokens}."
        super().__init__(
            FailureKind.CONTEXT_OVERFLOW, f"overflow_{overflowing.value}", local=local, numbers=reads + sent
        )
        self.limit_tokens = limit_tokens
        self.used_tokens = used_tokens
        self.overflowing = overflowing


class PromptFilteredError(ModelError):
    """The provider's content filter refused what was sent to it, such as attack text in a row of a log.

    `categories` maps what tripped (`jailbreak`, `violence`, ...) to a severity, `detected` or an empty text.
    """

    def __init__(self, categories: Mapping[str, str]) -> None:
        named = f" ({', '.join(sorted(categories))})" if categories else ""
        super().__init__(FailureKind.PROMPT_FILTERED, named=named)
        self.categories = dict(categories)


class ModelTimedOutError(ModelError):
    """Too slow. `waited_for` is `connection`, `first_token`, `next_token` or `whole_answer`; `case` names another
    sentence than that says.

    Only a connection is tried again: a person has waited for the rest already, and would wait as long once more.
    """

    def __init__(self, waited_for: str, case: str = "", *, local: bool = False, **values: object) -> None:
        super().__init__(FailureKind.TIMED_OUT, case or waited_for, local=local, **values)
        self.waited_for = waited_for
        self.retry_possible = waited_for == "connection"
