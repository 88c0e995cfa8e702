"""Kill a real gateway under load and look at what is left: for people who want to see it on their own disk.

    with crash_executor() as tool server:
        trial = crash_trial(tool server, folder, kill_after=200)
        assert not trial.violations

The gateways are processes of their own, their callers are threads here, and the kill is SIGKILL. What a caller was
told before is compared with what the next start finds; see `crash_findings` for what must hold.
"""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.crash_findings import Findings
from tests.support.crash_load import TOOLS, Caller, Told
from tests.support.crash_process import GatewayProcess, Surroundings, gateway_processes

from sentinel_rag.audit import JournalPlace, JournalReader, PostgresPlace
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.loopback import serve

CALLERS = 6
START_SECONDS = 300


@dataclass(frozen=True, slots=True)
class CrashTrial:
    """What one kill left. `violations` are sentences; there must be none. The counts tell how much was tried:
    `acknowledged` calls of so many `sessions`, `records` in the journal, `unsealed` ones at the kill, calls that it
    `interrupted`, hidden values looked up, and approvals `used` before or after the kill."""

    kill_after: int
    acknowledged: int
    sessions: int
    records: int
    unsealed: int
    interrupted: int
    handles: int
    used: int
    violations: tuple[str, ...]


@contextmanager
def crash_executor() -> Iterator[FakeToolServer]:
    """The tool server that outlives its gateways."""
    with FakeToolServer(TOOLS, token="crash").running() as executor:  # of this trial only
        yield executor


def crash_trial(
    executor: FakeToolServer,
    folder: Path,
    *,
    kill_after: int,
    processes: int = 1,
    survivors: int = 0,
    postgres: PostgresPlace | None = None,
    clock_file: Path | None = None,
    halfway: Callable[[], object] | None = None,
) -> CrashTrial:
    """Start `processes` gateways on the state in `folder`, or in `postgres`, call them from `CALLERS` threads, kill
    all of them when `kill_after` calls were answered, and check what they left. With `survivors` so many of them serve
    on, until the callers were told of as many calls again, and stop in order.

    Their clock is wrong by the seconds in `clock_file`; `halfway` is called once when half of the calls were answered.
    """
    told, name = Told(), uuid.uuid4().hex[:12]
    executor.calls.clear()
    surroundings = Surroundings(executor.url, executor.token or "", folder, CALLERS, clock_file, postgres=postgres)
    with gateway_processes(surroundings, processes) as running:
        urls = [each.url for each in running]
        before = _last_seq(surroundings.journal)
        enough, half = threading.Event(), threading.Event()
        callers = [
            threading.Thread(
                target=Caller(
                    f"{name}-{number}", urls[number % processes :] + urls[: number % processes], own, told
                ).run,
                args=[kill_after, enough, half],
            )
            for number, own in enumerate(running[0].keys)
        ]
        for caller in callers:
            caller.start()
        if halfway is not None:
            half.wait(START_SECONDS + kill_after)
            halfway()
        enough.wait(START_SECONDS + kill_after)
        for each in running[survivors:]:
            each.process.send_signal(signal.SIGKILL)
        _serve_on(running[:survivors], told, 2 * len(told.calls))
        for caller in callers:
            caller.join()
    findings = Findings(told, JournalReader(surroundings.journal), before)
    findings.look_before_the_restart()
    with surroundings.open_state() as state:
        findings.look_after_the_restart(state, executor.calls)
        with serve(surroundings.app(state)) as url:
            findings.use_what_is_left(url, executor.calls)
    findings.look_after_a_clean_stop()
    return CrashTrial(
        kill_after,
        acknowledged=len(told.calls),
        sessions=len({call.session_id for call in told.calls}),
        records=findings.records,
        unsealed=findings.unsealed,
        interrupted=findings.interrupted,
        handles=findings.handles,
        used=findings.used,
        violations=tuple(findings.violations),
    )


def _serve_on(survivors: Sequence[GatewayProcess], told: Told, calls: int) -> None:
    """Until there were so many calls; then each stops in order."""
    deadline = time.monotonic() + START_SECONDS + calls
    while survivors and len(told.calls) < calls and time.monotonic() < deadline:
        time.sleep(0.01)
    for each in survivors:
        each.process.communicate()


def _last_seq(journal: JournalPlace) -> int:
    entries = JournalReader(journal).last(1)
    return entries[0].seq if entries else 0
