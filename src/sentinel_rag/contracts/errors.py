"""Errors that say who acts next.

Each carries one sentence for a person (`str(error)`), the next step, and the actor who can take it. A surface prints
both and never a traceback; a zone that sends one over the wire sends `to_dict`, which holds nothing else.
"""

from __future__ import annotations

from enum import StrEnum


class Actor(StrEnum):
    """Who can do something about an error."""

    USER = "user"
    OPERATOR = "operator"
    MODEL = "model"
    DEVELOPER = "developer"


class SentinelError(Exception):
    """An expected failure. `code` is stable and may be matched by scripts; the sentence may change."""

    code = "error"
    actor = Actor.OPERATOR

    def __init__(self, message: str, *, next_step: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step
        if code is not None:
            self.code = code

    def to_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": str(self), "next_step": self.next_step, "actor": self.actor.value}


class UsageError(SentinelError):
    """The person asked for something that cannot be; they can ask differently."""

    code = "usage"
    actor = Actor.USER


class ConfigurationError(SentinelError):
    """A setting or a policy file is wrong; `problems` lists every fault found, not the first only."""

    code = "configuration"
    actor = Actor.OPERATOR

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.problems = problems


class UnavailableError(SentinelError):
    """A part that is needed cannot be reached or is busy (a locked database, a port in use, a zone that died)."""

    code = "unavailable"
    actor = Actor.OPERATOR
