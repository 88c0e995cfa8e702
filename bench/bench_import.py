"""Import of a million CSV rows into a typed table, against DuckDB's own reader into a table of its own.

The import does more: it finds the format, hashes the file, checks each value against its column's type, keeps what
does not fit, writes the report and records what it stored. Both write to a database file on the same disk.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from bench.harness import paired, write
from sentinel_rag.workspace.workspace import Workspace

ROWS = 1_000_000


def make_file(path: Path) -> None:
    """Sign-ins as the portal exports them: 12 columns, two of them JSON, one of them a time."""
    duckdb.sql(
        f"""
        COPY (
          SELECT strftime(TIMESTAMP '2024-01-01' + to_milliseconds(i * 1500), '%Y-%m-%dT%H:%M:%S.%gZ') AS TimeGenerated,
                 'user' || (hash(i) % 5000) || '@contoso.example' AS UserPrincipalName,
                 md5(i::VARCHAR) AS Id,
                 '198.51.100.' || (i % 250) AS IPAddress,
                 CASE WHEN i % 19 = 0 THEN '50126' ELSE '0' END AS ResultType,
                 'Office 365 Exchange Online' AS AppDisplayName,
                 i % 900 AS DurationMs,
                 (i % 2 = 0)::VARCHAR AS IsInteractive,
                 '{{"city": "Oslo", "countryOrRegion": "NO", "n": ' || i || '}}' AS LocationDetails,
                 '{{"operatingSystem": "Windows", "browser": "Edge 126"}}' AS DeviceDetail,
                 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36' AS UserAgent,
                 'SigninLogs' AS Type
          FROM range({ROWS}) AS t(i)
        ) TO '{path}' (HEADER, DELIMITER ',')
        """
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "SigninLogs.csv"
        make_file(source)
        number = iter(range(1000))

        def ours() -> None:
            workspace = Workspace.open(Path(folder) / f"workspace{next(number)}")
            (report,) = workspace.import_path(source)
            assert report.rows_stored == ROWS
            assert report.misfits == ()
            workspace.close()

        def duckdb_reader() -> None:
            with duckdb.connect(str(Path(folder) / f"plain{next(number)}.duckdb")) as connection:
                connection.execute(f"CREATE TABLE SigninLogs AS SELECT * FROM read_csv('{source}')")

        first_import = paired(ours, duckdb_reader, runs=5)

        workspace = Workspace.open(Path(folder) / "again")
        workspace.import_path(source)

        def again() -> None:
            (report,) = workspace.import_path(source)
            assert report.rows_stored == 0

        second_import = paired(again, duckdb_reader, runs=3, warmup=0)
        workspace.close()
        write(
            "import",
            {
                "rows": ROWS,
                "file_mib": round(source.stat().st_size / 2**20, 1),
                "new_rows": first_import,
                "same_rows_again": second_import,
            },
            claim="Importing a million rows takes a small factor of DuckDB's own read_csv into a table.",
        )


if __name__ == "__main__":
    main()
