"""kill -9 in the middle of an import: nothing half-written stays, and the same import then works."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support import fork_server

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.workspace.workspace import Workspace
from waiting import WAIT_S

ROWS = 100_000
IMPORT = """
import sys
from pathlib import Path
from sentinel_rag.workspace.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
print("Importing", flush=True)
workspace.import_path(Path(sys.argv[2]))
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def big_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("big") / "Syslog.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["TimeGenerated", "Computer", "Facility", "SyslogMessage", "ProcessID"])
        for number in range(ROWS):
            second = number % 60
            writer.writerow(
                [f"2024-01-01T00:00:{second:02d}Z", f"srv-{number % 7}", "daemon", f"message {number}", number]
            )
    return path


def start_import(folder: Path, file: Path) -> subprocess.Popen[str]:
    process = fork_server.Process(
        [sys.executable, "-c", IMPORT, str(folder), str(file)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Importing")
    return process


@pytest.mark.requirement("DATA-5")
@pytest.mark.parametrize("megabytes_written", [0, 1, 2])
def test_kill_during_import_leaves_nothing_and_a_restart_imports_all(
    tmp_path: Path, big_file: Path, megabytes_written: int
) -> None:
    folder = tmp_path / "workspace"
    Workspace.open(folder).close()
    process = start_import(folder, big_file)
    deadline = time.monotonic() + WAIT_S
    while process.poll() is None and time.monotonic() < deadline:
        written = sum(path.stat().st_size for path in folder.glob("workspace.duckdb*"))
        staged = any((folder / "staging").iterdir())
        if staged and written >= megabytes_written << 20:
            break
        time.sleep(0.001)
    killed = process.poll() is None
    if killed:
        os.kill(process.pid, signal.SIGKILL)
    assert process.stdout is not None
    finished = "done" in process.stdout.read()
    process.stdout.close()
    process.wait()
    workspace = Workspace.open(folder)
    try:
        # A kill after the commit finds every row; one before it finds none; never a part.
        rows = {table.name: table.rows for table in workspace.tables()}
        assert rows in ({}, {"Syslog": ROWS})
        assert rows or not finished
        assert list((folder / "staging").iterdir()) == []
        (report,) = workspace.import_path(big_file)
        assert report.rows_read == ROWS
        assert report.rows_stored == (0 if rows else ROWS)
        assert workspace.query("Syslog | summarize count(), dcount(SyslogMessage)").rows == [(ROWS, ROWS)]
    finally:
        workspace.close()


@pytest.mark.requirement("DATA-5")
def test_a_workspace_in_use_is_refused_with_the_process_that_has_it(tmp_path: Path, big_file: Path) -> None:
    folder = tmp_path / "workspace"
    process = start_import(folder, big_file)
    try:
        with pytest.raises(UnavailableError) as refusal:
            Workspace.open(folder)
        assert str(process.pid) in str(refusal.value)
        assert "sentinel up" in refusal.value.next_step
    finally:
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
        process.wait()
