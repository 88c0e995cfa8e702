"""The product as it is shipped, running over the suite's estate: every zone a process of its own, the policy a file.

Only the web tool server's network is another one (`web_executor`). What happened is asked at the places where it
happens: the workspace by its operator's token, the outside world by its own notes, the gateway's approvals by a
person's key.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.app.places import gateway_folder, workspace_folder
from sentinel_rag.app.processes import running_zones
from sentinel_rag.app.run_state import RunState
from sentinel_rag.app.zones import key_store
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag_testing.soc import web_executor
from sentinel_rag_testing.soc.estate import PlantedEstate
from sentinel_rag_testing.soc.outside import Outside

TIMEOUT_S = 300.0
IDLE_S = 2.0
"""How long a connection is kept that nothing was sent on; the servers close theirs after five seconds."""
_STATE = """SecurityIncident
| summarize arg_max(TimeGenerated, *) by IncidentNumber
| project IncidentNumber, Status, Severity, Classification, ClassificationComment, Owner, Comments"""


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """Status, and the body as JSON (null if it is none) and as it came."""

    status: int
    body: Any
    text: str


class Wire:
    """Requests to one address with one key, over a connection that is kept. For one thread at a time."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._address = urlsplit(url)
        self._headers = headers
        self._connection: http.client.HTTPConnection | None = None
        self._answered = 0.0

    def send(self, method: str, path: str, body: Any = None) -> WireAnswer:
        """One request. A connection that was closed meanwhile is opened again, before anything was sent on it."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({} if data is None else {"Content-Type": "application/json"})}
        if self._connection is not None and time.monotonic() - self._answered > IDLE_S:
            self.close()  # the server may be closing it at this moment
        if self._connection is None:
            address = self._address
            self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
        try:
            self._connection.request(method, path, body=data, headers=headers)
            response = self._connection.getresponse()
            text = response.read().decode("utf-8", "replace")
            self._answered = time.monotonic()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        try:
            return WireAnswer(response.status, json.loads(text), text)
        except ValueError:
            return WireAnswer(response.status, None, text)

    def beside(self) -> Wire:
        """The same on a connection of its own."""
        return Wire(self._address.geturl(), self._headers)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


@dataclass(frozen=True, slots=True)
class IncidentState:
    """An incident as it stands in the workspace. `comments` are their texts, oldest first; owner "" is nobody."""

    status: str
    severity: str
    classification: str
    classification_comment: str
    owner: str
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Caller:
    """An agent and the person whose session it works in, each with a key of their own, and their wires."""

    agent: Wire
    person: Wire
    agent_key: str
    agent_id: str

    def close(self) -> None:
        self.agent.close()
        self.person.close()


class RunningProduct:
    """Zones that serve. Use `running_product` to get one."""

    def __init__(
        self, state: RunState, keys: KeyStore, planted: PlantedEstate, outside: Outside, scratch: Path
    ) -> None:
        self._keys = keys
        self._scratch = scratch
        self.state = state
        self.planted = planted
        self.outside = outside
        self.gateway_url = _url(state, "interceptor")
        self.approver = Wire(self.gateway_url, {"X-API-Key": state.keys["approver"]})
        self._workspace = Wire(_url(state, "workspace"), {"Authorization": f"Bearer {state.workspace_token}"})
        self._known: tuple[int, Mapping[int, IncidentState]] = (-1, {})

    def new_caller(self, *, all_scopes: bool = False) -> Caller:
        """An agent and its person with new keys, so that neither bounds nor floors of earlier runs count. The agent
        may do everything with `all_scopes`: for baselines in which nothing stops it."""
        scopes = [scope for scope in Scope if scope is not Scope.USER] if all_scopes else [Scope.EXECUTE]
        agent, info = self._keys.create(scopes)
        person, _ = self._keys.create([Scope.USER], for_key=info.key_id, clearance=Sensitivity.HIGH)
        wires = [Wire(self.gateway_url, {"X-API-Key": key}) for key in (agent, person)]
        return Caller(wires[0], wires[1], agent, info.key_id)

    def second_person(self, caller: Caller) -> Wire:
        """Another person whom the same agent serves."""
        key, _ = self._keys.create([Scope.USER], for_key=caller.agent_id, clearance=Sensitivity.HIGH)
        return Wire(self.gateway_url, {"X-API-Key": key})

    def waiting_of(self, caller: Caller) -> list[str]:
        """The ids of the questions that the agent's calls have led to and nobody has decided, oldest first."""
        listed = self.approver.send("GET", "/v1/approvals?state=pending&limit=200").body["approvals"]
        return [each["approval_id"] for each in listed if each["key_id"] == caller.agent_id]

    def incidents(self) -> Mapping[int, IncidentState]:
        """Every incident as the workspace holds it now."""
        versions = self._query("SecurityIncident | count")[0]["Count"]
        if versions != self._known[0]:
            self._known = (versions, {row["IncidentNumber"]: _incident(row) for row in self._query(_STATE)})
        return self._known[1]

    def restore(self, numbers: Sequence[int]) -> None:
        """Put these incidents back to what the estate says, by a newer version of each."""
        if not numbers:
            return
        now = datetime.now(UTC)
        wanted = [each for each in self.planted.estate.incidents if each.number in numbers]
        file = self._scratch / "SecurityIncident.json"
        rows = [self.planted.incident_row(each, at=now) for each in wanted]
        file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        self._admin("import", {"path": str(file), "table": "SecurityIncident"})

    def close(self) -> None:
        self.approver.close()
        self._workspace.close()

    def _query(self, kql: str) -> list[dict[str, Any]]:
        table = self._admin("query", {"kql": kql})
        names = [column["name"] for column in table["columns"]]
        return [dict(zip(names, row, strict=True)) for row in table["rows"]]

    def _admin(self, operation: str, body: Any) -> Any:
        answer = self._workspace.send("POST", f"/admin/{operation}", body)
        if answer.status != 200:
            raise RuntimeError(f"the workspace refused {operation}: {answer.text}")
        return answer.body


@contextmanager
def running_product(planted: PlantedEstate, policy_file: Path, folder: Path) -> Iterator[RunningProduct]:
    """Make a home in `folder` with the estate and start every zone under the policy. Raises as `running_zones`."""
    scratch, home = folder / "scratch", folder / "home"
    planted.files(folder / "files")
    planted.workspace(workspace_folder(home, "lab"), scratch)
    planted.knowledge(home / "knowledge", scratch)
    with Outside(planted.pages()).running() as outside:
        settings = _settings(home, folder / "files", policy_file, outside.url)
        gateway_folder(home).mkdir(parents=True, exist_ok=True, mode=0o700)
        stand_ins = {"executor-web": web_executor.ARGUMENTS}
        with running_zones(settings, workspace="lab", private=True, stand_ins=stand_ins) as zones:
            keys = key_store(settings)
            product = RunningProduct(zones.state, keys, planted, outside, scratch)
            try:
                yield product
            finally:
                product.close()
                keys.close()


def _settings(home: Path, files: Path, policy_file: Path, search_url: str) -> Settings:
    settings = load_settings({"SENTINEL_HOME": str(home)}, home / "no.env")
    return replace(
        settings,
        policy_file=policy_file.absolute(),
        files_root=files,
        search_provider="searxng",
        search_url=search_url,
        workspace="lab",
        log_level="ERROR",
    )


def _url(state: RunState, name: str) -> str:
    zone = state.zone(name)
    if zone is None:
        raise RuntimeError(f"this run has no zone {name}")
    return zone.url


def _incident(row: Mapping[str, Any]) -> IncidentState:
    owner = json.loads(row["Owner"] or "{}")
    comments = json.loads(row["Comments"] or "[]")
    return IncidentState(
        row["Status"],
        row["Severity"],
        row["Classification"],
        row["ClassificationComment"],
        owner.get("userPrincipalName") or owner.get("email") or owner.get("assignedTo") or "",
        tuple(str(each.get("message", "")) for each in comments),
    )
