"""What a store asks of the place of its records: transactions, one at a time among those that write.

`sqlite3.Connection` is such a connection as it is. Statements are written once, in the SQL that SQLite and PostgreSQL
both understand: `?` for a value, `ON CONFLICT`, `RETURNING`, a limit that is a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Cursor(Protocol):
    """The rows of a statement, or how many it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class RecordConnection(Protocol):
    """Runs statements. Values are None, int, float, str and bytes; a row is a tuple."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor: ...


Migration = Callable[[RecordConnection], None]
"""One numbered step of a store's tables; each is done once in the life of a place."""


class Records(Protocol):
    """The place of one store's records. From any thread. What it raises is UnavailableError, with a sentence; the next
    transaction tries anew."""

    @property
    def name(self) -> str:
        """What a person calls it, without a secret."""
        ...

    @property
    def shared(self) -> bool:
        """Whether other processes write here as equals, at the same time."""
        ...

    @property
    def holder(self) -> str:
        """This process's name for what it is at work on; another one after each start."""
        ...

    def transaction(self, *, reads: bool = False) -> AbstractContextManager[RecordConnection]:
        """A transaction for the block: all of it is kept, or nothing if the block raises. It begins after every one
        that wrote before, in whichever process; with `reads` it only reads, and waits for nobody."""
        ...

    def is_live(self, run: RecordConnection, holder: str) -> bool:
        """Whether the process that called itself `holder` still runs; asked within a transaction."""
        ...

    def exists(self) -> bool:
        """False where nothing was ever written; to look makes nothing."""
        ...

    def forget(self) -> None:
        """After something was deleted: leave no byte of it, where the place lets us say so."""
        ...

    def close(self) -> None:
        """Let go. It may be used again afterwards."""
        ...
