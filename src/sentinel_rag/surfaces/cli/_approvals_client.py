"""The gateway's approvals as a person with an `approve` key sees them from the terminal.

With `SENTINEL_URL` the key is the person's own (`SENTINEL_APPROVER_KEY`); else it is the one that the running zones of
this home made for their surfaces. The agent's key is never used here: it could not decide anything.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._gateway_client import call_gateway

MAX_LISTED = 200
LEAST_PREFIX = 4

Json = dict[str, Any]


class NotDecided(SentinelError):
    """The gateway did not take the decision; `code` is its reason."""


class ApprovalsClient:
    """Approvals at the gateway at `url`, seen and decided with `key`."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key

    def page(self, state: str | None, limit: int = MAX_LISTED) -> Json:
        """`approvals` (oldest first), `left_off` and `pending_by_tool`; in any state if `state` is None."""
        query = urlencode({"limit": limit, **({} if state is None else {"state": state})})
        return self._ask("GET", f"/v1/approvals?{query}")

    def get(self, approval_id: str) -> Json:
        """One approval, its arguments whole. `approval_id` may be its beginning, if that is one approval's only."""
        return self._ask("GET", f"/v1/approvals/{quote(self._whole_id(approval_id), safe='')}")

    def decide(self, approval_id: str, verb: str, comment: str) -> Json:
        """Send the verdict `approve` or `deny`; the approval as it stands then. Raises NotDecided."""
        path = f"/v1/approvals/{quote(self._whole_id(approval_id), safe='')}/{verb}"
        return self._ask("POST", path, {"comment": comment})

    def _whole_id(self, text: str) -> str:
        if len(text) >= 36 or not text:
            return text
        if len(text) < LEAST_PREFIX:
            raise UsageError(
                f"{text!r} is too short to name an approval.", next_step=f"Give at least {LEAST_PREFIX} characters."
            )
        states: tuple[str | None, ...] = ("pending", None)  # the newest of all, after every one that waits
        for state in states:
            found = [each["approval_id"] for each in self.page(state)["approvals"]]
            matching = [each for each in found if each.startswith(text)]
            if len(matching) == 1:
                return str(matching[0])
            if matching:
                raise UsageError(
                    f"{len(matching)} approvals begin with {text!r}.", next_step="Give more of the id, or all of it."
                )
        return text

    def _ask(self, method: str, path: str, body: Any = None) -> Json:
        status, answer = call_gateway(self._url, self._key, method, path, body)
        if status == 200 and isinstance(answer, dict):
            return answer
        reason, detail = "unavailable", f"HTTP {status}"
        if isinstance(answer, dict):
            reason, detail = str(answer.get("reason", reason)), str(answer.get("detail", detail))
        raise _error(status, reason, detail)


def connect(settings: Settings) -> ApprovalsClient:
    """The approvals of the gateway that the settings name, or that runs in this home.

    Raises UsageError without a key, UnavailableError if no gateway runs.
    """
    key = settings.approver_key
    if settings.gateway_url is not None:
        if key is None:
            raise UsageError(
                "SENTINEL_URL is set and SENTINEL_APPROVER_KEY is not, so there is no key to decide with.",
                next_step="Ask its operator for a key with the scope approve, and set SENTINEL_APPROVER_KEY to it.",
            )
        return ApprovalsClient(settings.gateway_url, key.reveal())
    state = RunFolder(settings.home).read()
    zone = None if state is None else state.zone("interceptor")
    if state is None or zone is None:
        raise UnavailableError(
            "No gateway runs with this home folder, so nothing can wait for a decision.",
            next_step="Run sentinel up, or sentinel chat, in another terminal; what waits there can be decided here.",
        )
    return ApprovalsClient(zone.url, state.keys["approver"] if key is None else key.reveal())


def _error(status: int, reason: str, detail: str) -> SentinelError:
    if status == 404:
        return UsageError(detail, next_step="Run: sentinel approvals list --state all", code=reason)
    if status == 401:
        return UsageError("The gateway does not know this key.", next_step="Check SENTINEL_APPROVER_KEY.", code=reason)
    if reason == "missing_scope":
        return UsageError(detail, next_step="Decide with a key that has the scope approve.", code=reason)
    if status >= 500:
        return UnavailableError(f"The gateway could not do it: {detail}", next_step="Run: sentinel status")
    return NotDecided(detail, next_step="Run: sentinel approvals list --state all", code=reason)
