"""Attacker controls: who gets a report, and which home folder it is made in.

Wanted: values that the policy hides, out of a kept conversation, without the right to see them. They are not in the
file of conversations, so a report holds placeholders; `--reveal` goes through the gateway with the person's own
key, and what it shows is on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from labelled_tools import ROWS, labelled_gateway

from sentinel_rag.agent.conversations.store import ConversationStore, StoredConversation, StoredTurn
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome
from sentinel_rag.contracts.handles import as_text
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.surfaces.cli import export
from sentinel_rag.surfaces.cli._zones import UserSession
from sentinel_rag_testing.fake_tool_server import Answers
from sentinel_rag_testing.running_gateway import RunningGateway

pytestmark = [pytest.mark.requirement("SURF-6"), pytest.mark.requirement("TAINT-3")]


@pytest.fixture
def labelled(tmp_path: Path) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path / "state") as gateway:
        gateway.executor.on("read_alert", Answers(ROWS))
        yield gateway


@pytest.fixture
def session(labelled: RunningGateway, clean_environment: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kept conversation whose answer shows a hidden value, in its session at the gateway."""
    session_id = labelled.open_session(key=labelled.user)
    row = as_text(labelled.call("read_alert", {"alert": "a1"}, session_id=session_id).body["result"])["rows"][0]
    assert row["CommandLine"].startswith("⟦r1#")
    answer = Answer(
        outcome=Outcome.ANSWERED,
        text=f"Command line: {row['CommandLine']} ran.",
        session_id=session_id,
        evidence=(Evidence(row["CommandLine"], "c1", "read_alert", "/rows/0/CommandLine", row["CommandLine"]),),
    )
    turn = StoredTurn(1, "2026-07-01T12:00:00Z", "what ran?", "answered", answer.text, shown=answer.to_dict())
    with closing(ConversationStore(clean_environment / "agent" / "conversations.db", clock=utc_now)) as store:
        store.save(StoredConversation(session_id, turns=(turn,)), known=False)
    monkeypatch.setenv("SENTINEL_URL", labelled.url)
    monkeypatch.setenv("SENTINEL_API_KEY", labelled.key)
    return session_id


def secret(labelled: RunningGateway, session_id: str) -> str:
    [value] = labelled.resolve(session_id, "r1#/rows/0/CommandLine", key=labelled.user).body["values"].values()
    return str(value)


@pytest.mark.parametrize("form", ["md", "html", "evidence"])
def test_a_report_hides_what_the_policy_hides_until_its_person_asks(
    form: str,
    labelled: RunningGateway,
    session: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hidden = secret(labelled, session)
    export.run(None, form=form, output="-")
    told = capsys.readouterr().out
    assert hidden not in told
    assert "⟦" in told
    before = len(labelled.records())
    monkeypatch.setenv("SENTINEL_USER_KEY", labelled.user)
    export.run(None, form=form, output="-", reveal=True)
    shown = capsys.readouterr().out
    assert hidden in shown
    assert form == "evidence" or "REVEALED" in shown
    assert session in json.dumps(labelled.records()[before:])


def test_a_report_reveals_nothing_without_a_key_of_the_person(
    labelled: RunningGateway, session: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnavailableError, match="none runs that knows you"):
        export.run(session[:12], form="md", output="-", reveal=True)
    for key in (labelled.key, labelled.auditor):  # the agent's, and one that reads records alone
        monkeypatch.setenv("SENTINEL_USER_KEY", key)
        with pytest.raises(UnavailableError, match="did not take"):
            export.run(session[:12], form="md", output="-", reveal=True)
    assert capsys.readouterr().out == ""


def test_what_is_read_for_a_report_is_hidden_too_until_its_person_asks(labelled: RunningGateway, session: str) -> None:
    hidden = secret(labelled, session)
    for reveal in (False, True):
        with UserSession(labelled.url, labelled.user).looking(reveal=reveal) as look:
            told = json.dumps(look("read_alert", {"alert": "a1"}))
        assert (hidden in told, "\\u27e6" in told) == (reveal, not reveal)
