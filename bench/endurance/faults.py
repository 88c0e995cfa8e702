"""A gateway whose tool server, disk, database and clock fail one after another, and come back.

While something is away each call ends with an answer of the gateway's own, none reaches the tool server without its
intent on record, and the first call after it is back succeeds. At the end the gateway is killed, and what it left
is held against what its callers were told, as after every kill (`testing.crash_findings`).
"""

from __future__ import annotations

import http.client
import json
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.crash_findings import Findings
from tests.support.crash_load import TOOLS, Acknowledged, Keys, Told
from tests.support.crash_process import Surroundings, gateway_processes, shift_clock

from bench.endurance.small_disk import SmallDisk, SmallDiskNotHere, small_disk
from bench.endurance.wire import Mode, Wire, wire_to
from sentinel_rag.audit import JournalReader
from sentinel_rag.gateway.store import open_state
from sentinel_rag.gateway.store.state import JOURNAL_FILE
from sentinel_rag_testing.fake_tool_server import FakeToolServer

CALLERS = 4
DEADLINE_S = 0.5
"""What the policy gives a call of the tool that meets a silent server; others have more than a busy machine takes."""
PATIENCE_S = 60.0
"""A call that takes longer hangs. Far above the deadline and SQLite's waiting, so that a busy machine is no fault."""
WAITING = {"tool_server_silent": 10, "database_held_by_another_program": 25}
"""Scenarios in which every call waits, for its deadline or for SQLite's: so many times fewer calls."""
MOST_ON_A_FULL_DISK = 100_000
POLICY = f"""
tools:
  - name: read_public
    effect: read
    timeout_s: {PATIENCE_S / 2}
    parameters: [{{name: marker, type: string, required: true}}]
    taint_rules: [{{rule_id: read_public_any, condition: "true", taint_level: LOW}}]
  - name: read_secret
    effect: read
    timeout_s: {DEADLINE_S}
    parameters: [{{name: marker, type: string, required: true}}]
    taint_rules: [{{rule_id: read_secret_any, condition: "true", taint_level: HIGH}}]
"""


@dataclass(slots=True)
class Load:
    """Calls at one gateway, and what came of them. `unrecorded` are the markers of calls that were refused because
    they could not be recorded; one whose outcome it was that could not has its intent, and was sent."""

    url: str
    keys: tuple[Keys, ...]
    told: Told = field(default_factory=Told)
    unrecorded: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    _number: int = 0

    def calls(self, count: int, tool: str = "read_public") -> Counter[int]:
        """Make so many calls, `CALLERS` at once; how many ended with each status."""
        statuses: Counter[int] = Counter()
        lock = threading.Lock()
        markers = iter([f"call-{self._number + place}" for place in range(count)])
        self._number += count

        def caller(own: Keys) -> None:
            while True:
                with lock:
                    marker = next(markers, None)
                if marker is None:
                    return
                status = self._call(own, tool, marker)
                with lock:
                    statuses[status] += 1

        threads = [threading.Thread(target=caller, args=[own]) for own in self.keys]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return statuses

    def _call(self, own: Keys, tool: str, marker: str) -> int:
        session = f"of-{own.agent[:12]}".replace("/", "-")
        body = json.dumps({"session_id": session, "tool_name": tool, "args": {"marker": marker}})
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE_S)
        try:
            headers = {"X-API-Key": own.agent, "Content-Type": "application/json"}
            connection.request("POST", "/v1/proxy-execute", body, headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.violations.append(f"call {marker} got no answer of the gateway: {error!r}")
            return 0
        finally:
            connection.close()
        if response.status == 503 and "audit_id" not in answer:  # as for every call that could not be recorded
            self.unrecorded.add(marker)
        elif "audit_id" in answer:
            self.told.calls.append(Acknowledged(answer["audit_id"], session, tool, marker, response.status))
        else:
            self.violations.append(f"call {marker} ended with {response.status} and no audit id: {answer}")
        return response.status


def faults(calls: int) -> dict[str, Any]:
    """So many calls in each scenario, and as many after it."""
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, _disk(Path(name)) as (folder, disk):
        policy, clock = Path(name) / "policy.yaml", Path(name) / "clock"
        policy.write_text(POLICY)
        executor = FakeToolServer(TOOLS, token="faults")
        with executor.running(), wire_to(urlsplit(executor.url).port or 0) as wire:
            surroundings = Surroundings(
                f"http://127.0.0.1:{wire.port}/mcp", "faults", folder, CALLERS, clock_file=clock, policy_file=policy
            )
            with gateway_processes(surroundings, 1) as (gateway,):
                load = Load(gateway.url, gateway.keys)
                for scenario, broken in _scenarios(wire, folder, disk, clock).items():
                    started = time.monotonic()
                    with broken():
                        tool = "read_secret" if scenario == "tool_server_silent" else "read_public"
                        during = load.calls(max(CALLERS, calls // WAITING.get(scenario, 1)), tool)
                        while scenario == "disk_full" and set(during) == {200} and during.total() < MOST_ON_A_FULL_DISK:
                            during += load.calls(calls)  # the database's log has room of its own, for a while
                    after = load.calls(calls)
                    if set(during) == {200} and not scenario.startswith("clock"):
                        load.violations.append(f"{scenario}: every call succeeded, so it was not tried")
                    if set(after) != {200}:
                        load.violations.append(f"after {scenario}: calls still end with {sorted(set(after) - {200})}")
                    measured[scenario] = {
                        "meanwhile": {str(status): during[status] for status in sorted(during)},
                        "afterwards": {str(status): after[status] for status in sorted(after)},
                        "seconds": round(time.monotonic() - started, 1),
                    }
            _look_at_what_is_left(load, surroundings, executor)
        if disk is None:
            measured["disk_full"] = "not run: only root may mount a small disk"
    return {
        "calls": len(load.told.calls) + len(load.unrecorded),
        "scenarios": measured,
        "refused_for_want_of_a_record": len(load.unrecorded),
        "violations": load.violations,
    }


def _scenarios(wire: Wire, folder: Path, disk: SmallDisk | None, clock: Path) -> dict[str, Callable[[], Any]]:
    """What is broken, each as a context in which it is."""

    @contextmanager
    def wired(mode: Mode) -> Iterator[None]:
        wire.set(mode)
        try:
            yield
        finally:
            wire.set(Mode.WHOLE)

    @contextmanager
    def full(it: SmallDisk) -> Iterator[None]:
        it.fill()
        try:
            yield
        finally:
            it.free()

    @contextmanager
    def locked() -> Iterator[None]:
        with closing(sqlite3.connect(folder / JOURNAL_FILE, isolation_level=None, timeout=PATIENCE_S)) as other:
            other.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                other.execute("ROLLBACK")

    @contextmanager
    def shifted(seconds: float) -> Iterator[None]:
        shift_clock(clock, seconds)
        yield

    return {
        "tool_server_dead": lambda: wired(Mode.REFUSED),
        "tool_server_silent": lambda: wired(Mode.SILENT),
        "tool_server_cut_in_its_answer": lambda: wired(Mode.CUT),
        "database_held_by_another_program": locked,
        **({} if disk is None else {"disk_full": lambda: full(disk)}),
        "clock_ahead_by_a_year": lambda: shifted(365 * 86_400.0),
        "clock_back_by_a_day": lambda: shifted(-86_400.0),
    }


def _look_at_what_is_left(load: Load, surroundings: Surroundings, executor: FakeToolServer) -> None:
    """After the kill: records and labels, and nothing at the tool server that has no intent."""
    findings = Findings(load.told, JournalReader(surroundings.folder / JOURNAL_FILE), 0)
    findings.look_before_the_restart()
    with open_state(surroundings.folder, clock=surroundings.clock) as state:
        findings.look_after_the_restart(state, executor.calls)
    findings.look_after_a_clean_stop()
    load.violations += findings.violations


@contextmanager
def _disk(scratch: Path) -> Iterator[tuple[Path, SmallDisk | None]]:
    """The folder of the state, on a disk that can be filled where there may be one."""
    try:
        with small_disk(scratch / "disk") as disk:
            yield disk.folder / "gateway", disk
    except SmallDiskNotHere:
        yield scratch / "gateway", None
