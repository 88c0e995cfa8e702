"""All of a put, or none of it, on a service that has no transactions.

A put has a record of its own while it is under way. What an open put brought is not seen, what it retired still is; so
the one write that deletes its record makes everything new at once. One put is open at a time: whoever finds another
open steps back and tries again. What a put that died left behind is undone by the next one, once its process is gone or
its record so old that nobody can be at it. Replaced records go one put later: whoever looked a moment before may still
read them.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.knowledge.stores.port import VectorSpace
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.odata import literal, one_of
from sentinel_rag_azure_search.processes import is_gone, process_name
from sentinel_rag_azure_search.records import CHUNK, HEAD, Record, our_records

LEASE_S = 600.0
"""A put whose record is older was left by a process that died, or lost its network."""
_PUT = "put"
_STORE = "store"
_CONTENT = one_of("kind", (CHUNK, HEAD))


@dataclass(frozen=True, slots=True)
class OpenPut:
    """When a put began (seconds since 1970), and the process that is at it, as `process_name` says it."""

    began: float
    writer: str


@dataclass(frozen=True, slots=True)
class Moment:
    """What a question needs to know first: the space of the vectors, and which puts are open."""

    space: VectorSpace | None
    open: Mapping[str, OpenPut]

    @property
    def seen(self) -> str:
        """The condition for records that count now."""
        if not self.open:
            return "retired eq null"
        return f"not ({one_of('put', self.open)}) and (retired eq null or {one_of('retired', self.open)})"


def moment_of(index: SearchIndex) -> Moment:
    """How things stand now."""
    space: VectorSpace | None = None
    under_way: dict[str, OpenPut] = {}
    condition = one_of("kind", (_PUT, _STORE))
    with our_records():
        for record in index.rows(condition, ("kind", "put", "began", "writer", "model", "dimensions")):
            if record["kind"] == _PUT:
                under_way[record["put"]] = OpenPut(record["began"] / 1_000_000, record["writer"])
            else:
                space = VectorSpace(record["model"], record["dimensions"])
    return Moment(space, under_way)


class Puts:
    """Puts into the index of chunks. `clock` gives seconds since 1970. For one thread at a time."""

    def __init__(
        self, index: SearchIndex, clock: Callable[[], float] = time.time, *, lease_s: float = LEASE_S, patience_s: float
    ) -> None:
        self._index = index
        self._clock = clock
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._swept = False
        self._replaced: list[str] = []
        self._left: set[str] = set()

    def set_space(self, space: VectorSpace) -> None:
        """Make a space the store's."""
        self._index.upload([{"key": _STORE, "kind": _STORE, "model": space.model, "dimensions": space.dimensions}])
        self._index.until(lambda: moment_of(self._index).space == space)

    @contextmanager
    def opened(self) -> Iterator[Put]:
        """A put that counts at the end of the block, or not at all if the block raises."""
        put = self._begun()
        self._left.add(put.name)
        try:
            yield put
            put.settle()
            if put.name not in moment_of(self._index).open:
                raise UnavailableError(
                    "Another process took this run for dead and undid its last step.",
                    next_step="Run it again: what was done before stays.",
                    code="azure_search_overtaken",
                )
        except BaseException:
            # Where that fails too, the record stays, and the next put undoes it.
            with suppress(SentinelError):
                self._undo(put.name)
                self._left.discard(put.name)
            raise
        self._index.delete([f"put-{put.name}"])
        self._left.discard(put.name)
        if put.retired:
            self._replaced.append(put.name)
        # It counts now, so whatever keeps it from being found is no failure of this put.
        with suppress(SentinelError):
            self._index.until_count(_record_of(put.name), 0)

    def sweep(self, *, last: bool) -> frozenset[str]:
        """Delete what was replaced: by the puts before the latest, with `last` by all of them; the first time also what
        an earlier process left. Returns the search hashes of the chunks that went."""
        keep = [] if last else self._replaced[-1:]
        names = [name for name in self._replaced if name not in keep]
        if self._swept and not names:
            return frozenset()
        under_way = [*moment_of(self._index).open, *keep]
        condition = one_of("retired", names) if self._swept else "retired ne null"
        if under_way:
            condition = f"{condition} and not ({one_of('retired', under_way)})"
        gone = list(self._index.rows(condition, ("search_hash",)))
        self._index.delete(record["key"] for record in gone)
        self._swept, self._replaced = True, keep
        return frozenset(record["search_hash"] for record in gone if record["search_hash"])

    def _begun(self) -> Put:
        """A put, alone. What died is undone first."""
        ends = time.monotonic() + self._patience_s
        while True:
            name = uuid.uuid4().hex
            began = round(self._clock() * 1_000_000)
            record: Record = {"key": f"put-{name}", "kind": _PUT, "put": name, "began": began, "writer": process_name()}
            try:
                self._index.upload([record])
                self._index.until_count(_record_of(name), 1)
                others = {each: at for each, at in moment_of(self._index).open.items() if each != name}
                if all(each in self._left or self._is_dead(at) for each, at in others.items()):
                    for each in others:
                        self._undo(each)
                    return Put(self._index, name)
            except BaseException:
                with suppress(SentinelError):
                    self._index.delete([record["key"]])
                raise
            self._index.delete([record["key"]])
            if time.monotonic() > ends:
                raise UnavailableError(
                    "Another process is writing to this knowledge store.",
                    next_step="Wait for it. If it was killed on another machine, what it left is undone "
                    f"{self._lease_s / 60:g} minutes after it began: run this again then.",
                    code="azure_search_busy",
                )
            # Two that step back at once would meet again without chance.
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  # nothing is kept secret by it

    def _is_dead(self, put: OpenPut) -> bool:
        return put.began < self._clock() - self._lease_s or is_gone(put.writer)

    def _undo(self, name: str) -> None:
        brought = [record["key"] for record in self._index.rows(f"put eq {literal(name)} and {_CONTENT}", ())]
        self._index.delete(brought)
        kept = [record["key"] for record in self._index.rows(f"retired eq {literal(name)}", ())]
        self._index.merge({"key": key, "retired": None} for key in kept)
        self._index.until_count(f"(put eq {literal(name)} and {_CONTENT}) or retired eq {literal(name)}", 0)
        self._index.delete([f"put-{name}"])


class Put:
    """One put that is under way. `name` is part of the keys of what it brings."""

    def __init__(self, index: SearchIndex, name: str) -> None:
        self.name = name
        self.brought = 0
        self.retired = 0
        self._index = index

    def bring(self, records: Iterable[Record]) -> None:
        """Write records that will be seen."""

        def counted() -> Iterator[Record]:
            for record in records:
                self.brought += 1
                yield record

        self._index.upload(counted())

    def retire(self, keys: Sequence[str]) -> None:
        """Mark records that will not be seen any more."""
        self._index.merge({"key": key, "retired": self.name} for key in keys)
        self.retired += len(keys)

    def settle(self) -> None:
        """Wait until all of it can be found, so that all of it counts at once."""
        name = literal(self.name)
        self._index.until_count(f"put eq {name} and {_CONTENT}", self.brought)
        self._index.until_count(f"retired eq {name}", self.retired)


def _record_of(name: str) -> str:
    return f"put eq {literal(name)} and kind eq '{_PUT}'"
