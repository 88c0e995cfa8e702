"""A request that is refused, as a value: a status, a stable reason for programs, a sentence and a next step for people.

Every refusal of this API has that form. It names rules and limits, never what somebody else has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError


class RequestProblem(Exception):
    """Ends a request with that status."""

    def __init__(
        self, status: int, reason: str, detail: str, next_step: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.next_step = next_step
        self.headers = headers

    def body(self) -> dict[str, Any]:
        return {"detail": self.detail, "reason": self.reason, "next_step": self.next_step}

    def response(self) -> Response:
        return JSONResponse(self.body(), self.status, headers=self.headers)


def not_found(what: str) -> RequestProblem:
    """The answer to whatever is not there, or is somebody else's: the two are not told apart."""
    return RequestProblem(404, "not_found", f"There is no such {what}.", "List those that there are.")


def too_often(wait_s: float, what: str) -> RequestProblem:
    seconds = max(1, round(wait_s + 0.5))
    return RequestProblem(
        429,
        "rate_limited",
        f"Too many {what} in a short time.",
        f"Wait {seconds} s and try again.",
        {"Retry-After": str(seconds)},
    )


def problem_of(error: SentinelError) -> RequestProblem:
    """An expected failure as an answer. What is wrong with this machine is its operator's to read, in the log."""
    if isinstance(error, UsageError):
        return RequestProblem(422, error.code, str(error), error.next_step)
    if isinstance(error, UnavailableError):
        return RequestProblem(
            503,
            "unavailable",
            "A part that is needed does not answer just now.",
            "Try again in a moment; if it stays, whoever runs this should look at sentinel status and the log of web.",
            {"Retry-After": "5"},
        )
    return RequestProblem(409, error.code, str(error), error.next_step)
