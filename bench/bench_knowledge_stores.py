"""The knowledge stores side by side in one run, through the port that all obey: how fast a load is, what memory it
takes, how fast questions are answered, filtered and not, and how many of the ten nearest the vector leg finds.

Each store is filled in a process of its own (its memory is that process's, of PostgreSQL the server's too); then all
are open in one, and each question goes to one store after another, so that a busy machine slows all. Only the stores
whose packages are installed take part, and the result says which. `SIZE` and `WORK` of the environment set the number
of chunks and a folder that is kept, in which stores that are full are not filled again; `STORES` names some.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import write
from bench.knowledge_estate import DIMENSIONS, FILTERS, Estate, questions
from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore, VectorSpace, Wanted

SIZE = int(os.environ.get("SIZE", "100000"))
STEP = 2_000
ASKED = 60
LONGEST_S = 30.0
"""A store that has worked so long on the questions of one filter is asked no more of them; the result counts those that
it was asked."""
SPACE = VectorSpace("made", DIMENSIONS)


class Given:
    """An embedder that was told the vector of the one question it is asked, however the search spells it."""

    space = SPACE
    batch = 64

    def __init__(self, vector: np.ndarray) -> None:
        self._vector = vector

    def embed_query(self, text: str) -> np.ndarray:
        return self._vector

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vector for _ in texts])


class Place:
    """One store of this run: how it is opened in `folder`, and what serves it beside this process, by pid."""

    def __init__(self, opening: Callable[[], KnowledgeStore], server: int | None = None) -> None:
        self.opening = opening
        self.server = server


@contextmanager
def local(folder: Path) -> Iterator[Place]:
    yield Place(lambda: LocalStore(folder / "knowledge.db"))


@contextmanager
def chroma(folder: Path) -> Iterator[Place]:
    sys.path.append(str(Path(sys.prefix) / "chroma"))
    import chromadb  # noqa: F401

    from sentinel_rag_chroma.store import ChromaStore

    yield Place(lambda: ChromaStore(folder / "chroma"))


@contextmanager
def pgvector(folder: Path) -> Iterator[Place]:
    from tests.support import postgres_server

    from sentinel_rag.knowledge.stores.pgvector import PgVectorStore

    told = folder / "server.json"
    if told.exists():  # of the process that filled it: it keeps the server for us
        at = json.loads(told.read_text())
        yield Place(lambda: PgVectorStore(at["url"], "bench"), at["pid"])
        return
    durable = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    postgres_server._SETTINGS |= {**durable, "autovacuum": "on", "shared_buffers": "512MB"}
    with postgres_server.running_postgres() as server:
        assert server._process is not None
        told.write_text(json.dumps({"url": server.url, "pid": server._process.pid}))
        try:
            yield Place(lambda: PgVectorStore(server.url, "bench"), server._process.pid)
        finally:
            told.unlink()


STORES: dict[str, Callable[[Path], Any]] = {"local": local, "chroma": chroma, "pgvector": pgvector}


def fill(name: str, folder: Path) -> None:
    """Fill a store, tell what it took, and keep its server until standard input ends."""
    with ExitStack() as stack:
        try:
            place = stack.enter_context(STORES[name](folder))
        except (ModuleNotFoundError, RuntimeError) as error:
            print(json.dumps({"not_installed": str(error)}), flush=True)
            return
        estate = Estate(SIZE)
        before = _memory(os.getpid(), "VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        seconds = 0.0
        with place.opening() as store:
            for entries, vectors in estate.entries(STEP):
                hashes = [entry.chunks[0].search_hash for entry in entries]
                began = time.perf_counter()
                store.keep_vectors(SPACE, dict(zip(hashes, vectors, strict=True)))
                store.put(entries, SPACE)
                seconds += time.perf_counter() - began
        told = {
            "seconds": round(seconds, 1),
            "chunks_a_second": round(SIZE / seconds),
            "peak_memory_above_the_estate_mb": _memory(os.getpid(), "VmHWM") - before,
        }
        if place.server is None:
            told["megabytes_on_disk"] = _megabytes(folder)
        print(json.dumps(told), flush=True)
        sys.stdin.read()


def measure(folder: Path) -> dict[str, Any]:
    measured: dict[str, Any] = {
        "chunks": SIZE,
        "dimensions": DIMENSIONS,
        "questions": ASKED,
        "load_of_the_machine_before": [round(each, 1) for each in os.getloadavg()],
        "nice": os.nice(0),
        "stores": {},
    }
    with ExitStack() as stack:
        places: dict[str, Place] = {}
        for name in os.environ.get("STORES", ",".join(STORES)).split(","):
            within = folder / name
            within.mkdir(parents=True, exist_ok=True)
            filled = _filled(name, within, stack)
            if filled is None:
                measured["stores"][name] = "not installed"
                continue
            measured["stores"][name] = {"ingest_without_embedding": filled}
            places[name] = stack.enter_context(STORES[name](within))
        estate = Estate(SIZE)
        asked = questions(ASKED)
        vectors = dict(zip(asked, estate.draw(ASKED), strict=True))
        stores: dict[str, KnowledgeStore] = {}
        for name, place in places.items():
            before = _memory(os.getpid(), "VmRSS")
            began = time.perf_counter()
            stores[name] = stack.enter_context(place.opening())
            with suppress(SentinelError):  # a question that takes too long is told below
                KnowledgeSearch(stores[name], Given(vectors[asked[0]])).search(asked[0], FILTERS["nothing"])
            told = measured["stores"][name]
            told["open_and_first_answer_s"] = round(time.perf_counter() - began, 2)
            until = time.perf_counter() + LONGEST_S
            for question in asked[:20]:
                if time.perf_counter() < until:
                    with suppress(SentinelError):
                        KnowledgeSearch(stores[name], Given(vectors[question])).search(question, FILTERS["nothing"])
            told["memory_after_20_questions_mb"] = _memory(os.getpid(), "VmRSS") - before
            if place.server is not None:
                told["memory_of_the_server_mb"] = _of_server(place.server)
        for filtered, wanted in FILTERS.items():
            for name, figures in compared(stores, estate, vectors, wanted).items():
                measured["stores"][name][f"filtered: {filtered}"] = figures
    return measured


def compared(
    stores: dict[str, KnowledgeStore], estate: Estate, vectors: dict[str, np.ndarray], wanted: Wanted
) -> dict[str, Any]:
    """Every question to every store in turn, as long as it is not too slow for all of them."""
    through = estate.let_through(wanted)
    matrix = estate.vectors[through]
    times: dict[str, dict[str, list[float]]] = {name: {"hybrid": [], "vectors": []} for name in stores}
    found, expected, spent = dict.fromkeys(stores, 0), dict.fromkeys(stores, 0), dict.fromkeys(stores, 0.0)
    failed: dict[str, list[str]] = {name: [] for name in stores}
    for turn, (question, vector) in enumerate([*list(vectors.items())[:4], *vectors.items()]):
        best = {str(through[place]) for place in np.argsort(-(matrix @ vector), kind="stable")[:10]}
        warm = turn >= 4
        for name, store in stores.items():
            if spent[name] > LONGEST_S and len(times[name]["hybrid"]) + len(failed[name]) >= 10:
                continue
            search = KnowledgeSearch(store, Given(vector))
            began = time.perf_counter()
            try:
                search.search(question, wanted)
                middle = time.perf_counter()
                near = store.by_vector(SPACE, vector, wanted, 50)
            except SentinelError as error:
                failed[name].append(str(error))
                spent[name] += time.perf_counter() - began
                continue
            ended = time.perf_counter()
            spent[name] += ended - began
            if warm:
                expected[name] += len(best)
                times[name]["hybrid"].append(middle - began)
                times[name]["vectors"].append(ended - middle)
                chunks = store.load([each.key for each in near[:10]], wanted.readers)
                found[name] += len(best & {chunk.document_id for chunk in chunks})
    return {
        name: {"failed": failed[name]}
        if len(legs["hybrid"]) < 2
        else {
            **{f"{leg}_p50_ms": round(statistics.median(each) * 1e3, 1) for leg, each in legs.items()},
            **{f"{leg}_p95_ms": round(statistics.quantiles(each, n=20)[18] * 1e3, 1) for leg, each in legs.items()},
            "recall_at_10_of_vectors": round(found[name] / expected[name], 4),
            "asked": len(legs["hybrid"]),
            "failed": len(failed[name]),
        }
        for name, legs in times.items()
    }


def _filled(name: str, folder: Path, stack: ExitStack) -> dict[str, Any] | None:
    """What filling it took; None where its packages are not installed."""
    kept = folder / "filled.json"
    if kept.exists() and name != "pgvector":
        return dict(json.loads(kept.read_text()))
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", "bench.bench_knowledge_stores", "fill", name, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert process.stdin is not None
    assert process.stdout is not None
    stack.callback(process.stdin.close)
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"filling {name} failed with exit code {process.wait()}")
    if "not_installed" in line:
        return None
    if name != "pgvector":
        process.stdin.close()
        process.wait()
        kept.write_text(line)
    return dict(json.loads(line))


def _memory(pid: int, field: str) -> int:
    """Megabytes, of /proc."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) // 1024
    return 0


def _of_server(pid: int) -> int:
    """Megabytes of a PostgreSQL server: its own and its children's, pages that they share counted once each."""
    every = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    total = 0
    for each in every:
        for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total // 1024


def _megabytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) >> 20


def main() -> None:
    if sys.argv[1:2] == ["fill"]:
        fill(sys.argv[2], Path(sys.argv[3]))
        return
    kept = os.environ.get("WORK")
    with tempfile.TemporaryDirectory(prefix="knowledge-stores-") as folder:
        measured = measure(Path(kept or folder))
    claim = "Stores of knowledge side by side, by the same questions in one run: load, memory, latency and recall"
    write("knowledge_stores", measured, claim=claim)


if __name__ == "__main__":
    main()
