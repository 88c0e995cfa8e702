"""The tool run_freeform_kql over a real workspace: guarded, bounded, and repairable from what an error says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sentinel_servers import NOW, ScriptedWire, Served, connected
from starlette.responses import JSONResponse
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.sentinel.freeform_query import MOST_ROWS, FreeformQueries, bounded
from sentinel_rag.sentinel.kql_guard import KqlGuard, OfficialParser
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.table_schemas import known_tables

pytestmark = pytest.mark.anyio

SIGNINS = [
    {
        "TimeGenerated": time,
        "UserPrincipalName": f"user{day}@contoso.example",
        "Location": "PT" if day < 3 else "RO",
    }
    for day, time in ((1, "2024-08-01T01:00:00Z"), (2, "2024-08-02T01:00:00Z"), (3, "2024-08-02T20:00:00Z"))
]
Ask = Callable[..., Awaitable[QueryResult | QueryError]]


@pytest.fixture(scope="module")
def estate(serving: Any) -> Served:
    served: Served = serving(
        SigninLogs=SIGNINS, Heartbeat=[{"TimeGenerated": "2024-08-01T00:00:00Z", "Computer": "a"}] * 1
    )
    return served


@pytest.fixture(scope="module")
def kql_parser() -> Iterator[OfficialParser]:
    with microsoft_parser() as parser:
        yield parser


@pytest.fixture(params=["microsoft", "fallback"])
def guard(request: Any) -> KqlGuard:
    """Microsoft's parser, and what there is without node."""
    parser = request.getfixturevalue("kql_parser") if request.param == "microsoft" else None
    return KqlGuard(parser)


@pytest.fixture
async def ask(estate: Served, guard: KqlGuard) -> AsyncIterator[Ask]:
    async with connected(estate.url) as workspace:
        service = SentinelService({"lab": workspace}, clock=lambda: NOW, freeform=FreeformQueries(guard))

        async def one(kql: str, **arguments: Any) -> QueryResult | QueryError:
            outcome = await service.call("run_freeform_kql", {"kql": kql, **arguments})
            return type(outcome).from_dict(outcome.to_dict())

        yield one


async def result(ask: Ask, kql: str, **arguments: Any) -> QueryResult:
    outcome = await ask(kql, **arguments)
    assert isinstance(outcome, QueryResult), outcome
    return outcome


async def refusal(ask: Ask, kql: str, **arguments: Any) -> QueryError:
    outcome = await ask(kql, **arguments)
    assert isinstance(outcome, QueryError), outcome
    return outcome


@pytest.mark.requirement("TOOL-5")
async def test_a_query_of_ones_own_gives_its_own_columns_with_their_coverage(ask: Ask) -> None:
    kql = "SigninLogs | summarize SignIns = count() by Location | order by Location asc"
    found = await result(ask, kql, start_time="2024-08-01T00:00:00Z", end_time="2024-08-02T12:00:00Z")
    assert [dict(row) for row in found.rows] == [{"Location": "PT", "SignIns": 2}]
    coverage = found.coverage
    assert (coverage.workspace, coverage.tables, coverage.rows_total) == ("lab", ("SigninLogs",), 1)
    assert coverage.window.to_dict() == {"start": "2024-08-01T00:00:00Z", "end": "2024-08-02T12:00:00Z"}
    assert (coverage.table_rows, coverage.time_column) == (3, "TimeGenerated")
    assert coverage.query == f"{kql}\n| take {MOST_ROWS + 1}"
    assert found.summary["tables_read"] == ["SigninLogs"]


async def test_a_filter_in_the_query_bounds_its_time_as_well_as_a_window(ask: Ask) -> None:
    found = await result(ask, "SigninLogs | where TimeGenerated > datetime(2024-08-02) | project Location")
    assert len(found.rows) == 2
    assert "query's own time filter" in str(found.summary["guard"])


@pytest.mark.requirement("TOOL-5")
async def test_a_query_without_any_bound_in_time_is_refused(ask: Ask) -> None:
    error = await refusal(ask, "SigninLogs | project Location")
    assert (error.code, error.field) == (QueryErrorCode.QUERY_REJECTED, "kql")
    assert "TimeGenerated" in error.message + error.next_step
    wide = await refusal(ask, "SigninLogs | project Location", start_time="2001-01-01T00:00:00Z")
    assert wide.code is QueryErrorCode.QUERY_REJECTED


async def test_rows_are_limited_and_all_of_them_counted(ask: Ask) -> None:
    found = await result(ask, "SigninLogs | project Location", time_window="7d", limit=2)
    assert (len(found.rows), found.coverage.rows_total) == (2, 3)


@pytest.mark.requirement("TOOL-5")
async def test_a_query_that_yields_more_than_the_cap_brings_the_cap_and_says_so(ask: Ask) -> None:
    found = await result(ask, "range n from 1 to 5000 step 1", time_window="7d", limit=100)
    assert (len(found.rows), found.coverage.rows_total) == (100, None)
    assert any("More than 1,000 rows" in note for note in found.notes)


async def test_a_chart_and_a_semicolon_at_the_end_are_left_out(ask: Ask) -> None:
    found = await result(ask, "SigninLogs | count | render piechart with (title='a | b'); // done", time_window="7d")
    assert [dict(row) for row in found.rows] == [{"Count": 3}]
    assert "render" not in found.coverage.query


@pytest.mark.parametrize(
    ("kql", "wrong", "near", "place"),
    [
        ("SigninLogs | where Locaton == 'PT'", "Locaton", "Location", (1, 20)),
        ("SigninLogs\n| where LogLevel == 'x'", "LogLevel", "", (2, 9)),
        ("SigninLogs\n| project userprincipalname", "userprincipalname", "UserPrincipalName", (2, 11)),
        ("Signinlogs | take 1", "Signinlogs", "SigninLogs", (1, 1)),
        ("SecurityEvents | take 1", "SecurityEvents", "SecurityEvent", (1, 1)),
    ],
)
async def test_a_wrong_name_comes_back_with_its_place_and_the_right_ones(
    ask: Ask, kql: str, wrong: str, near: str, place: tuple[int, int]
) -> None:
    """Field reports H1 and H2: checked against the schema before it runs; nearest and valid names are in the error."""
    error = await refusal(ask, kql, time_window="7d")
    problem = error.problems[0]
    assert (error.code, error.field) == (QueryErrorCode.QUERY_REJECTED, "kql")
    assert (problem.line, problem.column, problem.length) == (*place, len(wrong))
    assert (error.line, error.position) == (place[0], place[1] - 1)
    assert f"Line {place[0]}, column {place[1]}: " in error.message
    assert wrong in error.message
    assert near in error.message
    if near:
        assert problem.nearest[0] == near
    if "table" not in problem.code:
        assert set(known_tables()["SigninLogs"]) <= set(error.allowed)
    assert error.next_step


async def test_what_an_error_says_is_enough_to_put_the_query_right(ask: Ask) -> None:
    """Field reports F4 and H1: one repair with nothing but the error, as a model makes it."""
    kql = "SigninLogs | where Locaton == 'PT' | summarize count() by UserPrincipleName"
    error = await refusal(ask, kql, time_window="7d")
    lines = kql.splitlines()
    for problem in sorted(error.problems, key=lambda each: -(each.column or 0)):
        assert problem.line is not None
        assert problem.column is not None
        assert problem.length
        line, start = lines[problem.line - 1], problem.column - 1
        lines[problem.line - 1] = line[:start] + problem.nearest[0] + line[start + problem.length :]
    for _ in range(2):  # the fallback names one wrong column at a time
        repaired = await ask("\n".join(lines), time_window="7d")
        if isinstance(repaired, QueryResult):
            break
        [problem] = repaired.problems
        assert problem.line is not None
        assert problem.column is not None
        assert problem.length
        line, start = lines[problem.line - 1], problem.column - 1
        lines[problem.line - 1] = line[:start] + problem.nearest[0] + line[start + problem.length :]
    assert isinstance(repaired, QueryResult), repaired
    assert len(repaired.rows) == 2


async def test_a_column_of_this_name_elsewhere_in_time_is_explained(ask: Ask) -> None:
    """Field report H1: Timestamp is Defender's, TimeGenerated Sentinel's."""
    error = await refusal(ask, "SigninLogs | where Timestamp > ago(1d)")
    assert "TimeGenerated" in error.message


async def test_a_query_without_rows_says_what_its_tables_hold(ask: Ask) -> None:
    """Field report F1: the window, and for each table whether it has rows at all and from when the newest is."""
    kql = """SigninLogs
        | where TimeGenerated < datetime(2024-08-02T13:00:00Z)
        | join kind=inner (AWSCloudTrail | project TimeGenerated) on TimeGenerated
        | join kind=inner (Heartbeat | project TimeGenerated, Computer) on TimeGenerated"""
    found = await result(ask, kql, time_window="1h")
    assert found.rows == ()
    assert found.coverage.window.to_dict() == {"start": "2024-08-02T23:00:00Z", "end": "2024-08-03T00:00:00Z"}
    notes = " ".join(found.notes)
    assert "SigninLogs holds 3 rows, the newest of 2024-08-02T20:00:00Z" in notes
    assert "wider window" in notes
    assert "AWSCloudTrail holds no rows at all" in notes
    assert "Heartbeat holds 1 rows" in notes


OTHER_TABLES = (
    "SigninLogs | count",
    "Heartbeat | union SigninLogs | count",
    "table('SigninLogs') | count",
    "['SigninLogs'] | count",
    "let s = SigninLogs; s | count",
    "Heartbeat | where Computer in ((SigninLogs | project Location))",
)


async def test_only_allowed_tables_can_be_read(estate: Served, guard: KqlGuard) -> None:
    async with connected(estate.url) as workspace:
        freeform = FreeformQueries(guard, allowed_tables=frozenset({"Heartbeat"}))
        service = SentinelService({"lab": workspace}, clock=lambda: NOW, freeform=freeform)
        allowed = await service.call("run_freeform_kql", {"kql": "Heartbeat | count", "time_window": "7d"})
        assert isinstance(allowed, QueryResult), allowed
        for kql in OTHER_TABLES:
            refused = await service.call("run_freeform_kql", {"kql": kql, "time_window": "7d"})
            assert isinstance(refused, QueryError), kql
            assert refused.code is QueryErrorCode.QUERY_REJECTED


@pytest.fixture
def scripted(wire: ScriptedWire) -> ScriptedWire:
    columns = [{"name": "TimeGenerated", "type": "datetime"}, {"name": "Location", "type": "string"}]
    wire.schema = JSONResponse({"tables": [{"name": "SigninLogs", "columns": columns}]})
    return wire


async def call(wire: ScriptedWire, guard: KqlGuard, **arguments: Any) -> QueryResult | QueryError:
    async with connected(wire.url) as workspace:
        service = SentinelService({"lab": workspace}, clock=lambda: NOW, freeform=FreeformQueries(guard, wait_s=7))
        return await service.call("run_freeform_kql", {"time_window": "7d", **arguments})


COUNTED = JSONResponse(
    {
        "tables": [
            {
                "name": "PrimaryResult",
                "columns": [
                    {"name": "Rows", "type": "long"},
                    {"name": "Oldest", "type": "datetime"},
                    {"name": "Newest", "type": "datetime"},
                ],
                "rows": [[0, None, None]],
            }
        ]
    }
)


async def test_the_service_is_always_sent_a_timespan_and_a_deadline(scripted: ScriptedWire, guard: KqlGuard) -> None:
    scripted.answers = [COUNTED]
    for arguments in ({}, {"time_window": None, "kql": "SigninLogs | where TimeGenerated > ago(1d)"}):
        scripted.requests.clear()
        scripted.headers.clear()
        outcome = await call(scripted, guard, **{"kql": "SigninLogs | take 1", **arguments})
        assert isinstance(outcome, QueryResult), outcome
        asked = [
            (request, headers)
            for request, headers in zip(scripted.requests, scripted.headers, strict=True)
            if "summarize Rows" not in request["query"]
        ]
        [(request, headers)] = asked
        assert request["timespan"]
        assert request["query"].endswith(f"\n| take {MOST_ROWS + 1}")
        assert "wait=7" in headers["prefer"]


SEMANTIC = {
    "error": {
        "message": "The request had some invalid properties",
        "code": "BadArgumentError",
        "innererror": {
            "code": "SemanticError",
            "message": "A semantic error occurred.",
            "innererror": {
                "code": "SEM0100",
                "message": "'where' operator: Failed to resolve table or column expression named 'Locations'",
                "line": 1,
                "pos": 20,
                "token": "Locations",
            },
        },
    }
}


async def test_what_only_the_service_notices_comes_through_with_code_message_and_place(
    scripted: ScriptedWire, guard: KqlGuard
) -> None:
    """Field report F4: the service's own error reaches the caller whole, with the names that there are."""
    scripted.answers = [JSONResponse(SEMANTIC, 400)]
    error = await call(scripted, guard, kql="SigninLogs | where Location == 'PT'")
    assert isinstance(error, QueryError)
    assert error.code is QueryErrorCode.QUERY_REJECTED
    [problem] = error.problems
    assert (problem.code, problem.line, problem.column) == ("SEM0100", 1, 21)
    assert "Failed to resolve table or column expression named 'Locations'" in problem.message
    assert problem.nearest == ("Location",)
    assert (error.line, error.position, error.field) == (1, 20, "kql")
    assert error.allowed == ("TimeGenerated", "Location")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (504, {"error": {"code": "GatewayTimeout", "message": "ADX query timed out"}}, QueryErrorCode.TIMEOUT),
        (403, {"error": {"code": "InsufficientAccessError", "message": "no"}}, QueryErrorCode.ACCESS_DENIED),
        (400, {"error": {"code": "BadArgumentError", "message": "m"}}, QueryErrorCode.QUERY_REJECTED),
        (400, {}, QueryErrorCode.QUERY_REJECTED),
    ],
)
async def test_every_failure_of_the_service_is_told_as_what_it_is(
    scripted: ScriptedWire, guard: KqlGuard, status: int, body: dict[str, Any], code: QueryErrorCode
) -> None:
    """Field report F4: an error is never an empty result."""
    scripted.answers = [JSONResponse(body, status)]
    error = await call(scripted, guard, kql="SigninLogs | take 1")
    assert isinstance(error, QueryError)
    assert error.code is code
    assert error.message
    assert error.next_step


async def test_a_column_that_was_just_added_is_found(scripted: ScriptedWire, guard: KqlGuard) -> None:
    scripted.answers = [COUNTED]
    async with connected(scripted.url) as workspace:
        service = SentinelService({"lab": workspace}, clock=lambda: NOW, freeform=FreeformQueries(guard))
        arguments = {"kql": "SigninLogs | project Newer", "time_window": "7d"}
        assert isinstance(await service.call("run_freeform_kql", arguments), QueryError)
        columns = [{"name": name, "type": "datetime"} for name in ("TimeGenerated", "Newer")]
        scripted.schema = JSONResponse({"tables": [{"name": "SigninLogs", "columns": columns}]})
        assert isinstance(await service.call("run_freeform_kql", arguments), QueryResult)


async def test_the_fallback_parser_is_told_in_each_result(estate: Served) -> None:
    async with connected(estate.url) as workspace:
        service = SentinelService({"lab": workspace}, clock=lambda: NOW, freeform=FreeformQueries(KqlGuard(None)))
        found = await service.call("run_freeform_kql", {"kql": "SigninLogs | count", "time_window": "7d"})
    assert isinstance(found, QueryResult), found
    assert found.summary["parser"] == "fallback"
    assert any("fallback parser" in note for note in found.notes)


@pytest.mark.parametrize(
    ("kql", "sent"),
    [
        ("T", "T"),
        ("T ;  ", "T"),
        ("T // a comment", "T // a comment"),
        ("T | render timechart", "T"),
        ("T | where a == '| render x'", "T | where a == '| render x'"),
        ('T | where a == "x // y"', 'T | where a == "x // y"'),
        ("let a = 1; T | where b == a", "let a = 1; T | where b == a"),
    ],
)
def test_a_cap_is_put_behind_a_query_whatever_it_ends_in(kql: str, sent: str) -> None:
    assert bounded(kql, 5) == f"{sent}\n| take 6"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    "moment",
    ["make_datetime(1970, 1, 1)", "unixtime_seconds_todatetime(0)", "ago(1d * 100000)", "now() - (365d * 50)"],
)
async def test_a_filter_whose_reach_is_computed_reads_no_more_than_a_year_and_says_so(ask: Ask, moment: str) -> None:
    found = await result(ask, f"SigninLogs | where TimeGenerated > {moment} | count")
    assert found.coverage.window.start == NOW - timedelta(days=366)
    assert any("is computed" in note for note in found.notes)
    assert any(note.startswith("So no row from before") for note in found.notes)
