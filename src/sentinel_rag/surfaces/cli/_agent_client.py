"""Talking to the agent's `POST /chat` from the terminal, over the standard library's HTTP client.

It is imported for every question, so it costs no heavy import. Progress arrives as server-sent events while tools run.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Generator
from typing import Any

from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.conversations import CarriedFact, Verbosity
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.evidence import Answer, Progress, Sentence, ToolTrace, Written
from sentinel_rag.contracts.handles import fill_in, fill_in_answer, handles_in
from sentinel_rag.contracts.ports import ProgressListener
from sentinel_rag.surfaces.cli._user_session import UserSession

READ_TIMEOUT_S = 3700.0  # above the longest question time that can be set: the agent ends a question, not this client


_PICK = re.compile(r"\[?([1-9][0-9]?)\]?[.)]?")


def option_chosen(words: str, shown: str) -> str:
    """The option of the answer on the screen that the words pick by its number; empty if they are no such thing."""
    pick = _PICK.fullmatch(words.strip())
    line = next((line for line in shown.splitlines() if pick and line.startswith(f"[{pick[1]}] ")), "")
    return line.partition("] ")[2]


class AgentClient:
    """One conversation with the agent of `state`; `session_id` is the conversation's, None for a new one. `workspace`
    is where its questions go that name none; `timezone` and `verbosity` are the person's; None leaves each as it is.

    With `user`, sessions are opened by the person and not by the agent, the gateway hears the person's words, and
    values that the agent may not see are drawn into the answer here.
    """

    def __init__(self, state: RunState, user: UserSession | None, session_id: str | None = None) -> None:
        entry = state.zone("agent")
        if entry is None:
            raise UnavailableError("No agent is running.", next_step="Run: sentinel up")
        self._address = entry.url.removeprefix("http://")
        self._token = state.agent_token
        self._user = user
        self.session_id = session_id
        self.workspace: str | None = None
        self.timezone: str | None = None
        self.verbosity: Verbosity | None = None
        self._shown = ""

    def ask(self, question: str, progress: ProgressListener) -> Answer:
        """The answer to `question`. Raises UnavailableError if the agent is away or ends in the middle."""
        if self._user is not None:
            self.session_id = self.session_id or self._user.open()
            self._user.say(self.session_id, question, option_chosen(question, self._shown))
        body = {
            "message": question,
            "session_id": self.session_id,
            "workspace": self.workspace,
            "timezone": self.timezone,
            "verbosity": self.verbosity,
        }
        events = self._events(json.dumps(body).encode())
        written = Written()
        try:
            for name, data in events:
                if name == "progress":
                    tool = data.get("tool")
                    progress(Progress(data["text"], data["elapsed_s"], ToolTrace(**tool) if tool else None))
                elif name in ("text", "withdrawn", "sentences"):
                    progress(self._written(name, data, written))
                elif name == "answer":
                    answer = Answer.from_dict(data)
                    self.session_id = answer.session_id
                    whole = self._whole(answer)
                    self._shown = whole.text
                    return whole
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _gone(str(error)) from None
        finally:
            events.close()  # however it ends (Ctrl-C too): the closed connection tells the agent to stop working
        raise _gone("the connection ended without an answer")

    def _written(self, name: str, data: dict[str, Any], written: Written) -> Progress:
        """What is told of a text on its way; `written` is all of it so far as it came, with values still hidden."""
        if name == "withdrawn":
            written.hear(Progress("", withdrawn=True))
            return Progress(data["text"], data["elapsed_s"], withdrawn=True)
        assert self.session_id is not None or self._user is None, "a person's session is open before it is asked in"
        session_id = self.session_id or ""
        if name == "sentences":
            told = self._with_values({"answer": written.text, "sentences": data["sentences"]}, session_id)
            sentences = tuple(map(Sentence.from_dict, told["sentences"]))
            return Progress("Writing the answer...", data["elapsed_s"], sentences=sentences)
        written.hear(Progress("", written=data["text"]))
        text = self.with_values(data["text"], session_id)
        return Progress("Writing the answer...", data["elapsed_s"], written=text)

    def _whole(self, answer: Answer) -> Answer:
        return Answer.from_dict(self._with_values(answer.to_dict(), answer.session_id))

    def _with_values(self, answer: dict[str, Any], session_id: str) -> dict[str, Any]:
        """An answer, or its text and sentences, with the hidden values in it that this person may see."""
        handles = handles_in(answer)
        if not handles or self._user is None:
            return answer
        return fill_in_answer(answer, self._user.values(session_id, handles))

    def with_values(self, value: Any, session_id: str) -> Any:
        """A JSON value with the hidden values in it that this person may see. Raises UnavailableError."""
        handles = handles_in(value)
        if not handles or self._user is None:
            return value
        return fill_in(value, self._user.values(session_id, handles))

    def clear(self) -> tuple[CarriedFact, ...]:
        """Start over in the same session; the facts that are carried on. Raises UnavailableError."""
        if self.session_id is None:
            return ()
        status, body = self._request("POST", f"/chat/{self.session_id}/clear")
        if status != 200:
            raise _refused(status, body)
        return tuple(map(CarriedFact.from_dict, self.with_values(json.loads(body)["carried"], self.session_id)))

    def forget(self) -> None:
        """Forget the conversation; the next question opens a new session. Raises UnavailableError."""
        if self.session_id is not None:
            self._request("DELETE", f"/chat/{self.session_id}")
            self.session_id = None

    def _request(self, method: str, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._address, timeout=10)
        try:
            connection.request(method, path, headers=self._headers())
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise _gone(str(error)) from None
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}

    def _events(self, body: bytes) -> Generator[tuple[str, dict[str, Any]], None, None]:
        connection = http.client.HTTPConnection(self._address, timeout=READ_TIMEOUT_S)
        try:
            connection.request("POST", "/chat", body, {**self._headers(), "Accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status != 200:
                raise _refused(response.status, response.read(4096))
            name = ""
            for raw in response:
                field, _, value = raw.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)
        finally:
            connection.close()


def _gone(why: str) -> UnavailableError:
    return UnavailableError(
        f"The agent did not answer: {why}.", next_step="Run sentinel status to see what runs, then ask again."
    )


def _refused(status: int, body: bytes) -> UnavailableError:
    try:
        detail = str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = "without a reason"
    return UnavailableError(f"The agent refused the question ({status}): {detail}", next_step="Run: sentinel status")
