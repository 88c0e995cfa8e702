"""What survives a restart: keys, sessions with their labels, the journal. And how the journal is read over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sentinel_rag.audit import Durability
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.store import Scope, SessionClosed, open_state
from sentinel_rag.gateway.store import sessions as sessions_module
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

MEDIUM = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)


def test_a_restart_lowers_no_label_and_gives_no_session_away(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    with running_gateway(shipped_policy, tmp_path, executor) as gateway:
        key = gateway.key
        assert gateway.call("query_incidents", {}, session_id="kept").status == 200
        head = len(gateway.records())
    with running_gateway(shipped_policy, tmp_path, executor) as gateway:
        assert gateway.call("list_tables", {}, session_id="kept").status == 404  # a new key of the new gateway
        assert gateway.call("list_tables", {}, session_id="kept", key=key).status == 200
        intent = gateway.records()[-2]
        assert intent["seq"] > head
        assert Label.from_dict(intent["context_before"]) == MEDIUM


@pytest.mark.anyio
async def test_a_session_forgotten_by_memory_is_read_again_with_its_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "MAX_REMEMBERED", 2)
    with open_state(tmp_path, durability=Durability.POWER) as state:
        session = await state.sessions.claim("first", "key")
        assert session is not None
        await state.database.run(session.raise_to(MEDIUM, audit_id="a", tool="t", now=utc_now()))
        held = await state.sessions.claim("held", "key")
        for number in range(5):
            await state.sessions.claim(str(number), "key")
        assert await state.sessions.claim("held", "key") is held  # a call holds it: there is one object, one label
        del session
        again = await state.sessions.claim("first", "key")
        assert again is not None
        assert again.context == MEDIUM


@pytest.mark.anyio
async def test_many_first_uses_at_once_open_one_session(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        claims = await asyncio.gather(*(state.sessions.claim("s", f"key-{number % 4}") for number in range(40)))
        owners = {session.key_id for session in claims if session is not None}
        assert len(owners) == 1
        assert len({id(session) for session in claims if session is not None}) == 1
        assert sum(session is None for session in claims) == 30
        [owner] = owners
        assert await state.sessions.close("s", owner)
        with pytest.raises(SessionClosed):
            await state.sessions.claim("s", owner)
        assert await state.sessions.claim("s", "another") is None


def test_a_state_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(UnavailableError, match=r"keys\.sqlite"):
        open_state(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "journal.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(UnavailableError, match=r"journal\.sqlite"):
        open_state(other)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UnavailableError):
        open_state(file)


def test_the_journal_is_read_in_pages_over_http(gateway: RunningGateway) -> None:
    for number in range(5):
        gateway.call("query_incidents", {"limit": number})
    everything = gateway.request("GET", "/v1/audit", key=gateway.auditor).body
    last = len(everything["records"])
    assert [record["record"]["seq"] for record in everything["records"]] == list(range(1, last + 1))
    assert everything["next_after"] == last > 10
    page = gateway.request("GET", "/v1/audit?after=3&limit=2", key=gateway.auditor).body
    assert (page["records"], page["next_after"]) == (everything["records"][3:5], 5)
    assert set(page["names"].values()) <= {"approver", "caller"}
    end = gateway.request("GET", f"/v1/audit?after={last}", key=gateway.auditor).body
    assert end == {"records": [], "next_after": last, "names": {}}
    intent = next(record for record in everything["records"] if record["record"]["kind"] == "intent")
    assert intent["outcome"] == "success"
    found = gateway.request("GET", f"/v1/audit/{intent['record']['audit_id']}", key=gateway.auditor).body
    assert [record["record"]["kind"] for record in found["records"]] == ["intent", "outcome"]
    for query in ("after=-1", "after=x", "limit=1001", "limit=1.5", "after=99999999999999999999", "after=%D9%A3"):
        assert gateway.request("GET", f"/v1/audit?{query}", key=gateway.auditor).status == 422


def test_the_state_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with open_state(folder) as state:
        state.keys.create([Scope.ADMIN])
        assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}
        assert folder.stat().st_mode & 0o077 == 0


def test_a_journal_that_cannot_be_written_runs_nothing(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    with running_gateway(shipped_policy, tmp_path, executor) as gateway:
        assert gateway.call("list_tables", {}).status == 200
        gateway.state.database.run_now(lambda connection: connection.execute("DROP TABLE open_call"))
        answer = gateway.call("list_tables", {})
        assert (answer.status, answer.body["reason"]) == (503, "overloaded")
        assert "open_call" not in answer.content.decode()
        assert len(executor.calls) == 1
