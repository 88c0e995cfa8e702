"""Gateways as processes of their own, which trials kill: `python -m tests.support.crash_process ...`.

Each serves the policy of `crash_load`, or another one, on a state folder, with keys for every caller. Its clock may be
set wrong from outside, through a file that both sides know. The first line of its standard input says which database
holds the state, or `null`; it ends with that input.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from starlette.types import ASGIApp
from tests.support import fork_server
from tests.support.crash_load import POLICY, Keys

from sentinel_rag.audit import JournalPlace, PostgresPlace
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.policy import FixedPolicy, load_policy, parse_policy
from sentinel_rag.gateway.store import Scope, State, open_state
from sentinel_rag.gateway.store.state import JOURNAL_FILE
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag_testing.loopback import serve


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """One of them: where it serves, and the keys of each caller."""

    process: subprocess.Popen[str]
    url: str
    keys: tuple[Keys, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a gateway is given: its tool server's URL and token, its state folder, how many callers it makes keys
    for, a file with the seconds by which its clock is wrong, and its policy file. Both files may be absent. With
    `postgres` the state is there, and the folder holds its secrets."""

    upstream_url: str
    token: str
    folder: Path
    callers: int
    clock_file: Path | None = None
    policy_file: Path | None = None
    postgres: PostgresPlace | None = None

    @property
    def clock(self) -> Clock:
        """The clock of everything that opens the state folder."""
        return utc_now if self.clock_file is None else shifted_clock(self.clock_file)

    def open_state(self) -> State:
        """The state, as one more gateway."""
        return open_state(self.folder, clock=self.clock, postgres=self.postgres)

    @property
    def journal(self) -> JournalPlace:
        """Where the journal is."""
        return self.postgres or self.folder / JOURNAL_FILE

    def app(self, state: State) -> ASGIApp:
        """The gateway on an opened state."""
        policy = parse_policy(POLICY, source="crash_load.py")
        if self.policy_file is not None:
            policy = load_policy(self.policy_file)
        upstream = McpHttpUpstream(self.upstream_url, token=self.token)
        upstreams = dict.fromkeys(policy.servers(), upstream)
        return create_app(policies=FixedPolicy(policy), keys=state.keys, state=state, upstreams=upstreams)


def shifted_clock(path: Path) -> Clock:
    """A clock that is wrong by the seconds in a file, read each time it is asked; right without the file."""

    def now() -> datetime:
        shift = 0.0
        with suppress(FileNotFoundError):
            shift = float(path.read_text())
        return utc_now() + timedelta(seconds=shift)

    return now


def shift_clock(path: Path, seconds: float) -> None:
    """Set the clocks that read `path` wrong by so many seconds, from one reading to the next."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(str(seconds))
    fresh.replace(path)  # whoever reads it while it is written must not find half of a number


@contextmanager
def gateway_processes(surroundings: Surroundings, count: int) -> Iterator[list[GatewayProcess]]:
    """`count` gateways on one state, one after the other. All are killed at the end."""
    place = surroundings.postgres
    database = None if place is None else {"url": place.url, "schema": place.schema}
    running: list[GatewayProcess] = []
    told = (surroundings.upstream_url, surroundings.token, surroundings.folder, surroundings.callers)
    files = (surroundings.clock_file or "", surroundings.policy_file or "")
    command = [sys.executable, "-m", "tests.support.crash_process", *map(str, (*told, *files))]
    try:
        for _ in range(count):
            process = fork_server.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdin.write(f"{json.dumps(database)}\n")
            process.stdin.flush()
            url, keys = json.loads(process.stdout.readline())
            running.append(GatewayProcess(process, url, tuple(Keys(*texts) for texts in keys)))
        yield running
    finally:
        for each in running:
            each.process.kill()
            each.process.communicate()


def _keys(state: State, number: int) -> tuple[str, str, str]:
    name = f"caller {number} of {state.instance.instance_id}"
    agent, info = state.keys.create([Scope.EXECUTE], name=name)
    user, _ = state.keys.create([Scope.USER], name=f"person of {name}", for_key=info.key_id, clearance=Sensitivity.HIGH)
    approver, _ = state.keys.create([Scope.APPROVE], name=f"approver of {name}")
    return agent, user, approver


def _serve(surroundings: Surroundings) -> None:
    with surroundings.open_state() as state:
        keys = [_keys(state, number) for number in range(surroundings.callers)]
        with serve(surroundings.app(state)) as url:
            print(json.dumps([url, keys]), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    upstream_url, token, folder, callers, clock_file, policy_file = sys.argv[1:]
    database = json.loads(sys.stdin.readline())
    _serve(
        Surroundings(
            upstream_url,
            token,
            Path(folder),
            int(callers),
            Path(clock_file) if clock_file else None,
            Path(policy_file) if policy_file else None,
            None if database is None else PostgresPlace(**database, folder=Path(folder)),
        )
    )
