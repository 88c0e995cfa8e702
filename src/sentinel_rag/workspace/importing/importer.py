"""Imports files and folders: each file in one transaction, each with its report.

The top of this folder and what `Workspace` calls. A file that cannot be read raises when it was asked for alone, and
is a report with `error` when it is one of a folder; the others are imported all the same.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.workspace.importing.destinations import SeveralTablesError, clean_headers, destinations
from sentinel_rag.workspace.importing.loading import load, materialised
from sentinel_rag.workspace.importing.raw_rows import RawRows, open_rows
from sentinel_rag.workspace.importing.reports import ImportReport, Reject
from sentinel_rag.workspace.importing.service_shapes import reshaped
from sentinel_rag.workspace.importing.source_files import (
    Format,
    SourceFile,
    UnreadableFileError,
    files_under,
    inspect,
    is_packed,
    left_out,
    unpacked,
)
from sentinel_rag.workspace.store import Store, read_schema

if TYPE_CHECKING:
    import duckdb


MOST_COLUMNS = 1_000
"""Twice what a table of Log Analytics can have; a row of so many takes a minute, one of ten times as many hours."""
MOST_WITHOUT_ROW = 1 << 20
"""Bytes of a file without any row. To tell why each line of a larger one is none would take an hour."""
_SHOWN_REJECTS = 20
_SHOWN_LEFT_OUT = 10
_REJECTS_A_STATEMENT = 200
_ENDS_OF_EXPORTS = (10_000, 30_000, 100_000)
_FULL = "there may have been more."


class _TriedError(Exception):
    """Ends the transaction of a trial, so that nothing of it stays."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One way to read a file, by itself with the fast assumptions: `strict`, and not `thorough`."""

    source: SourceFile
    target: Path
    folder: Path
    table: str | None
    trial: bool
    strict: bool = True
    thorough: bool = False


class Importer:
    """Imports into `store`. One import at a time; queries go on meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        if not store.read_only:
            remove_leftovers(store)

    def import_path(self, path: Path, *, table: str | None = None, trial: bool = False) -> list[ImportReport]:
        """Import a file or every importable file of a folder; a `trial` tells what would become of each, and stores
        nothing. Raises SentinelError for a single file."""
        files = files_under(path)
        alone = not path.is_dir()
        reports: list[ImportReport] = []
        for file in files:
            try:
                take = self._import_packed if is_packed(file) else self._import_file
                reports += take(file, table, trial)
            except SentinelError as error:
                if alone:
                    raise
                reports.append(
                    ImportReport(file=str(file), table="", format="", error=str(error), next_step=error.next_step)
                )
        left = [] if alone else left_out(path)
        if left and reports:
            more = f" and {len(left) - _SHOWN_LEFT_OUT} more" if len(left) > _SHOWN_LEFT_OUT else ""
            note = (
                f"Not looked at in the folder: {', '.join(left[:_SHOWN_LEFT_OUT])}{more} (not the name of an export)."
            )
            reports[-1] = replace(reports[-1], notes=(*reports[-1].notes, note))
        return reports

    def _import_packed(self, path: Path, table: str | None, trial: bool) -> list[ImportReport]:
        """The files inside an archive or the sheets of a workbook, each told by its name in it."""
        reports: list[ImportReport] = []
        with staged(self._store) as folder:
            for inner, name in unpacked(path, folder):
                shown = f"{path}: {name}"
                try:
                    reports += [replace(each, file=shown) for each in self._import_file(inner, table, trial)]
                except SentinelError as error:
                    message = str(error).replace(str(inner), name)
                    reports.append(
                        ImportReport(file=shown, table="", format="", error=message, next_step=error.next_step)
                    )
        return reports

    def _import_file(self, path: Path, table: str | None, trial: bool) -> list[ImportReport]:
        import duckdb

        started = time.perf_counter()
        source = inspect(path)
        with staged(self._store) as folder:
            source, target, notes = reshaped(source, place(source, folder), folder)
            try:
                reports = self._stored(_Attempt(source, target, folder, table, trial))
            except duckdb.Error as error:
                if "No space left on device" in str(error):
                    raise UnavailableError(
                        f"The disk filled up while {path} was imported.",
                        next_step="Nothing of it was stored. Free some space, or set SENTINEL_HOME to another disk.",
                    ) from error
                raise UnreadableFileError(
                    f"{path} could not be imported: {str(error).splitlines()[0]}",
                    next_step="Nothing of it was stored. Please report the file's first lines.",
                ) from error
        seconds = time.perf_counter() - started
        reports = [replace(each, notes=(*notes, *each.notes), duration_s=seconds) for each in reports]
        return [replace(report, rejects=report.rejects[:_SHOWN_REJECTS]) for report in reports]

    def _stored(self, attempt: _Attempt) -> list[ImportReport]:
        """The reports of the first attempt that holds; a transaction that proves an assumption wrong is undone and
        repeated without it."""
        import duckdb

        while True:
            try:
                return self._attempted(attempt)
            except SeveralTablesError:
                attempt = replace(attempt, thorough=True)
            except duckdb.InvalidInputException:
                # The strict reader gives up on, for example, line ends of two kinds; the relaxed one does not.
                if not attempt.strict:
                    raise
                attempt = replace(attempt, strict=False)

    def _attempted(self, attempt: _Attempt) -> list[ImportReport]:
        reports: list[ImportReport] = []
        with suppress(_TriedError), self._store.writing() as cursor:
            reports = [replace(each, trial=attempt.trial) for each in _import_staged(cursor, attempt)]
            if attempt.trial:
                raise _TriedError
            _record(cursor, attempt.source, reports)
        return reports


def _import_staged(cursor: duckdb.DuckDBPyConnection, attempt: _Attempt) -> list[ImportReport]:
    source, target, folder = attempt.source, attempt.target, attempt.folder
    rows = open_rows(cursor, source, target, strict=attempt.strict)
    if not rows.headers:
        raise UnreadableFileError(
            f"{source.path} holds no row that can be read; the first fault is: {_first_fault(rows)}",
            next_step="Export it again.",
        )
    if rows.csv is not None and target.stat().st_size > MOST_WITHOUT_ROW:
        scans = (rows.csv.scan_sql(quotes=quotes) for quotes in (True, False))
        if not any(cursor.execute(f"SELECT 1 FROM {scan} LIMIT 1").fetchone() for scan in scans):  # noqa: S608  # our own
            raise UnreadableFileError(
                f"{source.path} has {target.stat().st_size >> 20} MB, and none of its lines is a row.",
                next_step="Export it again.",
            )
    if len(rows.headers) > MOST_COLUMNS:
        raise UnreadableFileError(
            f"{source.path} has {len(rows.headers):,} columns; a file may have {MOST_COLUMNS:,}.",
            next_step="Leave out what you do not ask about, or put it into one column as JSON.",
        )
    headers = clean_headers(rows.headers)
    schema, table, thorough = read_schema(cursor), attempt.table, attempt.thorough
    chosen = destinations(cursor, rows, headers, schema, path=source.path, table=table, thorough=thorough)
    if len(chosen) > 1:
        rows = materialised(cursor, rows, folder)
    says_null = source.says_null and source.format is Format.DELIMITED
    notes = ("A cell that holds only the word null was read as no value.",) if says_null else ()
    rows = replace(rows, notes=(*rows.notes, *notes))
    reports = [load(cursor, rows, destination, file=str(source.path), folder=folder) for destination in chosen]
    if source.format is Format.DELIMITED and (read := sum(each.rows_read for each in reports)) in _ENDS_OF_EXPORTS:
        reports[0] = replace(reports[0], notes=(*reports[0].notes, f"A portal's export ends at {read:,} rows: {_FULL}"))
    return [_with_rejects(reports[0], rows.rejects), *reports[1:]]


def _first_fault(rows: RawRows) -> str:
    if not rows.rejects:
        return "it has no records."
    first = rows.rejects[0]
    return f"line {first.line}: {first.reason}."


def _with_rejects(report: ImportReport, rejects: tuple[Reject, ...]) -> ImportReport:
    return replace(
        report,
        rows_read=report.rows_read + len(rejects),
        rows_rejected=report.rows_rejected + len(rejects),
        rejects=(*rejects, *report.rejects),
    )


def _record(cursor: duckdb.DuckDBPyConnection, source: SourceFile, reports: list[ImportReport]) -> None:
    """Keep every report, and every reject whole."""
    for report in reports:
        row = cursor.execute("SELECT nextval('sentinel.import_ids')").fetchone()
        import_id = row[0] if row else 0
        shown = replace(report, rejects=report.rejects[:_SHOWN_REJECTS])
        cursor.execute(
            "INSERT INTO sentinel.imports VALUES (?, ?, ?, ?, ?)",
            [
                import_id,
                report.file,
                source.sha256,
                datetime.now(UTC).replace(tzinfo=None),
                msgspec.json.encode(shown.to_dict()).decode(),
            ],
        )
        for first in range(0, len(report.rejects), _REJECTS_A_STATEMENT):
            part = report.rejects[first : first + _REJECTS_A_STATEMENT]
            cursor.execute(
                f"INSERT INTO sentinel.rejects VALUES {', '.join(['(?, ?, ?, ?)'] * len(part))}",  # noqa: S608
                [cell for reject in part for cell in (import_id, reject.line, reject.reason, reject.content)],
            )


# The one folder that the database may read, and how a source file gets there.
#
# Every import has a folder of its own under `staging`, named after this process, and removes it at the end; what a
# killed process left behind is removed at the next start. The source is linked where the file system allows, else
# copied; text in another encoding is rewritten as UTF-8.


@contextmanager
def staged(store: Store) -> Iterator[Path]:
    """A new folder that SQL may read until the block ends."""
    folder = store.staging.resolve() / f"{os.getpid()}-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(store: Store) -> None:
    """Remove the folders of processes that are gone: the store is open here, so no other can be importing."""
    for leftover in store.staging.iterdir():
        if not leftover.name.startswith(f"{os.getpid()}-"):
            shutil.rmtree(leftover, ignore_errors=True)


def place(source: SourceFile, folder: Path) -> Path:
    """A readable copy or link of `source` in `folder`, in UTF-8 if it is text."""
    target = folder / f"source{'.parquet' if source.format is Format.PARQUET else '.txt'}"
    if source.encoding in ("utf-8", "utf-8-sig", "binary") and not source.preamble:
        try:
            os.link(source.path.resolve(), target)
        except OSError:
            shutil.copyfile(source.path, target)
        return target
    with (
        source.path.open(encoding=source.encoding, errors="replace", newline="") as text,
        target.open("w", encoding="utf-8", newline="") as utf8,
    ):
        text.read(len(source.preamble))
        shutil.copyfileobj(text, utf8, 1 << 20)
    return target
