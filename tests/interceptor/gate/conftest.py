"""The gate in this process, with an upstream that tests steer: no sockets, so that hundreds of tests cost seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gate_policy import gate_policy
from small_gate import Clock, SmallGate, opened, small_gate

from sentinel_rag.interceptor.policy import Policy
from sentinel_rag.interceptor.store import State


@pytest.fixture(scope="session")
def policy() -> Policy:
    return gate_policy()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(tmp_path: Path, clock: Clock) -> Iterator[State]:
    with opened(tmp_path / "state", clock) as state:
        yield state


@pytest.fixture
def here(state: State, policy: Policy, clock: Clock) -> SmallGate:
    return small_gate(state, policy, clock=clock)
