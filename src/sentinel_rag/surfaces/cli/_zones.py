"""The zones that a command talks to, and what it asks of them: questions of the agent, sessions and approvals of the
gateway.

The zones are those of `sentinel up` or of an open chat, or a command's own for as long as it runs. Each is spoken to
over HTTP with the standard library's client, which starts faster than any other.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from sentinel_rag.app.places import SAMPLE_WORKSPACE, workspace_folder
from sentinel_rag.app.run_state import AlreadyRunningError, RunFolder, RunState
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.conversations import CarriedFact, Verbosity
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.evidence import Answer, Progress, Sentence, ToolTrace, Written, option_chosen
from sentinel_rag.contracts.handles import as_text, fill_in, fill_in_answer, handles_in
from sentinel_rag.contracts.ports import ProgressListener
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.app.processes import RunningZones

BUSY_WAIT_S = 120.0
DEFAULT_WORKSPACE = "default"


def choose_workspace(settings: Settings, requested: str | None) -> str:
    """The workspace a command means: the one named, or the first that the settings list. Where they list none, the
    embedded `default`, or `sample` while only that one exists. Raises UsageError for a name that is not listed."""
    if requested is not None and settings.gateway_url is not None:
        raise UsageError(
            "SENTINEL_URL is set, and a gateway that runs elsewhere has its own workspaces.",
            next_step="Leave --workspace out, or unset SENTINEL_URL.",
        )
    if settings.workspaces:
        return _listed(tuple(each.name for each in settings.workspaces), requested)
    if requested is not None:
        _check_exists(settings, requested)
    named = requested or settings.workspace
    if named is not None:
        return named
    if workspace_folder(settings.home, DEFAULT_WORKSPACE).exists():
        return DEFAULT_WORKSPACE
    sample = workspace_folder(settings.home, SAMPLE_WORKSPACE)
    return SAMPLE_WORKSPACE if sample.exists() else DEFAULT_WORKSPACE


def workspace_to_serve(settings: Settings, requested: str | None) -> str:
    """`choose_workspace`, where each embedded one that the settings name is there: a name without a folder is a slip,
    and served empty it would answer every question with no rows. Raises UsageError."""
    chosen = choose_workspace(settings, requested)
    for name in [each.name for each in settings.workspaces if each.embedded] if settings.workspaces else [chosen]:
        _check_exists(settings, name)
    return chosen


def _check_exists(settings: Settings, name: str) -> None:
    """The first one is made by its first import, so `default` may be missing. Raises UsageError."""
    if name == DEFAULT_WORKSPACE or workspace_folder(settings.home, name).exists():
        return
    make = "demo" if name == SAMPLE_WORKSPACE else f"workspace import FILE --workspace {name}"
    raise UsageError(
        f"There is no workspace {name!r} on this machine.",
        next_step=f"Use {_known(settings)}, or make it: sentinel {make}",
    )


def _known(settings: Settings) -> str:
    folder = workspace_folder(settings.home, DEFAULT_WORKSPACE).parent
    names = {each.name for each in folder.iterdir() if each.is_dir()} if folder.is_dir() else set()
    return " or ".join(sorted(names | {DEFAULT_WORKSPACE}))


def _listed(known: tuple[str, ...], requested: str | None) -> str:
    if requested is not None and requested not in known:
        raise UsageError(
            f"The settings name no workspace {requested!r}.",
            next_step=f"Use one of: {', '.join(known)}; docs/settings.md says how to name more.",
        )
    return known[0] if requested is None else requested


@contextmanager
def attached_zones(
    settings: Settings, requested: str | None, *, shared: bool = False, web: bool = False
) -> Iterator[tuple[RunState, RunningZones | None]]:
    """Zones to ask: the running ones, or own ones (then the second value is theirs) that end with the block.

    Own ones are private unless `shared`: a command that stays open lets others ask its zones, since they would wait for
    its end otherwise. With `web` own ones serve the web surface too, on a free port.

    Raises UsageError if the running zones serve another workspace than the one asked for.
    """
    folder = RunFolder(settings.home)
    deadline = time.monotonic() + BUSY_WAIT_S
    with ExitStack() as stack:
        while True:
            state = folder.read()
            if state is not None and not state.private:
                if settings.gateway_url is None:
                    _same_workspace(state, requested)
                yield state, None
                return
            # What starts zones takes longer to import than a question beside running ones may take.
            from sentinel_rag.app.plan import Ports
            from sentinel_rag.app.processes import running_zones

            # A gateway that runs elsewhere knows its own names: the call carries the one that was asked for.
            workspace = workspace_to_serve(settings, requested if settings.gateway_url is None else None)
            try:
                zones = stack.enter_context(
                    running_zones(
                        settings, workspace=workspace, private=not shared, ports=Ports(web=0 if web else None)
                    )
                )
            except AlreadyRunningError:
                # Another command's private zones end with it; two at once would fight over the workspace's file.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
                continue
            break
        yield zones.state, zones


@contextmanager
def home_to_itself(settings: Settings) -> Iterator[None]:
    """Keep zones from starting while the block works on stored files. Waits for other commands, not for `up`."""
    folder = RunFolder(settings.home)
    deadline = time.monotonic() + BUSY_WAIT_S
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(folder.hold())
                break
            except AlreadyRunningError:
                state = folder.read()
                if (state is not None and not state.private) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield


def _same_workspace(state: RunState, requested: str | None) -> None:
    if requested is not None and requested not in state.workspaces:
        raise UsageError(
            f"The zones that run now serve {_named(state.workspaces)}, not {requested!r}.",
            next_step=f"Stop `sentinel up` or the open chat, and start it with --workspace {requested}.",
        )


def _named(workspaces: tuple[str, ...]) -> str:
    names = ", ".join(map(repr, workspaces))
    return f"the workspace{'s' if len(workspaces) > 1 else ''} {names}"


@contextmanager
def response_to(
    url: str,
    method: str,
    path: str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60,
    certificate: str = "",
) -> Iterator[http.client.HTTPResponse]:
    """What a server answers to one request, to be read within the block; with a `certificate`, one of this machine's
    that proves itself by it. Raises OSError and HTTPException."""
    parts = urlsplit(url)
    if certificate or parts.scheme != "https":
        connection = connection_here(url, certificate, timeout=timeout)
    else:
        connection = http.client.HTTPSConnection(parts.netloc, timeout=timeout)
    with closing(connection):
        payload = None if body is None else json.dumps(body).encode()
        told = {"Content-Type": "application/json"} if payload is not None else {}
        connection.request(method, parts.path.rstrip("/") + path, payload, {**told, **(headers or {})})
        yield connection.getresponse()


def call_gateway(url: str, key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and decoded JSON body of one request. Raises UnavailableError if the gateway is away."""
    try:
        with response_to(url, method, path, body=body, headers={"X-API-Key": key}) as response:
            content = response.read()
            return response.status, json.loads(content) if content else None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(
            f"The gateway at {urlsplit(url).netloc} did not answer: {error}.", next_step="Run: sentinel status"
        ) from None


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
        """Send the words before the agent gets them, with the option that they pick. Raises UnavailableError."""
        self._post(f"/v1/sessions/{session_id}/words", {"text": words, "chosen": chosen}, 200)

    def values(self, session_id: str, handles: Sequence[str]) -> dict[str, Any]:
        """The hidden values that this person may see. Raises UnavailableError."""
        found: dict[str, Any] = {}
        for start in range(0, len(handles), MAX_ASKED):
            body = {"handles": list(handles[start : start + MAX_ASKED])}
            found |= self._post(f"/v1/sessions/{session_id}/resolve", body, 200)["values"]
        return found

    @contextmanager
    def looking(self, *, reveal: bool = True) -> Iterator[Callable[[str, dict[str, Any]], dict[str, Any]]]:
        """`look(tool, arguments)` for the block: what a tool that only reads gives this person, with its `audit_id`, in
        a session of its own as the page has one; without `reveal` hidden values stay placeholders. It raises
        UnavailableError with the gateway's reason."""
        import secrets  # it brings random numbers of four kinds, which no other command waits for

        session_id = secrets.token_hex(24)

        def look(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            body = {"session_id": session_id, "tool_name": tool, "args": arguments}
            status, answer = call_gateway(self._url, self._key, "POST", "/v1/look", body)
            if status != 200 or not isinstance(answer, dict):
                raise _not_taken(status, answer)
            result = as_text(answer["result"])
            handles = handles_in(result) if reveal else ()
            return {**answer, "result": fill_in(result, self.values(session_id, handles))}

        try:
            yield look
        finally:
            call_gateway(self._url, self._key, "DELETE", f"/v1/sessions/{session_id}", None)

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


READ_TIMEOUT_S = 3700.0  # above the longest question time that can be set: the agent ends a question, not this client


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
        self._url = entry.url
        self._headers = {"Authorization": f"Bearer {state.agent_token}"}
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
        events = self._events(body)
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
        try:
            with response_to(self._url, method, path, headers=self._headers, timeout=10) as response:
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise _gone(str(error)) from None

    def _events(self, body: dict[str, Any]) -> Generator[tuple[str, dict[str, Any]], None, None]:
        headers = {**self._headers, "Accept": "text/event-stream"}
        with response_to(self._url, "POST", "/chat", body=body, headers=headers, timeout=READ_TIMEOUT_S) as response:
            if response.status != 200:
                raise _refused(response.status, response.read(4096))
            name = ""
            for raw in response:
                field, _, value = raw.decode().rstrip("\n").partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)


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
        """Send the verdict `approve` or `deny`, or `lift`; the approval as it stands then. Raises NotDecided."""
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
