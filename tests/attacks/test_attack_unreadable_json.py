"""Rows that would hide themselves. The attacker controls texts of a row (a command line, a title, a comment) and writes
what cannot be carried on: half of a surrogate pair, JSON nested without end. Refused is the hiding: the row is shown,
its neighbours are shown, and what was replaced is told as U+FFFD or as text that does not parse.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "sentinel"))

from estate_rows import alert, guid, incident
from sentinel_servers import Served, workspace_app

from sentinel_rag.sentinel.response_bodies import load_json
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio

HALF = '[{"Type":"process","CommandLine":"evil \\ud800 \\\\ud800 \\ud83d\\ude00","ProcessId":"\\udc00"}]'
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("hiding")
    workspace = Workspace.open(folder / "workspace")
    ids = [guid(f"alert {name}") for name in ("half", "deep", "plain")]
    tables = {
        "SecurityAlert": [
            alert(
                "half",
                "2024-08-01T08:00:00Z",
                Entities=HALF,
                ExtendedProperties='{"Custom Details": "{\\"k\\": \\"\\\\ud800\\"}"}',
                RemediationSteps='["step \\ud800"]',
            ),
            alert("deep", "2024-08-01T08:01:00Z", Entities=DEEP, Techniques=DEEP, ExtendedProperties=DEEP),
            alert("plain", "2024-08-01T08:02:00Z"),
        ],
        "SecurityIncident": [incident(1, "2024-08-01T09:00:00Z", AlertIds=ids, Comments=DEEP, Labels=DEEP)],
    }
    for table, rows in tables.items():
        path = folder / f"{table}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        workspace.import_path(path, table=table)
    with serve(workspace_app(workspace)) as url:
        yield Served(url)
    workspace.close()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query_alerts", {}),
        ("query_alerts", {"entity": "evil"}),
        ("query_incidents", {}),
        ("get_incident_detail", {"incident": "1"}),
        ("get_top_entities", {"kind": "process"}),
        ("get_threat_summary", {}),
    ],
)
async def test_no_row_can_make_a_result_unfit_to_be_sent(estate: Any, tool: str, arguments: dict[str, Any]) -> None:
    result = await estate.ask(tool, **arguments)
    assert json.dumps(result.to_dict(), ensure_ascii=False).encode()


async def test_the_rows_are_all_shown_with_what_could_be_read(estate: Any) -> None:
    rows = {row["name"]: row for row in (await estate.ask("query_alerts")).rows}
    assert set(rows) == {"half", "deep", "plain"}
    assert rows["half"]["entities"] == [
        {
            "kind": "process",
            "name": "evil \ufffd \\ud800 \U0001f600",
            "process_id": "\ufffd",
            "command_line": "evil \ufffd \\ud800 \U0001f600",
        }
    ]
    assert rows["half"]["custom_details"] == {"k": "\ufffd"}
    assert rows["half"]["remediation_steps"] == ["step \ufffd"]
    assert rows["deep"]["entities"] == []
    detail = (await estate.ask("get_incident_detail", incident="1", detail="full")).rows[0]
    assert (len(detail["alerts"]), detail["comments"], detail["labels"]) == (3, [], [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\ud800"', "\\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
        ('"a\nb"', "a\nb"),
    ],
)
def test_half_a_pair_is_replaced_and_nothing_else(text: str | bytes, value: str) -> None:
    assert load_json(text) == value


def test_json_nested_without_end_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        load_json(DEEP)
