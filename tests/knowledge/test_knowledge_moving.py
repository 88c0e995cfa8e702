"""Moving all knowledge from one store into another: to the bit, resumable, compared, and never over something else; the
command `sentinel knowledge migrate`, and the other commands on a store in PostgreSQL."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_contract import MODEL, by_meaning, by_words, document, put
from tests.support.postgres_server import PostgresServer
from word_embedder import WordEmbedder

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Document, Facets
from sentinel_rag.knowledge.ingestion import IngestLock
from sentinel_rag.knowledge.moving import MoveReport, move
from sentinel_rag.knowledge.stores import EmbeddingMismatchError, KnowledgeStore, LocalStore, StoreEntry
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("KNOW-4")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "source.db") as opened:
        yield opened


@pytest.fixture
def target(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "target.db") as opened:
        yield opened


def everything(store: KnowledgeStore) -> object:
    """All that a store holds, vectors as bytes."""
    told = []
    space = store.state().space
    for collection in Collection:
        versions = store.versions(collection)
        entries = store.entries(collection, sorted(versions))
        hashes = {chunk.search_hash for entry in entries for chunk in entry.chunks}
        vectors = {} if space is None else store.kept_vectors(space, hashes)
        told.append((versions, entries, {each: vector.tobytes() for each, vector in vectors.items()}))
    return store.state(), told


# Whatever a document may hold: signs of every script, NUL, quotes, the code point that stands for NUL in PostgreSQL.
TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("\0\U0010ffff'\\%01 \n")), max_size=40)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
NAMES = st.lists(NAME, max_size=3, unique=True).map(tuple)
WHEN = st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC))


@st.composite
def entries(draw: st.DrawFn) -> list[StoreEntry]:
    found = []
    for name in draw(st.lists(NAME | TEXT.filter(bool), min_size=1, max_size=5, unique=True)):
        facets = Facets(
            techniques=draw(NAMES),
            tactics=draw(NAMES),
            severity=draw(TEXT),
            status=draw(TEXT),
            classification=draw(TEXT),
            time=draw(st.none() | WHEN),
            entities=draw(NAMES),
        )
        label = Label(draw(st.sampled_from(Sensitivity)), draw(st.sampled_from(Integrity)))
        made = Document(
            id=name,
            collection=draw(st.sampled_from(Collection)),
            title=draw(TEXT),
            source=draw(TEXT),
            sections=(),
            facets=facets,
            label=label,
            readers=frozenset(draw(NAMES)),
            etag=draw(TEXT),
        )
        chunks = []
        for number, text in enumerate(draw(st.lists(TEXT, max_size=3))):
            head = draw(TEXT)
            whole = draw(st.sampled_from([f"{head}\n\n{text}", head]))
            chunks.append(Chunk(number, draw(NAMES), draw(st.integers(1, 2**31 - 1)), text, whole))
        found.append(
            StoreEntry(made, tuple(chunks), draw(st.just("") | st.text("0123456789abcdef", min_size=64, max_size=64)))
        )
    return found


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(entries=entries(), seed=st.integers(0, 2**32 - 1), with_vectors=st.booleans())
def test_a_round_trip_over_postgresql_changes_no_bit(
    postgres: PostgresServer, emptied: Callable[[], str], entries: list[StoreEntry], seed: int, with_vectors: bool
) -> None:
    random = np.random.default_rng(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalStore(Path(folder) / "source.db") as source,
        PgVectorStore(postgres.url, emptied()) as between,
        LocalStore(Path(folder) / "target.db") as target,
    ):
        if with_vectors:
            for chunk in {chunk.search_hash: chunk for entry in entries for chunk in entry.chunks}.values():
                vector = random.standard_normal(64).astype(np.float32) * random.choice([0.0, 1e-20, 1.0, 1e20])
                source.keep_vectors(MODEL.space, {chunk.search_hash: vector})
        source.put(entries, MODEL.space if with_vectors else None)
        expected = everything(source)
        there = move(source, between)
        assert there.moved == there.compared == there.documents == sum(source.state().documents.values())
        assert everything(between) == expected
        move(between, target)
        assert everything(target) == everything(source) == expected


def test_what_was_moved_is_found_as_before(source: LocalStore, target: LocalStore) -> None:
    put(source, *(document(f"{n}", f"apple number {n}", readers=frozenset({"hr"} if n % 2 else "*")) for n in range(9)))
    report = move(source, target)
    assert (report.moved, report.there_before, report.chunks, report.vectors, report.compared) == (9, 0, 9, 9, 9)
    assert report.remaining_s == 0
    for leg in (by_words, by_meaning):
        assert leg(target, "apple number 4") == leg(source, "apple number 4")
    assert sorted(by_words(target, "apple")) == ["0", "2", "4", "6", "8"]


def test_an_interrupted_move_goes_on(source: LocalStore, target: LocalStore) -> None:
    put(source, *(document(f"{n}", f"apple number {n}") for n in range(100)))
    told: list[MoveReport] = []

    def interrupt(report: MoveReport) -> None:
        told.append(report)
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move(source, target, listener=interrupt)
    assert 0 < told[-1].moved < 100 == told[-1].documents
    assert told[-1].remaining_s is not None
    assert target.state().documents[Collection.PLAYBOOKS] == told[-1].moved
    report = move(source, target)
    assert (report.there_before, report.moved) == (told[-1].moved, 100 - told[-1].moved)
    assert everything(target) == everything(source)
    assert move(source, target).moved == 0


@pytest.mark.parametrize("how", ["another", "older"])
def test_a_target_with_something_else_is_left_alone_unless_told(
    source: LocalStore, target: LocalStore, how: str
) -> None:
    put(source, document("a", "apple"), document("b", "apple"))
    put(target, document("c" if how == "another" else "a", "plum"))
    before = everything(target)
    with pytest.raises(UsageError, match="holds 1 document of its own") as raised:
        move(source, target)
    assert "--beside" in raised.value.next_step
    assert everything(target) == before
    assert move(source, target, beside=True).moved == 2
    assert sorted(by_words(target, "apple")) == ["a", "b"]
    assert by_words(target, "plum") == (["c"] if how == "another" else [])


@pytest.mark.requirement("KNOW-5")
def test_vectors_of_another_model_are_not_mixed(source: LocalStore, target: LocalStore) -> None:
    put(source, document("a", "apple"))
    put(target, document("b", "apple"), model=WordEmbedder(model="another"))
    with pytest.raises(EmbeddingMismatchError, match="another"):
        move(source, target, beside=True)
    assert by_words(target, "apple") == ["b"]


def test_a_source_that_lost_a_vector_is_told(source: LocalStore, target: LocalStore) -> None:
    put(source, document("a", "apple"))
    with sqlite3.connect(source.path) as connection:
        connection.execute("DELETE FROM vector")
    connection.close()
    with pytest.raises(UnavailableError, match="lacks vectors of words") as raised:
        move(source, target)
    assert "rebuild" in raised.value.next_step
    assert target.state().documents[Collection.PLAYBOOKS] == 0


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE chunk SET body = 'apple pie' WHERE number = 0",
        "UPDATE document SET readers = '{*,hr}'",
        "UPDATE document SET label = replace(label, 'UNTRUSTED', 'TRUSTED')",
        "DELETE FROM chunk",
        "DELETE FROM document",
        "UPDATE kept_vector SET data = (data + data)",
        "DELETE FROM kept_vector",
    ],
)
def test_what_differs_in_the_end_is_told(
    source: LocalStore, postgres: PostgresServer, emptied: Callable[[], str], harm: str
) -> None:
    """The one who compares is not the one who moved: the target is changed in between."""
    schema = emptied()
    put(source, document("a", "apple"))

    def change(report: MoveReport) -> None:
        if report.moved == report.documents and not report.compared:
            with psycopg.connect(postgres.url, options=f"-c search_path={schema},public") as connection:
                assert connection.execute(harm).rowcount == 1

    with PgVectorStore(postgres.url, schema) as target:
        with pytest.raises(UnavailableError, match="differ in 1 document after moving, the first is 'a'"):
            move(source, target, listener=change)
        assert by_words(source, "apple") == ["a"]


def test_what_the_source_lost_meanwhile_does_not_stay(source: LocalStore, target: LocalStore) -> None:
    put(source, *(document(f"{n}", f"apple number {n}") for n in range(40)))

    def remove(report: MoveReport) -> None:
        if report.moved == 32:
            source.remove(Collection.PLAYBOOKS, ["0", "39"])

    report = move(source, target, listener=remove)
    assert report.compared == 38
    assert everything(target) == everything(source)


def test_nothing_is_moved_from_nothing(source: LocalStore, target: LocalStore) -> None:
    assert move(source, target) == MoveReport()


def test_the_remaining_time_is_told_from_the_rate(source: LocalStore, target: LocalStore) -> None:
    put(source, *(document(f"{n}", f"apple number {n}") for n in range(64)))
    seconds = iter(range(0, 1_000, 8))
    told: list[MoveReport] = []
    move(source, target, listener=told.append, clock=lambda: next(seconds))
    # Two steps of moving and two of comparing, 32 documents in 8 seconds each.
    assert [(each.seconds, each.remaining_s) for each in told] == [(8, 24), (16, 16), (24, 8), (32, 0)]


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
    run: Run, clean_environment: Path, folder: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_URL", postgres.url)
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_SCHEMA", "migrate_command")
    password = postgres.url.split(":")[2].split("@")[0]
    assert run("ingest", str(folder))[0] == 0
    with monkeypatch.context() as watched:
        watched.setattr("sys.stderr.isatty", lambda: True)
        code, out, err = run("migrate", "--to", "pgvector")
    assert code == 0
    assert re.search(r"\r2 of 2 moved, 0 compared, [\d,]+ a second, about [\d,]+ s left ", err)
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
    # What is known of the sources goes along, readable by its owner only.
    beside = clean_environment / "knowledge"
    assert (beside / "playbooks-pgvector.txt").read_text() == (beside / "playbooks-local.txt").read_text()
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
    assert "3 documents moved, 0 were there before" in out  # whose they are in a shared store goes along
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
    code, _, err = run("migrate", "--to", "milvus")
    assert code != 0
    assert "There is no knowledge store 'milvus'." in err
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


def test_no_ingest_runs_meanwhile(run: Run, clean_environment: Path, folder: Path) -> None:
    assert run("ingest", str(folder))[0] == 0
    with IngestLock(clean_environment / "knowledge" / "ingest.lock").hold("sentinel knowledge ingest"):
        code, _, err = run("migrate", "--to", "chroma")
    assert code != 0
    assert "Another ingest is running: sentinel knowledge ingest" in err
