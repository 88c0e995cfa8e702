"""Files that are imported into the workspace: refused with a sentence, or every row accounted for, and none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.workspace.importing.importer import Importer
from sentinel_rag.workspace.importing.raw_rows import detect, write_json_lines
from sentinel_rag.workspace.importing.reports import ImportReport
from sentinel_rag.workspace.importing.source_files import Format, UnreadableFileError, inspect
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.table_schemas import quote_name


@contextmanager
def _opened_first_look(folder: Path) -> Iterator[Check]:
    path, lines = folder / "export.txt", folder / "lines.jsonl"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            source = inspect(path)
            if source.format is Format.JSON and source.encoding.startswith("utf-8"):
                write_json_lines(path, lines, name=path.name)
                for line in lines.read_text(encoding="utf-8").split("\n")[:-1]:
                    expect(line.startswith("{"), "a line that holds no object is taken for a row")
            elif source.format is Format.DELIMITED:
                dialect = detect(source.sample, complete=True)
                expect(len(dialect.separator) == 1, "fields are parted by no character, or by several")
        except UnreadableFileError as refused:
            _expect_sentence(refused)

    yield check


def _opened(suffix: str) -> Callable[[Path], AbstractContextManager[Check]]:
    @contextmanager
    def opened(folder: Path) -> Iterator[Check]:
        store = Store.open(folder / "workspace")
        importer = Importer(store)
        known = {table: dict(columns) for table, columns in store.schema().items()}
        path = folder / f"Fuzzed_CL{suffix}"

        def check(content: bytes) -> None:
            path.write_bytes(content)
            reports: list[ImportReport] = []
            try:
                reports = importer.import_path(path)
                _judge(store, reports)
                again = importer.import_path(path)
                expect(
                    sum(report.rows_stored for report in again) == 0
                    and [report.rows_read for report in again] == [report.rows_read for report in reports],
                    "the same file again adds rows, or is read otherwise",
                )
            except SentinelError as refused:
                _expect_sentence(refused)
                expect(not reports, "a file that was imported is refused when it is imported again")
                expect(store.schema() == known, "a refused file left a table or a column behind")
            finally:
                _forget(store, reports, known)

        try:
            yield check
        finally:
            store.close()

    return opened


def _judge(store: Store, reports: Sequence[ImportReport]) -> None:
    expect(bool(reports), "an import reports nothing")
    for report in reports:
        told = report.rows_stored + report.duplicates_skipped + report.rows_rejected
        expect(report.rows_read == told, f"{report.rows_read} rows were read, and {told} are accounted for")
        with store.cursor() as cursor:
            row = cursor.execute(f"SELECT count(*) FROM {quote_name(report.table)}").fetchone()  # quoted
        expect(row is not None and row[0] == report.rows_stored, "the table holds another number of rows than is told")


def _forget(store: Store, reports: Sequence[ImportReport], known: dict[str, dict[str, str]]) -> None:
    """Leave the workspace as the next input must find it."""
    if not reports and store.schema() == known:
        return
    with store.writing() as cursor:
        for table, columns in store.schema().items():
            if table not in known:
                cursor.execute(f"DROP TABLE {quote_name(table)}")
            elif any(report.table == table for report in reports):
                cursor.execute(f"DELETE FROM {quote_name(table)}")  # quoted
                for column in columns.keys() - known[table].keys():
                    cursor.execute(f"ALTER TABLE {quote_name(table)} DROP COLUMN {quote_name(column)}")


def _expect_sentence(refused: SentinelError) -> None:
    expect(str(refused) != "" and refused.next_step != "", "a refusal says nothing, or no next step")


def _csv_seeds() -> Sequence[bytes]:
    return [
        b'TimeGenerated,Computer,EventID,Note\n2026-11-28T09:30:00Z,srv-1,4624,"a, ""b""\n c"\n,srv-2,x,null\n',
        "\ufeffTimeGenerated [UTC];Konto;Größe\r\n28.11.2026 09:30:00;müller;1,5\r\n;;\r\n".encode(),
        "A\tB\n1\t2\n3\n4\t5\t6\n".encode("utf-16"),
        "Name❖Wert❖When\nä❖1❖2026-11-28\n".encode(),
        b'Syslog|x\n"open\nSyslog|y|z\n\xff\xfe|\x80\n',
        b"1,2\n3,4\n",
        b'a,a,A,," "\n1,2,3,4,5\n',
    ]


def _json_seeds() -> Sequence[bytes]:
    return [
        b'[{"TimeGenerated":"2026-11-28T09:30:00Z","Computer":"srv-1","EventID":4624,"D":{"a":[1,null,"x"]}},{"E":"x"}]',
        b'{"a":1}\n{"a":"2"}\nnot json\n{"a":null,"b":true}\n[1]\n',
        b'{"value":[{"name":"x","properties":{"severity":"High"}}],"nextLink":"y"}',
        b'{"tables":[{"name":"PrimaryResult","columns":[{"name":"A","type":"string"}],"rows":[["x"],["y",1]]}]}',
        b'{"a":1.0000000000000000001,"b":123456789012345678901234567890}\n',
        b'[1,"a",{"x":"\\ud83d\\ude00\\u0000"}]',
    ]


def _parquet_seeds() -> Sequence[bytes]:
    import duckdb

    with TemporaryDirectory() as scratch, duckdb.connect() as connection:
        path = Path(scratch) / "seed.parquet"
        connection.execute(
            "COPY (SELECT TIMESTAMP '2026-11-28 09:30:00' AS TimeGenerated, 's' || i AS Computer, "  # ours
            "i::INT AS EventID, {'a': [i, NULL], 'b': 1.5::DECIMAL(9,2)} AS D, '\\x00\\xFF'::BLOB AS Raw, true AS Ok "
            "FROM range(3) r(i)) "
            f"TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
        return [path.read_bytes(), b"PAR1PAR1", b"PAR1" + bytes(64) + b"PAR1"]


_CSV_TOKENS = (
    *(b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r\n", b"\r", b"\n\n", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe"),
    *(b"null",),
    *(b"TimeGenerated", b"Computer", b"EventID", b"2026-11-28T09:30:00Z", b"31.12.9999 23:59", b"-1e999", b"NaN"),
    *(b"0x1f",),
    *(b"9" * 400, b'{"a":1}', b"UnfitValues", b"_row", b"c0", b"#", b"\\", "❖".encode(), b"\xc3", b"a" * 300),
    *(b"sep=;\n",),
)
_JSON_TOKENS = (
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\u0000", b"\\ud800", b"null", b"true", b"NaN", b"1e999", b"-0"),
    *(b"//",),
    *(b'{"value":[{"a":1}]}', b'{"tables":[{}]}', b'"columns":[1]', b'"columns":[{"name":[]}]', b'"rows":[1]'),
    *(b"9" * 5_000,),
    *(b"[" * 2_000, b'{"a":' * 500, b'"a":1,"a":2', b'"":1', b'"TimeGenerated":5', b"\n", b"\r", b"\x00", b"\xff"),
    *(b"\xe2\x80\xa8",),
)

FIRST_LOOK = Target(
    name="import-first-look",
    promise="The first look at a file to import (encoding, format, separator, the objects of a JSON document) ends "
    "with a result or with a sentence and a next step.",
    opened=_opened_first_look,
    seeds=lambda: [*_csv_seeds(), *_json_seeds()],
    tokens=(*_CSV_TOKENS, *_JSON_TOKENS),
    largest=8_000,
    calls=(40_000, 3_000),
)
_PROMISE = (
    "is refused with a sentence and leaves nothing behind, or each of its rows is stored, a duplicate or rejected, as "
    "told; imported again it adds nothing."
)
IMPORT_CSV = Target(
    name="import-csv",
    promise=f"A delimited file {_PROMISE}",
    opened=_opened(".csv"),
    seeds=_csv_seeds,
    tokens=_CSV_TOKENS,
)
IMPORT_JSON = Target(
    name="import-json",
    promise=f"A JSON file {_PROMISE}",
    opened=_opened(".json"),
    seeds=_json_seeds,
    tokens=_JSON_TOKENS,
    largest=6_000,
)
IMPORT_PARQUET = Target(
    name="import-parquet",
    promise=f"A Parquet file {_PROMISE}",
    opened=_opened(".parquet"),
    seeds=_parquet_seeds,
    tokens=(b"PAR1", bytes(4), b"\xff\xff\xff\xff", b"\x15\x00", b"\x19\x2c", b"duckdb_schema", b"\x7f\xff\xff\xff"),
    largest=6_000,
)
