"""`sentinel audit` as a person types it, over a home folder with a real journal."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import call_intent

from sentinel_rag.audit import CallIntended, CallOutcome, CallRefused, OutcomeStatus
from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.store import open_state
from sentinel_rag.surfaces.cli import main


def intent(audit_id: str, tool: str) -> CallIntended:
    return call_intent(
        audit_id, tool=tool, requested_tool=f"old_{tool}", session_id="first", arguments={"text": "\x1b[31m"}
    )


def refusal(audit_id: str, reason: Reason) -> CallRefused:
    return CallRefused(
        audit_id=audit_id,
        key_id="key",
        session_id="second",
        tool="file_read",
        requested_tool="file_read",
        arguments=None,
        arguments_sha256=None,
        reason=reason,
        http_status=403,
        rule_id="confidential",
        label=TOP,
        context=BOTTOM,
        policy_sha256="00",
    )


@pytest.fixture
def home(clean_environment: Path) -> Path:
    """Six records: two calls, and refusals of two kinds."""
    with open_state(clean_environment / "gateway") as state:

        async def fill() -> None:
            await state.journal.append(intent("a-1", "query_incidents"))
            await state.journal.append(CallOutcome(audit_id="a-1", status=OutcomeStatus.SUCCESS, rows=1))
            await state.journal.append(intent("a-2", "query_alerts"))
            await state.journal.append(CallOutcome(audit_id="a-2", status=OutcomeStatus.ERROR))
            await state.journal.append(refusal("a-3", Reason.RULE_DENIES))
            await state.journal.append(refusal("a-4", Reason.UNKNOWN_TOOL))

        asyncio.run(fill())
    return clean_environment


class Terminal:
    """Runs a command line and keeps what it printed."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self._captured = captured

    def run(self, *words: str, code: int = 0) -> str:
        self._captured.readouterr()
        found = main(["audit", *words])
        printed = self._captured.readouterr()
        assert found == code, printed
        return printed.out + printed.err

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code).splitlines()[0])


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


def seqs(text: str) -> list[int]:
    return [int(line.split()[0]) for line in text.splitlines()]


def test_show_finds_records_by_what_they_are_about(home: Path, terminal: Terminal) -> None:
    assert seqs(terminal.run("show")) == [1, 2, 3, 4, 5, 6]
    assert seqs(terminal.run("show", "--last", "2")) == [5, 6]
    assert seqs(terminal.run("show", "--tool", "query_alerts")) == [3]
    assert seqs(terminal.run("show", "--tool", "old_query_alerts")) == [3]
    assert seqs(terminal.run("show", "--session", "first")) == [1, 3]
    assert seqs(terminal.run("show", "--decision", "deny")) == [5, 6]
    assert seqs(terminal.run("show", "--decision", "allow", "--last", "1")) == [3]
    assert seqs(terminal.run("show", "--reason", "unknown_tool")) == [6]
    assert seqs(terminal.run("show", "--since", "1h")) == [1, 2, 3, 4, 5, 6]
    assert seqs(terminal.run("show", "--since", "2026-01-01T00:00:00", "--last", "1")) == [6]
    assert terminal.run("show", "--since", "2999-01-01T02:00+02:00", code=3).startswith("No record is like that.\n")
    assert terminal.run("show", "--session", "third", code=3).startswith("No record is like that.\n")
    whole = terminal.run("show", "a-1")
    assert '"outcome": "success"' in whole
    assert "\x1b" not in whole
    assert terminal.json("show", "--tool", "query_incidents")["record"]["audit_id"] == "a-1"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "--since", "yesterday"], "'yesterday' is no time"),
        (["show", "--since", "2026-13-01T00:00:00Z"], "is no time"),
        (["show", "--since", "999999d"], "is no time"),
        (["show", "--last", "0"], "outside 1 to 1000"),
        (["show", "a-1", "--tool", "x"], "nothing to filter"),
        (["export", "x.jsonl", "--since", "2026-01-02", "--until", "2026-01-01"], "not before"),
        (["prune", "--older-than", "-1"], "outside 0"),
        (["prune", "--older-than", "nan"], "outside 0"),
        (["verify", "--file", "nowhere.jsonl"], "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_answered_with_a_sentence(
    home: Path, terminal: Terminal, words: list[str], sentence: str
) -> None:
    said = terminal.run(*words, code=2)
    assert sentence in said
    assert "Next:" in said


@pytest.mark.requirement("AUD-2")
def test_verify_says_how_far_the_signatures_reach_and_names_a_broken_record(home: Path, terminal: Terminal) -> None:
    said = terminal.run("verify")
    assert "6 records (1 to 6) hold" in said
    assert "Sealed up to record 6; none after it" in said
    assert "No anchor was checked" in said
    found = terminal.json("verify")
    assert (found["intact"], found["sealed"], found["unsealed"], found["pruned_through"]) == (True, 6, 0, 0)
    with closing(sqlite3.connect(home / "gateway" / "journal.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE journal SET record = CAST(replace(record, 'deny', 'allow') AS BLOB) WHERE seq = 5")
    said = terminal.run("verify", code=1)
    assert "does not hold at record 5: the record's bytes do not have its hash" in said
    assert "4 records (1 to 4) hold" in said
    assert terminal.json("verify", code=1)["broken_at"] == 5


@pytest.mark.requirement("AUD-2")
def test_an_export_and_the_key_are_all_that_another_person_needs(
    home: Path, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, file = tmp_path / "key.pem", tmp_path / "records.jsonl"
    printed = terminal.run("key")
    key.write_text(printed.partition("Fingerprint")[0])
    assert terminal.json("key")["fingerprint"] in printed
    assert "sealed up to record 6" in terminal.run("export", str(file))
    assert file.stat().st_mode & 0o077 == 0
    assert "is there already" in terminal.run("export", str(file), code=2)
    assert "No record" in terminal.run("export", str(tmp_path / "none.jsonl"), "--since", "2999-01-01", code=3)
    monkeypatch.setenv("SENTINEL_HOME", str(tmp_path / "elsewhere"))
    assert "no signing key yet" in terminal.run("verify", "--file", str(file), code=1)
    said = terminal.run("verify", "--file", str(file), "--public-key", str(key))
    assert "Sealed up to record 6" in said
    file.write_bytes(file.read_bytes().replace(b'"deny"', b'"allow"'))
    assert terminal.json("verify", "--file", str(file), "--public-key", str(key), code=1)["broken_at"] == 6
    assert "cannot be written" in terminal.run("export", str(tmp_path / "no" / "folder.jsonl"), code=1)


def test_rotate_and_prune_keep_the_journal_provable(home: Path, terminal: Terminal) -> None:
    moved = terminal.json("rotate")
    assert (moved["first"], moved["last"]) == (1, 6)
    assert seqs(terminal.run("show", "--tool", "query_alerts")) == [3]
    assert "No segment is that old" in terminal.run("prune", "--older-than", "30", code=3)
    assert terminal.json("prune", "--older-than", "0") == {"segments": 1, "pruned_through": 6}
    said = terminal.run("verify")
    assert "2 records (7 to 8) hold" in said
    assert "Records 1 to 6 were pruned" in said
    assert terminal.run("show", "a-1", code=3).startswith("No record has this id.\n")


def test_without_a_journal_each_command_says_so(clean_environment: Path, terminal: Terminal, tmp_path: Path) -> None:
    for words in (
        ["show"],
        ["verify"],
        ["export", str(tmp_path / "x.jsonl")],
        ["rotate"],
        ["prune", "--older-than", "1"],
    ):
        said = terminal.run(*words, code=1)
        assert "There is no audit journal yet" in said
        assert "Next:" in said
    assert "no signing key yet" in terminal.run("key", code=1)
    assert not (clean_environment / "gateway").exists()
    assert not (tmp_path / "x.jsonl").exists()


def test_the_anchor_of_the_settings_is_checked_too(
    clean_environment: Path, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = tmp_path / "anchor.jsonl"
    with open_state(clean_environment / "gateway", anchor=anchor) as state:
        state.journal.append_now(refusal("a", Reason.RULE_DENIES))
    monkeypatch.setenv("SENTINEL_AUDIT_ANCHOR", str(anchor))
    assert "The anchor proves records up to 1." in terminal.run("verify")
    anchor.unlink()
    assert "anchor.jsonl is gone" in terminal.run("verify", code=1)
