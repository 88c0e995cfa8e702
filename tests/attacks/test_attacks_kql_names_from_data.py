"""The attacker writes log rows: keys of a bag, and values that `evaluate pivot` makes into columns.

Such names become identifiers of the SQL. The attacker hopes to end the identifier and to read another table, to change
data, or to make the workspace fail for everybody.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.workspace.queries import KqlError
from sentinel_rag.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("DATA-4")

HOSTILE = [
    'x" FROM "SigninLogs" --',
    "x'); DROP TABLE Syslog; --",
    '"',
    "'",
    "a;b",
    "$1",
    "{0}",
    "%s",
    "*",
    "select",
    "a\nb",
    "日本",
    "x" * 3000,
    "count(*)",
    "a.b",
    "$.secret",
]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("attacked")
    workspace = Workspace.open(folder / "workspace")
    rows = [
        {"TimeGenerated": "2024-07-02T00:00:00Z", "Computer": name, "SyslogMessage": json.dumps({name: position})}
        for position, name in enumerate(HOSTILE)
    ]
    (folder / "Syslog.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    workspace.import_path(folder / "Syslog.jsonl", table="Syslog")
    secret = {"TimeGenerated": "2024-07-02T00:00:00Z", "UserPrincipalName": "secret@contoso.example"}
    (folder / "SigninLogs.jsonl").write_text(json.dumps(secret))
    workspace.import_path(folder / "SigninLogs.jsonl", table="SigninLogs")
    yield workspace
    workspace.close()


def test_values_become_columns_and_nothing_else(attacked: Workspace) -> None:
    answer = attacked.query("Syslog | project Computer | evaluate pivot(Computer)")
    assert [column.name for column in answer.columns] == sorted(HOSTILE)
    assert answer.rows == [(1,) * len(HOSTILE)]
    assert answer.tables == ("Syslog",)


def test_keys_become_columns_with_their_own_values(attacked: Workspace) -> None:
    answer = attacked.query("Syslog | project b = parse_json(SyslogMessage) | evaluate bag_unpack(b)")
    names = [column.name for column in answer.columns]
    assert names == sorted(HOSTILE)
    found = {name: [row[place] for row in answer.rows if row[place] is not None] for place, name in enumerate(names)}
    assert found == {name: [position] for position, name in enumerate(HOSTILE)}
    assert "secret" not in repr(answer.rows)


def test_the_data_is_as_it_was(attacked: Workspace) -> None:
    for kql in ("Syslog | project Computer | evaluate pivot(Computer)", "search 'DROP' | count"):
        attacked.query(kql)
    assert attacked.query("Syslog | count").rows == [(len(HOSTILE),)]


def test_too_many_names_are_refused_and_the_workspace_goes_on(tmp_path: Path) -> None:
    workspace = Workspace.open(tmp_path / "workspace")
    with pytest.raises(KqlError, match="columns"):
        workspace.query("range x from 1 to 5000 step 1 | evaluate pivot(x)")
    assert workspace.query("print 1").rows == [(1,)]
    workspace.close()


def test_a_question_about_the_data_keeps_to_the_allowed_tables(attacked: Workspace) -> None:
    for kql in (
        "['/etc/passwd'] | evaluate pivot(x)",
        "duckdb_tables | evaluate bag_unpack(x)",
        "Syslog | join kind=inner (['sentinel.imports'] | evaluate pivot(file)) on Computer",
    ):
        with pytest.raises(KqlError) as refusal:
            attacked.query(kql)
        assert refusal.value.kql_code in ("SEM0100", "SEN0001")
