"""The gate in this process, with an upstream that tests steer: no sockets, so that hundreds of tests cost seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from gate_policy import gate_policy
from small_gate import Clock, SmallGate, small_gate

from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import State, open_state

ON_BOTH = {"test_session_store", "test_sessions_of_one_key", "test_gate_approvals"}
"""Modules whose tests hold for a state in SQLite and in PostgreSQL."""


@pytest.fixture(scope="session")
def policy() -> Policy:
    return gate_policy()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend() -> str:
    """Where the state is; `pytest_generate_tests` says for which modules it is each in turn."""
    return "sqlite"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ in ON_BOTH and "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture
def reopen(tmp_path: Path, clock: Clock, backend: str, request: pytest.FixtureRequest) -> Callable[[], State]:
    """Opens the state of this test, as a gateway that starts does."""
    folder = tmp_path / "state"
    place = request.getfixturevalue("postgres_states").place(folder) if backend == "postgres" else None
    return lambda: open_state(folder, clock=clock, postgres=place)


@pytest.fixture
def state(reopen: Callable[[], State]) -> Iterator[State]:
    with reopen() as state:
        yield state


@pytest.fixture
def here(state: State, policy: Policy, clock: Clock) -> SmallGate:
    return small_gate(state, policy, clock=clock)
