"""The Chroma store: the contract of all stores, and what holds for its index and its two collections.

Who may open it and how it survives a kill is told by `test_store_chroma_processes.py`.
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from store_contract import EVERYONE, MODEL, StoreContract, by_meaning, by_words, document, put
from tests.support.chroma_installation import importable_chroma
from word_embedder import WordEmbedder

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.stores import EmbeddingMismatchError, KnowledgeStore, StoreEntry, Wanted
from sentinel_rag_chroma.store import ChromaStore

pytestmark = pytest.mark.requirement("KNOW-4")


@pytest.fixture(autouse=True, scope="module")
def chromadb_installed() -> Iterator[None]:
    with importable_chroma():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


@pytest.fixture
def asked_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma is asked however few chunks there are."""
    monkeypatch.setattr("sentinel_rag_chroma.search.EXACT", 0)


class TestChromaStore(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[KnowledgeStore]:
        with ChromaStore(path) as opened:
            yield opened


@pytest.mark.usefixtures("asked_of_the_graph")
class TestChromaGraph(StoreContract):
    """Once more where a small store, too, asks Chroma."""

    @pytest.fixture
    def store(self, path: Path) -> Iterator[KnowledgeStore]:
        with ChromaStore(path) as opened:
            yield opened


@contextmanager
def collections_of(path: Path) -> Iterator[dict[str, Any]]:
    """The collections of a store that is closed, as any Chroma client sees them."""
    import chromadb

    with chromadb.PersistentClient(path / "index") as client:
        names = [each.name for each in client.list_collections()]
        yield {name: client.get_collection(name, embedding_function=None) for name in names}


@pytest.mark.usefixtures("asked_of_the_graph")
def test_any_chroma_client_finds_texts_and_filters_in_the_two_collections(path: Path) -> None:
    facets = Facets(
        techniques=("T1566.001",),
        tactics=("InitialAccess",),
        severity="High",
        time=datetime(2026, 11, 1, tzinfo=UTC),
    )
    with ChromaStore(path) as store:
        put(
            store,
            document("7", "apple", facets, collection=Collection.INCIDENTS, readers=frozenset({"tier2", "hr"})),
            document("8", "apple", collection=Collection.INCIDENTS),
            document("book", "stone"),
        )
    with collections_of(path) as seen:
        assert seen.keys() == {"sentinel_incidents", "playbooks"}
        incidents = seen["sentinel_incidents"]
        for where in (
            {"techniques": {"$contains": "T1566"}},
            {"techniques": {"$contains": "T1566.001"}},
            {"tactics": {"$contains": "InitialAccess"}},
            {"readers": {"$contains": "hr"}},
            {"severity": "High"},
            {"time": {"$gte": facets.time.timestamp() if facets.time else 0.0}},
        ):
            query = incidents.query(query_embeddings=[MODEL.embed_query("apple")], n_results=5, where=where)
            assert query["metadatas"][0][0]["document"] == "7"
            assert len(query["ids"][0]) == 1, where
        assert incidents.get(where={"readers": {"$contains": "*"}})["metadatas"][0]["title"] == "Title 8"
        assert seen["playbooks"].get()["documents"] == ["stone"]


def test_it_is_there_after_it_was_closed_and_is_its_owner_s_only(path: Path) -> None:
    with ChromaStore(path) as store:
        put(store, document("a", "apple pie"))
    store.close()  # once more is no error
    with ChromaStore(path) as store:
        assert by_words(store, "apple") == by_meaning(store, "apple") == ["a"]
    for each in (path, *path.iterdir()):
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0, each.name


@pytest.mark.usefixtures("asked_of_the_graph")
@pytest.mark.parametrize("harm", ["lost", "rubbish", "cut", "collection", "records", "model"])
def test_the_index_is_made_again_from_the_rows(path: Path, harm: str) -> None:
    """Lost, overwritten, or changed by another Chroma client: opening makes it what the rows say."""
    with ChromaStore(path) as store:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(6)))
        put(store, document("2", "plum number 2"))
    if harm == "lost":
        shutil.rmtree(path / "index")
    elif harm in ("rubbish", "cut"):
        file = path / "index" / "chroma.sqlite3"
        file.write_bytes(b"no database at all " * 500 if harm == "rubbish" else file.read_bytes()[:5_000])
    else:
        with collections_of(path) as seen:
            books = seen["playbooks"]
            if harm == "records":
                books.delete(ids=books.get(where={"document": "3"})["ids"])
                books.add(ids=["77-aaaaaaaa-bbbbbbbb"], embeddings=[MODEL.embed_query("apple number 4")])
            elif harm == "model":
                books.modify(metadata={"model": "another", "dimensions": 64})
            else:
                books._client.delete_collection(books.name)
    with ChromaStore(path) as store:
        for n in range(6):
            fruit = "plum" if n == 2 else "apple"
            assert by_meaning(store, f"{fruit} number {n}", limit=1) == [f"{n}"]
    with collections_of(path) as seen:
        assert seen.keys() == {"sentinel_incidents", "playbooks"}
        assert seen["playbooks"].count() == 6


@pytest.mark.usefixtures("asked_of_the_graph")
def test_a_graph_that_lost_vectors_is_noticed_and_made_again(path: Path) -> None:
    """A kill while Chroma writes its graph can leave it so; Chroma itself goes on without them and says nothing."""
    count = 1_050  # from 1,000 on, Chroma writes its graph to files
    with ChromaStore(path) as store:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(count)))
    (told,) = (path / "index").glob("*/index_metadata.pickle")
    told.unlink()
    with ChromaStore(path) as store:
        assert [by_meaning(store, f"number {n}", limit=1) for n in (0, 500, 1_049)] == [["0"], ["500"], ["1049"]]
        collections = store._collections
        assert len(collections.vectors(Collection.PLAYBOOKS, sorted(collections.ids(Collection.PLAYBOOKS)))) == count


@pytest.mark.usefixtures("asked_of_the_graph")
def test_an_earlier_copy_of_the_rows_is_the_truth_for_a_later_index(path: Path, tmp_path: Path) -> None:
    """A backup of the one file is brought back: what the index has of later versions is not found."""
    with ChromaStore(path) as store:
        put(store, document("a", "apple", readers=frozenset({"hr"})), document("b", "stone"))
    shutil.copyfile(path / "knowledge.db", tmp_path / "backup.db")
    with ChromaStore(path) as store:
        put(store, document("a", "apple"), document("c", "apple pie"))
        store.remove(Collection.PLAYBOOKS, ["b"])
    shutil.copyfile(tmp_path / "backup.db", path / "knowledge.db")
    with ChromaStore(path) as store:
        assert by_meaning(store, "apple") == ["b"]
        assert set(by_meaning(store, "apple", Wanted(readers=frozenset({"hr"})))) == {"a", "b"}


@pytest.mark.usefixtures("asked_of_the_graph")
def test_where_chroma_answers_with_less_than_there_is_every_vector_is_compared(path: Path) -> None:
    with ChromaStore(path) as store:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(8)))
    with ChromaStore(path) as store:
        import chromadb

        # A second client of this process works on the same open system, as nobody else can.
        settings = store._collections._client.get_settings()  # type: ignore[attr-defined]
        with chromadb.PersistentClient(path / "index", settings=settings) as client:
            books = client.get_collection("playbooks", embedding_function=None)
            books.delete(ids=books.get(include=[])["ids"][:5])
        assert sorted(by_meaning(store, "apple")) == [f"{n}" for n in range(8)]


@pytest.mark.usefixtures("asked_of_the_graph")
def test_a_change_that_chroma_refuses_did_not_happen(path: Path) -> None:
    with ChromaStore(path) as store:
        put(store, document("a", "apple"))
        client = store._collections._client  # type: ignore[attr-defined]
        client.delete_collection("playbooks")
        with pytest.raises(UnavailableError, match="Chroma failed: NotFoundError") as raised:
            put(store, document("a", "plum"), document("b", "apple"))
        assert raised.value.next_step
        assert by_words(store, "apple plum") == ["a"]
        with pytest.raises(UnavailableError):
            by_meaning(store, "apple")
        assert store.remove(Collection.PLAYBOOKS, ["never there"]) == 0
    with ChromaStore(path) as store:
        put(store, document("b", "apple"))
        assert sorted(by_meaning(store, "apple")) == ["a", "b"]


@pytest.mark.usefixtures("asked_of_the_graph")
def test_new_vectors_that_chroma_does_not_take_over_are_found_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows have them and are compared until the store is opened again."""
    new = WordEmbedder(model="new", dimensions=16)

    def nearest(store: KnowledgeStore, query: str) -> str:
        (found,) = store.by_vector(new.space, new.embed_query(query), EVERYONE, 1)
        return store.load([found.key], frozenset())[0].document_id

    def fails(name: str) -> None:
        raise OSError(28, f"no space to drop {name}")

    with ChromaStore(path) as store:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(5)))
        monkeypatch.setattr(store._collections._client, "delete_collection", fails)
        assert store.re_embed(new.space, new.embed_documents) == 5
        put(store, document("5", "apple number 5"), model=new)
        assert [nearest(store, f"Title {n} About {n} apple number {n}") for n in range(6)] == [*"012345"]
    with ChromaStore(path) as store:
        assert [nearest(store, f"Title {n} About {n} apple number {n}") for n in range(6)] == [*"012345"]
        assert len(store._collections.ids(Collection.PLAYBOOKS)) == 6


def test_a_change_that_was_taken_back_leaves_no_record(path: Path) -> None:
    with ChromaStore(path) as store:
        put(store, document("a", "apple"))
        good, lacking = document("b", "stone"), document("c", "plum")
        store.keep_vectors(MODEL.space, {each.search_hash: MODEL.embed_query("x") for each in chunks_of(good)})
        incident = document("i", "stone", collection=Collection.INCIDENTS)
        for _ in range(2):
            with pytest.raises(KeyError):
                store.put([StoreEntry(each, chunks_of(each)) for each in (good, incident, lacking)], MODEL.space)
        put(store, good)
    with collections_of(path) as seen:
        assert sorted(each["document"] for each in seen["playbooks"].get()["metadatas"]) == ["a", "b"]
        assert seen["sentinel_incidents"].count() == 0


@pytest.mark.usefixtures("asked_of_the_graph")
def test_changes_do_not_let_files_grow_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentinel_rag_chroma.index._FORGET_ABOVE", 8)
    with ChromaStore(path) as store:
        for turn in range(12):
            put(store, *(document(f"{n}", f"apple number {n} of turn {turn}") for n in range(10)))
            assert by_meaning(store, f"apple number 7 of turn {turn}", limit=1) == ["7"]
    with collections_of(path) as seen:
        assert seen["playbooks"].count() == 10
    with sqlite3.connect(path / "knowledge.db") as rows:
        assert rows.execute("SELECT count(*) FROM vector").fetchone()[0] <= 30
    rows.close()


@pytest.mark.usefixtures("asked_of_the_graph")
def test_threads_search_while_one_puts_and_one_embeds_anew(path: Path) -> None:
    failures: list[BaseException] = []
    models = (WordEmbedder(), WordEmbedder(model="new", dimensions=16))

    def search(store: KnowledgeStore) -> None:
        try:
            for _ in range(30):
                assert "a" in by_words(store, "apple")
                space = store.state().space  # once: it may be another one a moment later
                model = next(each for each in models if each.space == space)
                try:
                    found = store.by_vector(model.space, model.embed_query("Title a About a apple"), EVERYONE, 1_000)
                except EmbeddingMismatchError:  # all was embedded anew since the store told its model
                    continue
                assert "a" in [chunk.document_id for chunk in store.load([each.key for each in found], frozenset())]
        except BaseException as error:
            failures.append(error)

    with ChromaStore(path) as store:
        put(store, document("a", "apple"))
        threads = [threading.Thread(target=search, args=(store,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for turn in range(6):
            model = models[turn % 2]
            put(store, *(document(f"n{turn}-{n}", "stone") for n in range(3)), model=model)
            other = models[1 - turn % 2]
            store.re_embed(other.space, other.embed_documents)
        for thread in threads:
            thread.join()
    assert failures == []
