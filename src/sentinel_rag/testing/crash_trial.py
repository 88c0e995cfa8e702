"""Kill a real Interceptor under load and look at what is left: for people who want to see it on their own disk.

    with crash_executor() as executor:
        trial = crash_trial(executor, folder, kill_after=200)
        assert not trial.violations

The Interceptors are processes of their own, their callers are threads here, and the kill is SIGKILL. What a caller was
told before is compared with what the next start finds; see `crash_findings` for what must hold.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.interceptor import create_app
from sentinel_rag.interceptor.policy import FixedPolicy, parse_policy
from sentinel_rag.interceptor.store import Scope, State, open_state
from sentinel_rag.interceptor.store.state import JOURNAL_FILE
from sentinel_rag.interceptor.upstream import McpHttpUpstream
from sentinel_rag.testing.crash_findings import Findings
from sentinel_rag.testing.crash_load import POLICY, TOOLS, Caller, Keys, Told
from sentinel_rag.testing.fake_executor import FakeExecutor
from sentinel_rag.testing.loopback import serve

CALLERS = 6
START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class CrashTrial:
    """What one kill left. `violations` are sentences; there must be none. The counts tell how much was tried:
    `acknowledged` calls, `records` in the journal, `unsealed` ones at the kill, calls that it `interrupted`, hidden
    values looked up, and approvals `used` before or after the kill."""

    kill_after: int
    acknowledged: int
    records: int
    unsealed: int
    interrupted: int
    handles: int
    used: int
    violations: tuple[str, ...]


@contextmanager
def crash_executor() -> Iterator[FakeExecutor]:
    """The tool server that outlives its Interceptors."""
    with FakeExecutor(TOOLS, token="crash").running() as executor:  # noqa: S106  # of this trial only
        yield executor


def crash_trial(executor: FakeExecutor, folder: Path, *, kill_after: int, processes: int = 1) -> CrashTrial:
    """Start `processes` Interceptors on the state in `folder`, call them from `CALLERS` threads, kill all of them when
    `kill_after` calls were answered, and check what they left."""
    told, name = Told(), uuid.uuid4().hex[:12]
    executor.calls.clear()
    with _interceptors(executor, folder, processes) as running:
        (_, _, keys), urls = running[0], [url for _, url, _ in running]
        before = _last_seq(folder)
        enough = threading.Event()
        callers = [
            threading.Thread(
                target=Caller(
                    f"{name}-{number}", urls[number % processes :] + urls[: number % processes], own, told
                ).run,
                args=[kill_after, enough],
            )
            for number, own in enumerate(keys)
        ]
        for caller in callers:
            caller.start()
        enough.wait(START_SECONDS)
        for process, _, _ in running:
            process.send_signal(signal.SIGKILL)
        for caller in callers:
            caller.join()
    findings = Findings(told, JournalReader(folder / JOURNAL_FILE), before)
    findings.look_before_the_restart()
    with open_state(folder) as state:
        findings.look_after_the_restart(state, executor.calls)
        with serve(_app(executor.url, executor.token or "", state)) as url:
            findings.use_what_is_left(url, executor.calls)
    findings.look_after_a_clean_stop()
    return CrashTrial(
        kill_after,
        acknowledged=len(told.calls),
        records=findings.records,
        unsealed=findings.unsealed,
        interrupted=findings.interrupted,
        handles=findings.handles,
        used=findings.used,
        violations=tuple(findings.violations),
    )


def _last_seq(folder: Path) -> int:
    entries = JournalReader(folder / JOURNAL_FILE).last(1)
    return entries[0].seq if entries else 0


@contextmanager
def _interceptors(
    executor: FakeExecutor, folder: Path, count: int
) -> Iterator[list[tuple[subprocess.Popen[str], str, list[Keys]]]]:
    """The processes, each with its URL and keys for every caller."""
    running: list[tuple[subprocess.Popen[str], str, list[Keys]]] = []
    command = [
        sys.executable,
        "-m",
        "sentinel_rag.testing.crash_trial",
        executor.url,
        executor.token or "",
        str(folder),
    ]
    try:
        for _ in range(count):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            url, keys = json.loads(process.stdout.readline())
            running.append((process, url, [Keys(*texts) for texts in keys]))
        yield running
    finally:
        for process, _, _ in running:
            process.kill()
            process.communicate()


def _app(executor_url: str, token: str, state: State) -> ASGIApp:
    policy = parse_policy(POLICY, source="crash_load.py")
    upstream = McpHttpUpstream(executor_url, token=token)
    return create_app(
        policies=FixedPolicy(policy),
        keys=state.keys,
        state=state,
        upstreams=dict.fromkeys(policy.servers(), upstream),
    )


def _keys(state: State, number: int) -> tuple[str, str, str]:
    name = f"caller {number} of {state.instance.instance_id}"
    agent, info = state.keys.create([Scope.EXECUTE], name=name)
    user, _ = state.keys.create([Scope.USER], name=f"person of {name}", for_key=info.key_id, clearance=Sensitivity.HIGH)
    approver, _ = state.keys.create([Scope.APPROVE], name=f"approver of {name}")
    return agent, user, approver


def _serve(executor_url: str, token: str, folder: str) -> None:
    """The process that is killed."""
    with open_state(Path(folder)) as state:
        keys = [_keys(state, number) for number in range(CALLERS)]
        with serve(_app(executor_url, token, state)) as url:
            print(json.dumps([url, keys]), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
