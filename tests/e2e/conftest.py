"""The whole product as a person has it: the installed `sentinel` command, real processes, a home folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S

AGENT_KEY = "an-agent-key-of-the-tests-0123456789"


@dataclass(frozen=True)
class Product:
    """The command line in one home folder."""

    home: Path
    settings: dict[str, str]
    anew: bool = False
    """Whether each process is started as a person's is, and is no fork: for tests of what a process loads and holds."""

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
        return {**kept, "SENTINEL_HOME": str(self.home), "SENTINEL_API_KEY": AGENT_KEY, **self.settings}

    def run(self, *arguments: str, stdin: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """One command, in a pipe."""
        with self._process(*arguments, stdin=subprocess.PIPE, cwd=cwd or self.home.parent) as process:
            return fork_server.completed(process, stdin, WAIT_S)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The JSON that one command prints; asserts its exit code."""
        done = self.run(*arguments, "--json")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    @contextmanager
    def start(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that goes on running; whatever is left of it at the end of the block is killed."""
        with self._process(*arguments, stdin=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def _process(self, *arguments: str, stdin: int, **options: Any) -> subprocess.Popen[str]:
        start = subprocess.Popen if self.anew else fork_server.Process
        given = {"env": self.environment, "cwd": self.home.parent, "stdin": stdin, "text": True, **options}
        return start([SENTINEL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **given)

    def copy(self, home: Path) -> Product:
        """The same stored data in a home of its own, with settings of its own, for tests that break or set things."""
        shutil.copytree(self.home, home, ignore=shutil.ignore_patterns("run"))
        return replace(self, home=home, settings=dict(self.settings))

    def afresh(self, home: Path) -> Product:
        """A copy that shares nothing with other tests but the stored data: no calls that wait, no conversations."""
        made = self.copy(home)
        for of_others in ("gateway", "agent"):
            shutil.rmtree(home / of_others, ignore_errors=True)
        return made

    @contextmanager
    def up(self, *arguments: str) -> Iterator[dict[str, Any]]:
        """`sentinel up` for as long as the block runs; the value is its address list."""
        with self.start("up", "--json", *arguments) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            try:
                if not line:
                    pytest.fail(f"sentinel up did not start: {process.communicate()[1]}")
                yield json.loads(line)
            finally:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=WAIT_S)


def product(home: Path, **settings: str) -> Product:
    return Product(home, settings)


@pytest.fixture(scope="session")
def new_product(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Product]:
    """Makes the product in an empty home, for fixtures that live longer than a test."""
    return lambda name: product(tmp_path_factory.mktemp(name) / "home")


@pytest.fixture
def sentinel(tmp_path: Path) -> Product:
    """The product in an empty home."""
    return product(tmp_path / "home")


@pytest.fixture(scope="session")
def imported(new_product: Callable[[str], Product], shared_data: Path) -> Product:
    """The product over the real incidents and alerts, imported once; not running."""
    made = new_product("real")
    for name in ("extracted_alerts.csv", "extracted_incidents.csv"):
        done = made.run("workspace", "import", str(shared_data / "secrl" / name))
        assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def real_rows(imported: Product) -> Iterator[Product]:
    """The product over the real incidents and alerts, running."""
    with imported.up():
        yield imported


@pytest.fixture(scope="session")
def generated(new_product: Callable[[str], Product]) -> Product:
    """The product over the sample estate, generated once; not running."""
    made = new_product("sample")
    done = made.run("workspace", "generate")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="session")
def sample(generated: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product over the sample estate, running: for tests that ask in conversations of their own and leave the rows
    and the settings as they are. Every file's tests share it."""
    own = generated.copy(tmp_path_factory.mktemp("running") / "home")
    with own.up():
        yield own
