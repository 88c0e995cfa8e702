"""`sentinel database`, `audit`, `keys` and `doctor` as a person types them, with the state in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.support.postgres_server import PostgresServer
from tests.support.postgres_state import EmptyStates
from tests.support.records import call_intent

from sentinel_rag.agent.conversations.store import ConversationStore, StoredConversation, StoredTurn
from sentinel_rag.audit import CallOutcome, JournalCut, JournalReader, OutcomeStatus, PostgresPlace
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import KeyStore, Scope, open_state
from sentinel_rag.gateway.store.postgres_keys import PostgresKeys
from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.users import UserStore
from waiting import until

pytestmark = pytest.mark.requirement("OPS-5")


def fill(folder: Path, place: PostgresPlace | None, calls: int, *, first: int = 0) -> None:
    """Whole calls on record, one open session with a raised label, one key."""
    with open_state(folder, postgres=place) as state:

        async def work() -> None:
            session = await state.sessions.open("agent")
            await state.database.run(session.raise_to(TOP, audit_id="x", tool="t", now=state.sessions._clock()))
            for number in range(first, first + calls):
                await state.journal.append(call_intent(f"a-{number}"))
                await state.journal.append(CallOutcome(audit_id=f"a-{number}", status=OutcomeStatus.SUCCESS, rows=1))
            await state.key_journal.catch_up()

        state.keys.create([Scope.EXECUTE], name=f"bot-{first}")
        asyncio.run(work())


def told(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, str, str]:
    """Exit code, standard output and error of a command."""
    capsys.readouterr()
    code = main(list(command))
    said = capsys.readouterr()
    return code, said.out, said.err


def named(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the settings name it."""
    monkeypatch.setenv("SENTINEL_DATABASE_URL", place.url)
    monkeypatch.setenv("SENTINEL_DATABASE_SCHEMA", place.schema)


@pytest.fixture
def home(
    clean_environment: Path, postgres_states: EmptyStates, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, PostgresPlace]:
    """A home whose settings name an empty state in PostgreSQL."""
    place = postgres_states.place(clean_environment / "gateway")
    named(place, monkeypatch)
    return clean_environment, place


@pytest.mark.requirement("AUD-2")
def test_the_journal_is_shown_verified_exported_and_pruned(
    home: tuple[Path, PostgresPlace], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, place = home
    fill(folder / "gateway", place, 20)
    code, out, _ = told(capsys, "audit", "verify", "--json")
    found = json.loads(out)
    assert (code, found["intact"], found["unsealed"], found["first"]) == (0, True, 0, 1)
    code, out, _ = told(capsys, "audit", "show", "a-7", "--json")
    assert [json.loads(line)["record"]["kind"] for line in out.splitlines()] == ["intent", "outcome"]
    assert json.loads(out.splitlines()[0])["outcome"] == "success"
    code, out, _ = told(capsys, "audit", "show", "--tool", "query_incidents", "--last", "3", "--json")
    assert [json.loads(line)["record"]["audit_id"] for line in out.splitlines()] == ["a-17", "a-18", "a-19"]
    export = tmp_path / "all.jsonl"
    assert told(capsys, "audit", "export", str(export))[0] == 0
    code, out, _ = told(capsys, "audit", "verify", "--file", str(export), "--json")
    assert (code, json.loads(out)["last"]) == (0, found["last"])

    code, _, err = told(capsys, "audit", "rotate")
    assert code == 2
    assert "one table" in err
    code, out, _ = told(capsys, "audit", "prune", "--older-than", "0", "--json")
    pruned = json.loads(out)["pruned_through"]
    assert (code, pruned) == (0, found["last"])
    code, out, _ = told(capsys, "audit", "verify", "--json")
    left = json.loads(out)
    assert (code, left["intact"], left["pruned_through"], left["first"]) == (0, True, pruned, pruned + 1)
    with psycopg.connect(place.url, autocommit=True) as connection:  # whoever shortens it without saying so is found
        connection.execute(f"DELETE FROM {place.schema}.journal WHERE seq = {pruned + 1}")
    assert told(capsys, "audit", "verify")[0] == 1


@pytest.mark.parametrize("change", ["edit", "cut", "swap hash"])
@pytest.mark.requirement("AUD-2")
def test_a_change_behind_the_journals_back_is_found(
    home: tuple[Path, PostgresPlace], capsys: pytest.CaptureFixture[str], change: str
) -> None:
    folder, place = home
    fill(folder / "gateway", place, 5)
    statement = {
        "edit": "UPDATE {0}.journal SET record = replace(encode(record, 'escape'), 'a-3', 'b-3')::bytea WHERE seq = 8",
        "cut": "DELETE FROM {0}.journal WHERE seq > 6; DELETE FROM {0}.checkpoint WHERE seq > 0",
        "swap hash": "UPDATE {0}.journal SET hash = (SELECT hash FROM {0}.journal WHERE seq = 2) WHERE seq = 3",
    }[change]
    with psycopg.connect(place.url, autocommit=True) as connection:
        connection.execute(statement.format(place.schema))
    code, out, _ = told(capsys, "audit", "verify", "--json")
    assert (code, json.loads(out)["intact"]) == (1, False)
    if change == "cut":
        with pytest.raises(JournalCut, match="does not hold"):
            open_state(folder / "gateway", postgres=place)


def test_keys_that_a_command_makes_and_revokes_count_at_a_running_gateway(
    home: tuple[Path, PostgresPlace], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, place = home
    with open_state(folder / "gateway", postgres=place) as state:
        code, out, _ = told(capsys, "keys", "create", "--name", "soc-bot", "--scope", "execute", "--json")
        key = json.loads(out)["key"]
        assert code == 0
        until(lambda: state.keys.verify(key) is not None)
        assert told(capsys, "keys", "revoke", "soc-bot")[0] == 0
        until(lambda: state.keys.verify(key) is None)


def test_a_role_that_runs_gateways_adds_to_the_journal_and_cannot_change_it(
    postgres: PostgresServer,
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The statements and the command of docs/postgresql.md, as they stand there."""
    page = (Path(__file__).parents[2] / "docs" / "postgresql.md").read_text()
    statements = page.partition("```text\nCREATE ROLE sentinel_owner")[2].partition("```")[0]
    assert "sentinel database prepare --for sentinel_gateway\n" in page
    password, schema = secrets.token_hex(8), "sentinel"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE sentinel_owner{statements}".replace("'...'", f"'{password}'"))
    monkeypatch.setenv("SENTINEL_DATABASE_SCHEMA", schema)
    monkeypatch.setenv("SENTINEL_DATABASE_URL", postgres.url_of("sentinel_gateway", password))
    code, _, err = told(capsys, "audit", "show")
    assert code == 1
    assert password not in err

    monkeypatch.setenv("SENTINEL_DATABASE_URL", postgres.url_of("sentinel_owner", password))
    code, out, err = told(capsys, "database", "prepare", "--for", "sentinel_gateway")
    assert err == ""
    assert (code, "sentinel_gateway" in out) == (0, True)
    assert told(capsys, "database", "prepare", "--for", "nobody_there")[0] == 2
    assert told(capsys, "database", "prepare", "--for", "sentinel_gateway")[0] == 0  # again changes nothing

    folder = clean_environment / "gateway"
    place = PostgresPlace(postgres.url_of("sentinel_gateway", password), schema, folder)
    monkeypatch.setenv("SENTINEL_DATABASE_URL", place.url)
    fill(folder, place, 2)
    fill(folder, place, 2, first=2)
    assert told(capsys, "audit", "verify")[0] == 0
    with psycopg.connect(place.url, autocommit=True) as connection:
        for forbidden in ("UPDATE {0}.journal SET kind = 'x'", "DELETE FROM {0}.journal", "TRUNCATE {0}.checkpoint"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden.format(schema))
    before = JournalReader(place).last(1)
    code, _, err = told(capsys, "audit", "prune", "--older-than", "0")
    assert (code, "may not remove records" in err) == (2, True)
    assert [entry.kind for entry in JournalReader(place).last(1)] == [entry.kind for entry in before]
    assert told(capsys, "users", "list")[0] == 3  # nobody yet: the tables are there, and this role may use them
    agent = postgres.url_of("sentinel_agent", password)
    monkeypatch.setenv("SENTINEL_CHAT_DATABASE_URL", agent)
    code, out, _ = told(capsys, "chat", "--list", "--json")
    assert (code, password in out) == (0, False)
    with psycopg.connect(agent, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM sentinel_chat.conversation").fetchone() == (0,)
        for other in ("sentinel.journal", "sentinel.api_key", "sentinel_web.person"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SELECT * FROM {other}")
    code, out, _ = told(capsys, "doctor", "--json")
    [line] = [each for each in json.loads(out) if each["name"] == "database"]
    assert line["level"] == "ok"
    assert "schema sentinel, not encrypted; 0 gateway(s) connected" in line["detail"]


def test_the_state_of_a_home_moves_with_its_chain_and_its_keys(
    clean_environment: Path,
    postgres_states: EmptyStates,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gateway = clean_environment / "gateway"
    place = postgres_states.fresh(gateway)
    named(place, monkeypatch)
    with open_state(gateway) as state:
        key, info = state.keys.create([Scope.EXECUTE], name="old-bot")
        state.journal.archive.rotate()
    fill(gateway, None, 10)
    with open_state(gateway) as state:
        state.journal.archive.rotate()  # a part of it lies in segments
    fill(gateway, None, 5, first=10)
    with open_state(gateway) as state:
        stood, _ = asyncio.run(state.standing.enter("agent"))
    before = JournalReader(gateway / "journal.sqlite").verify()
    with closing(sqlite3.connect(gateway / "journal.sqlite", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE of_a_later_version (x)")
        code, _, err = told(capsys, "database", "move")
        assert (code, "does not move: of_a_later_version. Nothing was moved." in err) == (1, True)
        connection.execute("DROP TABLE of_a_later_version")
    with closing(UserStore(clean_environment / "people", clock=utc_now)) as people:
        people.add_owner()

    code, out, _ = told(capsys, "database", "move", "--json")
    moved = json.loads(out)
    assert moved["people.person"] == 1
    assert (clean_environment / "people" / "moved-to-postgresql" / "people.sqlite").exists()
    assert {path.name for path in (clean_environment / "people").iterdir()} == {"people.key", "moved-to-postgresql"}
    assert (code, moved["records"], moved["keys"], moved["sessions"]) == (0, before.records, 3, 3)
    assert {path.name for path in Path(moved["aside"]).iterdir()} >= {"journal.sqlite", "keys.sqlite", "segments"}
    assert not (gateway / "journal.sqlite").exists()
    after = JournalReader(place).verify(before.head)
    assert (after.intact, after.head) == (True, before.head)

    fill(gateway, place, 3, first=20)
    assert JournalReader(place).verify(before.head).intact
    with open_state(gateway, postgres=place) as state:
        assert state.keys.verify(key) is not None
        assert state.keys.find(info.key_id) is not None
        row = state.database.run_now(
            lambda connection: connection.execute("SELECT max(sensitivity), count(*) FROM session").fetchone()
        )
        assert row == (TOP.sensitivity.value, 4)
        stands, _ = asyncio.run(state.standing.enter("agent"))
        assert (stands.session_id, stands.context) == (stood.session_id, TOP)
    code, _, err = told(capsys, "database", "move")
    assert code == 2
    assert "no state in files" in err

    # What the first time could not move: the database of the agent's memory was away.
    remembered = clean_environment / "agent" / "conversations.db"
    with closing(ConversationStore(remembered, clock=utc_now)) as store:
        turn = StoredTurn(1, "2026-11-28T12:00:00Z", "a question", "answered")
        store.save(StoredConversation("session-0001", turns=(turn,)), known=False)
    monkeypatch.setenv("SENTINEL_CHAT_DATABASE_URL", place.url)
    code, out, err = told(capsys, "database", "move", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {"conversations.conversation": 1, "conversations.turn": 1}
    assert not remembered.exists()


def test_nothing_moves_onto_a_state_or_from_under_a_running_gateway(
    home: tuple[Path, PostgresPlace], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, place = home
    gateway = folder / "gateway"
    elsewhere = PostgresPlace(place.url, place.schema, tmp_path / "elsewhere")
    elsewhere.folder.mkdir()
    (gateway / "keys.pepper").rename(elsewhere.folder / "keys.pepper")
    fill(elsewhere.folder, elsewhere, 1)
    with open_state(gateway):
        code, _, err = told(capsys, "database", "move")
        assert code == 2
        assert "uses these files now" in err
    code, _, err = told(capsys, "database", "move")
    assert code == 2
    assert "has a state already" in err
    assert (gateway / "journal.sqlite").exists()
    with pytest.raises(UsageError, match="two journals"):
        open_state(gateway, postgres=place)


def test_without_an_address_there_is_nothing_to_prepare(
    clean_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("prepare", "move"):
        code, _, err = told(capsys, "database", action)
        assert code == 2
        assert "SENTINEL_DATABASE_URL is not set" in err


def test_a_second_gateway_needs_the_secrets_of_the_first(
    home: tuple[Path, PostgresPlace], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder, place = home
    fill(folder / "gateway", place, 1)
    other = PostgresPlace(place.url, place.schema, tmp_path / "other")
    for secret, sentence in (
        ("keys.pepper", "keys.pepper is missing"),
        ("audit-signing.key", "signed with another key"),
    ):
        with pytest.raises(Exception, match=sentence) as refused:
            open_state(other.folder, postgres=other)
        assert "Copy" in refused.value.next_step  # type: ignore[attr-defined]
        other.folder.mkdir(exist_ok=True)
        for name in (secret, secret.replace(".key", ".pub")):
            (other.folder / name).write_bytes((folder / "gateway" / name).read_bytes())
            (other.folder / name).chmod(0o600)
    fill(other.folder, other, 1, first=5)
    assert told(capsys, "audit", "verify")[0] == 0
    with closing(KeyStore(PostgresKeys(other))) as keys:
        assert {key.name for key in keys.list()} == {"bot-0", "bot-5"}
