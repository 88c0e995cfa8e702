"""The local store: the contract of all stores, and what holds for its files, processes and crashes."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_contract import MODEL, StoreContract, by_meaning, by_words, document, put
from tests.support import fork_server

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore, Wanted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge" / "store.db"


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, path: Path) -> Iterator[KnowledgeStore]:
        with LocalStore(path) as opened:
            yield opened


def arrays(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.glob("*.vectors-*"))


def test_it_is_there_after_it_was_closed_and_is_its_owner_s_only(path: Path) -> None:
    with LocalStore(path) as store:
        put(store, document("a", "apple pie"))
    with LocalStore(path) as store:
        assert by_words(store, "apple") == by_meaning(store, "apple") == ["a"]
        assert store.missing_vectors(MODEL.space, {"ab" * 32})
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0, each.name


@pytest.mark.parametrize("harm", ["lost", "cut", "tail"])
def test_the_array_is_made_again_from_the_file(path: Path, harm: str) -> None:
    with LocalStore(path) as store:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(5)))
    (array,) = path.parent.glob("*.vectors-*")
    content = array.read_bytes()
    if harm == "lost":
        array.unlink()
    else:
        array.write_bytes(content[:100] if harm == "cut" else content + b"left by a crash")
    with LocalStore(path) as store:
        put(store, document("5", "apple number 5"))
        assert [by_meaning(store, f"number {n}", limit=1) for n in range(6)] == [[f"{n}"] for n in range(6)]


def test_the_one_file_is_all_that_a_copy_needs(path: Path, tmp_path: Path) -> None:
    with LocalStore(path) as store:
        put(store, document("a", "apple"), document("b", "stone"))
    copied = tmp_path / "copy.db"
    shutil.copyfile(path, copied)
    with LocalStore(copied) as store:
        assert by_meaning(store, "stone", limit=1) == ["b"]


def test_an_array_that_vanishes_under_a_reader_is_no_error(path: Path) -> None:
    with LocalStore(path) as store:
        put(store, document("a", "apple"), document("b", "stone"))
        for each in path.parent.glob("*.vectors-*"):
            each.unlink()
        with LocalStore(path) as second:
            assert by_meaning(second, "stone", limit=1) == ["b"]
        assert by_meaning(store, "stone", limit=1) == ["b"]


def test_changes_do_not_let_the_array_grow_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentinel_rag.knowledge.stores.local._PACK_ABOVE", 8)
    with LocalStore(path) as store, LocalStore(path) as reader:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(10)))
        for turn in range(12):
            put(store, *(document(f"{n}", f"apple number {n} of turn {turn}") for n in range(10)))
            assert by_meaning(reader, f"apple number 7 of turn {turn}", limit=1) == ["7"]
        assert max(each.stat().st_size for each in path.parent.glob("*.vectors-*")) < 10 * 5 * 64 * 4
        assert len(arrays(path)) <= 2
        assert store.state().chunks[Collection.PLAYBOOKS] == 10


def test_common_words_are_spared_only_where_rarer_ones_decide(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a large store the common words of a question are not ranked by; where the rare ones find too little, or a
    filter lets too little of it through, they are."""
    monkeypatch.setattr("sentinel_rag.knowledge.stores.rows._RANKED_ROWS", 3)
    with LocalStore(path) as store:
        put(store, *(document(f"{n}", f"common word {n}", Facets(severity="Low")) for n in range(20)))
        put(store, document("rare", "rare"), document("high", "common word", Facets(severity="High")))
        high = Wanted(severities=frozenset({"High"}))
        assert by_words(store, "rare common word", limit=1) == ["rare"]
        assert by_words(store, "rare common word", high) == ["high"]
        assert len(by_words(store, "rare common word", limit=22)) == 22
        assert by_words(store, "unheard rare common", high) == ["high"]
        put(store, document("more", "rare"))
        assert sorted(by_words(store, "rare common word", limit=2)) == ["more", "rare"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"plain text, and no database at all" * 40, "is no knowledge store, or is damaged"), (b"", "")],
)
def test_a_file_that_is_no_store_is_told(path: Path, content: bytes, said: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    if not said:
        LocalStore(path).close()
        return
    with pytest.raises(UnavailableError, match=said) as raised:
        LocalStore(path)
    assert raised.value.next_step
    assert path.read_bytes() == content


def test_a_store_of_a_newer_version_is_left_alone(path: Path) -> None:
    LocalStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(UnavailableError, match="newer version of Sentinel RAG"):
        LocalStore(path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="cannot be opened"):
        LocalStore(tmp_path / "file" / "store.db")


def test_threads_share_a_store(path: Path) -> None:
    failures: list[BaseException] = []

    def search(store: LocalStore) -> None:
        try:
            for _ in range(20):
                assert "a" in by_words(store, "apple")
                assert "a" in by_meaning(store, "apple")
        except BaseException as error:
            failures.append(error)

    with LocalStore(path) as store:
        put(store, document("a", "apple"))
        threads = [threading.Thread(target=search, args=(store,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(20):
            put(store, document(f"n{number}", "stone"))
        for thread in threads:
            thread.join()
    assert failures == []


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.stores import LocalStore
from store_contract import document
from word_embedder import WordEmbedder
with LocalStore(Path(sys.argv[1])) as store:
    documents = [document(f"{{n}}", f"apple number {{n}} " + "word " * 300) for n in range(int(sys.argv[2]))]
    def tell(report):
        print(report.added, flush=True)
        sys.stdin.readline()
    ingest(store, WordEmbedder(), Collection.PLAYBOOKS, documents, complete=True, listener=tell)
"""


def writer(path: Path, count: int) -> subprocess.Popen[str]:
    """A process that ingests `count` documents, tells after each step how many are in, and waits for a line."""
    program = WRITER.format(folder=str(Path(__file__).parent))
    return fork_server.Process(
        [sys.executable, "-c", program, str(path), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.requirement("KNOW-2")
def test_processes_read_while_one_writes(path: Path) -> None:
    with LocalStore(path) as first, LocalStore(path) as second:
        with writer(path, 300) as process:
            assert process.stdout is not None
            for line in process.stdout:
                go_on(process)
                # What the writer told of is there, in both readers, by both legs.
                last = int(line) - 1
                for reader in (first, second):
                    assert by_words(reader, f"number {last}", limit=1) == [f"{last}"]
                    assert by_meaning(reader, f"Title {last} About {last} apple number {last}", limit=1) == [f"{last}"]
        assert process.returncode == 0
        assert first.state() == second.state()
        assert first.state().documents[Collection.PLAYBOOKS] == 300
