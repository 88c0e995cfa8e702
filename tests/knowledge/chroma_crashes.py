"""A program that works on a Chroma store and dies of `kill -9` at the moment it is told.

One process loads the libraries, opens nothing, and forks a child for each line of its input: a JSON list of folder,
job, documents and moment. The child counts what Python calls and kills itself at call number `moment`; 0 lets it end.
The answer to a line is the child's exit status and, if it ended, how many calls it made.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from store_contract import document
from word_embedder import WordEmbedder

from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag_chroma.store import ChromaStore

REBUILT = WordEmbedder(model="rebuilt", dimensions=32)


def work(folder: Path, job: str, count: int) -> None:
    """Open the store and do the job: a first load, another version of each document, or new vectors for all."""
    with ChromaStore(folder) as store:
        if job == "rebuild":
            store.re_embed(REBUILT.space, REBUILT.embed_documents, batch=64)
            return
        documents = [
            document(f"{n}", f"apple number {n} of {job} " + "word " * 300, Facets(severity=job)) for n in range(count)
        ]
        ingest(store, WordEmbedder(), Collection.PLAYBOOKS, documents, complete=True)


def child(folder: Path, job: str, count: int, moment: int) -> int:
    """The calls that the job took."""
    calls = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(counted)
    try:
        work(folder, job, count)
    finally:
        sys.setprofile(None)
    return calls


def main() -> None:
    import chromadb  # noqa: F401  # once, for all children

    for line in sys.stdin:
        folder, job, count, moment = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            os.write(writing, str(child(Path(folder), job, count, moment)).encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(pid, 0)
        told = os.read(reading, 64)
        os.close(reading)
        print(json.dumps([os.waitstatus_to_exitcode(status), int(told or b"0")]), flush=True)


if __name__ == "__main__":
    main()
