"""A gateway over a policy of many kinds of tools, and LangChain from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from gateway_estate import ESTATE_TOOLS, POLICY, ROWS

from sentinel_rag.interceptor.policy import parse_policy
from sentinel_rag.testing.fake_executor import Answers, FakeExecutor
from sentinel_rag.testing.langchain_installation import importable_langchain
from sentinel_rag.testing.running_gateway import RunningGateway, running_gateway


@pytest.fixture(scope="module")
def lang() -> Iterator[ModuleType]:
    """The helper module `langchain_agents`, which needs LangChain."""
    with importable_langchain():
        import langchain_agents

        yield langchain_agents


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[RunningGateway]:
    """A gateway over the policy of `gateway_estate`, in front of a fake executor."""
    with (
        FakeExecutor(ESTATE_TOOLS, token="t").running() as executor,
        running_gateway(parse_policy(POLICY), tmp_path / "state", executor) as running,
    ):
        executor.on("read_alert", Answers(ROWS))
        yield running
