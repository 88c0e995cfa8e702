"""The store in PostgreSQL, on a real server: the contract of all stores, and what holds for it alone."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
import psycopg
import pytest
from store_contract import MODEL, StoreContract, by_meaning, by_words, document, put
from tests.support import fork_server
from tests.support.postgres_server import PostgresServer
from word_embedder import WordEmbedder

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.stores import KnowledgeStore, StoreEntry, VectorSpace, Wanted
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore, connections
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("KNOW-4")
_NUMBERS = count(1)
Query = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def schema() -> str:
    return f"test_{next(_NUMBERS)}"


@pytest.fixture
def opened(postgres: PostgresServer, schema: str) -> Iterator[PgVectorStore]:
    with PgVectorStore(postgres.url, schema) as store:
        yield store


@pytest.fixture
def query(postgres: PostgresServer, schema: str) -> Iterator[Query]:
    """What an administrator asks the server, in this test's schema."""
    with psycopg.connect(postgres.url, autocommit=True, options=f"-c search_path={schema},public") as connection:

        def ask(text: str, *values: object) -> list[tuple[object, ...]]:
            cursor = connection.execute(text, values or None)
            return cursor.fetchall() if cursor.description else []

        yield ask


class TestPgVectorStore(StoreContract):
    @pytest.fixture
    def store(self, postgres: PostgresServer, emptied: Callable[[], str]) -> Iterator[KnowledgeStore]:
        with PgVectorStore(postgres.url, emptied()) as store:
            yield store


def test_words_are_ranked_by_bm25_to_the_digit(opened: PgVectorStore) -> None:
    """As SQLite's FTS5 has it in the local store: words of the head count twice, and pairs of words are words too."""
    heads = ["apple pie" if n % 5 == 0 else "pie" if n % 7 == 0 else "none" for n in range(95)]
    texts = ["apple " * min(n, 29) + "pie " * (n % 3) + "stone " * (40 - n) for n in range(1, 36)] + ["stone"] * 60
    pairs = [(head.split(), text.split()) for head, text in zip(heads, texts, strict=True)]
    opened.put(
        [
            StoreEntry(document(f"{n}", ""), (Chunk(0, (), 1, text, f"{head}\n\n{text}"),))
            for n, (head, text) in enumerate(zip(heads, texts, strict=True))
        ],
        None,
    )
    mean = sum(len(head) + len(text) for head, text in pairs) / len(pairs)

    def places(words: list[str], term: str) -> int:
        if " " in term:
            return int(f" {term} " in f" {' '.join(words)} ")
        return words.count(term)

    def part(term: str, at: int) -> float:
        head, text = pairs[at]
        have = sum(places(head, term) + places(text, term) > 0 for head, text in pairs)
        times = 2 * places(head, term) + places(text, term)
        length = len(head) + len(text)
        weight = math.log((len(pairs) - have + 0.5) / (have + 0.5))
        return max(weight, 1e-6) * 2.2 * times / (times + 1.2 * (0.25 + 0.75 * length / mean))

    scores = {f"{n}": sum(part(term, n) for term in ("apple", "pie", "apple pie")) for n in range(95)}
    found = opened.by_words("apple pie", Wanted(), 100)
    names = [chunk.document_id for chunk in opened.load([each.key for each in found], frozenset())]
    expected = {name: score for name, score in scores.items() if score}
    assert {name: each.score for name, each in zip(names, found, strict=True)} == pytest.approx(expected, rel=1e-9)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


def test_common_words_are_spared_only_where_rarer_ones_decide(
    opened: PgVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sentinel_rag.knowledge.stores.pgvector.reading.MOST_RANKED", 3)
    put(opened, *(document(f"{n}", f"common word {n}", Facets(severity="Low")) for n in range(20)))
    put(opened, document("rare", "rare"), document("high", "common word", Facets(severity="High")))
    high = Wanted(severities=frozenset({"High"}))
    assert by_words(opened, "rare common word", limit=1) == ["rare"]
    assert by_words(opened, "rare common word", high) == ["high"]
    assert len(by_words(opened, "rare common word", limit=22)) == 22
    assert by_words(opened, "unheard rare common", high) == ["high"]


def test_words_are_counted_down_as_documents_go(opened: PgVectorStore, query: Query) -> None:
    put(opened, *(document(f"{n}", f"apple number {n}") for n in range(6)))
    put(opened, document("3", "plum"), document("4", "plum"))
    opened.remove(Collection.PLAYBOOKS, ["5", "0"])
    counted = query("SELECT lexeme, chunks FROM word ORDER BY lexeme")
    assert counted == query("SELECT lexeme, count(*) FROM chunk, unnest(words) GROUP BY lexeme ORDER BY lexeme")
    assert query("SELECT chunks, words FROM state") == query("SELECT count(*), sum(length) FROM chunk")
    opened.remove(Collection.PLAYBOOKS, [f"{n}" for n in range(6)])
    assert query("SELECT * FROM word") == []
    assert query("SELECT chunks, words FROM state") == [(0, 0)]


def test_many_chunks_are_searched_over_an_index_and_few_that_pass_a_filter_exactly(
    postgres: PostgresServer, schema: str, query: Query
) -> None:
    random = np.random.default_rng(6)
    vectors = random.standard_normal((1_200, 64)).astype(np.float32)
    severities = ["High" if n % 40 == 0 else "Medium" if n % 3 == 0 else "Low" for n in range(1_200)]
    with PgVectorStore(postgres.url, schema, exact_below=100) as store:
        chunks = [Chunk(0, (), 1, f"text {n}", f"text {n}") for n in range(1_200)]
        store.keep_vectors(MODEL.space, {each.search_hash: vectors[n] for n, each in enumerate(chunks)})
        entries = [
            StoreEntry(document(f"{n}", "", Facets(severity=severities[n])), (each,)) for n, each in enumerate(chunks)
        ]
        store.put(entries[:90], MODEL.space)
        assert query("SELECT indexed FROM state") == [(False,)]
        store.put(entries[90:], MODEL.space)
        assert query("SELECT indexed FROM state") == [(True,)]
        assert query("SELECT count(*) FROM pg_indexes WHERE indexdef LIKE '%%hnsw%%' AND schemaname = %s", schema) == [
            (1,)
        ]
        query("ANALYZE")
        lengths = np.linalg.norm(vectors, axis=1)
        hit = dict.fromkeys(("", "Low", "Medium", "High"), 0)
        for asked in random.standard_normal((10, 64)).astype(np.float32):
            order = [int(n) for n in np.argsort(-(vectors.astype(np.float64) @ asked) / lengths)]
            for severity in hit:
                wanted = Wanted(severities=frozenset({severity} - {""}))
                expected = [n for n in order if not severity or severities[n] == severity][:10]
                found = store.by_vector(MODEL.space, asked, wanted, 10)
                assert len(found) == 10
                assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
                names = {int(chunk.document_id) for chunk in store.load([each.key for each in found], frozenset())}
                hit[severity] += len(names & set(expected))
        assert hit["High"] == 100  # 30 chunks: compared one by one
        assert min(hit.values()) >= 90
        # Another model: its vectors get an index of their own, and the old one goes with the old vectors.
        other = WordEmbedder(model="new", dimensions=16)
        assert store.re_embed(other.space, other.embed_documents, batch=600) == 1_200
        (index,) = query("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '%%hnsw%%' AND schemaname = %s", schema)
        assert "vector(16)" in str(index[0])
        assert query("SELECT count(*) FROM kept_vector") == [(1_200,)]
        assert len(store.by_vector(other.space, other.embed_query("text 7"), Wanted(), 5)) == 5


def test_where_the_index_gives_up_every_vector_is_compared(postgres: PostgresServer, schema: str, query: Query) -> None:
    """A filter lets through only what is far from the question, more than is compared one by one at once, and the
    server looks at one more vector only before it gives up."""
    random = np.random.default_rng(6)
    near = random.standard_normal(64).astype(np.float32)
    vectors = [(near if n >= 60 else -near) + random.standard_normal(64).astype(np.float32) / 4 for n in range(900)]
    with PgVectorStore(f"{postgres.url}?options=-c%20hnsw.max_scan_tuples%3D1", schema, exact_below=50) as store:
        chunks = [Chunk(0, (), 1, f"text {n}", f"text {n}") for n in range(900)]
        store.keep_vectors(MODEL.space, {each.search_hash: vectors[n] for n, each in enumerate(chunks)})
        store.put(
            [
                StoreEntry(document(f"{n}", "", Facets(severity="High" if n < 60 else "Low")), (each,))
                for n, each in enumerate(chunks)
            ],
            MODEL.space,
        )
        assert query("SELECT indexed FROM state") == [(True,)]
        query("ANALYZE")
        found = store.by_vector(MODEL.space, near, Wanted(severities=frozenset({"High"})), 20)
        best = sorted(range(60), key=lambda n: -float(vectors[n] @ near / np.linalg.norm(vectors[n])))[:20]
        assert [int(each.document_id) for each in store.load([each.key for each in found], frozenset())] == best


def test_writers_wait_for_one_another_and_nothing_is_lost(postgres: PostgresServer, schema: str, query: Query) -> None:
    """Four that open a schema which is not there yet, and put and remove documents of the same words at once."""
    start = threading.Barrier(4)

    def write(writer: int) -> None:
        start.wait()
        with PgVectorStore(postgres.url, schema) as store:
            for turn in range(5):
                put(store, *(document(f"{writer}-{n}", f"apple {turn} {n}") for n in range(4)))
                put(store, document("shared", f"apple of {writer} in {turn}"))
                store.remove(Collection.PLAYBOOKS, [f"{writer}-3"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    with PgVectorStore(postgres.url, schema) as store:
        assert store.state().documents[Collection.PLAYBOOKS] == 13
        expected = {f"{writer}-{n}" for writer in range(4) for n in range(3)} | {"shared"}
        assert set(by_words(store, "apple")) == set(by_meaning(store, "apple")) == expected
    counted = query("SELECT lexeme, chunks FROM word ORDER BY lexeme")
    assert counted == query("SELECT lexeme, count(*) FROM chunk, unnest(words) GROUP BY lexeme ORDER BY lexeme")


WRITER = """
import sys
sys.path.insert(0, {folder!r})
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
from store_contract import document
from word_embedder import WordEmbedder
with PgVectorStore(sys.argv[1], sys.argv[2]) as store:
    documents = [document(f"{{n}}", f"apple number {{n}}") for n in range(int(sys.argv[3]))]
    def tell(report):
        print(report.added, flush=True)
        sys.stdin.readline()
    ingest(store, WordEmbedder(), Collection.PLAYBOOKS, documents, complete=True, listener=tell)
"""


@pytest.mark.requirement("KNOW-2")
def test_a_killed_ingest_is_completed_by_the_next_and_nothing_is_twice(
    opened: PgVectorStore, postgres: PostgresServer, schema: str
) -> None:
    program = WRITER.format(folder=str(Path(__file__).parent))
    command = [sys.executable, "-c", program, postgres.url, schema, "200"]
    with fork_server.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            told = int(process.stdout.readline())
            process.stdin.write("\n")
            process.stdin.flush()
        process.send_signal(signal.SIGKILL)
    there = opened.state().documents[Collection.PLAYBOOKS]
    assert told <= there < 200
    assert len(by_words(opened, "apple number", limit=1_000)) == there
    finished = fork_server.run(command, input="\n" * 100, text=True, timeout=WAIT_S)
    assert int(finished.stdout.split()[-1]) == 200 - there
    assert sorted(by_words(opened, "apple number", limit=1_000)) == sorted(f"{n}" for n in range(200))


def test_a_lost_connection_is_replaced_and_a_server_that_is_away_is_told(
    opened: PgVectorStore, postgres: PostgresServer, query: Query
) -> None:
    put(opened, document("a", "apple"))
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query <> ''"
    assert query(end_all)
    assert by_words(opened, "apple") == ["a"]
    assert query(end_all)
    put(opened, document("b", "apple"))
    postgres.stop()
    try:
        with pytest.raises(UnavailableError, match="cannot be reached") as raised:
            opened.state()
    finally:
        postgres.start()
    assert "SENTINEL_KNOWLEDGE_URL" in raised.value.next_step
    assert sorted(by_meaning(opened, "apple")) == ["a", "b"]


def test_what_takes_too_long_is_interrupted_and_told(
    opened: PgVectorStore, postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(opened, document("a", "apple"))
    monkeypatch.setattr(connections, "READ_S", 0.1)
    monkeypatch.setattr(connections, "LOCK_S", 0.1)
    with psycopg.connect(postgres.url) as other:
        other.execute(f"LOCK TABLE {schema}.document")
        with pytest.raises(UnavailableError, match="took too long"):
            by_words(opened, "apple")
        with pytest.raises(UnavailableError, match="written by another process"):
            put(opened, document("b", "apple"))
        other.rollback()
    monkeypatch.undo()
    assert by_words(opened, "apple") == ["a"]


PASSWORD = "canary%2Fpw"


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://postgres:canary%2Fpw@127.0.0.1:{port}/postgres", "cannot be reached"),
        ("postgresql://postgres@127.0.0.1:{port}/postgres?password=canary%2Fpw", "cannot be reached"),
        ("postgresql://postgres:canary%2Fpw@127.0.0.1:1/postgres", "cannot be reached"),
        ("postgresql://postgres:canary%2Fpw@127.0.0.1:{port}/canary/pw", "cannot be reached"),
        ("postgresql://postgres:canary%2Fpw@127.0.0.1:{port}/postgres?canary%2Fpw=1", "no address"),
        ("postgresql://postgres:canary%zzpw@127.0.0.1:{port}/postgres", "no address"),
        ("postgresql://postgres:canary%2Fpw@127.0.0.1:canary/postgres", "cannot be reached|no address"),
    ],
)
def test_no_error_holds_the_password(postgres: PostgresServer, schema: str, url: str, said: str) -> None:
    with pytest.raises(UnavailableError, match=said) as raised:
        PgVectorStore(url.format(port=postgres.port), schema)
    told = str(raised.value) + raised.value.next_step
    assert not re.search(r"canary(/|%2F|%zz)pw", told)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_another_machine_is_reached_over_tls_unless_the_address_says_otherwise(
    postgres: PostgresServer, schema: str
) -> None:
    """The server of the tests speaks no TLS; by `hostaddr` it can be called anything."""
    elsewhere = postgres.url.replace("127.0.0.1", "db.example.com") + "?hostaddr=127.0.0.1"
    with pytest.raises(UnavailableError, match="SSL was required"):
        PgVectorStore(elsewhere, schema)
    with PgVectorStore(f"{elsewhere}&sslmode=disable", schema) as store:
        assert store.state().space is None


@pytest.fixture
def analyst(postgres: PostgresServer, query: Query, schema: str) -> Iterator[str]:
    """The address for a user who may do nothing yet."""
    query(f"CREATE ROLE {schema}_user LOGIN PASSWORD 'x'")
    query("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
    yield postgres.url_of(f"{schema}_user", "x")
    query(f"DROP OWNED BY {schema}_user")
    query(f"DROP ROLE {schema}_user")


def test_a_user_who_may_only_read_searches_and_is_told_of_more(
    opened: PgVectorStore, query: Query, schema: str, analyst: str
) -> None:
    put(opened, document("a", "apple"))
    query(f"GRANT USAGE ON SCHEMA {schema} TO {schema}_user")
    query(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {schema}_user")
    with PgVectorStore(analyst, schema) as store:
        assert by_words(store, "apple") == by_meaning(store, "apple") == ["a"]
        with pytest.raises(UnavailableError, match="refuses this to the knowledge store's user: permission denied"):
            put(store, document("b", "apple"))
        assert by_words(store, "apple") == ["a"]


def test_a_user_who_may_make_no_schema_is_told(query: Query, schema: str, analyst: str) -> None:
    with pytest.raises(UnavailableError, match="refuses this") as raised:
        PgVectorStore(analyst, schema)
    assert "SENTINEL_KNOWLEDGE_SCHEMA" in raised.value.next_step


def test_a_database_without_the_extension_is_told(
    postgres: PostgresServer, query: Query, schema: str, analyst: str
) -> None:
    query(f"CREATE DATABASE {schema}_db")
    with pytest.raises(UnavailableError, match="lacks the extension vector") as raised:
        PgVectorStore(postgres.url_of(f"{schema}_user", "x", f"{schema}_db"), schema)
    assert "CREATE EXTENSION vector" in raised.value.next_step
    query(f"DROP DATABASE {schema}_db")


def test_a_schema_of_a_newer_version_or_of_something_else_is_left_alone(
    opened: PgVectorStore, postgres: PostgresServer, query: Query, schema: str
) -> None:
    query("UPDATE schema_version SET version = 99")
    with pytest.raises(UnavailableError, match="newer version of Sentinel RAG"):
        PgVectorStore(postgres.url, schema)
    query(f"CREATE SCHEMA {schema}_other")
    query(f"CREATE TABLE {schema}_other.document (id int)")
    with pytest.raises(UnavailableError, match="tables of something else"):
        PgVectorStore(postgres.url, f"{schema}_other")
    assert query("SELECT tablename FROM pg_tables WHERE schemaname = %s", f"{schema}_other") == [("document",)]


def test_schemas_of_one_database_know_nothing_of_each_other(
    opened: PgVectorStore, postgres: PostgresServer, schema: str
) -> None:
    with PgVectorStore(postgres.url, f"{schema}_emea") as other:
        put(opened, document("a", "apple"))
        put(other, document("b", "apple"), model=None)
        assert (by_words(opened, "apple"), by_words(other, "apple")) == (["a"], ["b"])
        assert other.missing_vectors(MODEL.space, {"ab" * 32}) == {"ab" * 32}
        assert other.state().space is None


def test_vectors_that_no_chunk_has_go_after_a_day(
    opened: PgVectorStore, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sentinel_rag.knowledge.stores.pgvector.writing._TIDY_ABOVE", 3)
    put(opened, *(document(f"{n}", f"apple {n}") for n in range(5)))
    opened.keep_vectors(MODEL.space, {"ab" * 32: MODEL.embed_query("x")})
    query("UPDATE kept_vector SET kept = kept - interval '2 days' WHERE hash <> %s", bytes.fromhex("ab" * 32))
    opened.remove(Collection.PLAYBOOKS, [f"{n}" for n in range(4)])
    assert query("SELECT count(*) FROM kept_vector") == [(2,)]
    assert by_meaning(opened, "apple") == ["4"]


def test_vectors_too_large_for_an_index_are_compared_one_by_one(postgres: PostgresServer, schema: str) -> None:
    large = VectorSpace("large", 2_001)
    with PgVectorStore(postgres.url, schema, exact_below=1) as store:
        chunks = [Chunk(0, (), 1, f"text {n}", f"text {n}") for n in range(3)]
        vectors = np.eye(3, large.dimensions, dtype=np.float32)
        store.keep_vectors(large, {each.search_hash: vectors[n] for n, each in enumerate(chunks)})
        store.put([StoreEntry(document(f"{n}", ""), (each,)) for n, each in enumerate(chunks)], large)
        (best, *_) = store.by_vector(large, vectors[1], Wanted(), 3)
        assert store.load([best.key], frozenset())[0].document_id == "1"
