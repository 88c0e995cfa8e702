"""Bad input, at the command line: one clear sentence, the next step, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server

from waiting import WAIT_S

HEADER = "TimeGenerated,Computer,SyslogMessage,Facility,SeverityLevel\n"


def refused(done: Any, code: int, *words: str) -> None:
    """It ended with `code`, and said so in sentences."""
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr.startswith("sentinel: ")
    assert "Traceback" not in done.stderr
    assert "Next: " in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    "arguments", [("ask",), ("workspace", "query"), ("tools", "no_such_tool"), ("ask", "x" * 9000)], ids=str
)
def test_wrong_usage_is_exit_code_2(sentinel: Any, arguments: tuple[str, ...]) -> None:
    refused(sentinel.run(*arguments), 2)


def test_an_unknown_command_names_the_known_ones(sentinel: Any) -> None:
    done = sentinel.run("frobnicate")
    assert done.returncode == 2
    assert "workspace" in done.stderr


def test_every_wrong_setting_is_listed(sentinel: Any) -> None:
    wrong = type(sentinel)(sentinel.home, {"SENTINEL_TIMEZONE": "Mars", "SENTINEL_MODEL": "psychic"})
    refused(wrong.run("ask", "anything?"), 2, "SENTINEL_TIMEZONE", "SENTINEL_MODEL")


def test_a_broken_env_file_is_told_with_its_line(sentinel: Any, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SENTINEL_TIMEZONE=UTC\nnonsense here\n")
    refused(sentinel.run("ask", "anything?", cwd=tmp_path), 2, ".env:2")


def test_a_broken_policy_is_told_with_its_line(sentinel: Any, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("tools:\n  - name: query_incidents\n    taint_rulez: []\n")
    wrong = type(sentinel)(sentinel.home, {"SENTINEL_CONFIG": str(policy)})
    done = wrong.run("ask", "how many incidents?")
    refused(done, 2, "policy.yaml:3", "taint_rules")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.csv", None, ("absent.csv",)),
        ("empty.csv", b"", ("empty",)),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00" + bytes(range(256)), ("picture.csv",)),
        ("broken.json", b'[{"TimeGenerated": "2024-01-01T00:00:00Z", ', ("broken.json",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_imported(
    sentinel: Any, tmp_path: Path, name: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    done = sentinel.run("workspace", "import", str(path))
    assert done.returncode in (1, 2)
    refused(done, done.returncode, *words)


def test_a_wrong_table_name_is_told_with_the_nearest(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + "2024-01-01T00:00:00Z,web1,hello,auth,info\n")
    refused(sentinel.run("workspace", "import", str(path), "--table", "Syslogg"), 2, "Syslog")
    assert not any(t["rows"] for t in json.loads(sentinel.run("workspace", "tables", "--json").stdout or "[]"))


def test_a_malformed_line_is_told_and_kept_and_the_rest_is_stored(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    good = "".join(f"2024-01-01T00:00:{i:02}Z,web{i},hello {i},auth,info\n" for i in range(20))
    path.write_text(HEADER + good + "2024-01-01T00:01:00Z,web99,too,many,values,here,indeed\n")
    report = sentinel.json("workspace", "import", str(path), "--table", "Syslog")[0]
    assert report["rows_stored"] == 20
    assert "22" in json.dumps(report), "the malformed line's number is not in the report"
    again = sentinel.json("workspace", "import", str(path), "--table", "Syslog")[0]
    assert again["rows_stored"] == 0
    assert {t["table"]: t["rows"] for t in sentinel.json("workspace", "tables")}["Syslog"] == 20


def test_a_killed_import_leaves_nothing_and_a_second_try_everything(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w") as stream:
        stream.write(HEADER)
        for i in range(300_000):
            stream.write(f"2024-01-01T00:00:{i % 60:02}Z,web{i},message number {i},auth,info\n")
    database = sentinel.home / "workspaces" / "default"
    with sentinel.start("workspace", "import", str(path), "--table", "Syslog") as process:
        while not database.exists() and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    tables = {t["table"]: t["rows"] for t in sentinel.json("workspace", "tables")}
    assert tables.get("Syslog", 0) in (0, 300_000)
    sentinel.json("workspace", "import", str(path), "--table", "Syslog")
    assert {t["table"]: t["rows"] for t in sentinel.json("workspace", "tables")}["Syslog"] == 300_000


def test_an_empty_workspace_says_how_to_fill_it(sentinel: Any) -> None:
    done = sentinel.run("ask", "how many incidents are there?")
    assert done.returncode == 3
    assert "workspace import" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("kql", ["SecurityAlert | whre x", "NoSuchTable | count", "SecurityAlert | where Sevrity == 1"])
def test_wrong_kql_is_told_with_its_place(generated: Any, kql: str) -> None:
    refused(generated.run("workspace", "query", kql), 2)


def test_a_database_that_another_program_holds_and_a_second_up_are_told(generated: Any, tmp_path: Path) -> None:
    generated = generated.copy(tmp_path / "home")
    script = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    database = generated.home / "workspaces" / "default" / "workspace.duckdb"
    with fork_server.Process(
        [sys.executable, "-c", script, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        refused(generated.run("workspace", "tables"), 1, str(other.pid))
        refused(generated.run("ask", "how many incidents?"), 1, str(other.pid))
        other.communicate("")
    with generated.up():
        refused(generated.run("up"), 1, "Another sentinel process")


def test_a_binary_file_of_256_gigabytes_is_refused_without_reading_them(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    with path.open("wb") as stream:
        stream.write(b'TimeGenerated,Computer,SyslogMessage\n2024-01-01T00:00:00Z,web1,"')
        stream.truncate(2**38)  # a sparse file: one quoted field of NUL bytes that never ends
    done = sentinel.run("workspace", "import", str(path), "--table", "Syslog")
    refused(done, done.returncode, "claims.csv")
    assert done.returncode in (1, 2)


def test_a_parquet_file_whose_field_claims_two_gigabytes_is_refused(sentinel: Any, tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "rows.parquet"
    marker = "x" * 1_000
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT '2024-01-01T00:00:00Z' AS TimeGenerated, 'web1' AS Computer, '{marker}' AS SyslogMessage) "
            f"TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
    content = path.read_bytes()
    place = content.index(marker.encode()) - 4
    assert content[place : place + 4] == (1_000).to_bytes(4, "little"), "parquet's length before a plain string"
    path.write_bytes(content[:place] + (2**31 - 1).to_bytes(4, "little") + content[place + 4 :])
    done = sentinel.run("workspace", "import", str(path), "--table", "Syslog")
    refused(done, done.returncode, "rows.parquet")
    assert not sentinel.json("workspace", "tables")


def test_an_import_of_which_nothing_was_a_row_is_exit_code_1(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + '2024-01-01T00:00:00Z,web1,"an unclosed quote,auth,info\n')
    report = sentinel.json("workspace", "import", str(path), "--table", "Syslog", code=1)[0]
    assert (report["rows_stored"], report["rows_rejected"]) == (0, 1)


def test_a_file_of_one_column_is_asked_about(sentinel: Any, tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("root:x:0:0\nbin:x:1:1\n")
    refused(sentinel.run("workspace", "import", str(path)), 2, "one column", "--table")


@pytest.mark.parametrize(
    "end",
    [
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T00:00:00Z",
        "yesterday",
        "2024-01-01T00:00:00",
    ],
)
def test_an_impossible_end_of_the_estate(sentinel: Any, end: str) -> None:
    refused(sentinel.run("workspace", "generate", "--workspace", "sample", "--end", end), 2)


def test_an_audit_before_there_is_one(sentinel: Any) -> None:
    refused(sentinel.run("audit", "show"), 1, "no audit journal yet")


@pytest.mark.parametrize("victim", ["workspace", "agent"])
def test_a_zone_killed_during_a_served_import_leaves_all_or_nothing(sentinel: Any, tmp_path: Path, victim: str) -> None:
    path = tmp_path / "rows.csv"
    rows = 200_000
    with path.open("w") as stream:
        stream.write(HEADER)
        stream.writelines(f"2024-01-01T00:00:{i % 60:02}Z,web{i},message number {i},auth,info\n" for i in range(rows))
    with sentinel.start("up", "--json") as zones:
        parts = json.loads(zones.stdout.readline())
        with sentinel.start("workspace", "import", str(path), "--table", "Syslog") as importing:
            staging = sentinel.home / "workspaces" / "default" / "staging"
            while importing.poll() is None and not any(staging.iterdir()):
                time.sleep(0.002)
            os.kill(parts[victim]["pid"], signal.SIGKILL)
            _, errors = importing.communicate(timeout=WAIT_S)
        zones.communicate(timeout=WAIT_S)
    assert "Traceback" not in errors
    assert importing.returncode in (0, 1)
    kept = {t["table"]: t["rows"] for t in sentinel.json("workspace", "tables")}.get("Syslog", 0)
    assert kept in (0, rows)
    sentinel.json("workspace", "import", str(path), "--table", "Syslog")
    assert {t["table"]: t["rows"] for t in sentinel.json("workspace", "tables")}["Syslog"] == rows
