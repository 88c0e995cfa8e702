"""A gateway over a policy of many kinds of tools, and LangChain from its folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import ModuleType

import pytest
from gateway_estate import ESTATE_TOOLS, POLICY, ROWS, EstateGateway
from tests.support.langchain_installation import importable_langchain

from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.store import Scope
from sentinel_rag_testing.fake_tool_server import Answers, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway


@pytest.fixture(scope="module")
def lang() -> Iterator[ModuleType]:
    """The helper module `langchain_agents`, which needs LangChain."""
    with importable_langchain():
        import langchain_agents

        yield langchain_agents


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """A gateway over the policy of `gateway_estate`, in front of a fake tool server."""
    with (
        FakeToolServer(ESTATE_TOOLS, token="t").running() as executor,
        running_gateway(parse_policy(POLICY), tmp_path_factory.mktemp("state"), executor) as running,
    ):
        yield running


@pytest.fixture
def estate(served: RunningGateway) -> EstateGateway:
    """The same with a key that nobody else has used, so with sessions, labels and records of this test alone."""
    served.executor.calls.clear()
    for tool in ESTATE_TOOLS:
        served.executor.on(tool.name)
    served.executor.tools = ESTATE_TOOLS
    served.executor.on("read_alert", Answers(ROWS))
    key, terms = served.state.keys.create([Scope.EXECUTE])
    parts = {each.name: getattr(served, each.name) for each in fields(served)}
    return EstateGateway(**{**parts, "key": key}, key_id=terms.key_id)


@pytest.fixture
def named_gateway(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> RunningGateway:
    """A gateway with the shipped policy, which the environment names."""
    monkeypatch.setenv("SENTINEL_URL", gateway.url)
    monkeypatch.setenv("SENTINEL_API_KEY", gateway.key)
    return gateway
