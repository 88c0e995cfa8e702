"""Kill an ingest again and again, while others search its store, and look at what is left.

    with searching(store, processes=2) as readers:
        trial = crash_trial(store, count=300, generation=1, moments=[3, 1, 7])
    assert not trial.violations and not readers.failures

A moment is how many batches are embedded before the kill, and how many seconds pass after that; the ingest that runs on
after the last kill has to end with every document once and whole.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.support import fork_server
from tests.support.ingest_crash_process import SPACE, MadeIncidents, vector_of

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.stores import LocalStore, Version, Wanted

_MODULE = "tests.support.ingest_crash_process"
_PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: while the run waits before batch number `batch` (from 1); or, with `seconds`, that long after it
    was let go on with this batch, and the latest before the next."""

    batch: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CrashTrial:
    """`kills` that met a running ingest, documents found `after_kills`, texts embedded by the runs together, of
    `distinct` ones. `violations` are sentences; there must be none."""

    kills: int
    after_kills: tuple[int, ...]
    distinct: int
    embedded_at_the_end: int
    violations: tuple[str, ...]


@dataclass(slots=True)
class Searches:
    """What the searching processes met, filled when the block ends."""

    searches: int = 0
    with_hits: int = 0
    failures: list[str] = field(default_factory=list)


@contextmanager
def searching(store: Path, *, processes: int) -> Iterator[Searches]:
    """Processes that search `store` for as long as the block runs."""
    met = Searches()
    started = [_start("read", store, stdin=subprocess.PIPE) for _ in range(processes)]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield met
        for process in started:
            told, _ = process.communicate("", timeout=_PATIENCE_S)
            if process.returncode != 0:
                met.failures.append(f"a searching process ended with {process.returncode}")
                continue
            found = json.loads(told.splitlines()[-1])
            met.searches += found["searches"]
            met.with_hits += found["with_hits"]
            met.failures += found["failures"]
    finally:
        for process in started:
            process.kill()
            process.wait()


def crash_trial(store: Path, *, count: int, generation: int, moments: Sequence[Moment]) -> CrashTrial:
    """Ingest `count` incidents of a generation, killed at each of `moments`, then to the end."""
    violations: list[str] = []
    after: list[int] = []
    kills = 0
    for moment in moments:
        kills += _killed(store, count, generation, moment)
        held, found = _faults(store, generation=generation, count=count, ended=False)
        after.append(held)
        violations += [f"after kill {len(after)}: {fault}" for fault in found]
    process = _start("ingest", store, count, generation)
    told, errors = process.communicate(timeout=_PATIENCE_S)
    if process.returncode != 0:
        return CrashTrial(kills, tuple(after), 0, 0, (*violations, f"the last ingest failed: {errors[-500:]}"))
    last = json.loads(told.splitlines()[-1])
    if last["fault"]:
        violations.append(f"the last ingest: {last['fault']}")
    violations += _faults(store, generation=generation, count=count, ended=True)[1]
    texts = {c.search_hash for document in MadeIncidents(count, generation).documents() for c in chunks_of(document)}
    return CrashTrial(kills, tuple(after), len(texts), last["embedded"], tuple(violations))


def _killed(store: Path, count: int, generation: int, moment: Moment) -> bool:
    """Whether the ingest was still running when it was killed."""
    process = _start("ingest", store, count, generation, stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    ended = False
    for number in range(1, moment.batch + 1):
        line = process.stdout.readline()
        ended = not line or line.startswith("{")
        if ended:
            break
        if number < moment.batch or moment.seconds:
            process.stdin.write("\n")
            process.stdin.flush()
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment.seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=_PATIENCE_S)
    return not ended and process.returncode == -signal.SIGKILL


def _faults(path: Path, *, generation: int, count: int, ended: bool) -> tuple[int, list[str]]:
    """How many documents there are, and what is wrong: one that is not whole, or is of no generation, or that cannot be
    found by its words and by its vector."""
    known = _made(count)
    final = {each.id: Version(each.content_hash, each.etag) for each in MadeIncidents(count, generation).documents()}
    faults: list[str] = []
    everyone = frozenset[str]()
    with LocalStore(path) as store:
        versions = store.versions(Collection.INCIDENTS)
        expected = 0
        for name, version in versions.items():
            document = known.get(name, {}).get(version.content_hash)
            if document is None:
                faults.append(f"{name} is of no generation")
                continue
            chunks = chunks_of(document)
            expected += len(chunks)
            stored = store.document_chunks(Collection.INCIDENTS, name, everyone)
            if [chunk.text for chunk in stored] != [chunk.text for chunk in chunks]:
                faults.append(f"{name} is not whole: {len(stored)} of {len(chunks)} chunks")
        if store.state().chunks[Collection.INCIDENTS] != expected:
            faults.append("there are chunks that belong to no document, or twice")
        for name, version in list(versions.items())[:: max(1, len(versions) // 20)]:
            document = known[name][version.content_hash]
            text = chunks_of(document)[0].search_text
            near = store.by_vector(SPACE, vector_of(text), Wanted(), 1)
            by_words = store.by_words(f'"{document.title}"', Wanted(), 50)
            loaded = store.load([each.key for each in (*near, *by_words)], everyone)
            if not loaded or loaded[0].document_id != name or near[0].score < 0.999:
                faults.append(f"{name} is not what its own vector finds")
            if not any(chunk.document_id == name for chunk in loaded[1:]):
                faults.append(f"{name} is not found by its words")
        if ended and dict(versions) != final:
            faults.append("the store does not hold each document of the source once, in its last version")
        return len(versions), faults


@cache
def _made(count: int) -> Mapping[str, Mapping[str, Document]]:
    """Every document of both generations, by id and content hash."""
    made: dict[str, dict[str, Document]] = {}
    for generation in (1, 2):
        for document in MadeIncidents(count, generation).documents():
            made.setdefault(document.id, {})[document.content_hash] = document
    return made


def _start(role: str, store: Path, *numbers: int, stdin: int | None = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return fork_server.Process(
        [sys.executable, "-m", _MODULE, role, str(store), *map(str, numbers)],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
