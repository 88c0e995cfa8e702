"""`sentinel knowledge migrate`, and the other commands on a store in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.testing.postgres_server import PostgresServer

pytestmark = pytest.mark.requirement("KNOW-4")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(clean_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """On a home of its own, by words only: this is not about the model."""
    monkeypatch.setenv("SENTINEL_EMBEDDINGS", "none")

    def command(*words: str) -> tuple[int, str, str]:
        code = main(["knowledge", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "books"
    made.mkdir()
    (made / "mail.md").write_text("# Mail\n\n## Contain\n\nPurge the mail.\n")
    (made / "shell.md").write_text("# Shell\n\nTake the server off the network.\n")
    return made


def test_playbooks_move_to_postgresql_and_back(
    run: Run, folder: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_URL", postgres.url)
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_SCHEMA", "migrate_command")
    password = postgres.url.split(":")[2].split("@")[0]
    assert run("ingest", str(folder))[0] == 0
    code, out, err = run("migrate", "--to", "pgvector")
    assert code == 0
    assert "2 documents moved, 0 were there before; 2 chunks, 0 vectors. All compared: equal." in out
    assert f"to    PostgreSQL, database postgres at 127.0.0.1:{postgres.port}, schema migrate_command\n" in out
    assert "The store in use is still local. To use the other: SENTINEL_KNOWLEDGE_STORE=pgvector" in out
    code, out, err = run("migrate", "--to", "pgvector", "--json")
    assert json.loads(out) == {
        "from": "local",
        "to": "pgvector",
        "moved": 0,
        "there_before": 2,
        "chunks": 0,
        "vectors": 0,
        "compared": 2,
    }
    # From here on the store in PostgreSQL is the one in use.
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_STORE", "pgvector")
    code, out, err = run("status")
    assert "playbooks            2 documents, 2 chunks" in out
    assert "schema migrate_command" in out
    assert password not in out + err
    code, out, err = run("search", "purge", "mails")
    assert out.startswith("[1] mail.md > Mail > Contain")
    (folder / "web.md").write_text("# Web\n\nLook for a shell.\n")
    assert run("ingest", str(folder))[1].startswith("Playbooks of ")
    code, out, err = run("migrate", "--to", "local")
    assert code == 0
    assert "1 document moved, 2 were there before" in out
    assert "The store in use is still pgvector." in out
    monkeypatch.delenv("SENTINEL_KNOWLEDGE_STORE")
    assert "playbooks            3 documents" in run("status")[1]


def test_what_cannot_be_moved_is_told(
    run: Run, folder: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run("migrate", "--to", "local")
    assert code != 0
    assert "Both are the store local." in err
    code, _, err = run("migrate", "--to", "pgvector")
    assert code != 0
    assert "SENTINEL_KNOWLEDGE_URL is not set" in err
    with pytest.raises(SystemExit):
        run("migrate", "--to", "milvus")
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_URL", postgres.url)
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_SCHEMA", "migrate_refused")
    code, out, _ = run("migrate", "--from", "local", "--to", "pgvector")
    assert code == 3
    assert "There was nothing to move." in out
    assert run("ingest", str(folder))[0] == 0
    assert run("migrate", "--to", "pgvector")[0] == 0
    (folder / "mail.md").write_text("# Mail\n\n## Contain\n\nPurge all of the mail.\n")
    assert run("ingest", str(folder))[0] == 0
    code, out, err = run("migrate", "--to", "pgvector")
    assert code != 0
    assert "holds 1 document of its own, by name or by version." in err
    assert "--beside" in err
    code, out, err = run("migrate", "--to", "pgvector", "--beside")
    assert code == 0
    assert "1 document moved, 1 were there before" in out
