"""The scripted model as a stranger meets it: over TCP and as a process, as strict as the services it stands for."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag_testing.scripted_model import ScriptedModel, text_reply
from sentinel_rag_testing.scripted_model.replies import reply_from_dict
from waiting import WAIT_S

COMMAND = [sys.executable, "-m", "sentinel_rag_testing.scripted_model"]
GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def _post(url: str, body: object, **headers: str) -> tuple[int, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def _said(stream: str) -> str:
    return "".join(re.findall(r'"content": "([^"]*)"', stream))


@contextmanager
def _process(*arguments: str) -> Iterator[str]:
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(WAIT_S)
    assert process.returncode == 0


def test_a_file_of_replies_is_served_in_order_and_the_last_one_repeats(tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    calls = [{"name": "query_alerts", "arguments": {"limit": 5}}]
    last = {"parts": [{"event": {"choices": []}}, {"text": "data: [DONE]\n\n"}]}
    file.write_text(json.dumps({"replies": [{"calls": calls}, {"text": "None."}, last]}))
    with _process("--scenario", str(file), "--key", "k") as url:
        address = f"{url}/v1/chat/completions"
        assert _post(address, GOOD)[0] == 401
        answers = [_post(address, GOOD, authorization="Bearer k")[1] for _ in range(4)]
    assert "query_alerts" in answers[0]
    assert _said(answers[1]) == "None."
    assert answers[2] == answers[3] == 'data: {"choices": []}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"replies": []}',
        '{"replies": [{"txt": "x"}]}',
        '{"replies": [{"framing": "tar"}]}',
        '{"replies": [7]}',
    ],
)
def test_a_scenario_that_cannot_be_read_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(text)
    done = subprocess.run(
        [*COMMAND, "--scenario", str(file)], capture_output=True, text=True, timeout=WAIT_S, check=False
    )
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_shipped_scenarios_are_listed() -> None:
    done = subprocess.run([*COMMAND, "--list"], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert len(done.stdout.splitlines()) >= 40
    assert "index_missing: Gemini's endpoint" in done.stdout


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/chat/completions", 200),
        ("/api/v1/chat/completions", 200),
        ("/openai/v1/chat/completions", 200),
        ("/openai/deployments/m/chat/completions?api-version=2024-10-21", 200),
        ("/openai/deployments/m/chat/completions", 404),
        ("/openai/deployments/m/chat/completions?api-version=newest", 404),
        ("/openai/deployments/other/chat/completions?api-version=2024-10-21", 404),
        ("/chat/completions", 404),
        ("/v1/responses", 404),
    ],
)
def test_only_the_documented_paths_and_models_exist(path: str, status: int) -> None:
    with ScriptedModel([text_reply("Hi.")], models=frozenset({"m"})).running() as url:
        assert _post(url + path, GOOD)[0] == status


def test_the_key_is_asked_for_as_each_path_does() -> None:
    with ScriptedModel([text_reply("Hi.")], key="k").running() as url:
        for path, headers, status in (
            ("/v1", {"authorization": "Bearer k"}, 200),
            ("/v1", {"api_key": "k"}, 401),
            ("/openai/v1", {"api_key": "k"}, 200),
            ("/openai/v1", {"authorization": "Bearer k"}, 200),
            ("/openai/v1", {"authorization": "Bearer other"}, 401),
        ):
            assert _post(f"{url}{path}/chat/completions", GOOD, **headers)[0] == status


def _assistant(*ids: str, arguments: object = "{}", name: str = "f", content: object = "") -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}} for call_id in ids]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def _result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "[]"}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        [],
        {**GOOD, "model": ""},
        {**GOOD, "messages": []},
        {**GOOD, "parallel_tool_calls": True},
        {**GOOD, "stream_options": {"include_usage": True}},
        {**GOOD, "max_tokens": 5, "max_completion_tokens": 5},
        {**GOOD, "tool_choice": "none"},
        {**GOOD, "tools": [{"function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}]},
        {**GOOD, "tools": [{"function": {"name": "f.g", "parameters": {"type": "object"}}}]},
        {**GOOD, "tools": [{"function": {"name": "f", "parameters": {}}}]},
        {**GOOD, "messages": [{"role": "robot", "content": "x"}]},
        {**GOOD, "messages": [_result("c1")]},
        {**GOOD, "messages": [_assistant("c1")]},
        {**GOOD, "messages": [_assistant("c1"), {"role": "user", "content": "x"}]},
        {**GOOD, "messages": [_assistant("c1", "c1"), _result("c1")]},
        {**GOOD, "messages": [_assistant("c1", arguments={}), _result("c1")]},
        {**GOOD, "messages": [_assistant("c1", name="f g"), _result("c1")]},
        {**GOOD, "messages": [_assistant("c1", content=None), _result("c1")]},
    ],
)
def test_what_a_service_refuses_is_refused(body: object) -> None:
    with ScriptedModel([text_reply("Hi.")]).running() as url:
        assert _post(f"{url}/v1/chat/completions", body)[0] == 400


def test_a_conversation_with_calls_is_accepted() -> None:
    messages = [_assistant("c1", "c2"), _result("c2"), _result("c1"), {"role": "user", "content": "x"}]
    with ScriptedModel([text_reply("Hi.")]).running() as url:
        assert _post(f"{url}/v1/chat/completions", {**GOOD, "messages": messages})[0] == 200


def test_a_function_can_decide_what_is_answered() -> None:
    server = ScriptedModel(respond=lambda request: text_reply(f"You said {request.body['messages'][-1]['content']}."))
    with server.running() as url:
        assert _said(_post(f"{url}/v1/chat/completions", GOOD)[1]) == "You said Hi."


@pytest.mark.parametrize("part", [{}, {"sound": "beep"}, {"base64": "?"}])
def test_a_part_that_is_none_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"part|base64|padding|padded"):
        reply_from_dict({"parts": [part]})
