"""KQL through the embedded workspace against the same question as hand-written SQL, over a million rows.

Both read the same tables in the same process, whose processor time is compared. The translation is cached after the
first run, as it is in use; its cost alone is measured apart.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from bench.harness import paired, timings, write
from sentinel_rag.workspace.queries import TimeRange, translate
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.workspace import Workspace

ROWS = 1_000_000

QUERIES: dict[str, tuple[str, str]] = {
    "has": (
        "DeviceProcessEvents | where ProcessCommandLine has 'mimikatz' | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE ProcessCommandLine ILIKE '%mimikatz%' "
        "AND regexp_matches(ProcessCommandLine, '(?i)(^|[^\\pL\\pN])mimikatz($|[^\\pL\\pN])')",
    ),
    "contains": (
        "DeviceProcessEvents | where ProcessCommandLine contains 'katz' | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE ProcessCommandLine ILIKE '%katz%'",
    ),
    "has_any": (
        "DeviceProcessEvents | where ProcessCommandLine has_any ('mimikatz', 'comsvcs') | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE "
        "regexp_matches(ProcessCommandLine, '(?i)(^|[^\\pL\\pN])(mimikatz|comsvcs)($|[^\\pL\\pN])')",
    ),
    "has_any_of_eight": (
        "DeviceProcessEvents | where ProcessCommandLine has_any ('mimikatz', 'comsvcs', 'procdump', 'sekurlsa', "
        "'lsadump', 'certutil', 'bitsadmin', 'regsvr32') | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE regexp_matches(ProcessCommandLine, "
        "'(?i)(^|[^\\pL\\pN])(mimikatz|comsvcs|procdump|sekurlsa|lsadump|certutil|bitsadmin|regsvr32)"
        "($|[^\\pL\\pN])')",
    ),
    "has_cs": (
        "DeviceProcessEvents | where ProcessCommandLine has_cs 'mimikatz' | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE contains(ProcessCommandLine, 'mimikatz') "
        "AND regexp_matches(ProcessCommandLine, '(^|[^\\pL\\pN])mimikatz($|[^\\pL\\pN])')",
    ),
    "hasprefix": (
        "DeviceProcessEvents | where ProcessCommandLine hasprefix 'mimi' | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE ProcessCommandLine ILIKE '%mimi%' "
        "AND regexp_matches(ProcessCommandLine, '(?i)(^|[^\\pL\\pN])mimi')",
    ),
    "startswith": (
        "DeviceProcessEvents | where ProcessCommandLine startswith 'c:\\\\temp' | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE ProcessCommandLine ILIKE 'c:\\temp%'",
    ),
    "in_any_case": (
        "DeviceProcessEvents | where FileName in~ ('CMD.exe', 'powershell.EXE') | count",
        "SELECT count(*) FROM DeviceProcessEvents WHERE lower(FileName) IN ('cmd.exe', 'powershell.exe')",
    ),
    "make_set": (
        "DeviceProcessEvents | summarize s = make_set(AccountName) by FileName | project n = array_length(s)",
        "SELECT len(list(DISTINCT AccountName)) FROM DeviceProcessEvents GROUP BY FileName",
    ),
    "summarize": (
        "DeviceProcessEvents | summarize count(), dcount(AccountName) by DeviceName | top 10 by count_",
        "SELECT DeviceName, count(*) AS n, count(DISTINCT AccountName) FROM DeviceProcessEvents "
        "GROUP BY DeviceName ORDER BY n DESC LIMIT 10",
    ),
    "bin": (
        "DeviceProcessEvents | where TimeGenerated >= datetime(2024-01-05) "
        "| summarize count() by bin(TimeGenerated, 1h)",
        "SELECT time_bucket(INTERVAL 1 HOUR, TimeGenerated) AS h, count(*) FROM DeviceProcessEvents "
        "WHERE TimeGenerated >= TIMESTAMP '2024-01-05' GROUP BY h",
    ),
    "join": (
        "DeviceProcessEvents | where FileName == 'cmd.exe' "
        "| join kind=inner (IdentityInfo | project AccountName, Department) on AccountName "
        "| summarize count() by Department",
        "SELECT Department, count(*) FROM DeviceProcessEvents JOIN IdentityInfo USING (AccountName) "
        "WHERE FileName = 'cmd.exe' GROUP BY Department",
    ),
    "arg_max": (
        "DeviceProcessEvents | summarize arg_max(TimeGenerated, ProcessCommandLine) by DeviceName",
        "SELECT DeviceName, max(TimeGenerated), arg_max(ProcessCommandLine, TimeGenerated) "
        "FROM DeviceProcessEvents GROUP BY DeviceName",
    ),
    "twenty_thousand_rows": (
        "DeviceProcessEvents | where FileName == 'git.exe' "
        "| project TimeGenerated, DeviceName, ProcessCommandLine | take 20000",
        "SELECT TimeGenerated, DeviceName, ProcessCommandLine FROM DeviceProcessEvents "
        "WHERE FileName = 'git.exe' LIMIT 20000",
    ),
}

FILL = f"""
    INSERT INTO DeviceProcessEvents (TimeGenerated, DeviceName, AccountName, FileName, ProcessCommandLine)
    SELECT TIMESTAMP '2024-01-01' + to_milliseconds(CAST(i * 700 AS BIGINT)), 'wks-' || (hash(i) % 2000),
           'user' || (hash(i, 1) % 3000),
           ['cmd.exe', 'powershell.exe', 'git.exe', 'svchost.exe'][CAST(hash(i, 2) % 4 AS INTEGER) + 1],
           CASE WHEN i % 5000 = 0 THEN 'C:\\Temp\\mimikatz.exe sekurlsa::logonpasswords'
                ELSE 'C:\\Windows\\System32\\cmd.exe /c start ' || (hash(i, 3) % 100000) || ' --flag=value' END
    FROM range({ROWS}) AS t(i)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder))
        with store.writing() as cursor:
            cursor.execute(FILL)
            cursor.execute(
                "INSERT INTO IdentityInfo (TimeGenerated, AccountName, Department) "
                "SELECT TIMESTAMP '2024-01-01', 'user' || i, 'dep' || (i % 12) FROM range(3000) AS t(i)"
            )
        workspace = Workspace(store)
        measured: dict[str, Any] = {"table_rows": ROWS}
        with store.cursor() as connection:
            for name, (kql, sql) in QUERIES.items():
                expected = connection.execute(sql).fetchall()
                assert len(workspace.query(kql).rows) == len(expected), name
                measured[name] = paired(
                    partial(workspace.query, kql),
                    partial(_fetch, connection, sql),
                    runs=9,
                    clock=process_time,
                )
        measured["translate_only"] = timings([_translate(kql, store) for kql, _ in QUERIES.values() for _ in range(3)])
        workspace.close()
        write("kql", measured, claim="KQL on the embedded workspace costs little more than the same SQL by hand.")


def _fetch(connection: Any, sql: str) -> object:
    return connection.execute(sql).fetchall()


def _translate(kql: str, store: Store) -> float:
    start = process_time()
    translate(kql, store.schema(), TimeRange())
    return process_time() - start


if __name__ == "__main__":
    main()
