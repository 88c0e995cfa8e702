"""The supervisor: starts the planned zones as separate processes, publishes where they listen, stops them together.

Who gets which secret is decided in `app.plan`; what a zone does once started, in `app.zones`.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sentinel_rag.app.places import logs_folder
from sentinel_rag.app.plan import Ports, ZonePlan, plan_zones
from sentinel_rag.app.run_state import RunFolder, RunState, ZoneEntry
from sentinel_rag.app.serving import startup_error, startup_notices
from sentinel_rag.app.tls import connection_here
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.settings import Settings

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 8.0
LOG_LIMIT_BYTES = 5_000_000
_LEAST_FREE = 64 * 1024
"""Bytes without which no log line and no journal page can be written."""


class RunningZones:
    """Zones that were started; `state` is what surfaces need. Use `running_zones` to get one."""

    def __init__(
        self,
        processes: Mapping[str, subprocess.Popen[bytes]],
        logs: Path,
        log_starts: Mapping[str, int],
        state: RunState,
        spare: frozenset[str] = frozenset(),
    ) -> None:
        self._processes = processes
        self._spare = spare
        self._logs = logs
        self._log_starts = log_starts
        self.state = state

    def check(self) -> None:
        """Raise UnavailableError if a zone that is needed has died, or the error that it refused to start with."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is None or name in self._spare:
                continue
            log = self._logs / f"{name}.log"
            known = startup_error(_last_line(log, self._log_starts[name]))
            if known is not None:
                raise known
            if shutil.disk_usage(self._logs).free < _LEAST_FREE:  # then its log does not tell it either
                raise UnavailableError(
                    f"The {name} process ended (exit code {code}): No space left on device.",
                    next_step="Free some disk space, then start again; nothing that was acknowledged is lost.",
                )
            raise UnavailableError(
                f"The {name} process ended unexpectedly (exit code {code}).",
                next_step=f"See {log}, then start again; nothing that was acknowledged is lost.",
            )

    def notices(self) -> list[SentinelError]:
        """What the zones found wrong at their start and serve without, such as a tool server that is not there."""
        found: list[SentinelError] = [
            UnavailableError(f"The {name} is not served: {why}", next_step=why.next_step)
            for name in sorted(self._spare)
            if self.has_ended(name)
            for why in (startup_error(_last_line(self._logs / f"{name}.log", self._log_starts[name])),)
            if why is not None
        ]
        for name, start in self._log_starts.items():
            with suppress(OSError), (self._logs / f"{name}.log").open("rb") as log:
                log.seek(start)
                found += startup_notices(log.read().decode(errors="replace"))
        return found

    def has_ended(self, name: str) -> bool:
        """True if that zone's process is gone."""
        return self._processes[name].poll() is not None

    def wait(self) -> None:
        """Block until a zone dies, which raises UnavailableError."""
        while True:
            self.check()
            time.sleep(0.2)


@contextmanager
def running_zones(
    settings: Settings,
    *,
    workspace: str,
    private: bool,
    ports: Ports | None = None,
    stand_ins: Mapping[str, tuple[str, ...]] | None = None,
) -> Iterator[RunningZones]:
    """Start every zone, wait until all serve, publish their addresses; stop them on leaving, however that happens.
    `stand_ins` names zones in whose place another module is started, with its arguments: for test benches alone.

    Raises UnavailableError if this home's zones run already, a port is taken or a zone does not come up.
    """
    folder = RunFolder(settings.home)
    logs = logs_folder(settings.home)
    with folder.hold(), ExitStack() as stack:
        logs.mkdir(mode=0o700, exist_ok=True)
        plan = plan_zones(settings, workspace, ports or Ports(), stack)
        processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(stop_zones, processes)
        log_starts = {zone.name: _prepare_log(logs / f"{zone.name}.log") for zone in plan.zones}
        for zone in plan.zones:
            arguments = (stand_ins or {}).get(zone.name, zone.arguments)
            processes[zone.name] = start_zone(replace(zone, arguments=arguments), logs, folder.path)
            zone.listener.socket.close()  # only the child listens: when it dies, callers hear of it
        state = RunState(
            supervisor_pid=os.getpid(),
            private=private,
            workspace=workspace,
            zones=tuple(ZoneEntry(zone.name, zone.listener.url, processes[zone.name].pid) for zone in plan.zones),
            agent_token=plan.agent_token,
            workspace_token=plan.workspace_token,
            knowledge_token=plan.knowledge_token,
            keys=plan.keys,
            workspaces=plan.workspaces,
            web_secret=plan.web_secret,
        )
        spare = frozenset(zone.name for zone in plan.zones if not zone.needed)
        zones = RunningZones(processes, logs, log_starts, state, spare)
        log = "See its log in the logs folder that sentinel status names."
        for entry in state.zones:
            wait_until_healthy(entry, zones.check, next_step=log, has_ended=partial(zones.has_ended, entry.name))
        folder.write(state)
        yield zones


def _prepare_log(log_file: Path) -> int:
    """Put a long log aside; where this run's lines begin, so that an old reason is not taken for a new one."""
    size = log_file.stat().st_size if log_file.exists() else 0
    if size > LOG_LIMIT_BYTES:
        log_file.replace(log_file.with_suffix(".log.1"))
        return 0
    return size


def start_zone(zone: ZonePlan, logs: Path | None, folder: Path) -> subprocess.Popen[bytes]:
    """Start a planned zone and hand it its configuration. It writes into `logs`, or to this process's output."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    descriptor = zone.listener.socket.fileno()
    with ExitStack() as opened:
        log = None if logs is None else opened.enter_context((logs / f"{zone.name}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-I", "-m", *zone.arguments, str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=dict(zone.environment),
            cwd=empty,
            pass_fds=(descriptor,),
            start_new_session=True,  # Ctrl-C in the terminal reaches the supervisor alone, which ends all in order
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it died at once: the health check tells why
        process.stdin.write(json.dumps(zone.configuration).encode() + b"\n")
        process.stdin.flush()
    return process


def wait_until_healthy(
    entry: ZoneEntry,
    check: Callable[[], None],
    *,
    next_step: str,
    certificate: str = "",
    has_ended: Callable[[], bool] = lambda: False,
) -> None:
    """Wait for a zone that was started. `check` raises where it, or one beside it, has died; one that is not needed
    `has_ended` and is not waited for. Raises UnavailableError, whose `next_step` says where the zone's log is."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if is_healthy(entry.url, certificate, timeout=START_TIMEOUT_S):
            return
        time.sleep(0.05)  # a dying process closes its socket a moment before it can be waited for
        check()
        if has_ended():
            return
    raise UnavailableError(
        f"The {entry.name} did not come up within {START_TIMEOUT_S:.0f} seconds.", next_step=next_step
    )


def is_healthy(url: str, certificate: str, *, timeout: float) -> bool:
    """Whether a zone of this machine serves at `url`; with https it proves itself by the file `certificate`."""
    try:
        connection = connection_here(url, certificate, timeout=timeout)
    except OSError:  # the certificate is not there, or none
        return False
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def stop_zones(processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """End every zone: politely, then for certain."""
    for process in processes.values():
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for process in processes.values():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()


def _last_line(log_file: Path, start: int) -> str:
    """The last line at or behind byte `start`; empty if there is none."""
    try:
        with log_file.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
