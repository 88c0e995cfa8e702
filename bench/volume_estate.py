"""A workspace of the size that a mid-sized company fills in a month, for the benchmarks of volume.

Two thousand people on three thousand machines: every table is one deterministic SELECT, written as Parquet and taken in
by the import that people use, so that rows lie in the database as theirs would. `build` says how long that took.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import duckdb

from bench.volume_columns import select_rows
from sentinel_rag.workspace.workspace import Workspace

ROWS = {
    "SecurityEvent": 1_000_000,
    "SigninLogs": 400_000,
    "DeviceProcessEvents": 1_000_000,
    "DeviceNetworkEvents": 800_000,
    "DeviceLogonEvents": 200_000,
    "DnsEvents": 500_000,
    "CommonSecurityLog": 1_000_000,
    "OfficeActivity": 400_000,
    "AuditLogs": 50_000,
    "AzureActivity": 50_000,
    "EmailEvents": 100_000,
    "UrlClickEvents": 20_000,
    "Heartbeat": 200_000,
    "Usage": 20_000,
    "ThreatIntelligenceIndicator": 50_000,
    "ThreatIntelIndicators": 50_000,
    "AADUserRiskEvents": 10_000,
    "AADRiskyUsers": 4_000,
    "SecurityAlert": 130_000,
    "SecurityIncident": 20_000,
}
"""Rows by table. A SecurityAlert row in four is a second version; an incident has five versions."""


@dataclass(frozen=True, slots=True)
class Build:
    """What `build` took."""

    rows: int
    import_s: float
    database_bytes: int


def build(folder: Path, *, scale: float = 1.0) -> Build:
    """Fill a new workspace in `folder`; `scale` multiplies every table."""
    workspace = Workspace.open(folder)
    spent = 0.0
    stored = 0
    with tempfile.TemporaryDirectory() as staging, duckdb.connect() as connection:
        connection.execute("SET threads=2")
        for table, rows in ROWS.items():
            path = Path(staging) / f"{table}.parquet"
            count = max(1, round(rows * scale))
            connection.execute(f"COPY ({select_rows(table, count)}) TO '{path}' (FORMAT parquet)")
            started = perf_counter()
            (report,) = workspace.import_path(path, table=table)
            spent += perf_counter() - started
            assert report.rows_stored == count, report
            assert not report.misfits, report.misfits
            stored += report.rows_stored
            path.unlink()
    workspace.close()
    size = sum(file.stat().st_size for file in folder.glob("workspace.duckdb*"))
    return Build(stored, round(spent, 2), size)
