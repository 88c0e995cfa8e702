"""`sentinel keys`: a person makes, lists, rotates and revokes keys, and each mistake is answered with what to do."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.gateway.store import KeyStore, Scope
from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.usefixtures("clean_environment")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["keys", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def made(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, text = run(capsys, "create", *arguments, "--json")
    assert code == 0, text
    return dict(json.loads(text))


@pytest.mark.requirement("GATE-7")
def test_the_whole_life_of_a_key(capsys: pytest.CaptureFixture[str], clean_environment: Path) -> None:
    key = made(
        capsys, "--name", "night shift", "--scope", "audit", "--scope", "approve", "--expires", "90", "--rate", "600/60"
    )
    assert (key["name"], key["scopes"], key["state"]) == ("night shift", ["approve", "audit"], "live")
    assert key["rate"] == {"calls": 600, "seconds": 60.0}
    with closing(KeyStore(clean_environment / "gateway" / "keys.sqlite")) as store:
        found = store.verify(key["key"])
        assert found is not None
        assert found.scopes == {Scope.AUDIT, Scope.APPROVE}
        rotated = json.loads(run(capsys, "rotate", "night shift", "--overlap", "5", "--json")[1])
        assert rotated["key_id"] == key["key_id"]
        assert store.verify(rotated["key"]) == store.verify(key["key"]) == found
        listed = json.loads(run(capsys, "list", "--json")[1])
        assert [(each["key_id"], each["state"]) for each in listed] == [(key["key_id"], "live")]
        assert "key" not in listed[0]
        assert json.loads(run(capsys, "revoke", key["key_id"], "--json")[1])["state"] == "revoked"
        assert store.verify(rotated["key"]) is None
    code, text = run(capsys, "list")
    assert code == 0
    assert "revoked" in text
    assert "night shift" in text
    assert key["key"].rpartition("_")[2] not in text


@pytest.mark.requirement("KNOW-4")
def test_a_key_is_made_with_the_names_under_which_it_reads(
    capsys: pytest.CaptureFixture[str], clean_environment: Path
) -> None:
    key = made(capsys, "--name", "ana", "--scope", "user", "--reader", "tier2", "--reader", "HR team")
    assert key["readers"] == ["HR team", "tier2"]
    with closing(KeyStore(clean_environment / "gateway" / "keys.sqlite")) as store:
        assert store.readers_of(key["key_id"]) == {"HR team", "tier2"}
    assert "HR team, tier2" in " ".join(run(capsys, "list")[1].split())
    code, text = run(capsys, "create", "--name", "eve", "--scope", "user", "--reader", "*")
    assert code == 2
    assert "'*' is no name of a reader" in text


def test_the_text_of_a_key_is_printed_once_and_by_itself_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "create", "--name", "agent-2", "--scope", "execute")
    assert code == 0
    [line] = [line for line in text.splitlines() if line.startswith("sr_")]
    assert len(line) == len("sr_") + 12 + 1 + 64
    assert "cannot be shown again" in text
    assert line not in run(capsys, "list")[1]


def test_a_user_key_is_for_the_agents_key_unless_another_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    user = made(capsys, "--name", "ana", "--scope", "user")
    assert (user["for_key"], user["clearance"]) == ("agent", "MEDIUM")
    agent = made(capsys, "--name", "langchain", "--scope", "execute")
    other = made(capsys, "--name", "ben", "--scope", "user", "--for", "langchain", "--clearance", "HIGH")
    assert (other["for_key"], other["clearance"]) == (agent["key_id"], "HIGH")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create", "--name", "agent", "--scope", "execute"], "each run makes"),
        (["create", "--name", "a/b", "--scope", "execute"], "letters, digits"),
        (["create", "--name", "taken", "--scope", "execute"], "exists already"),
        (["create", "--name", "x", "--scope", "execute", "--expires", "0"], "--expires"),
        (["create", "--name", "x", "--scope", "execute", "--expires", "99999"], "--expires"),
        (["create", "--name", "x", "--scope", "execute", "--clearance", "HIGH"], "--scope user"),
        (["create", "--name", "x", "--scope", "execute", "--for", "agent"], "scope user"),
        (["create", "--name", "x", "--scope", "user", "--for", "nobody"], "no key"),
        (["create", "--name", "x", "--scope", "user", "--for", "auditor"], "runs no tools"),
        (["rotate", "nobody"], "no key"),
        (["rotate", "ended"], "does not come back"),
        (["rotate", "taken", "--overlap", "-1"], "--overlap"),
        (["revoke", "nobody"], "no key"),
        (["revoke", "ended"], "does not come back"),
        (["revoke", "\x1b[2J"], "\\x1b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_a_next_step(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    made(capsys, "--name", "taken", "--scope", "execute")
    made(capsys, "--name", "auditor", "--scope", "audit")
    made(capsys, "--name", "ended", "--scope", "execute")
    assert run(capsys, "revoke", "ended")[0] == 0
    code, text = run(capsys, *arguments)
    assert code == 2
    assert words in text
    assert "Next:" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("rate", ["600", "0/60", "x/60", "600/0", "1/99999999999999999999", "-5/60", "600/6.5", "٣/٤"])
def test_a_rate_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str], rate: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["keys", "create", "--name", "x", "--scope", "execute", f"--rate={rate}"])
    assert ended.value.code == 2
    assert "rate" in capsys.readouterr().err


def test_an_empty_store_says_that_runs_make_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "list")
    assert (code, "No key is stored" in text) == (3, True)


def test_keys_of_a_remote_interceptor_are_not_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTINEL_URL", "https://gateway.example")
    monkeypatch.setenv("SENTINEL_API_KEY", "sr_remote_key_of_the_agent")
    code, text = run(capsys, "list")
    assert (code, "on its machine" in text) == (2, True)
