"""The file of a workspace: layout, versions, what opening it refuses."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.workspace.store import DATABASE_NAME, Store
from sentinel_rag.workspace.table_schemas import known_tables, reference_tables
from sentinel_rag.workspace.workspace import Workspace


def test_a_new_workspace_has_the_known_tables_empty(workspace: Workspace) -> None:
    assert workspace.tables() == []
    names = {table.name for table in workspace.tables(include_empty=True)}
    assert names == set(known_tables())
    assert len(names) == 53
    assert workspace.columns("SecurityIncident")["AlertIds"] == "dynamic"
    assert workspace.columns("SecurityIncident")["IncidentNumber"] == "int"
    assert workspace.columns("Nope") == {}


def test_every_known_table_leads_with_its_time_and_no_columns_differ_only_in_case() -> None:
    for table, columns in known_tables().items():
        assert next(iter(columns.items())) == ("TimeGenerated", "datetime"), table
        assert len({name.lower() for name in columns}) == len(columns), table
        assert {"TenantId", "Type"} <= set(columns), table


def test_the_tables_of_the_reference_have_columns_that_differ_in_more_than_case() -> None:
    for table, columns in reference_tables().items():
        assert columns, table
        assert len({name.lower() for name in columns}) == len(columns), table
    assert reference_tables()["DeviceTvmSoftwareVulnerabilities"]["CveId"] == "string"
    assert reference_tables()["ExposureGraphNodes"]["NodeProperties"] == "dynamic"
    assert reference_tables()["AADSignInEventsBeta"]["Timestamp"] == "datetime"


def test_a_table_of_the_reference_reads_as_empty_where_no_row_of_it_was_kept(workspace: Workspace) -> None:
    read = workspace.query("DeviceTvmSoftwareInventory | where DeviceName has 'a' | take 1")
    assert [(column.name, column.type) for column in read.columns] == [
        *reference_tables()["DeviceTvmSoftwareInventory"].items()
    ]
    assert read.rows == []
    assert workspace.query("union isfuzzy=true ExposureGraphNodes, Syslog | count").rows == [(0,)]
    everything = {column.name for column in workspace.query("union * | take 1").columns}
    assert "NodeProperties" not in everything  # only a name reads it


def test_rows_survive_closing_and_opening(tmp_path: Path) -> None:
    export = tmp_path / "x.csv"
    export.write_text("TimeGenerated,Computer\n2024-01-01T00:00:00Z,srv\n")
    first = Workspace.open(tmp_path / "w")
    first.import_path(export, table="Syslog")
    first.close()
    second = Workspace.open(tmp_path / "w", read_only=True)
    try:
        assert second.query("Syslog | project Computer").rows == [("srv",)]
        with pytest.raises(UsageError, match="read-only"):
            second.import_path(export, table="Syslog")
    finally:
        second.close()


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Workspace.open(tmp_path).close()
    with duckdb.connect(str(tmp_path / DATABASE_NAME)) as connection:
        connection.execute("INSERT INTO sentinel.layout VALUES (999, now())")
    with pytest.raises(UsageError, match="newer version") as refusal:
        Workspace.open(tmp_path)
    assert "Upgrade" in refusal.value.next_step


def test_an_older_layout_is_migrated(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / DATABASE_NAME)) as connection:
        connection.execute("CREATE SCHEMA sentinel")
        connection.execute("CREATE TABLE sentinel.layout (version INTEGER, applied_at TIMESTAMP)")
    opened = Workspace.open(tmp_path)
    try:
        assert opened.query("SecurityAlert | count").rows == [(0,)]
    finally:
        opened.close()


def test_what_is_no_workspace_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        Workspace.open(file)
    with pytest.raises(UsageError, match="no workspace"):
        Workspace.open(tmp_path / "nowhere", read_only=True)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / DATABASE_NAME).write_bytes(b"not a database" * 1000)
    with pytest.raises(UnavailableError, match="cannot be opened"):
        Workspace.open(damaged)


def test_a_failing_write_is_undone(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    try:

        def fail_in_the_middle() -> None:
            with store.writing() as cursor:
                cursor.execute("CREATE TABLE Half_CL (a INTEGER)")
                raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError):
            fail_in_the_middle()
        assert "Half_CL" not in store.schema()
    finally:
        store.close()


def test_nobody_else_on_the_machine_reads_a_workspace(tmp_path: Path) -> None:
    """The home may have been there before, open to all; what is below it is not."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "workspaces" / "soc"
    Store.open(folder).close()
    modes = {path: path.stat().st_mode & 0o777 for path in (folder.parent, folder, folder / DATABASE_NAME)}
    assert set(modes.values()) == {0o700, 0o600}
    assert modes[folder / DATABASE_NAME] == 0o600
