"""search_logs: where a text occurs, over every table of a workspace."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.query_results import QueryErrorCode

pytestmark = pytest.mark.anyio
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
MONDAY, TUESDAY = "2024-07-01T08:00:00Z", "2024-07-02T08:00:00Z"


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    return serving(
        DeviceProcessEvents=[
            {
                "TimeGenerated": TUESDAY,
                "DeviceName": "srv-01.corp.example",
                "AccountName": "svc-backup",
                "ActionType": "ProcessCreated",
                "FileName": "rclone.exe",
                "ProcessCommandLine": f"{'-' * 600} rclone.exe copy D:\\ remote:x --bwlimit 8M",
                "SHA256": HASH,
            }
        ],
        DeviceFileEvents=[
            {"TimeGenerated": MONDAY, "DeviceName": "wks-02", "FileName": "tool.bin", "SHA256": HASH.upper()},
            {"TimeGenerated": TUESDAY, "DeviceName": "wks-03", "FileName": "other.bin", "SHA256": "0" * 64},
        ],
        SecurityEvent=[
            {"TimeGenerated": MONDAY, "EventID": 4688, "Computer": "srv-09", "CommandLine": "whoami /all"},
        ],
        SigninLogs=[{"TimeGenerated": MONDAY, "UserPrincipalName": "ana@corp.example", "IPAddress": "203.0.113.66"}],
        Syslog=[{"TimeGenerated": TUESDAY, "Computer": "fw", "SyslogMessage": 'drop 203.0.113.66 "; print 1 // x'}],
        Odd_CL=[{"TimeGenerated": TUESDAY, "Note_s": "seen 203.0.113.66 once"}],
    )


async def test_a_hash_is_found_in_every_table_in_any_case_with_who_and_where(estate: Any) -> None:
    result = await estate.ask("search_logs", text=HASH)
    assert [(row["table"], row["host"], row["account"], row["found_in"]) for row in result.rows] == [
        ("DeviceProcessEvents", "srv-01.corp.example", "svc-backup", ["SHA256"]),
        ("DeviceFileEvents", "wks-02", None, ["SHA256"]),
    ]
    assert result.summary["by_table"] == {"DeviceFileEvents": 1, "DeviceProcessEvents": 1}
    assert result.summary["oldest"] == {"DeviceFileEvents": MONDAY, "DeviceProcessEvents": TUESDAY}
    assert result.summary["oldest"] == result.summary["newest"]
    assert result.summary["tables_found"] == 2
    assert set(result.coverage.tables) == {"DeviceFileEvents", "DeviceProcessEvents"}
    assert result.coverage.rows_total == 2


async def test_custom_tables_are_searched_and_told_as_searched(estate: Any) -> None:
    result = await estate.ask("search_logs", text="203.0.113.66")
    assert {row["table"] for row in result.rows} == {"SigninLogs", "Syslog", "Odd_CL"}
    assert result.summary["tables_searched"] > 40
    assert "searched" not in result.summary


async def test_of_a_long_cell_the_part_around_the_text_is_told(estate: Any) -> None:
    (row,) = (await estate.ask("search_logs", text="rclone.exe copy")).rows
    assert row["found"].startswith("ProcessCommandLine: …")
    assert "rclone.exe copy" in row["found"]
    assert len(row["found"]) < 300


async def test_what_was_acted_on_is_told_wherever_the_text_is_found(estate: Any) -> None:
    told = [(await estate.ask("search_logs", text=text)).rows[0] for text in ("srv-09", "wks-02")]
    assert [(row["activity"], row["object"]) for row in told] == [("4688", "whoami /all"), (None, "tool.bin")]


async def test_what_occurs_nowhere_names_every_table_that_was_searched(estate: Any) -> None:
    result = await estate.ask("search_logs", text="198.51.100.200")
    assert (result.rows, result.coverage.rows_total) == ((), 0)
    assert {"SigninLogs", "Odd_CL", "SecurityEvent"} <= set(result.coverage.tables)
    assert result.summary["searched"] == list(result.coverage.tables)
    assert not result.coverage.partial


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        ({"table": "syslog"}, ["Syslog"]),
        ({"end_time": "2024-07-02T00:00:00Z"}, ["SigninLogs"]),
        ({"limit": 1, "offset": 2}, ["SigninLogs"]),
        ({"limit": 2}, ["Odd_CL", "Syslog"]),
    ],
)
async def test_a_table_a_window_and_a_page_bound_it(estate: Any, arguments: dict[str, Any], tables: list[str]) -> None:
    result = await estate.ask("search_logs", text="203.0.113.66", **arguments)
    assert [row["table"] for row in result.rows] == tables


@pytest.mark.parametrize("text", ['x"; print 1 //', 'drop 203.0.113.66 "; print 1 // x', "a\\nb\\x"])
async def test_no_text_becomes_a_piece_of_query(estate: Any, text: str) -> None:
    result = await estate.ask("search_logs", text=text)
    assert len(result.rows) == (1 if text.startswith("drop") else 0)


@pytest.mark.parametrize("text", ["", "ab", "...", "*"])
async def test_a_text_that_would_find_everything_is_refused(estate: Any, text: str) -> None:
    assert (await estate.call("search_logs", text=text)).code is QueryErrorCode.INVALID_ARGUMENT
