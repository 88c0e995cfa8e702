"""What a store asks of its database: a connection inside one transaction, and the database that makes transactions.

`sqlite3.Connection` is such a connection as it is, so nothing lies between SQLite and a store; `postgres` wraps its
own. Statements are written once, in the SQL that both understand: `?` for a value, `ON CONFLICT`, `RETURNING`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from sentinel_rag.audit.chain import ChainHead
from sentinel_rag.audit.events import AuditEvent
from sentinel_rag.audit.places import JournalPlace
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.storage import Cursor as Cursor
from sentinel_rag.storage import Migration as Migration
from sentinel_rag.storage import RecordConnection as RecordConnection

T = TypeVar("T")

Work = Callable[[RecordConnection], T]
"""What is to be done in one transaction. It may be done again if that transaction was lost, so it changes nothing but
the database, or what the next time sets again."""


def put(connection: RecordConnection, sql: str, parameters: Sequence[Any]) -> None:
    """`execute` for a write whose result nobody needs: over a network it need not be waited for. It fails, if it does,
    before the transaction is committed."""
    getattr(connection, "put", connection.execute)(sql, parameters)


def known_of(connection: RecordConnection) -> dict[str, Any] | None:
    """What is true in this transaction and was asked before, where asking costs a way over a network; it is forgotten
    with whatever is undone. None for SQLite, where asking costs nothing."""
    known: dict[str, Any] | None = getattr(connection, "known", None)
    return known


class StateAway(UnavailableError):
    """The server of the state cannot be used now: calls are refused until it can, and go on by themselves then."""

    code = "state_away"


class AppendRecord(Protocol):
    """How an archive adds a record to the chain; `Journal.append_now`."""

    def __call__(self, event: AuditEvent, alongside: Work[object] | None = None) -> ChainHead: ...


class StateDatabase(Protocol):
    """Transactions of which no two overlap, whichever process makes them; `Database` is one, `PostgresDatabase` too."""

    @property
    def place(self) -> JournalPlace:
        """Where it is."""
        ...

    @property
    def name(self) -> str:
        """What a person calls it, without a secret."""
        ...

    @property
    def synced(self) -> bool:
        """Whether a commit waits for the disk."""
        ...

    @property
    def exact_outcomes(self) -> bool:
        """Whether an outcome is refused where its call is not open: where a call can be closed while it runs."""
        ...

    async def run(self, work: Work[T]) -> T:
        """Do `work` in a transaction and return its result once that is durable.

        If it raises, its own changes are undone and the error is raised here. Raises UnavailableError if the database
        cannot be written: then nothing was changed, or nobody is told of a change (see the class)."""
        ...

    async def look(self, work: Work[T]) -> T:
        """`run` for work of a single statement that only reads; it sees what was acknowledged before."""
        ...

    def run_now(self, work: Work[T]) -> T:
        """`run` for callers without an event loop, and for longer work; blocks."""
        ...

    def later(self, work: Work[object]) -> None:
        """Do `work` as soon as it can be done; nobody waits for it. It may be done twice."""
        ...

    def migrate(self, component: str, steps: Sequence[Migration]) -> None:
        """Bring `component`'s tables up to `len(steps)`; each step runs once in the life of the database.

        Raises UnavailableError if a newer version of the product wrote it."""
        ...

    def aside(self, work: Work[object]) -> None:
        """Do `work` in a transaction beside the others, however long it takes: it touches no row that a call writes.
        Blocks."""
        ...

    def reading(self) -> AbstractContextManager[RecordConnection]:
        """A connection that only reads and that no writer waits for. Blocks. Raises UnavailableError, also for what
        fails in the block."""
        ...
