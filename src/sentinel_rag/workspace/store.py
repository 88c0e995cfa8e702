"""One DuckDB file in one folder: opened hardened, migrated, and handed out as cursors.

After `open` no statement can read another file, load an extension or undo these settings, whatever SQL reaches it; the
one door for imports is the staging folder.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.workspace.table_schemas import DUCKDB_TYPES, known_tables, kql_type, quote_name, quote_text

if TYPE_CHECKING:
    import duckdb


# A migration is never edited after a release; a new one is appended.
Migration = Callable[["duckdb.DuckDBPyConnection"], None]


def create_table_sql(table: str, columns: Mapping[str, str]) -> str:
    """`CREATE TABLE` for KQL columns. A string is never null in KQL, so its column says so."""
    parts = [f"{quote_name(name)} {column_definition(type_)}" for name, type_ in columns.items()]
    return f"CREATE TABLE {quote_name(table)} ({', '.join(parts)})"


def empty_rows_sql(table: str, columns: Mapping[str, str]) -> str:
    """What stands behind FROM for a table that is not there: its columns and no row."""
    parts = [f"CAST(NULL AS {DUCKDB_TYPES[type_]}) AS {quote_name(name)}" for name, type_ in columns.items()]
    return f"(SELECT {', '.join(parts)} WHERE FALSE) AS {quote_name(table)}"


def column_definition(type_: str) -> str:
    """The SQL type of a stored column, with the default that stands for "no value"."""
    return DUCKDB_TYPES[type_] + (" DEFAULT ''" if type_ == "string" else "")


def _001_tables_and_import_records(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SEQUENCE sentinel.import_ids")
    connection.execute(
        "CREATE TABLE sentinel.imports (id BIGINT PRIMARY KEY, file VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, "
        "imported_at TIMESTAMP NOT NULL, report JSON NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE sentinel.rejects (import_id BIGINT NOT NULL, line BIGINT, reason VARCHAR NOT NULL, "
        "content VARCHAR NOT NULL)"
    )
    for table, columns in known_tables().items():
        connection.execute(create_table_sql(table, columns))


def _002_comment_names(connection: duckdb.DuckDBPyConnection) -> None:
    """GUIDs of comments that came through REST: the Comments column, as Sentinel logs it, has no place for them."""
    connection.execute(
        "CREATE TABLE sentinel.incident_comments (incident VARCHAR NOT NULL, name VARCHAR NOT NULL, "
        "created VARCHAR NOT NULL)"
    )


def _003_relation_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Names of an incident's relations to bookmarks, which BookmarkIds has no place for."""
    connection.execute(
        "CREATE TABLE sentinel.incident_relations (incident VARCHAR NOT NULL, name VARCHAR NOT NULL, "
        "bookmark VARCHAR NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (_001_tables_and_import_records, _002_comment_names, _003_relation_names)


DATABASE_NAME = "workspace.duckdb"
TIME_COLUMN = "TimeGenerated"


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """What all queries together may use: memory (an amount or a share of the machine's) and disk for what does not fit.

    A query that needs more fails, and only it.
    """

    memory: str = "50%"
    spill: str = "16GB"


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table with its row count and the times, in UTC, of its oldest and newest row."""

    name: str
    rows: int
    oldest: datetime | None
    newest: datetime | None

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "table": self.name,
            "rows": self.rows,
            "oldest": None if self.oldest is None else format_time(self.oldest),
            "newest": None if self.newest is None else format_time(self.newest),
        }


class Store:
    """The open database. `cursor` is for readers in any thread, `writing` for the one writer at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, *, read_only: bool) -> None:
        self._connection = connection
        self._write_lock = threading.Lock()
        self._schema_lock = threading.Lock()
        self._functions_lock = threading.Lock()
        self._has_functions = False
        self._schema: Mapping[str, Mapping[str, str]] | None = None
        self.folder = folder
        self.read_only = read_only

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False, limits: MemoryLimits | None = None) -> Store:
        """Open or create the workspace in `folder`. `limits` hold unless this process has it open already.

        Raises UnavailableError if another process has it open, UsageError if the path cannot hold a workspace or a
        newer version wrote it.
        """
        database = _prepare_folder(folder, read_only=read_only)
        connection = _connect(database, read_only=read_only)
        try:
            _harden(connection, folder, limits or MemoryLimits())
            _migrate(connection, database, read_only=read_only)
            if not read_only:
                database.chmod(0o600)  # DuckDB makes it as the umask says
        except BaseException:
            connection.close()
            raise
        return cls(connection, folder, read_only=read_only)

    @property
    def staging(self) -> Path:
        """The one folder that SQL may read files from."""
        return self.folder / "staging"

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own to the same database, for one thread."""
        cursor = self._connection.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    def give_functions(self, register: Callable[[duckdb.DuckDBPyConnection], None]) -> None:
        """Register functions of Python, once, for every cursor.

        On the connection that lives as long as the database: DuckDB looks back at the one that registered them.
        """
        with self._functions_lock:
            if not self._has_functions:
                register(self._connection)
                self._has_functions = True

    @contextmanager
    def writing(self, *, wait_s: float | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor inside one transaction, committed at the end or rolled back on any exception.

        Waits for the writer before it, at most `wait_s` seconds if given; then UnavailableError, with nothing written.
        """
        if self.read_only:
            raise UsageError(
                "This workspace is open read-only, so nothing can be added to it.",
                next_step="Open it without read_only.",
            )
        with self._writer(wait_s), self.cursor() as cursor:
            cursor.execute("BEGIN")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            self._forget_schema()

    @contextmanager
    def _writer(self, wait_s: float | None) -> Iterator[None]:
        if not self._write_lock.acquire(timeout=-1 if wait_s is None else wait_s):
            raise UnavailableError(
                "An import or another long write is running on this workspace.",
                next_step="Try again when it is done; nothing was written.",
            )
        try:
            yield
        finally:
            self._write_lock.release()

    def schema(self) -> Mapping[str, Mapping[str, str]]:
        """Table -> column -> KQL type of every table that a query may read. Cached until the next write."""
        with self._schema_lock:
            if self._schema is None:
                with self.cursor() as cursor:
                    self._schema = read_schema(cursor)
            return self._schema

    def _forget_schema(self) -> None:
        with self._schema_lock:
            self._schema = None

    def tables(self, *, include_empty: bool = False) -> list[TableInfo]:
        """The tables with rows (or all), by name."""
        parts = []
        for name, columns in self.schema().items():
            times = f"min({TIME_COLUMN}), max({TIME_COLUMN})" if TIME_COLUMN in columns else "NULL, NULL"
            parts.append(f"SELECT {quote_text(name)}, count(*), {times} FROM {quote_name(name)}")  # noqa: S608
        with self.cursor() as cursor:
            rows = cursor.execute(" UNION ALL ".join(parts)).fetchall()
        return sorted(
            (TableInfo(name, count, _utc(oldest), _utc(newest)) for name, count, oldest, newest in rows
             if count or include_empty),
            key=lambda table: table.name
        )  # fmt: skip

    def close(self) -> None:
        """Write everything to the database file and let go of it."""
        self._connection.close()


def read_schema(cursor: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Table -> column -> KQL type as this cursor's transaction sees it."""
    rows = cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE schema_name = 'main' AND NOT internal AND database_name = current_database() "
        "ORDER BY table_name, column_index"
    ).fetchall()
    tables: dict[str, dict[str, str]] = {}
    for table, column, type_ in rows:
        tables.setdefault(table, {})[column] = kql_type(type_)
    return tables


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)


def _prepare_folder(folder: Path, *, read_only: bool) -> Path:
    database = folder / DATABASE_NAME
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a workspace is a folder.", next_step="Give the path of a folder.")
    if read_only:
        if not database.exists():
            raise UsageError(
                f"There is no workspace in {folder}.",
                next_step="Create one with `sentinel workspace generate` or `sentinel workspace import FILE`.",
            )
        return database
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # also that of all workspaces is nobody else's
        folder.mkdir(exist_ok=True, mode=0o700)
        (folder / "staging").mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"The workspace folder {folder} cannot be created: {error.strerror}.",
            next_step="Choose a folder that you may write to (SENTINEL_HOME).",
        ) from error
    return database


def _connect(database: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    import duckdb

    try:
        return duckdb.connect(
            str(database),
            read_only=read_only,
            config={
                "python_enable_replacements": "false",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
            },
        )
    except duckdb.IOException as error:
        text = str(error)
        if "lock" in text.lower():
            process = re.search(r"PID (\d+)", text)
            holder = f"process {process[1]}" if process else "another process"
            raise UnavailableError(
                f"The workspace in {database.parent} is in use by {holder}.",
                next_step="If that is `sentinel up`, run the same command while it runs and it goes through it; "
                "otherwise stop that process.",
            ) from error
        raise UnavailableError(
            f"The workspace in {database.parent} cannot be opened: {_first_line(text)}",
            next_step="Check that the folder is readable; if the file is damaged, move it away and import again.",
        ) from error
    except duckdb.Error as error:
        raise UnavailableError(
            f"The workspace in {database.parent} cannot be opened: {_first_line(str(error))}",
            next_step="If it was written by another version of DuckDB, move it away and import again.",
        ) from error


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else "no reason given"


def _harden(connection: duckdb.DuckDBPyConnection, folder: Path, limits: MemoryLimits) -> None:
    """Settings that no later statement can change; the last one sees to that."""
    if _already_locked(connection):
        return
    spill = folder / "spill"
    _remove_leftovers(spill)
    for statement in (
        "SET TimeZone='UTC'",
        f"SET memory_limit={quote_text(limits.memory)}",
        f"SET temp_directory={quote_text(str(spill.resolve()))}",
        f"SET max_temp_directory_size={quote_text(limits.spill)}",
        f"SET allowed_directories=[{quote_text(str((folder / 'staging').resolve()) + '/')}]",
        # Two thirds of the time of a `union *` or `search`, whose statements have 80,000 columns; others are as fast.
        "SET disabled_optimizers='statistics_propagation'",
        "SET enable_external_access=false",
        "SET lock_configuration=true",
    ):
        connection.execute(statement)


def _remove_leftovers(spill: Path) -> None:
    """What a process that was killed had written to disk for its queries; this one is the only user now."""
    for path in spill.glob("duckdb_temp_*"):
        path.unlink(missing_ok=True)


def _already_locked(connection: duckdb.DuckDBPyConnection) -> bool:
    """A second `open` in the same process shares the first one's instance and its locked settings."""
    row = connection.execute("SELECT current_setting('lock_configuration')").fetchone()
    return row is not None and bool(row[0])


def _migrate(connection: duckdb.DuckDBPyConnection, database: Path, *, read_only: bool) -> None:
    exists = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE schema_name = 'sentinel' AND table_name = 'layout'"
    ).fetchone()
    version = 0
    if exists:
        row = connection.execute("SELECT max(version) FROM sentinel.layout").fetchone()
        version = row[0] if row and row[0] else 0
    if version > len(MIGRATIONS):
        raise UsageError(
            f"The workspace in {database.parent} was written by a newer version (layout {version}; this one knows "
            f"{len(MIGRATIONS)}).",
            next_step="Upgrade Sentinel RAG, or choose another folder.",
        )
    if version == len(MIGRATIONS):
        return
    if read_only:
        raise UsageError(
            f"The workspace in {database.parent} has layout {version} and must be upgraded before it is read.",
            next_step="Open it once without read_only.",
        )
    connection.execute("BEGIN")
    try:
        if not exists:
            connection.execute("CREATE SCHEMA sentinel")
            connection.execute("CREATE TABLE sentinel.layout (version INTEGER, applied_at TIMESTAMP)")
        for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
            migration(connection)
            connection.execute(
                "INSERT INTO sentinel.layout VALUES (?, ?)", [number, datetime.now(UTC).replace(tzinfo=None)]
            )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
