"""Zones of one role in the foreground, as a container runs them: what they log goes on to this process's own output.

Beside `app.processes`, which keeps a person's zones: no log files, and no keys for surfaces of this machine. Only
tool zones publish where they listen, so that knowledge and rows can be read in from a terminal beside them.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlsplit

from sentinel_rag.app.apart import ListenAddress, plan_role, url_here
from sentinel_rag.app.plan import RunPlan
from sentinel_rag.app.processes import START_TIMEOUT_S, start_zone, stop_zones
from sentinel_rag.app.run_state import RunFolder, RunState, ZoneEntry
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.settings import Settings


@dataclass(frozen=True, slots=True)
class ServedRole:
    """The running processes of a role, and each zone's URL as it was bound."""

    urls: dict[str, str]
    _processes: dict[str, subprocess.Popen[bytes]]

    def check(self) -> None:
        """Raise UnavailableError if a process has ended."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise UnavailableError(
                    f"The {name} process ended (exit code {process.returncode}).",
                    next_step="Its own last lines above say why.",
                )

    def wait(self) -> None:
        """Block until a process ends, which raises UnavailableError."""
        while True:
            self.check()
            time.sleep(0.2)


@contextmanager
def served_role(
    settings: Settings, role: str, tools: tuple[str, ...], workspace: str, place: ListenAddress
) -> Iterator[ServedRole]:
    """Start the role's zones, wait until all serve, and end them together. Raises as `plan_role`, and UnavailableError
    if a zone does not come up, or other tool zones run in this home."""
    folder = RunFolder(settings.home)
    with ExitStack() as stack:
        stack.enter_context(folder.serve())
        if role == "tools":
            stack.enter_context(folder.hold())
        plan = plan_role(settings, role, tools, workspace, place, stack)
        processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(stop_zones, processes)
        for zone in plan.zones:
            processes[zone.name] = start_zone(zone, None, folder.path)
            zone.listener.socket.close()
        running = ServedRole({zone.name: zone.listener.url for zone in plan.zones}, processes)
        state = _state(settings, plan, workspace, processes)
        for entry in state.zones:
            _wait_until_healthy(entry, state.certificate, running)
        if role == "tools":
            folder.write(state)
        yield running


def _state(
    settings: Settings, plan: RunPlan, workspace: str, processes: dict[str, subprocess.Popen[bytes]]
) -> RunState:
    tls = settings.deployment.tls
    return RunState(
        supervisor_pid=os.getpid(),
        private=False,
        workspace=workspace,
        zones=tuple(ZoneEntry(zone.name, _here(zone.listener.url), processes[zone.name].pid) for zone in plan.zones),
        workspace_token=plan.workspace_token,
        knowledge_token=plan.knowledge_token,
        workspaces=plan.workspaces,
        certificate="" if tls is None else str(tls.certificate),
    )


def _here(url: str) -> str:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return url_here(parts.scheme, parts.hostname, parts.port)


def is_served(settings: Settings, address: str, port: int) -> bool:
    """Whether a healthy zone of these settings answers on `port` of this machine."""
    tls = settings.deployment.tls
    url = url_here("http" if tls is None else "https", address, port)
    return _is_healthy(url, "" if tls is None else str(tls.certificate), timeout=5)


def _wait_until_healthy(entry: ZoneEntry, certificate: str, running: ServedRole) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        running.check()
        if _is_healthy(entry.url, certificate, timeout=START_TIMEOUT_S):
            return
        time.sleep(0.05)
    raise UnavailableError(
        f"The {entry.name} did not come up within {START_TIMEOUT_S:.0f} seconds.",
        next_step="Its own last lines above say what it waited for.",
    )


def _is_healthy(url: str, certificate: str, *, timeout: float) -> bool:
    try:
        connection = connection_here(url, certificate, timeout=timeout)
    except OSError:  # the certificate is not there, or none
        return False
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
