"""Roles of a deployment as containers run them, without a container: each a `sentinel serve` with a home of its own and
the settings that its container gets, and nothing else of this machine's environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.testing.private_authority import Authority

SENTINEL = Path(sys.executable).parent / "sentinel"
TIMEOUT_S = 120


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
        return subprocess.run(
            [*self.inside, SENTINEL, *arguments],
            input=stdin,
            env=self.environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )

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
            subprocess.Popen(
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
                if not line:
                    process.wait(TIMEOUT_S)
                    raise RuntimeError(f"sentinel serve {role} did not start: {self.log(role)}")
                yield json.loads(line), process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)


@dataclass(frozen=True)
class Deployment:
    """The running roles by name: their containers, addresses, processes, and the secrets between them."""

    containers: Mapping[str, Container]
    urls: Mapping[str, str]
    processes: Mapping[str, subprocess.Popen[str]]
    secrets: Mapping[str, str]
    authority: Authority
