"""`kill -9` at 50 random moments of an ingest, by the clock and so also inside SQLite and Chroma: after each one the
store is opened and must be whole (each document that is there once, with all its chunks, found by words and by
meaning); then the next run goes on from it, and when one comes to its end all documents are there.

This process opens no store: it forks a child for each run and each check. `KILLS` and `STORES` of the environment set
how many kills, and which stores.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import write

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "knowledge"))
sys.path.append(str(Path(sys.prefix) / "chroma"))

KILLS = int(os.environ.get("KILLS", "50"))
DOCUMENTS = 900
"""Of two chunks each: from 1,000 records on, Chroma writes its graph to files now and then."""
JOBS = ("High", "Low")


def opened(name: str, folder: Path) -> Any:
    if name == "chroma":
        from sentinel_rag_chroma.store import ChromaStore

        return ChromaStore(folder / "chroma")
    from sentinel_rag.knowledge.stores import LocalStore

    return LocalStore(folder / "knowledge.db")


def run(name: str, folder: Path, job: str) -> list[Any]:
    """How many documents were new, changed and as before, and the seconds it took."""
    from store_contract import document
    from word_embedder import WordEmbedder

    from sentinel_rag.knowledge.documents import Collection, Facets
    from sentinel_rag.knowledge.ingestion import ingest

    documents = (
        document(f"{n}", f"apple number {n} of {job} " + "word " * 300, Facets(severity=job)) for n in range(DOCUMENTS)
    )
    began = time.perf_counter()
    with opened(name, folder) as store:
        report = ingest(store, WordEmbedder(), Collection.PLAYBOOKS, documents, complete=True)
    return [report.added, report.changed, report.unchanged, time.perf_counter() - began]


def check(name: str, folder: Path) -> list[Any]:
    """How many documents are there, and what is wrong with them."""
    from store_contract import MODEL

    from sentinel_rag.knowledge.documents import Collection
    from sentinel_rag.knowledge.stores import Wanted
    from sentinel_rag_chroma import search

    search.EXACT = 0  # so that Chroma is asked
    wrong: list[str] = []
    with opened(name, folder) as store:
        state = store.state()
        count = state.documents[Collection.PLAYBOOKS]
        if state.chunks[Collection.PLAYBOOKS] != 2 * count:
            wrong.append(f"{state.chunks} chunks of {count} documents")
        by_words = store.load([each.key for each in store.by_words("apple number", Wanted(), 1_000)], frozenset())
        if sorted(each.document_id for each in by_words) != sorted({each.document_id for each in by_words}):
            wrong.append("a document is found twice by words")
        if len(by_words) != count:
            wrong.append(f"{len(by_words)} of {count} documents found by words")
        if state.space is not None:
            near = store.by_vector(MODEL.space, MODEL.embed_query("apple number word"), Wanted(), 1_000)
            if len({each.key for each in near}) != min(2 * count, 1_000):
                wrong.append(f"{len(near)} of {2 * count} chunks found by meaning")
    return [count, wrong]


def forked(work: Callable[..., list[Any]], *arguments: Any, kill_after: float | None = None) -> list[Any] | None:
    """What the work returned in a child, or None: it was killed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        os.write(writing, json.dumps(work(*arguments)).encode())
        os._exit(0)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(pid, signal.SIGKILL)
    told = b""
    while part := os.read(reading, 65_536):
        told += part
    os.close(reading)
    _, status = os.waitpid(pid, 0)
    if status and os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError(f"the child ended with {os.waitstatus_to_exitcode(status)}")
    return json.loads(told) if told else None


def trial(name: str, picked: random.Random) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix=f"crashes-{name}-") as place:
        (Path(place) / "whole").mkdir()
        whole = (forked(run, name, Path(place) / "whole", JOBS[0]) or [0, 0, 0, 0.0])[3]
        killed = step = 0
        wrong: list[str] = []
        between: list[int] = []
        while killed < KILLS:
            # Two jobs a folder: a first load, and one that replaces all of it.
            folder = Path(place) / f"{step // len(JOBS)}"
            folder.mkdir(exist_ok=True)
            job = JOBS[step % len(JOBS)]
            told = forked(run, name, folder, job, kill_after=picked.uniform(0, whole))
            count, faults = forked(check, name, folder) or [0, ["the check died"]]
            wrong += faults
            if told is None:
                killed += 1
                between.append(count)
            else:
                step += 1
                whole = min(whole, told[3])  # the machine may have been busy when it was measured
                wrong += (
                    [] if sum(told[:3]) == count == DOCUMENTS else [f"a run that ended told {told}; {count} are there"]
                )
        return {
            "kills": killed,
            "runs_that_came_to_their_end": step,
            "seconds_of_the_shortest_whole_run": round(whole, 2),
            "documents": DOCUMENTS,
            "documents_after_each_kill": between,
            "wrong": wrong,
        }


def main() -> None:
    # Once, for all children, so that they spend their time on the store: imported here and named nowhere (F401).
    import chromadb  # noqa: F401
    import store_contract  # noqa: F401

    import sentinel_rag_chroma.store  # noqa: F401

    measured = {name: trial(name, random.Random(6)) for name in os.environ.get("STORES", "local,chroma").split(",")}
    claim = "kill -9 at 50 random moments of an ingest: the store is whole after each, and the next run completes it"
    write("knowledge_crashes", measured, claim=claim)


if __name__ == "__main__":
    main()
