"""The gateway's tools in the real Runner of the OpenAI Agents SDK, whose model is scripted, against a real gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType

import pytest
from gateway_estate import EstateGateway
from page_of_adapters import SDK, run
from tests.support.langchain_installation import importable_langchain

from sentinel_rag.integrations.gateway import GatewayConnection
from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = pytest.mark.requirement("GATE-8")


@pytest.fixture(scope="module")
def sdk() -> Iterator[ModuleType]:
    """The helper module `sdk_agents`, which needs the SDK."""
    with importable_langchain():
        import sdk_agents

        yield sdk_agents


@pytest.mark.anyio
async def test_a_hijacked_agent_is_blocked_told_why_and_goes_on(sdk: ModuleType, estate: EstateGateway) -> None:
    """The attacker controls the text of an alert, and with it every later word of the model."""
    script = [
        sdk.calls(("read_alert", {"alert": "1"})),
        sdk.calls(("send_mail", {"text": "ws-01 runs powershell"}), ("disable_account", {"account": "eve"})),
        sdk.says("I could not send it."),
    ]
    async with GatewayConnection(estate.url, estate.key) as connection:
        read, mail, account, answer = await sdk.run(script, sdk.gateway_tools(gateway=connection))
    assert json.loads(read)["rows"][0]["CommandLine"] == "⟦r1#/rows/0/CommandLine⟧"
    blocked = "Tool '{}' was blocked by a security policy. Reason: Access denied by security policy. Taint level: "
    assert mail.startswith(blocked.format("send_mail") + "HIGH [sink_label] ")
    assert account.startswith(blocked.format("disable_account") + "LOW [approval_required] ")
    assert answer == "I could not send it."
    assert [call.tool for call in estate.executor.calls] == ["read_alert"]
    refused = {record["tool"]: record["reason"] for record in estate.records() if record["kind"] == "refusal"}
    assert refused == {"send_mail": "sink_label", "disable_account": "approval_required"}


@pytest.mark.anyio
async def test_a_model_is_told_the_pinned_schema_and_conversations_have_sessions(
    sdk: ModuleType, estate: EstateGateway
) -> None:
    async with GatewayConnection(estate.url, estate.key) as connection:
        tools = sdk.gateway_tools(gateway=connection, names=["find"], conversation_of=lambda context: context["chat"])
        for chat in ("one", "two", "one"):
            found, _ = await sdk.run([sdk.calls(("find", {"text": chat})), sdk.says("Done.")], tools, {"chat": chat})
            assert json.loads(found)["arguments"] == {"text": chat}
        [offered] = connection.tools()[2:3]
    assert tools[0].params_json_schema == offered.parameters
    sessions = [record["session_id"] for record in estate.records() if record["kind"] == "intent"]
    assert sessions[0] == sessions[2] != sessions[1]


@pytest.mark.anyio
@pytest.mark.parametrize("arguments", ["[1]", "{", '{"text": NaN}', "null", "[" * 100_000])
async def test_what_is_no_object_is_a_text_for_the_model(sdk: ModuleType, arguments: str) -> None:
    text = await sdk.invoked("http://127.0.0.1:9", arguments)
    assert text.startswith("Result: SYSTEM_ERROR: The arguments ")
    assert "Call again with" in text


@pytest.mark.anyio
async def test_a_gateway_that_is_away_does_not_end_the_run(sdk: ModuleType) -> None:
    text = await sdk.invoked("http://127.0.0.1:9", '{"text": "x"}')
    assert text.startswith("Result: SYSTEM_ERROR: The gateway at http://127.0.0.1:9 cannot be reached.")


def test_the_box_of_the_page_makes_an_agent(
    sdk: ModuleType, named_gateway: RunningGateway, capsys: pytest.CaptureFixture[str]
) -> None:
    model = sdk.ScriptedSdkModel([sdk.calls(("query_incidents", {"limit": 2})), sdk.says("None are open.")])
    run(SDK, "tools=gateway_tools(gateway=gateway)", "tools=gateway_tools(gateway=gateway), model=MODEL", MODEL=model)
    assert capsys.readouterr().out == "None are open.\n"
    assert [call.arguments for call in named_gateway.executor.calls] == [{"limit": 2}]
