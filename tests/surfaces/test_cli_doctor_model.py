"""`sentinel doctor --model`: each configured model is asked, and a model that fails is told with what mends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.testing.scripted_model import ScriptedModel, text_reply

pytestmark = [pytest.mark.requirement("OPS-4"), pytest.mark.requirement("OPS-3")]
KEY = "key-canary-2a"


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
    server = ScriptedModel([text_reply("ready")], key=KEY)
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
    assert found["model large"]["detail"].startswith("big answered in ")
    assert found["model small"]["detail"].endswith("20 + 5 tokens")
    assert [request.model for request in server.requests] == ["big", "little"]


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
