"""An Interceptor with the shipped policy in front of a fake executor, on real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.interceptor.policy import Policy, load_policy
from sentinel_rag.testing.fake_executor import FakeExecutor
from sentinel_rag.testing.running_gateway import RunningGateway, running_gateway

SHIPPED = Path(__file__).parents[2] / "config" / "sentinel_config.yaml"


@pytest.fixture(scope="session")
def shipped_policy() -> Policy:
    return load_policy(SHIPPED)


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    with FakeExecutor(token="upstream-token").running() as running:
        yield running


@pytest.fixture
def gateway(shipped_policy: Policy, executor: FakeExecutor, tmp_path: Path) -> Iterator[RunningGateway]:
    with running_gateway(shipped_policy, tmp_path / "state", executor) as running:
        yield running
