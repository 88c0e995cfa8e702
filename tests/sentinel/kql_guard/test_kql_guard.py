"""The guard as the tool for freeform KQL asks it: verdicts, places, and what it offers instead of a wrong name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard import KqlGuard, KqlProblem, OfficialParser
from sentinel_rag.sentinel.kql_guard.analysis import AGGREGATES, FUNCTIONS, OPERATORS, PLUGINS, SYNTAX_NODES

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TOOL-5")]

SCHEMA = {
    "SigninLogs": {
        "TimeGenerated": "datetime",
        "UserPrincipalName": "string",
        "IPAddress": "string",
        "ResultType": "string",
    },
    "SecurityEvent": {"TimeGenerated": "datetime", "Computer": "string", "EventID": "int", "Level": "string"},
    "DeviceEvents": {"TimeGenerated": "datetime", "Timestamp": "datetime", "DeviceName": "string"},
    "HuntingXdr": {"Timestamp": "datetime", "DeviceName": "string"},
}


@pytest.fixture(scope="module", params=["microsoft", "fallback"])
async def guard(request: pytest.FixtureRequest) -> AsyncIterator[KqlGuard]:
    if request.param == "fallback":
        yield KqlGuard(None)
        return
    with microsoft_parser() as parser:
        yield KqlGuard(parser)


async def only_error(guard: KqlGuard, kql: str, *, bounded: bool = True) -> KqlProblem:
    report = await guard.check(kql, SCHEMA, time_bounded=bounded, row_cap=100 if bounded else None)
    assert len(report.errors) == 1, report.errors
    return report.errors[0]


async def test_h1_h2_a_wrong_column_is_answered_with_the_nearest_and_all_there_are(guard: KqlGuard) -> None:
    """Field reports H1 and H2: suggested KQL uses a column of no table; most errors of models are such."""
    problem = await only_error(guard, "SecurityEvent\n| where LogLevel == 'Error'")
    assert (problem.code, problem.line, problem.column, problem.length) == ("unknown_column", 2, 9, 8)
    assert problem.nearest == ("Level",)
    assert problem.message == "There is no column 'LogLevel' in SecurityEvent here. Did you mean 'Level'?"
    assert problem.next_step == "Columns here: Computer, EventID, Level, TimeGenerated."


async def test_h2_a_wrong_table_is_answered_with_the_nearest(guard: KqlGuard) -> None:
    """Field report H2, the other half: wrong table names."""
    problem = await only_error(guard, "SigninLog | count")
    assert (problem.code, problem.line, problem.column, problem.length) == ("unknown_table", 1, 1, 9)
    assert problem.nearest[0] == "SigninLogs"


async def test_the_case_of_a_name_is_explained(guard: KqlGuard) -> None:
    problem = await only_error(guard, "SigninLogs | where ipaddress == 'x'")
    assert problem.nearest[0] == "IPAddress"
    assert "told apart by case" in problem.message


async def test_a_column_that_was_dropped_is_told_so(guard: KqlGuard) -> None:
    problem = await only_error(guard, "SigninLogs | project IPAddress | where ResultType == '0'")
    assert "SigninLogs has a column 'ResultType', but an operator before this place dropped it." in problem.message
    assert problem.next_step == "Columns here: IPAddress."


@pytest.mark.parametrize(
    ("kql", "said"),
    [
        ("SigninLogs | where Timestamp > ago(1d)", "a Sentinel workspace has TimeGenerated"),
        ("HuntingXdr | where TimeGenerated > ago(1d)", "this table has Timestamp"),
    ],
)
async def test_the_two_time_columns_are_told_apart(guard: KqlGuard, kql: str, said: str) -> None:
    problem = await only_error(guard, kql)
    assert said in problem.message
    assert problem.nearest == (("TimeGenerated",) if "TimeGenerated" not in kql else ("Timestamp",))


async def test_a_filter_on_the_other_time_column_bounds_nothing_and_says_why(guard: KqlGuard) -> None:
    problem = await only_error(guard, "DeviceEvents | where Timestamp > ago(1d) | take 5", bounded=False)
    assert problem.code == "not_time_bounded"
    assert "the workspace finds rows by TimeGenerated" in problem.message
    assert "where TimeGenerated > ago(1d)" in problem.next_step


@pytest.mark.parametrize(
    "kql",
    [
        "let ago = (back: timespan) { datetime(1970-01-01) };\nSigninLogs | where TimeGenerated > ago(1d) | take 5",
        "let now = () { datetime(1970-01-01) };\nSigninLogs | where TimeGenerated > now() - 1d | take 5",
        "let f = () { let ago = (a: timespan) { datetime(null) }; SigninLogs | where TimeGenerated > ago(1d) };\n"
        "f | take 5",
        "SigninLogs | extend Parts = split(IPAddress, '.')\n| mv-expand with_itemindex=TimeGenerated Parts\n"
        "| where TimeGenerated > ago(1d) | take 5",
        "SigninLogs | where TimeGenerated >= column_ifexists('TimeGenerated', now()) | take 5",
        "SigninLogs | where TimeGenerated >= min_of(now(), ingestion_time()) | take 5",
    ],
)
async def test_what_only_looks_like_a_bound_on_time_is_none(guard: KqlGuard, kql: str) -> None:
    assert not (await guard.check(kql, SCHEMA)).allowed


async def test_a_function_of_the_query_s_own_may_tell_the_moment(guard: KqlGuard) -> None:
    kql = "let since = () { ago(1d) };\nSigninLogs | where TimeGenerated > since() | take 5"
    report = await guard.check(kql, SCHEMA)
    assert report.allowed, report.errors


async def test_the_caller_may_vouch_for_time_and_rows(guard: KqlGuard) -> None:
    kql = "SigninLogs | where ResultType == '0'"
    assert {each.code for each in (await guard.check(kql, SCHEMA)).errors} == {"not_time_bounded", "not_row_limited"}
    assert [each.code for each in (await guard.check(kql, SCHEMA, time_bounded=True)).errors] == ["not_row_limited"]
    assert [each.code for each in (await guard.check(kql, SCHEMA, row_cap=10)).errors] == ["not_time_bounded"]
    assert (await guard.check(kql, SCHEMA, time_bounded=True, row_cap=10)).allowed


async def test_tables_outside_the_list_are_refused_by_name_with_those_in_it(guard: KqlGuard) -> None:
    allowed = frozenset({"SigninLogs"})
    report = await guard.check("SecurityEvent | count", SCHEMA, time_bounded=True, allowed_tables=allowed)
    assert [each.code for each in report.errors] == ["table_not_allowed"]
    assert report.errors[0].next_step == "Allowed tables: SigninLogs."
    assert (await guard.check("SigninLogs | count", SCHEMA, time_bounded=True, allowed_tables=allowed)).allowed
    none = await guard.check("SigninLogs | count", SCHEMA, time_bounded=True, allowed_tables=frozenset())
    assert not none.allowed


async def test_places_count_characters_whatever_utf_16_needs(guard: KqlGuard) -> None:
    kql = "SigninLogs // \U0001f600\r\n| where UserPrincipalName == '\U0001f600' and Nope == 1"
    problem = await only_error(guard, kql)
    assert (problem.line, problem.column, problem.length) == (2, 38, 4)


async def test_the_report_is_plain_data() -> None:
    report = await KqlGuard(None).check("SigninLog | count", SCHEMA, time_bounded=True)
    told = report.to_dict()
    assert told["allowed"] is False
    assert told["parser"] == "fallback"
    assert told["columns"] is None
    assert told["problems"] == [each.to_dict() for each in report.problems]


async def test_the_result_s_columns_are_known_before_anything_runs() -> None:
    with microsoft_parser() as parser:
        guard = KqlGuard(parser)
        kql = "SigninLogs | summarize n = count(), last = max(TimeGenerated) by IPAddress"
        report = await guard.check(kql, SCHEMA, time_bounded=True)
        assert report.columns == (("IPAddress", "string"), ("n", "long"), ("last", "datetime"))
        assert report.tables == {"SigninLogs"}
        await guard.close()


async def test_a_parser_that_cannot_start_leaves_the_fallback(tmp_path: Path) -> None:
    broken = OfficialParser(tmp_path, tmp_path / "no-node")
    guard = KqlGuard(broken)
    report = await guard.check("SigninLogs | count", SCHEMA, time_bounded=True)
    assert (report.parser, report.allowed) == ("fallback", True)
    await guard.close()


async def test_a_query_that_stops_the_parser_is_refused_and_the_next_is_judged() -> None:
    with microsoft_parser(timeout_s=1.5) as parser:
        guard = KqlGuard(parser)
        kql = "let a = SigninLogs; " + "".join(
            f"let a{number} = union a{number - 1 if number else ''}, a{number - 1 if number else ''}; "
            for number in range(22)
        )
        report = await guard.check(f"{kql} a21 | take 5", SCHEMA, time_bounded=True)
        assert [each.code for each in report.errors] == ["too_complex"]
        assert (await guard.check("SigninLogs | count", SCHEMA, time_bounded=True)).allowed


async def test_many_questions_at_once_get_their_own_answers(guard: KqlGuard) -> None:
    verdicts: dict[int, frozenset[str]] = {}

    async def ask(number: int) -> None:
        table = ("SigninLogs", "SecurityEvent")[number % 2]
        verdicts[number] = (await guard.check(f"{table} | take {number}", SCHEMA, time_bounded=True)).tables

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, number)
    assert verdicts == {number: {("SigninLogs", "SecurityEvent")[number % 2]} for number in range(20)}


async def test_the_allow_lists_name_only_what_the_parser_knows() -> None:
    """A misspelt name in a list would allow nothing, and nobody would notice."""
    with microsoft_parser() as parser:
        known = parser.names()
    assert set(known["functions"]) >= FUNCTIONS
    assert set(known["aggregates"]) >= AGGREGATES
    assert set(known["plugins"]) >= PLUGINS
    assert set(known["kinds"]) >= OPERATORS.keys()
    assert sorted(SYNTAX_NODES - set(known["kinds"])) == []


async def test_nothing_that_reaches_elsewhere_is_in_a_list() -> None:
    elsewhere = {
        "cluster",
        "database",
        "external_table",
        "stored_query_result",
        "materialized_view",
        "entity_group",
        "graph",
        "current_principal",
        "current_principal_details",
        "cursor_after",
        "http_request",
        "http_request_post",
        "sql_request",
        "python",
        "r",
        "csharp",
        "execute_query",
        "infer_storage_schema",
        "externaldata",
    }
    assert elsewhere.isdisjoint(FUNCTIONS | AGGREGATES | PLUGINS | set(OPERATORS.values()))
    assert "ExternalDataExpression" not in SYNTAX_NODES
    assert "InlineExternalTableExpression" not in SYNTAX_NODES
