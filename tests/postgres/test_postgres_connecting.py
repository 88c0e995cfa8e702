"""The way to the database: what it says of itself, what is demanded of it, and that no secret is ever told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.support.postgres_server import PostgresServer
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import PostgresPlace, StateAway
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.gateway.store import open_state
from sentinel_rag.settings import load_settings
from sentinel_rag.storage.postgres.connecting import Connector
from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("OPS-5")
CANARY = "canary-pass-word"


@pytest.mark.parametrize(
    ("host", "demanded"),
    [
        ("127.0.0.1", None),
        ("localhost", None),
        ("db.example.com", "require"),
        ("localhost,db.example.com", "require"),
        ("db.example.com?sslmode=verify-full", "verify-full"),
        ("db.example.com?sslmode=disable", "disable"),
        ("localhost?hostaddr=10.0.0.7", "require"),
        ("localhost?hostaddr=127.0.0.1", None),
    ],
)
def test_tls_is_demanded_of_other_machines_unless_the_address_says_otherwise(
    tmp_path: Path, host: str, demanded: str | None
) -> None:
    name, _, query = host.partition("?")
    hosts = ",".join(f"{each}:5432" for each in name.split(","))
    connector = Connector(PostgresPlace(f"postgresql://u:{CANARY}@{hosts}/db?{query}", "s", tmp_path))
    parts = conninfo_to_dict(connector.conninfo)
    assert parts.get("sslmode") == demanded
    assert parts["target_session_attrs"] == "read-write"
    assert CANARY not in repr(connector.place)


def test_who_cannot_enter_is_told_why_and_no_password(
    postgres: PostgresServer, tmp_path: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    wrong = postgres.url_of("postgres", CANARY)
    with pytest.raises(StateAway) as refused:
        open_state(tmp_path, postgres=PostgresPlace(wrong, "s", tmp_path))
    assert CANARY not in f"{refused.value}{refused.value.next_step}"
    assert "SENTINEL_DATABASE_URL" in refused.value.next_step

    for url in (wrong, f"postgresql://u:{CANARY}@127.0.0.1:1/db"):
        monkeypatch.setenv("SENTINEL_DATABASE_URL", url)
        assert CANARY not in repr(load_settings())
        for command in (["doctor", "--json"], ["audit", "verify"], ["keys", "list"], ["database", "prepare"]):
            assert main(command) == 1
            said = capsys.readouterr()
            assert CANARY not in said.out + said.err
            if command[0] == "doctor":
                [line] = [each for each in json.loads(said.out) if each["name"] == "database"]
                assert (line["level"], "cannot be reached" in line["detail"]) == ("fail", True)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "[::1]:1", "no-such-host.invalid:1", "%2Fno%2Fsuch%2Ffolder"])
def test_where_a_server_is_stays_unsaid_and_its_setting_is_named(tmp_path: Path, host: str) -> None:
    """The sentence stands under answers, too: the agent's memory says so when its database is away."""
    place = PostgresPlace(f"postgresql://u:{CANARY}@{host}/db", "s", tmp_path)
    connector = Connector(place, setting="SENTINEL_CHAT_DATABASE_URL", holds="these records")
    with pytest.raises(StateAway, match="The database of these records cannot be reached: ") as told:
        connector.connect()
    said = f"{told.value} {told.value.next_step}"
    assert "SENTINEL_CHAT_DATABASE_URL" in said
    assert "SENTINEL_DATABASE_URL" not in said
    for part in (CANARY, "127.0.0.1", "::1", "no-such-host", "/no/such"):
        assert part not in said
    with pytest.raises(UnavailableError, match="SENTINEL_CHAT_DATABASE_URL is no address"):
        Connector(PostgresPlace("postgresql://h/db?nonsense=1", "s", tmp_path), setting="SENTINEL_CHAT_DATABASE_URL")


def test_an_address_that_is_none_is_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as refused:
        Connector(PostgresPlace(f"postgresql://u:{CANARY}@host/db?nonsense={CANARY}", "s", tmp_path))
    assert CANARY not in f"{refused.value}{refused.value.next_step}"


def test_without_its_library_the_command_says_how_to_install_it(
    postgres_states: EmptyStates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("sentinel_rag.storage.postgres", "psycopg"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "sentinel_rag.gateway.store.postgres_keys", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SentinelError, match="needs the package psycopg") as refused:
        open_state(tmp_path, postgres=postgres_states.fresh(tmp_path))
    assert "sentinel-rag[postgres]" in refused.value.next_step
