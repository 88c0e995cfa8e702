"""What a surface says to the gateway for the person in front of it, with the person's key and never through the
agent: it opens the session clean, sends the person's own words, and asks for values that the agent may not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._gateway_client import call_gateway

MAX_ASKED = 500


class UserSession:
    """The person's side of a conversation at the gateway at `url`; `key` has the scope `user`."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key

    def open(self) -> str:
        """The id of a new, clean session of the agent. Raises UnavailableError."""
        return str(self._post("/v1/sessions", None, 201)["session_id"])

    def is_open(self, session_id: str) -> bool:
        """Whether the gateway still knows the session as this person's, and open. Raises UnavailableError."""
        status, answer = call_gateway(self._url, self._key, "GET", f"/v1/sessions/{session_id}", None)
        if status not in (200, 404):
            raise _not_taken(status, answer)
        return status == 200 and isinstance(answer, dict) and answer.get("closed") is False and "named" in answer

    def say(self, session_id: str, words: str, chosen: str = "") -> None:
        """Send the words of a question before the agent gets it, with the option on the screen that they choose.
        Raises UnavailableError."""
        said = {"text": words, "chosen": chosen} if chosen else {"text": words}
        self._post(f"/v1/sessions/{session_id}/words", said, 200)

    def values(self, session_id: str, handles: Sequence[str]) -> dict[str, Any]:
        """The hidden values that this person may see. Raises UnavailableError."""
        found: dict[str, Any] = {}
        for start in range(0, len(handles), MAX_ASKED):
            body = {"handles": list(handles[start : start + MAX_ASKED])}
            found |= self._post(f"/v1/sessions/{session_id}/resolve", body, 200)["values"]
        return found

    def to_confirm(self, session_id: str) -> list[dict[str, Any]]:
        """The calls of the session that wait for this person's own word, oldest first. Raises UnavailableError."""
        status, answer = call_gateway(self._url, self._key, "GET", "/v1/approvals?state=pending&limit=200", None)
        if status != 200 or not isinstance(answer, dict):
            raise _not_taken(status, answer)
        return [each for each in answer["approvals"] if each["session_id"] == session_id and each["may_decide"]]

    def confirm(self, approval_id: str, *, yes: bool) -> dict[str, Any]:
        """Give this person's word; the approval afterwards, with the `outcome` of a call that runs at the yes. Raises
        UnavailableError, also where it was decided meanwhile."""
        return self._post(f"/v1/approvals/{approval_id}/{'approve' if yes else 'deny'}", None, 200)

    def _post(self, path: str, body: Any, expected: int) -> dict[str, Any]:
        status, answer = call_gateway(self._url, self._key, "POST", path, body)
        if status != expected or not isinstance(answer, dict):
            raise _not_taken(status, answer)
        return answer


def _not_taken(status: int, answer: Any) -> UnavailableError:
    detail = answer.get("detail") if isinstance(answer, dict) else None
    return UnavailableError(
        f"The gateway did not take the person's request ({status}): {detail or 'without a reason'}",
        next_step="Run sentinel status; with SENTINEL_URL, check SENTINEL_USER_KEY.",
    )


def user_session(state: RunState | None, settings: Settings) -> UserSession | None:
    """The session maker of these zones; None without zones, and where a gateway elsewhere is used without a
    person's key, so that the agent opens its sessions by itself."""
    if settings.gateway_url is not None:
        return None if settings.user_key is None else UserSession(settings.gateway_url, settings.user_key.reveal())
    entry = None if state is None else state.zone("interceptor")
    if state is None or entry is None or "user" not in state.keys:
        return None
    return UserSession(entry.url, state.keys["user"])
