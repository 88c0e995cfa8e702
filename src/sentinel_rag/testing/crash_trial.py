"""Kill a real Interceptor under load and look at what is left: for people who want to see it on their own disk.

    with FakeExecutor(token=TOKEN).running() as executor:
        trial = crash_trial(executor, policy_file, folder, kill_after=200)
        assert not trial.violations

The Interceptor is a process of its own, its callers are threads here, and the kill is SIGKILL. What a caller was told
before is compared with what the next start finds.
"""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from sentinel_rag.audit import JournalReader, OutcomeStatus, Verification
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.interceptor.store import Scope, State, open_state
from sentinel_rag.interceptor.store.state import JOURNAL_FILE
from sentinel_rag.testing.fake_executor import FakeExecutor

CALLERS = 6
SESSIONS = 4
TOOLS = ("query_incidents", "query_alerts", "list_tables", "no_such_tool")
START_SECONDS = 60
MODULE = "sentinel_rag.testing.crash_trial"


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What one caller was told: a call with this id ended with this HTTP status."""

    audit_id: str
    session_id: str
    status: int


@dataclass(slots=True)
class CrashTrial:
    """What one kill left. `violations` are sentences; there must be none."""

    kill_after: int
    acknowledged: list[Acknowledged] = field(default_factory=list)
    interrupted: int = 0
    records: int = 0
    unsealed: int = 0
    violations: list[str] = field(default_factory=list)


def crash_trial(
    executor: FakeExecutor, policy_file: Path, folder: Path, *, kill_after: int, processes: int = 1
) -> CrashTrial:
    """Start `processes` Interceptors on the state in `folder`, call them from `CALLERS` threads, kill all of them when
    `kill_after` calls were answered, and check what they left."""
    trial = CrashTrial(kill_after)
    with _interceptors(executor, policy_file, folder, processes) as running:
        enough = threading.Event()
        callers = [
            threading.Thread(
                target=_call_on,
                args=[running[number % processes][1], running[number % processes][2], number, trial, enough],
            )
            for number in range(CALLERS)
        ]
        for caller in callers:
            caller.start()
        enough.wait(START_SECONDS)
        for process, _, _ in running:
            process.send_signal(signal.SIGKILL)
        for caller in callers:
            caller.join()
    _check(trial, folder)
    return trial


def _call_on(url: str, key: str, number: int, trial: CrashTrial, enough: threading.Event) -> None:
    """Call without a pause until the Interceptor is gone."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=START_SECONDS)
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    # A caller of another process uses sessions of its own key, so that no process judges by a label it cannot know.
    prefix = url.rpartition(":")[2]
    with suppress(OSError, http.client.HTTPException, ValueError):
        for turn in range(1_000_000):
            session_id = f"{prefix}-{(number + turn) % SESSIONS}"
            body = {"session_id": session_id, "tool_name": TOOLS[turn % len(TOOLS)], "args": {}}
            connection.request("POST", "/v1/proxy-execute", body=json.dumps(body), headers=headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
            trial.acknowledged.append(Acknowledged(answer["audit_id"], session_id, response.status))
            if len(trial.acknowledged) >= trial.kill_after:
                enough.set()
    connection.close()
    enough.set()


def _check(trial: CrashTrial, folder: Path) -> None:
    reader = JournalReader(folder / JOURNAL_FILE)
    before = reader.verify()
    trial.unsealed = before.unsealed
    _expect_intact(trial, before, "before the restart")
    with open_state(folder) as state:
        trial.interrupted = state.journal.interrupted
        _expect_records_and_labels(trial, state, reader)
        left = state.database.run_now(
            lambda connection: connection.execute("SELECT count(*) FROM open_call").fetchone()[0]
        )
        if left:
            trial.violations.append(f"{left} calls are still open after the restart")
    after = reader.verify()
    trial.records = after.records
    _expect_intact(trial, after, "after the restart")
    if after.unsealed:
        trial.violations.append(f"{after.unsealed} records are not sealed after a clean stop")


def _expect_intact(trial: CrashTrial, found: Verification, when: str) -> None:
    if not found.intact:
        trial.violations.append(f"{when} the journal breaks at record {found.broken_at}: {found.problem}")


def _expect_records_and_labels(trial: CrashTrial, state: State, reader: JournalReader) -> None:
    least: dict[str, Label] = {}
    for call in trial.acknowledged:
        records = {entry.kind: entry for entry in reader.find(call.audit_id)}
        if call.status == 200:
            if set(records) != {"intent", "outcome"} or records["intent"].outcome is not OutcomeStatus.SUCCESS:
                trial.violations.append(f"call {call.audit_id} was answered, and has the records {sorted(records)}")
                continue
            raised = Label.from_dict(records["intent"].record["context_after"])
            least[call.session_id] = least.get(call.session_id, BOTTOM).join(raised)
        elif not records:
            trial.violations.append(f"call {call.audit_id} ended with {call.status}, and has no record")
    for session_id, label in least.items():
        kept = state.database.run_now(partial(_context, session_id=session_id))
        if kept.join(label) != kept:
            trial.violations.append(f"session {session_id} was at {label}, and is at {kept}")


def _context(connection: sqlite3.Connection, session_id: str) -> Label:
    """The context label as it lies on the disk."""
    row = connection.execute("SELECT sensitivity, integrity FROM session WHERE session_id = ?", [session_id]).fetchone()
    return BOTTOM if row is None else Label(Sensitivity(row[0]), Integrity(row[1]))


@contextmanager
def _interceptors(
    executor: FakeExecutor, policy_file: Path, folder: Path, count: int
) -> Iterator[list[tuple[subprocess.Popen[str], str, str]]]:
    """The processes, each with its URL and a key."""
    running: list[tuple[subprocess.Popen[str], str, str]] = []
    try:
        for _ in range(count):
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "sentinel_rag.testing.crash_trial",
                    executor.url,
                    executor.token or "",
                    str(policy_file),
                    str(folder),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            url, key = json.loads(process.stdout.readline())
            running.append((process, url, key))
        yield running
    finally:
        for process, _, _ in running:
            process.kill()
            process.communicate()


def _serve(executor_url: str, token: str, policy_file: str, folder: str) -> None:
    """The process that is killed."""
    from sentinel_rag.interceptor import create_app
    from sentinel_rag.interceptor.policy import FixedPolicy, load_policy
    from sentinel_rag.interceptor.upstream import McpHttpUpstream
    from sentinel_rag.testing.loopback import serve

    policy = load_policy(Path(policy_file))
    with open_state(Path(folder)) as state:
        key, _ = state.keys.create([Scope.EXECUTE], name=f"caller {state.instance.instance_id}")
        upstream = McpHttpUpstream(executor_url, token=token)
        app = create_app(
            policies=FixedPolicy(policy),
            keys=state.keys,
            state=state,
            upstreams=dict.fromkeys(policy.servers(), upstream),
        )
        with serve(app) as url:
            print(json.dumps([url, key]), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
