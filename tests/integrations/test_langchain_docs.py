"""The boxes of docs/langchain.md, run as they stand but for the model, which is scripted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sentinel_rag.testing.langchain_installation import importable_langchain
from sentinel_rag.testing.running_gateway import RunningGateway

pytestmark = pytest.mark.requirement("GATE-8")
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "langchain.md").read_text()
FIRST, BY_HAND, SDK = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def environment(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_URL", gateway.url)
    monkeypatch.setenv("SENTINEL_API_KEY", gateway.key)


@pytest.fixture(scope="module")
def sdk() -> Iterator[ModuleType]:
    with importable_langchain():
        import sdk_agents

        yield sdk_agents


def run(box: str, old: str, new: str, **names: Any) -> dict[str, Any]:
    """Execute a box with one thing replaced; its names afterwards."""
    assert box.count(old) == 1
    exec(compile(box.replace(old, new), "docs/langchain.md", "exec"), names)
    return names


def test_three_lines_make_an_agent(lang: ModuleType, gateway: RunningGateway) -> None:
    model = lang.ScriptedChatModel(script=[lang.calls(("query_incidents", {"status": "New"})), lang.says("None.")])
    run(FIRST, '"openai:gpt-4o-mini"', "MODEL", MODEL=model)
    [call] = gateway.executor.calls
    assert (call.tool, call.arguments) == ("query_incidents", {"status": "New"})


def test_a_tool_by_hand_raises_for_a_block(
    lang: ModuleType, gateway: RunningGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(BY_HAND, "Reads a file.", "Reads one file.")
    approvals = gateway.request("GET", "/v1/approvals", key=gateway.approver).body["approvals"]
    expected = f"file_read Access denied by security policy. Taint level: HIGH {approvals[0]['approval_id']}\n"
    assert capsys.readouterr().out == expected
    made["tool"].gateway.close()


def test_the_same_for_the_other_sdk(
    sdk: ModuleType, gateway: RunningGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    model = sdk.ScriptedSdkModel([sdk.calls(("query_incidents", {"limit": 2})), sdk.says("None are open.")])
    run(SDK, "tools=gateway_tools(gateway=gateway)", "tools=gateway_tools(gateway=gateway), model=MODEL", MODEL=model)
    assert capsys.readouterr().out == "None are open.\n"
    assert json.dumps(gateway.executor.calls[0].arguments) == '{"limit": 2}'
