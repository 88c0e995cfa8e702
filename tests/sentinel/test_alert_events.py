"""get_alert_events: the rows behind an alert, by the query that its rule stored, on the embedded workspace.

Field report G4 as its whole kind: windows told and missing, clocks, quotes written twice, alerts without a query,
queries that may not run, that cannot run, and that find other rows than the alert told.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from asking import Conversation
from estate_rows import alert, guid, incident
from sentinel_servers import ScriptedWire, Served
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.sentinel.kql_guard import installed_parser
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio

QUERY = "SecurityEvent\n| where EventID == 4625\n| project TimeGenerated, Account, Computer, IpAddress"
WINDOW = {"Query Start Time UTC": "2024-08-01 10:00:00Z", "Query End Time UTC": "8/1/2024 11:00:00 AM"}


def event(time: str, account: str, **over: Any) -> dict[str, Any]:
    row = {"TimeGenerated": time, "EventID": 4625, "Account": account, "Computer": "dc-01", "IpAddress": "192.0.2.7"}
    return row | over


EVENTS = [
    event("2024-08-01T09:59:59Z", "before"),
    event("2024-08-01T10:05:00Z", "C\\O'Brien"),
    event("2024-08-01T10:30:00Z", "svc-backup"),
    event("2024-08-01T10:40:00Z", "other", EventID=4624),
    event("2024-08-01T10:59:00Z", "last"),
    event("2024-08-01T11:30:00Z", "after"),
]


def scheduled(name: str, query: Any = QUERY, window: Any = None, **over: Any) -> dict[str, Any]:
    """An alert of an analytic rule, with `query` in its ExtendedProperties."""
    properties = {"Query": query, **(WINDOW if window is None else window), **over.pop("properties", {})}
    return alert(
        name,
        "2024-08-01T11:05:00Z",
        **{
            "ProductName": "Azure Sentinel",
            "ProviderName": "ASI Scheduled Alerts",
            "StartTime": "2024-08-01T10:05:00Z",
            "EndTime": "2024-08-01T10:59:00Z",
            "ExtendedProperties": properties,
            **over,
        },
    )


COUNT = "Search Query Results Overall Count"
CLOCK = "// why\nset query_now = datetime(2024-08-01T10:45:00Z);\n"
TWICE = QUERY.replace("4625", '4625 and Computer == "dc-01"').replace('"', '\\"').replace("\n", "\\r\\n")
MAPPED = "\n| extend timestamp = TimeGenerated, AccountCustomEntity = Account, IPCustomEntity = IpAddress;\r\n"
DRAWN = "SecurityEvent | summarize Rows = count() by bin(TimeGenerated, 1h), EventID | render timechart"
JUNE = {"Query Start Time UTC": "2024-06-01", "Query End Time UTC": "2024-06-02"}
PACKED = base64.b64encode(zlib.compress(b'{"Account": "O\'Brien", "EventID": 4625, "Extra": {"a": [1]}}')).decode()
PER_RESULT = (
    f"// why\nset query_now = datetime(2024-08-01T10:45:00Z);\nlet alertedEvent = datatable(compressedRec: string)\n"
    f"['{PACKED}'] | extend raw = todynamic(zlib_decompress_from_base64_string(compressedRec)) "
    "| evaluate bag_unpack(raw) | project-away compressedRec;\nalertedEvent"
)
BOMB = base64.b64encode(zlib.compress(b'{"a": "' + b"x" * 50_000_000 + b'"}')).decode()
ALERTS = [
    scheduled("one alert a result", PER_RESULT, properties={"OriginalQuery": "SigninLogs"}),
    scheduled("packed too tightly", PER_RESULT.replace(PACKED, BOMB), properties={"OriginalQuery": QUERY}),
    scheduled("packed badly", PER_RESULT.replace(PACKED, "eAGrVg=="), properties={"OriginalQuery": QUERY}),
    scheduled("plain", properties={COUNT: "3", "Analytic Rule Name": "Failed logons"}),
    scheduled("clock", CLOCK + QUERY.replace("where", "where TimeGenerated > ago(20m) and")),
    scheduled("clock of the window", QUERY.replace("where", "where TimeGenerated > ago(30m) and")),
    scheduled("no window", window={}),
    scheduled("period", window={"Query End Time UTC": "2024-08-01T11:00:00Z", "Query Period": "00:20:00"}),
    scheduled("written twice", TWICE),
    scheduled("mapped", QUERY + MAPPED),
    scheduled("drawn", DRAWN),
    scheduled("whole rows", QUERY.partition("| project")[0]),
    scheduled("none told", properties={COUNT: "7"}, window=JUNE),
    scheduled("empty table", "SigninLogs | project UserPrincipalName", properties={COUNT: "2"}),
    scheduled("no such table", "SquidProxy | take 3"),
    scheduled("no such column", "SecurityEvent | where Acount == 'x'"),
    scheduled(
        "one alert of many",
        "externaldata(a:string)['https://evil.example/x.csv']",
        properties={"OriginalQuery": QUERY},
    ),
    scheduled("two rows", "SecurityEvent | where EventID == 1"),
    scheduled("two rows", TimeGenerated="2024-08-01T11:06:00Z"),
    alert(
        "mde",
        "2024-08-01T12:00:00Z",
        ProductName="Microsoft Defender Advanced Threat Protection",
        AlertLink="https://security.microsoft.com/alerts/da1_1?tid=2",
        VendorOriginalId="da1_1",
        Entities=[{"$id": "1", "Type": "host", "HostName": "pc-7"}, {"$ref": "1"}],
    ),
    alert("broken", "2024-08-01T12:00:00Z", ExtendedProperties='{"Query": "Sec'),
    alert("fusion", "2024-08-01T12:00:00Z", ProductName="Azure Sentinel", ProviderName="Fusion"),
]


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    """Queries are checked by the parser that stands in for Microsoft's, which starts at once; both are tried below and
    by the attacks."""
    served = serving(
        SecurityAlert=ALERTS,
        SecurityEvent=EVENTS,
        SecurityIncident=[incident(4, "2024-08-01T12:00:00Z", AlertIds=[guid("alert plain"), guid("alert mde")])],
    )
    served.fallback = True
    return served


async def behind(estate: Any, name: str, **arguments: Any) -> Any:
    return await estate.ask("get_alert_events", alert_id=guid(f"alert {name}"), **arguments)


def accounts(result: Any) -> set[Any]:
    return {row["Account"] for row in result.rows}


async def test_the_query_runs_in_the_window_that_the_alert_tells(estate: Any) -> None:
    """Field report G4."""
    result = await behind(estate, "plain")
    assert accounts(result) == {"C\\O'Brien", "svc-backup", "last"}
    assert [column.name for column in result.columns] == ["TimeGenerated", "Account", "Computer", "IpAddress"]
    summary = result.summary
    assert (summary["ran"], summary["why_not"]) == (True, None)
    assert (summary["events_told"], summary["events_found"], result.coverage.rows_total) == (3, 3, 3)
    assert (summary["alert_name"], summary["rule_name"], summary["incident_number"]) == ("plain", "Failed logons", 4)
    assert summary["query"] == QUERY
    assert summary["window"] == {"start": "2024-08-01T10:00:00Z", "end": "2024-08-01T11:00:00Z"}
    assert result.coverage.window.to_dict() == summary["window"]
    assert result.coverage.tables == ("SecurityEvent",)
    assert (result.coverage.query, result.coverage.table_rows) == (QUERY, 6)
    assert not any("are found now" in note for note in result.notes)


async def test_microsoft_s_parser_lets_the_same_query_run(estate: Any) -> None:
    if installed_parser() is None:
        reason = "Microsoft's KQL parser is not installed here: run `make kql-parser`"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    checked = Served(estate.url)
    calls = [{"alert_id": guid(f"alert {name}")} for name in ("plain", "mapped", "clock", "no such column")]
    plain, mapped, clock, refused = await checked.call_each("get_alert_events", calls)
    assert {answer.summary.get("parser") for answer in (plain, mapped, clock)} == {"microsoft"}
    assert accounts(plain) == accounts(mapped) == {"C\\O'Brien", "svc-backup", "last"}
    assert accounts(clock) == {"svc-backup", "last"}
    assert refused.summary["why_not"] == "refused"
    assert not any("stricter" in note for note in plain.notes)
    assert any("stricter" in note for note in (await behind(estate, "plain")).notes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("clock", {"svc-backup", "last"}),
        ("clock of the window", {"last"}),
        ("no window", {"before", "C\\O'Brien", "svc-backup", "last", "after"}),
        ("period", {"last"}),
        ("written twice", {"C\\O'Brien", "svc-backup", "last"}),
        ("mapped", {"C\\O'Brien", "svc-backup", "last"}),
        ("two rows", {"C\\O'Brien", "svc-backup", "last"}),
    ],
)
async def test_clocks_windows_and_writings(estate: Any, name: str, expected: set[str]) -> None:
    """Field report G4: `ago()` counts from when the rule ran, and the newest row of the alert has its query."""
    result = await behind(estate, name)
    assert result.summary["ran"] is True, result.notes
    assert accounts(result) == expected
    assert result.coverage.rows_total == len(result.rows)


async def test_the_columns_are_those_of_the_query(estate: Any) -> None:
    mapped = await behind(estate, "mapped")
    assert {"timestamp", "AccountCustomEntity", "IPCustomEntity"} <= set(mapped.rows[0])
    drawn = await behind(estate, "drawn")
    assert sum(row["Rows"] for row in drawn.rows) == 4
    assert set(drawn.rows[0]) == {"TimeGenerated", "EventID", "Rows"}


async def test_columns_that_hold_nothing_are_counted_and_not_shown(estate: Any) -> None:
    result = await behind(estate, "whole rows")
    shown = [column.name for column in result.columns]
    assert {*shown} == {name for row in result.rows for name in row}
    assert all(any(row[name] not in (None, "", [], {}) for row in result.rows) for name in shown)
    assert any("columns hold nothing in the 3 rows read and are left out" in note for note in result.notes)


async def test_the_limit_cuts_the_rows_and_not_the_count(estate: Any) -> None:
    """Field report B6: a limit is a limit."""
    result = await behind(estate, "plain", limit=1)
    assert result.summary["ran"], (result.summary, result.notes)
    assert (len(result.rows), result.coverage.rows_total, result.summary["events_found"]) == (1, 3, 3)
    error = await estate.refusal("get_alert_events", alert_id=guid("alert plain"), limit=101)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "limit")


@pytest.mark.parametrize(
    "reference",
    [
        guid("alert plain").upper(),
        "{" + guid("alert plain") + "}",
        "vendor1_plain",
        "https://security.microsoft.com/alerts/vendor1_plain?tid=5",
    ],
)
async def test_an_alert_is_found_by_every_id_and_its_page(estate: Any, reference: str) -> None:
    result = await estate.ask("get_alert_events", alert_id=reference)
    assert result.summary["alert_name"] == "plain"
    assert (await estate.ask("query_alerts", alert_id=reference)).rows[0]["name"] == "plain"


async def test_an_id_of_no_alert_is_told_and_no_error(estate: Any) -> None:
    result = await estate.ask("get_alert_events", alert_id="' or 1 == 1 //")
    assert (result.rows, dict(result.summary)) == ((), {})
    assert any("No alert of this workspace has the id" in note for note in result.notes)


async def test_an_alert_without_a_query_is_answered_with_the_evidence_there_is(estate: Any) -> None:
    result = await behind(estate, "mde")
    summary = result.summary
    assert (summary["ran"], summary["why_not"], summary["incident_number"]) == (False, "no_query", 4)
    assert (summary["vendor_id"], summary["url"]) == ("da1_1", "https://security.microsoft.com/alerts/da1_1?tid=2")
    assert summary["entities"] == [{"kind": "host", "name": "pc-7", "host_name": "pc-7"}]
    assert any("stores no query with its alerts" in note and "DeviceProcessEvents" in note for note in result.notes)
    (call,) = (note.partition(" Next: ")[2] for note in result.notes if " Next: " in note)
    tool, _, arguments = call.removesuffix(".").partition(" with ")
    assert tool == "run_kql_query"
    given = json.loads(arguments)
    assert (given["template"], given["parameters"]) == ("process_on_host", {"host": "pc-7"})
    assert (await estate.ask(tool, **given)).coverage.window.start is not None
    broken = await behind(estate, "broken")
    assert any("do not parse as JSON" in note for note in broken.notes)


async def test_an_alert_of_a_rule_that_kept_no_query_is_not_said_to_be_of_a_product_that_keeps_none(
    estate: Any,
) -> None:
    result = await behind(estate, "fusion")
    assert result.summary["why_not"] == "no_query"
    assert any(note.startswith("No query of its rule is stored with this alert") for note in result.notes)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no such table", "SquidProxy"),
        ("no such column", "Acount"),
    ],
)
async def test_a_query_over_what_the_workspace_lacks_says_what_it_lacks(estate: Any, name: str, words: str) -> None:
    result = await behind(estate, name)
    assert (result.rows, result.summary["ran"], result.summary["why_not"]) == ((), False, "refused")
    assert any(words in note and "was not run" in note for note in result.notes)
    assert any(words in problem["message"] for problem in result.summary["problems"])


async def test_what_is_found_now_is_told_against_what_the_alert_told(estate: Any) -> None:
    gone = await behind(estate, "none told")
    assert (gone.summary["events_told"], gone.summary["events_found"]) == (7, 0)
    assert "The alert told 7 events when it was raised; 0 are found now." in gone.notes
    assert any("oldest row of SecurityEvent" in note and "retention is over" in note for note in gone.notes)
    empty = await behind(estate, "empty table")
    assert any("SigninLogs holds no rows at all here" in note for note in empty.notes)


async def test_the_query_of_the_rule_stands_in_for_one_that_may_not_run_and_that_is_told(estate: Any) -> None:
    result = await behind(estate, "one alert of many")
    assert accounts(result) == {"C\\O'Brien", "svc-backup", "last"}
    assert any("whole query of its rule was run" in note for note in result.notes)
    assert result.summary["query"].startswith("externaldata")
    assert result.coverage.query == QUERY


async def test_an_alert_that_carries_its_event_is_read_and_nothing_is_run(estate: Any) -> None:
    """Field report G4: a rule that raises one alert a result packs the row into the query."""
    result = await behind(estate, "one alert a result")
    assert [dict(row) for row in result.rows] == [{"Account": "O'Brien", "EventID": 4625, "Extra": {"a": [1]}}]
    assert {column.name: column.type for column in result.columns} == {
        "Account": "string",
        "EventID": "long",
        "Extra": "dynamic",
    }
    assert (result.summary["ran"], result.summary["source"], result.coverage.rows_total) == (True, "alert", 1)
    assert any("carries its events itself" in note for note in result.notes)
    answer = await Conversation(estate).ask(f"what triggered alert {guid('alert one alert a result')}?")
    assert "lies, by its own record, 1 event." in answer.text


@pytest.mark.parametrize("name", ["packed too tightly", "packed badly"])
async def test_what_cannot_be_unpacked_is_not_and_the_rule_stands_in(estate: Any, name: str) -> None:
    """A few bytes may unpack to many; whoever writes the row must not choose how many."""
    result = await behind(estate, name)
    assert result.summary.get("source") != "alert"
    assert result.summary["ran"] is True, result.notes
    assert accounts(result) == {"C\\O'Brien", "svc-backup", "last"}
    assert any("whole query of its rule was run" in note for note in result.notes)


async def test_the_real_alert_of_a_rule_and_a_table_that_is_not_here(real: Any) -> None:
    """Field report G4 on the real rows: one alert holds a query, over tables of which one was not exported."""
    listed = await real.ask("query_alerts", product="Azure Sentinel", limit=100)
    sentinel = [row for row in listed.rows if row["product"] == "Azure Sentinel"]
    assert len(sentinel) == 1
    result = await real.ask("get_alert_events", alert_id=sentinel[0]["alert_id"])
    summary = result.summary
    assert (summary["ran"], summary["why_not"], summary["events_told"]) == (False, "refused", 21)
    assert summary["window"] == {"start": "2024-07-18T12:42:18Z", "end": "2024-08-01T12:42:19Z"}
    assert any("SquidProxy" in note for note in result.notes)


async def test_every_real_alert_has_an_answer(real: Any) -> None:
    """Field report G4: for each product of the real rows it is said why there are no events and what there is."""
    products = (await real.ask("query_alerts", limit=1)).summary["by_product"]
    assert len(products) == 8
    for product in products:
        row = (await real.ask("query_alerts", product=product, limit=1)).rows[0]
        result = await real.ask("get_alert_events", alert_id=row["alert_id"])
        assert result.summary["why_not"] in ("no_query", "refused")
        assert result.summary["entity_count"] == row["entity_count"]
        assert result.notes


async def test_in_words_on_a_served_workspace(estate: Any) -> None:
    """Field report G4: 'show the events behind alert [1]'."""
    told = Conversation(estate, timezone="Europe/Berlin")
    await told.ask("alerts of incident 4")
    answer = await told.ask("show the events behind alert [2]")
    assert answer.outcome is Outcome.ANSWERED, answer.text
    assert "finds 3 events" in answer.text
    assert (
        "from 2024-08-01 10:00:00 UTC (12:00:00 CEST) to before 2024-08-01 11:00:00 UTC (13:00:00 CEST)" in answer.text
    )
    assert "left out here" not in answer.text
    assert {row[1] for row in answer.tables[-1].rows} == {"C\\O'Brien", "svc-backup", "last"}
    other = await told.ask("what triggered alert [1]?")
    assert "No query is stored with this alert." in other.text


ALERT_COLUMNS = {
    "TimeGenerated": "datetime", "StartTime": "datetime", "EndTime": "datetime", "ProcessingEndTime": "datetime",
    "FirstRow": "datetime",
}  # fmt: skip


def alert_answer(row: dict[str, Any]) -> JSONResponse:
    row = {"FirstRow": row["TimeGenerated"], "RemediationSteps": "", "AlertLink": "", **row}
    columns = [{"name": name, "type": ALERT_COLUMNS.get(name, "string")} for name in row]
    return JSONResponse({"tables": [{"name": "PrimaryResult", "columns": columns, "rows": [list(row.values())]}]})


def count_answer(name: str, value: int) -> JSONResponse:
    return JSONResponse(
        {"tables": [{"name": "PrimaryResult", "columns": [{"name": name, "type": "long"}], "rows": [[value]]}]}
    )


@dataclass
class AnsweringWire(ScriptedWire):
    """Answers each query by the first piece of text that it holds; knows the table SecurityEvent."""

    by_text: tuple[tuple[str, JSONResponse], ...] = ()

    async def query(self, request: Request) -> Response:
        kql = (await request.json())["query"]
        self.answers = [next(answer for piece, answer in self.by_text if piece in kql)] * 1000
        return await super().query(request)


NO_INCIDENT = JSONResponse(
    {"tables": [{"name": "PrimaryResult", "columns": [{"name": "AlertId", "type": "string"}], "rows": []}]}
)
SCHEMA = {
    "name": "SecurityEvent",
    "columns": [
        {"name": "TimeGenerated", "type": "datetime"},
        {"name": "EventID", "type": "int"},
        *({"name": name, "type": "string"} for name in ("Account", "Computer", "IpAddress")),
    ],
}


@pytest.fixture
def scripted() -> Iterator[AnsweringWire]:
    wire = AnsweringWire(schema=JSONResponse({"tables": [SCHEMA]}))
    with serve(wire.app()) as url:
        wire.url = url
        yield wire


@pytest.fixture
def serving_scripted(scripted: AnsweringWire) -> Callable[..., Served]:
    def start(*answers: tuple[str, JSONResponse]) -> Served:
        scripted.by_text = (
            ("SecurityIncident", NO_INCIDENT),
            ("SecurityAlert", alert_answer(scheduled("plain", properties={"Event Count": "1"}))),
            *answers,
            ("summarize Rows", JSONResponse({"error": {"code": "x", "message": "no"}}, 400)),
            ("ingestion_time()", JSONResponse({"error": {"code": "x", "message": "no"}}, 400)),
        )
        return Served(scripted.url, datetime(2024, 8, 3, tzinfo=UTC), fallback=True)

    return start


@pytest.mark.parametrize(
    ("refusal", "why", "words"),
    [
        (
            JSONResponse(
                {
                    "error": {
                        "code": "BadArgumentError",
                        "message": "bad",
                        "innererror": {"code": "SEM", "message": "cannot bin a string"},
                    }
                },
                400,
            ),
            "failed",
            "cannot bin a string",
        ),
        (JSONResponse({"error": {"code": "GatewayTimeout", "message": "too long"}}, 504), "failed", "ran out of time"),
    ],
)
async def test_a_query_that_the_service_refuses_is_told_with_its_reason(
    serving_scripted: Any, refusal: JSONResponse, why: str, words: str
) -> None:
    served = serving_scripted(("EventID == 4625", refusal))
    result = await served.ask("get_alert_events", alert_id=guid("alert plain"))
    assert (result.summary["ran"], result.summary["why_not"]) == (False, why)
    assert any(words in note for note in result.notes)
    assert result.summary["entities"] == []


async def test_a_form_that_ran_out_of_time_is_the_last_that_is_tried(
    serving_scripted: Any, scripted: AnsweringWire
) -> None:
    """The other forms of a query are the same query read otherwise, and would take as long."""
    slow = JSONResponse({"error": {"code": "GatewayTimeout", "message": "too long"}}, 504)
    served = serving_scripted(("EventID == 4625", slow))
    twice = QUERY.replace("4625", "4625 and Account != 'a\\\\b'")
    stored = scheduled("plain", twice, properties={"Original Query": f"{QUERY} | take 3"})
    scripted.by_text = tuple(
        (text, alert_answer(stored) if text == "SecurityAlert" else answer) for text, answer in scripted.by_text
    )
    result = await served.ask("get_alert_events", alert_id=guid("alert plain"))
    assert (result.summary["ran"], result.summary["why_not"]) == (False, "failed")
    assert any("ran out of time" in note for note in result.notes)
    assert sum(request["query"].startswith("set query_now") for request in scripted.requests) == 1


async def test_a_workspace_that_throttles_is_an_error_that_may_be_tried_again(serving_scripted: Any) -> None:
    throttled = JSONResponse({"error": {"code": "TooManyRequests", "message": "slow down"}}, 429)
    served = serving_scripted(("EventID == 4625", throttled))
    error = await served.refusal("get_alert_events", alert_id=guid("alert plain"))
    assert (error.code, error.retry_possible) == (QueryErrorCode.THROTTLED, True)


def accounts_answer(count: int) -> JSONResponse:
    columns = [{"name": "Account", "type": "string"}]
    rows = [[f"user{number}"] for number in range(count)]
    return JSONResponse({"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]})


async def test_rows_that_came_after_the_rule_looked_are_flagged(serving_scripted: Any) -> None:
    """Field report E5: TimeGenerated lies in the window and ingestion_time() after it."""
    served = serving_scripted(("ingestion_time()", count_answer("Count", 1)), ("EventID == 4625", accounts_answer(2)))
    result = await served.ask("get_alert_events", alert_id=guid("alert plain"))
    assert (result.summary["late_rows"], result.summary["events_found"]) == (1, 2)
    assert any("1 row of SecurityEvent" in note and "ingestion_time()" in note for note in result.notes)
    assert "The alert told 1 event when it was raised; 2 are found now." in result.notes


async def test_a_timespan_a_cap_a_deadline_and_our_clock_are_always_sent(
    serving_scripted: Any, scripted: AnsweringWire
) -> None:
    served = serving_scripted(("| count", count_answer("Count", 12)), ("EventID == 4625", accounts_answer(5)))
    result = await served.ask("get_alert_events", alert_id=guid("alert plain"), limit=5)
    assert (len(result.rows), result.coverage.rows_total) == (5, 12)
    sent = [
        (request, headers)
        for request, headers in zip(scripted.requests, scripted.headers, strict=True)
        if "EventID == 4625" in request["query"]
    ]
    assert [request["query"].rpartition("\n")[2] for request, _ in sent] == ["| take 5", "| count"]
    for request, headers in sent:
        assert request["timespan"] == "2024-08-01T10:00:00Z/2024-08-01T11:00:00Z"
        assert request["query"].startswith("set query_now = datetime(2024-08-01T11:00:00.0000000Z);\n")
        assert 1 <= int(headers["prefer"].removeprefix("wait=")) <= 45  # what is left of the time for all of it


async def test_rows_are_counted_only_where_more_may_match_than_came(
    serving_scripted: Any, scripted: AnsweringWire
) -> None:
    served = serving_scripted(("EventID == 4625", accounts_answer(4)))
    result = await served.ask("get_alert_events", alert_id=guid("alert plain"), limit=5)
    assert (result.coverage.rows_total, result.summary["events_found"]) == (4, 4)
    assert sum("EventID == 4625" in request["query"] for request in scripted.requests) == 1


async def test_the_text_of_a_row_is_never_more_than_text(estate: Any) -> None:
    result = await behind(estate, "plain")
    assert json.loads(json.dumps(result.to_dict()))["summary"]["query"] == QUERY
