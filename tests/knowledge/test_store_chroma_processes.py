"""One owner for a Chroma store, no network, and `kill -9` at moments that nobody chose."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chroma_crashes import REBUILT
from store_contract import MODEL, by_meaning, by_words, document, put
from tests.support.chroma_installation import importable_chroma

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.stores import LocalStore, Wanted
from sentinel_rag.surfaces.cli import main
from sentinel_rag_chroma.ownership import Left, Ownership, Phase
from sentinel_rag_chroma.store import ChromaStore

pytestmark = pytest.mark.requirement("KNOW-4")
HERE = Path(__file__).parent


@pytest.fixture(autouse=True, scope="module")
def packages() -> Iterator[Path]:
    with importable_chroma() as folder:
        yield folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chroma"


def python(*arguments: str, packages: Path, **more: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE), str(packages)))}
    environment |= more.pop("env", {})  # type: ignore[arg-type]
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        **more,  # type: ignore[call-overload]
    )


OWNER = """
import sys
from pathlib import Path
from sentinel_rag_chroma.store import ChromaStore
store = ChromaStore(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_second_process_is_told_who_the_owner_is_until_that_one_is_gone(
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    path: Path,
    packages: Path,
) -> None:
    """However the owner ends: this one is killed, so it cannot let go of anything by itself."""
    monkeypatch.setenv("SENTINEL_KNOWLEDGE_STORE", "chroma")
    monkeypatch.setenv("SENTINEL_CHROMA_PATH", str(path))
    with python("-c", OWNER, str(path), packages=packages) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "open\n"
        with pytest.raises(UnavailableError, match=f"one owner at a time, and process {owner.pid} has it open"):
            ChromaStore(path)
        assert main(["knowledge", "search", "apple"]) != 0
        _, err = capsys.readouterr()
        assert f"process {owner.pid} has it open" in err
        assert "sentinel ask" in err
        assert "Traceback" not in err
        owner.send_signal(signal.SIGKILL)
    assert main(["knowledge", "status"]) == 0
    assert str(path) in capsys.readouterr().out


def test_what_the_local_store_holds_can_be_moved_here_and_back(
    clean_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its vectors, readers and facets; nothing is embedded again."""
    with LocalStore(clean_environment / "knowledge" / "knowledge.db") as local:
        for collection in Collection:
            secret = document("b", "stone", Facets(("T1566.001",)), collection=collection, readers=frozenset({"hr"}))
            put(local, document("a", "apple", collection=collection), secret)
        before = [local.entries(each, ["a", "b"]) for each in Collection]
        vectors = [local.kept_vectors(MODEL.space, {each.chunks[0].search_hash for each in some}) for some in before]
    assert main(["knowledge", "migrate", "--to", "chroma"]) == 0
    with ChromaStore(clean_environment / "knowledge" / "chroma") as moved:
        assert [moved.entries(each, ["a", "b"]) for each in Collection] == before
        for some, kept in zip(before, vectors, strict=True):
            there = moved.kept_vectors(MODEL.space, {each.chunks[0].search_hash for each in some})
            assert {name: each.tobytes() for name, each in there.items()} == {
                name: each.tobytes() for name, each in kept.items()
            }
        assert by_meaning(moved, "stone", Wanted(readers=frozenset({"hr"})), limit=2) == ["b", "b"]
        moved.remove(Collection.PLAYBOOKS, ["a"])
    (clean_environment / "knowledge" / "knowledge.db").unlink()
    assert main(["knowledge", "migrate", "--from", "chroma", "--to", "local"]) == 0
    with LocalStore(clean_environment / "knowledge" / "knowledge.db") as local:
        assert sorted(by_words(local, "apple stone", Wanted(readers=frozenset({"hr"})))) == ["a", "b", "b"]
    capsys.readouterr()


def test_a_second_store_in_one_process_is_refused_too(path: Path) -> None:
    with ChromaStore(path), pytest.raises(UnavailableError, match="this process has it open already"):
        ChromaStore(path)
    ChromaStore(path).close()


def test_a_folder_with_other_files_is_left_alone(path: Path) -> None:
    path.mkdir()
    (path / "index").mkdir()
    (path / "index" / "chroma.sqlite3").write_bytes(b"of somebody")
    with pytest.raises(UnavailableError, match="holds other files and no knowledge store") as raised:
        ChromaStore(path)
    assert "SENTINEL_CHROMA_PATH" in raised.value.next_step
    assert (path / "index" / "chroma.sqlite3").read_bytes() == b"of somebody"
    (path / "file").write_text("x")
    with pytest.raises(UnavailableError, match="cannot be used"):
        ChromaStore(path / "file" / "deeper")


@pytest.mark.parametrize("left", ["", "{", '{"pid": "x"}', '{"pid": 5, "phase": "dancing"}', "\0" * 70])
def test_a_lock_file_that_tells_nothing_is_as_good_as_a_new_one(path: Path, left: str) -> None:
    path.mkdir()
    (path / "owner.lock").write_text(left)
    owner = Ownership(path)
    assert owner.before == Left()
    with pytest.raises(UnavailableError, match="process unknown has it open"):
        Ownership(path)
    owner.release()


def test_an_index_that_killed_the_last_owner_is_not_looked_at_again(path: Path) -> None:
    """A damaged graph can take the process with it, so nothing is left to say so but the lock file."""
    with ChromaStore(path) as store:
        put(store, document("a", "apple"))
    owner = Ownership(path)
    owner.tell(Phase.CHECKING)
    owner.release()
    (path / "index" / "left.txt").write_text("by the index before")
    with ChromaStore(path) as store:
        assert by_words(store, "apple") == ["a"]
        assert not (path / "index" / "left.txt").exists()


OFFLINE = """
import sys
def refuse(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        print("touched", event, arguments, flush=True)
        raise SystemExit(9)
sys.addaudithook(refuse)
from pathlib import Path
from chroma_crashes import work
work(Path(sys.argv[1]), "High", 30)
work(Path(sys.argv[1]), "rebuild", 0)
import chromadb
print("done", chromadb.api.client.SharedSystemClient._identifier_to_system)
"""


def test_no_socket_is_touched_and_no_setting_of_others_is_read(path: Path, packages: Path, tmp_path: Path) -> None:
    """What the environment and a `.env` say to Chroma (another server, traces to an address) is not for this store."""
    told = {
        "ANONYMIZED_TELEMETRY": "True",
        "CHROMA_OTEL_COLLECTION_ENDPOINT": "http://127.0.0.1:9",
        "CHROMA_OTEL_GRANULARITY": "all",
        "CHROMA_API_IMPL": "chromadb.api.fastapi.FastAPI",
        "CHROMA_SERVER_HOST": "127.0.0.1",
        "IS_PERSISTENT": "False",
    }
    (tmp_path / ".env").write_text("PERSIST_DIRECTORY=/nowhere\nCHROMA_SERVER_HTTP_PORT=9\n")
    with python("-c", OFFLINE, str(path), packages=packages, env=told, cwd=tmp_path) as process:
        out, _ = process.communicate()
    assert out == "done {}\n"
    assert process.returncode == 0
    with ChromaStore(path) as store:
        assert store.state().space == REBUILT.space


class Crashes:
    """The program `chroma_crashes`, for one job after another."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, folder: Path, job: str, count: int, moment: int = 0) -> int:
        """Calls that the job took. With a `moment`: it was killed there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), job, count, moment]) + "\n")
        status, calls = json.loads(self._process.stdout.readline())
        assert status == (-signal.SIGKILL if moment else 0)
        return int(calls)


@pytest.fixture(scope="module")
def crashes(packages: Path) -> Iterator[Crashes]:
    with python(str(HERE / "chroma_crashes.py"), packages=packages) as process:
        yield Crashes(process)
        process.communicate()


def checked(path: Path) -> int:
    """The documents of a store after a kill: each whole, found by words and by meaning, and Chroma has no others."""
    with ChromaStore(path) as store:
        state = store.state()
        count = state.documents[Collection.PLAYBOOKS]
        assert state.chunks[Collection.PLAYBOOKS] == 2 * count
        assert len(set(by_words(store, "apple number", limit=1_000))) == count
        if state.space is not None:
            model = REBUILT if state.space == REBUILT.space else MODEL
            found = store.by_vector(state.space, model.embed_query("apple number"), Wanted(), 1_000)
            assert len({each.key for each in found}) == 2 * count
            collections = store._collections  # type: ignore[attr-defined]
            assert len(collections.ids(Collection.PLAYBOOKS)) == 2 * count
        return count


@pytest.mark.slow
@pytest.mark.requirement("KNOW-2")
def test_killed_at_any_moment_it_is_whole_and_the_next_run_completes_it(
    path: Path, crashes: Crashes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` in a first load, in a second one that replaces every document, and while all is embedded anew; the
    moments are spread over each job's calls at random."""
    monkeypatch.setattr("sentinel_rag_chroma.search.EXACT", 0)
    picked = random.Random(6)
    total = 120
    before = tmp_path / "before"
    for job, kills in (("High", 2), ("Low", 2), ("rebuild", 1)):
        if path.exists():
            shutil.copytree(path, before, dirs_exist_ok=True)
            calls = crashes.run(before, job, total)
        else:
            calls = crashes.run(before, job, total)
        shutil.rmtree(before)
        for part in range(kills):
            # The job is shorter from kill to kill, since each run goes on where the one before it ended.
            crashes.run(path, job, total, picked.randrange(calls // 8, calls // 2) if part == 0 else calls // 8)
            checked(path)
        crashes.run(path, job, total)
        assert checked(path) == total
