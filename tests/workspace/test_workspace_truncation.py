"""A query that asks to be cut is cut and says so: in the engine, over the wire, on the command line's own way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from arm_client import WORKSPACE_ID, ArmClient, app_over

from sentinel_rag.workspace.queries import KqlError, KqlSyntaxError
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.requirement("DATA-4")


@pytest.fixture
def filled(workspace: Workspace, tmp_path: Path) -> Workspace:
    export = tmp_path / "AzureActivity.jsonl"
    rows = [
        {"TimeGenerated": f"2024-07-{1 + n:02d}T00:00:00Z", "OperationNameValue": f"op {n}", "Caller": "a;b"}
        for n in range(12)
    ]
    export.write_text("".join(json.dumps(row) + "\n" for row in rows))
    workspace.import_path(export, table="AzureActivity")
    return workspace


@pytest.mark.parametrize(
    ("kql", "rows", "partial"),
    [
        ("set truncationmaxrecords=5; AzureActivity", 5, "record count limit 5"),
        ("set truncationmaxrecords = 5;\nAzureActivity | where isnotempty(Caller)", 5, "record count limit 5"),
        ("// why\nSET TruncationMaxRecords=int(5);AzureActivity", 5, "record count limit 5"),
        ("set notruncation; set truncationmaxrecords=5; AzureActivity", 5, "record count limit 5"),
        ("set truncationmaxrecords=12; AzureActivity", 12, ""),
        ("set truncationmaxrecords=99999999; AzureActivity", 12, ""),
        ("set truncationmaxsize=2000; AzureActivity | project OperationNameValue", 12, ""),
        ("set truncationmaxsize=50; AzureActivity | project OperationNameValue", 5, "data size limit 50"),
        ("set notruncation;\nAzureActivity", 12, ""),
        ("AzureActivity | where OperationNameValue != 'set truncationmaxrecords=5; x'", 12, ""),
        ("print x = 'set truncationmaxrecords=0; '", 1, ""),
    ],
)
def test_a_query_that_asks_to_be_cut_is_partial(filled: Workspace, kql: str, rows: int, partial: str) -> None:
    """Field report C2."""
    answer = filled.query(kql)
    assert len(answer.rows) == rows
    assert partial in answer.partial
    assert bool(answer.partial) is bool(partial)


def test_a_limit_that_is_none_is_refused(filled: Workspace) -> None:
    for value in ("many", "-1", "", "1.5"):
        with pytest.raises(KqlError, match="needs a whole number"):
            filled.query(f"set truncationmaxrecords={value}; AzureActivity")


def test_places_of_errors_stay_where_the_person_wrote_them(filled: Workspace) -> None:
    with pytest.raises(KqlSyntaxError) as caught:
        filled.query("set truncationmaxrecords=5;\nAzureActivity | wher x")
    assert caught.value.line == 2


def test_the_wire_carries_the_warning(filled: Workspace) -> None:
    """Field report C2, as a client sees it."""
    with serve(app_over(filled)) as url:
        client = ArmClient(url, audience="https://api.loganalytics.io")
        reply = client.send(
            "POST",
            f"/v1/workspaces/{WORKSPACE_ID}/query",
            {"query": "set truncationmaxrecords=5; AzureActivity"},
            {"authorization": f"Bearer {client.token}"},
        )
    body: Any = reply.body
    assert (reply.status, len(body["tables"][0]["rows"]), body["error"]["code"]) == (200, 5, "PartialError")
