"""`sentinel doctor --model`: each model is sent what a question sends, and what fails is told with what mends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.scripted_model import Reply, ScriptedModel, calls_reply, json_reply, text_reply

pytestmark = [pytest.mark.requirement("OPS-4"), pytest.mark.requirement("OPS-3")]
KEY = "key-canary-2a"
CALLED = calls_reply(("list_workspaces", {}), prompt=6_500)
LOADING = json_reply({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
TOO_LONG = {
    "code": 400,
    "message": "context",
    "type": "exceed_context_size_error",
    "n_ctx": 4_096,
    "n_prompt_tokens": 7_483,
}


@pytest.fixture
def doctor(clean_environment: Path, tmp_path: Path, capsys: Any, monkeypatch: Any) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        main(["doctor", "--json", *arguments])
        out, err = capsys.readouterr()
        assert KEY not in out + err
        return {finding["name"]: finding for finding in json.loads(out)}

    return run


def test_both_models_are_asked(doctor: Any) -> None:
    server = ScriptedModel([CALLED], key=KEY)
    with server.running() as url:
        found = doctor(
            "--model",
            SENTINEL_MODEL="openai-compatible",
            SENTINEL_MODEL_URL=f"{url}/v1",
            SENTINEL_MODEL_API_KEY=KEY,
            SENTINEL_MODEL_NAME="big",
            SENTINEL_MODEL_SMALL_NAME="little",
        )
    assert found["model"]["ok"]
    assert found["model large"]["ok"]
    assert found["model large"]["level"] == "ok"
    assert found["model large"]["detail"].startswith("big called list_workspaces in ")
    assert "6500 + 5 tokens; 105500 of 128000 tokens are left" in found["model small"]["detail"]
    assert [request.model for request in server.requests] == ["big", "little"]
    sent = server.requests[0].body
    names = {tool["function"]["name"] for tool in sent["tools"]}
    assert names == {tool.name for tool in SHIPPED_TOOLS} | {"compute", "read_rows"}
    assert sent["messages"][0] == {"role": "system", "content": prompt("rules").text}


@pytest.fixture
def checked(doctor: Any) -> Any:
    def run(reply: Reply, context: str = "16384") -> dict[str, Any]:
        with ScriptedModel([reply]).running() as url:
            found: dict[str, Any] = doctor(
                "--model",
                SENTINEL_MODEL="openai-compatible",
                SENTINEL_MODEL_URL=f"{url}/v1",
                SENTINEL_MODEL_NAME="m",
                SENTINEL_MODEL_CONTEXT_TOKENS=context,
            )["model large"]
        return found

    return run


@pytest.mark.parametrize(
    ("reply", "level", "said", "mended_by"),
    [
        (
            text_reply('```json\n{"name": "list_workspaces", "arguments": {}}\n```', prompt=7_483),
            "warn",
            "as text",
            "--jinja",
        ),
        (text_reply("Hello!", prompt=7_483), "fail", "did not call list_workspaces", "a model that calls tools"),
        (text_reply("Hello!", prompt=1_215), "fail", "drops the tools", "chat template"),
        (
            calls_reply(("list_workspaces", {}), prompt=3_072),
            "fail",
            "cuts long prompts",
            "OLLAMA_CONTEXT_LENGTH=16384",
        ),
        (json_reply({"error": TOO_LONG}, 400), "fail", "rules, tools and the question alone", "--ctx-size 16384"),
    ],
    ids=["written", "no-call", "tools-dropped", "prompt-cut", "too-small"],
)
def test_what_would_fail_at_each_question_is_told_by_name(
    checked: Any, reply: Reply, level: str, said: str, mended_by: str
) -> None:
    found = checked(reply)
    assert found["level"] == level
    assert said in found["detail"]
    assert mended_by in found["fix"]


def test_a_question_that_leaves_no_room_for_rows_does_not_fit(checked: Any) -> None:
    found = checked(calls_reply(("list_workspaces", {}), prompt=13_900))
    assert found["level"] == "fail"
    assert "leave 436 of 16384 tokens" in found["detail"]
    assert "--ctx-size" in found["fix"]


def test_a_small_context_is_asked_with_the_small_profile(checked: Any) -> None:
    found = checked(calls_reply(("list_tables", {}), prompt=1_200), context="8192")
    assert found["level"] == "ok"
    assert "called list_tables" in found["detail"]


def test_a_server_that_loads_its_model_is_waited_for(doctor: Any) -> None:
    with ScriptedModel([LOADING, CALLED]).running() as url:
        found = doctor(
            "--model",
            SENTINEL_MODEL="openai-compatible",
            SENTINEL_MODEL_URL=f"{url}/v1",
            SENTINEL_MODEL_NAME="m",
        )
    assert found["model large"]["level"] == "ok"


def test_without_the_option_nothing_is_sent(doctor: Any) -> None:
    server = ScriptedModel([text_reply("ready")])
    with server.running() as url:
        found = doctor(SENTINEL_MODEL="openai-compatible", SENTINEL_MODEL_URL=f"{url}/v1", SENTINEL_MODEL_NAME="big")
    assert "sentinel doctor --model" in found["model"]["detail"]
    assert server.requests == []


def test_a_model_that_refuses_is_told_with_what_mends_it(doctor: Any) -> None:
    with ScriptedModel([text_reply("ready")], key="another").running() as url:
        found = doctor(
            "--model",
            SENTINEL_MODEL="azure",
            AZURE_OPENAI_ENDPOINT=url,
            AZURE_OPENAI_API_KEY=KEY,
            SENTINEL_MODEL_NAME="gpt-4o",
        )
    assert not found["model large"]["ok"]
    assert "HTTP 401" in found["model large"]["detail"]
    assert "key" in found["model large"]["fix"]


def test_offline_has_no_model_to_ask(doctor: Any) -> None:
    found = doctor("--model")
    assert found["model"]["ok"]
    assert not found["model call"]["ok"]
