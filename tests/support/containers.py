"""Roles of a deployment as containers run them, without a container: each a `sentinel serve` with a home of its own and
the settings that its container gets, and nothing else of this machine's environment.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import fork_server
from tests.support.fork_server import SENTINEL
from tests.support.private_authority import Authority

TIMEOUT_S = 300


@dataclass(frozen=True)
class Container:
    """What one container has: a home, and the settings that it is given. `inside` is put before each command: what
    enters a network namespace, for one."""

    home: Path
    settings: Mapping[str, str]
    inside: Sequence[str] = ()

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "SENTINEL_HOME": str(self.home / "state"),
            **self.settings,
        }

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """A command beside the running role, as `kubectl exec` runs one."""
        command = [*self.inside, SENTINEL, *arguments]
        return fork_server.run(command, input=stdin, env=self.environment, cwd=self.home, text=True, timeout=TIMEOUT_S)

    def log(self, role: str) -> str:
        """What the role has written to its standard error."""
        return (self.home / f"{role}.log").read_text()

    @contextmanager
    def serve(
        self, role: str, *options: str, listen: str = "127.0.0.1:0"
    ) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
        """The role's addresses by zone, and its process, until the block ends. Raises RuntimeError with its log if it
        does not start."""
        with (
            (self.home / f"{role}.log").open("w") as log,
            subprocess.Popen(  # a new process: tests look at its children and at what it shows of itself
                [*self.inside, SENTINEL, "serve", role, "--json", "--listen", listen, *options],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                found: dict[str, str] = json.loads(line) if line else {}
                if not all(str(url).startswith("http") for url in found.values()) or not found:
                    process.wait(TIMEOUT_S)  # what it printed is an error
                    raise RuntimeError(f"sentinel serve {role} did not start: {line}{self.log(role)}")
                yield found, process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(TIMEOUT_S)


@dataclass(frozen=True)
class Deployment:
    """The running roles by name: their containers, addresses, processes, and the secrets between them."""

    containers: Mapping[str, Container]
    urls: Mapping[str, str]
    processes: Mapping[str, subprocess.Popen[str]]
    secrets: Mapping[str, str]
    authority: Authority


@contextmanager
def running_deployment(folder: Path, *, events: int) -> Iterator[Deployment]:
    """Four roles in four containers over a sample estate of so many log rows, with an authority of its own in `folder`.
    The gateway and the web surface share a volume, as they do without PostgreSQL; nobody else shares anything but
    the authority's certificate."""
    (folder / "authority").mkdir()
    authority = Authority(folder / "authority")
    tokens = {name: secrets.token_urlsafe(32) for name in ("tools", "agent")}
    agent_key = f"sr_agent_{secrets.token_urlsafe(32)}"
    approver_key = f"sr_approver_{secrets.token_urlsafe(32)}"

    def container(name: str, home: str = "", **settings: str) -> Container:
        place = folder / (home or name)
        place.mkdir(exist_ok=True)
        return Container(place, {**authority.issue(name), **settings})

    with ExitStack() as stack:
        containers, urls, processes = {}, {}, {}

        def start(role: str, made: Container, *options: str) -> dict[str, str]:
            found, process = stack.enter_context(made.serve(role, *options))
            containers[role], processes[role] = made, process
            urls.update(found)
            return found

        tools = container("tools", SENTINEL_WORKSPACE="sample", SENTINEL_ZONE_TOKEN=tokens["tools"])
        done = tools.run("workspace", "generate", "--events", str(events), "--days", "14")
        if done.returncode:
            raise RuntimeError(done.stderr)
        found = start("tools", tools)
        names = ("sentinel", "knowledge", "files", "web")
        start(
            "interceptor",
            container(
                "interceptor",
                SENTINEL_TOOLS=",".join(f"{name}={found[f'executor-{name}']}" for name in names),
                SENTINEL_TOOLS_TOKENS=",".join(f"{name}={tokens['tools']}" for name in names),
                SENTINEL_API_KEY=agent_key,
                SENTINEL_APPROVER_KEY=approver_key,
            ),
        )
        start(
            "agent",
            container(
                "agent",
                SENTINEL_URL=urls["interceptor"],
                SENTINEL_API_KEY=agent_key,
                SENTINEL_ZONE_TOKEN=tokens["agent"],
            ),
        )
        start(
            "web",
            container(
                "web",
                "interceptor",
                SENTINEL_URL=urls["interceptor"],
                SENTINEL_AGENT_URL=urls["agent"],
                SENTINEL_AGENT_TOKEN=tokens["agent"],
                SENTINEL_WEB_URL="https://sentinel.example.com",
            ),
        )
        known = {**tokens, "agent_key": agent_key, "approver_key": approver_key}
        yield Deployment(containers, urls, processes, known, authority)
