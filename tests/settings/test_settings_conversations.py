"""The settings of kept conversations and of a model's context; and no tool reads where conversations lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.agent.history import Budget
from sentinel_rag.app.conversations import conversation_configuration, model_budget
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings

MODEL = {
    "SENTINEL_MODEL": "openai-compatible",
    "SENTINEL_MODEL_URL": "http://127.0.0.1:9/v1",
    "SENTINEL_MODEL_NAME": "m",
}


def _load(home: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(home), **environment}, home / "absent")


def test_conversations_are_kept_in_the_home_unless_that_is_switched_off(tmp_path: Path) -> None:
    assert conversation_configuration(_load(tmp_path)) == {
        "database": None,
        "file": str(tmp_path / "agent" / "conversations.db"),
        "keep_days": 90,
        "keep": 200,
        "turns": 30,
        "context_tokens": None,
    }
    assert conversation_configuration(_load(tmp_path, SENTINEL_CHAT_KEEP_DAYS="0"))["file"] is None


@pytest.mark.requirement("CHAT-4")
@pytest.mark.requirement("CHAT-5")
def test_turns_and_context_of_a_model_are_settings(tmp_path: Path) -> None:
    assert model_budget(conversation_configuration(_load(tmp_path, **MODEL))) == Budget()
    small = _load(tmp_path, **MODEL, SENTINEL_MODEL_CONTEXT_TOKENS="16000", SENTINEL_CHAT_TURNS="5")
    assert model_budget(conversation_configuration(small)) == Budget.of_context(16_000, turns=5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SENTINEL_CHAT_KEEP_DAYS", "-1"),
        ("SENTINEL_CHAT_KEEP_DAYS", "many"),
        ("SENTINEL_CHAT_KEEP", "0"),
        ("SENTINEL_CHAT_KEEP", "9" * 5_000),
        ("SENTINEL_CHAT_TURNS", "1001"),
        ("SENTINEL_CHAT_TURNS", "3.5"),
        ("SENTINEL_MODEL_CONTEXT_TOKENS", "many"),
    ],
)
def test_a_number_that_makes_no_sense_is_told(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, **MODEL, **{name: value})
    (problem,) = caught.value.problems
    assert problem.startswith(f"{name}: ")
    assert "is no whole number from" in problem


def test_the_file_tools_do_not_read_where_conversations_lie(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, SENTINEL_FILES_ROOT=str(tmp_path / "agent"))
    assert "SENTINEL_FILES_ROOT" in caught.value.problems[0]
