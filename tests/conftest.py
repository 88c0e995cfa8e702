"""What all tests share: real rows, one async backend, and a home folder that is nobody's."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.support import fork_server
from tests.support.chromium import missing as missing_for_browser_tests
from tests.support.chromium import reason_of_platform, running_chromium
from tests.support.postgres_server import PostgresServer, running_postgres

from sentinel_rag.gateway.policy import Policy, load_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

if TYPE_CHECKING:
    from tests.support.postgres_state import EmptyStates

REPOSITORY = Path(__file__).resolve().parent.parent

# How long an example takes says something about the machine and what else it does, and nothing about a law.
settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")

# A shell that runs the suite in the background has Ctrl-C ignored, which all that the tests start would inherit: then
# no `sentinel up` of theirs would end by it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def folder_in_memory() -> str | None:
    """The folder that Linux keeps in memory, if it has room for what the suite writes and programs may lie in it."""
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    room = found.f_bavail * found.f_frsize >= 4 << 30
    return "/dev/shm" if room and not found.f_flag & os.ST_NOEXEC and os.access("/dev/shm", os.W_OK) else None


# A database waits for the disk at each commit. In memory it does not, and a sixth of the processor's time goes too.
if "TMPDIR" not in os.environ and (memory := folder_in_memory()):
    os.environ["TMPDIR"] = tempfile.tempdir = memory


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):
        fork_server.share()  # by all workers, which are started after this


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Keep the garbage collector from what collecting makes: it stays, and looking at it takes as long as making it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with a slow test first, then the end-to-end ones: whatever starts last, the workers wait for."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, "e2e" not in item.path.parts))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real rows that are not part of the repository; they lie beside the checkout, in `../shared/data`."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        reason = f"the real rows are not beside this checkout (looked for {folder.name} in ../shared)"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests of this process."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_states(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> EmptyStates:
    """Empty states of a gateway in it."""
    from tests.support.postgres_state import EmptyStates

    return EmptyStates(postgres.url, tmp_path_factory.mktemp("postgres-state"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The distribution's Chromium, as Playwright's Browser."""
    missing, platform = missing_for_browser_tests(), reason_of_platform()
    if platform is not None:
        pytest.skip(f"no browser on this platform: {platform}")
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {missing}")
        pytest.skip(missing)
    with running_chromium() as browser:
        yield browser


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No SENTINEL_ or AZURE_ setting of the person who runs the tests, and a home folder of the test's own."""
    for name in list(os.environ):
        if name.startswith(("SENTINEL_", "AZURE_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("SENTINEL_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def shipped_policy() -> Policy:
    return load_policy(REPOSITORY / "config" / "sentinel_config.yaml")


@pytest.fixture
def executor() -> Iterator[FakeToolServer]:
    with FakeToolServer(token="upstream-token").running() as running:
        yield running


@pytest.fixture
def gateway(shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path) -> Iterator[RunningGateway]:
    """A gateway with the shipped policy in front of a fake tool server, on real sockets."""
    with running_gateway(shipped_policy, tmp_path / "state", executor) as running:
        yield running
