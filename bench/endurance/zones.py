"""The whole product, and kill -9 of each of its processes in turn.

A process that dies ends the run in order, with a sentence that names it: nothing goes on half. What must hold is that
whoever asks meanwhile gets an answer or a clear end, that the next start finds every call that was acknowledged, and
that the same question then has the same answer.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.app.places import gateway_folder, workspace_folder
from sentinel_rag.app.plan import Ports
from sentinel_rag.app.processes import RunningZones, running_zones
from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store.state import JOURNAL_FILE
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.workspace import Workspace

ANSWER_S = 60.0
TOLD_S = 30.0
"""How long a supervisor may take to tell of a process that died: it looks five times a second."""
TOOL, ARGUMENTS = "query_incidents", {"min_severity": "High", "limit": 20}


def zones(calls: int) -> dict[str, Any]:
    """Kill each process of the run once, under `calls` calls or more."""
    violations: list[str] = []
    killed: dict[str, Any] = {}
    acknowledged: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        settings = load_settings(environment={"SENTINEL_HOME": name}, env_file=Path(name) / "none")
        workspace = Workspace.open(workspace_folder(settings.home, "default"))
        workspace.generate(EstateOptions())
        workspace.close()
        journal = JournalReader(gateway_folder(settings.home) / JOURNAL_FILE)
        first: str | None = None
        names = _names(settings)
        for zone in names:
            started = time.monotonic()
            with running_zones(settings, workspace="default", private=False, ports=Ports(web=0)) as running:
                up = time.monotonic() - started
                answer = _call(running, acknowledged, f"before-{zone}")
                first = first or answer
                if answer is None or answer != first:
                    violations.append(f"before {zone} was killed, the question had another answer")
                statuses, told = _killed(running, zone, calls, acknowledged, violations)
            violations += _missing(journal, acknowledged, zone)
            killed[zone] = {"start_s": round(up, 1), "meanwhile": statuses, "told_s": round(told, 1)}
    return {"kills": len(names), "acknowledged": len(acknowledged), "zones": killed, "violations": violations}


def _names(settings: Settings) -> list[str]:
    with running_zones(settings, workspace="default", private=False, ports=Ports(web=0)) as running:
        return [zone.name for zone in running.state.zones]


def _killed(
    running: RunningZones, zone: str, calls: int, acknowledged: list[str], violations: list[str]
) -> tuple[dict[str, int], float]:
    """Kill one process amid the calls; how the calls ended, and the seconds until the supervisor told of it."""
    statuses: dict[str, int] = {}
    entry = running.state.zone(zone)
    assert entry is not None
    half = threading.Event()

    def ask() -> None:
        for number in range(calls):
            if number == calls // 2:
                half.set()
            status, _ = _post(running, acknowledged, f"during-{zone}")
            statuses[status] = statuses.get(status, 0) + 1

    asking = threading.Thread(target=ask)
    asking.start()
    half.wait(ANSWER_S * calls)
    os.kill(entry.pid, signal.SIGKILL)
    since = time.monotonic()
    sentence = ""
    while time.monotonic() - since < TOLD_S and not sentence:
        try:
            running.check()
            time.sleep(0.02)
        except UnavailableError as error:
            sentence = str(error)
    told = time.monotonic() - since
    asking.join()
    if zone not in sentence:
        violations.append(f"{zone} was killed, and the supervisor said: {sentence or 'nothing'}")
    return statuses, told


def _call(running: RunningZones, acknowledged: list[str], session: str) -> str | None:
    """The rows of the question as one text; None if it was not answered."""
    status, answer = _post(running, acknowledged, session)
    return json.dumps(answer["result"]["rows"], sort_keys=True) if status == "200" else None


def _post(running: RunningZones, acknowledged: list[str], session: str) -> tuple[str, Any]:
    """One call with the agent's own key: its status, or what became of the connection."""
    gateway = running.state.zone("interceptor")
    assert gateway is not None
    body = json.dumps({"session_id": session, "tool_name": TOOL, "args": ARGUMENTS})
    headers = {"X-API-Key": running.state.keys["agent"], "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc, timeout=ANSWER_S)
    try:
        connection.request("POST", "/v1/proxy-execute", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except TimeoutError:
        return "no answer", None
    except (OSError, ValueError, http.client.HTTPException):
        return "connection ended", None
    finally:
        connection.close()
    if response.status == 200:
        acknowledged.append(answer["audit_id"])
    return str(response.status), answer


def _missing(journal: JournalReader, acknowledged: list[str], zone: str) -> list[str]:
    """Acknowledged calls without both of their records, and a journal that does not verify."""
    found = journal.verify()
    wrong = [] if found.intact else [f"after {zone} was killed the journal breaks: {found.problem}"]
    for audit_id in acknowledged:
        kinds = [entry.kind for entry in journal.find(audit_id)]
        if "intent" not in kinds or "outcome" not in kinds:
            wrong.append(f"after {zone} was killed call {audit_id} has {kinds or 'no record'}")
    return wrong
