"""Rows that other people's servers write as text: typed, labelled, hidden and refused as the policy says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryResult
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.gateway.gate.running import in_form
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.upstream import Returned, Unanswered
from sentinel_rag.gateway.upstream.mcp_messages import reply_of
from sentinel_rag_testing.fake_tool_server import AnswersText, FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

COLUMNS = [
    {"ColumnName": "Time", "ColumnType": "datetime"},
    {"ColumnName": "Account", "ColumnType": "string"},
    {"ColumnName": "Count", "ColumnType": "long"},
    {"ColumnName": "More", "ColumnType": "dynamic"},
]
ROWS = [
    ["2026-01-01T00:00:00Z", "ana@contoso.example", 3, '{"ip": "192.0.2.1"}'],
    ["2026-01-02T00:00:00Z", None, 1, None],
]
TYPED = [
    {"Time": "2026-01-01T00:00:00Z", "Account": "ana@contoso.example", "Count": 3, "More": {"ip": "192.0.2.1"}},
    {"Time": "2026-01-02T00:00:00Z", "Account": None, "Count": 1, "More": None},
]
OTHER = {"FrameType": "DataTable", "TableId": 0, "TableKind": "QueryProperties", "Columns": COLUMNS, "Rows": [[1] * 4]}
TABLE = {"FrameType": "DataTable", "TableId": 1, "TableKind": "PrimaryResult", "Columns": COLUMNS, "Rows": ROWS}
END: dict[str, Any] = {"FrameType": "DataSetCompletion", "HasErrors": False, "Cancelled": False}
HEAD = {"FrameType": "DataSetHeader", "IsProgressive": False, "Version": "v2.0"}
FRAMES = [HEAD, OTHER, TABLE, END]
PROGRESSIVE = [
    HEAD,
    {**TABLE, "FrameType": "TableHeader", "Rows": None},
    {"FrameType": "TableFragment", "TableId": 1, "TableFragmentType": "DataAppend", "Rows": ROWS[:1]},
    {"FrameType": "TableProgress", "TableId": 1, "TableProgress": 50.0},
    {"FrameType": "TableFragment", "TableId": 1, "TableFragmentType": "DataAppend", "Rows": ROWS[1:]},
    {"FrameType": "TableCompletion", "TableId": 1, "RowCount": 2},
    END,
]
BY_NAME = [{column["ColumnName"]: cell for column, cell in zip(COLUMNS, row, strict=True)} for row in ROWS]
NAMED = [{"name": column["ColumnName"], "type": column["ColumnType"]} for column in COLUMNS]


def blocks(*values: Any) -> dict[str, Any]:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return {"content": [{"type": "text", "text": text} for text in texts]}


def wrapped(value: Any) -> dict[str, Any]:
    """As the official SDK sends a text that a function returned."""
    return {**blocks(value), "structuredContent": {"result": json.dumps(value)}}


def formed(result: dict[str, Any], form: str) -> Returned | Unanswered:
    reply = in_form(reply_of({"id": 1, "result": result}), form, "adx")
    assert isinstance(reply, Returned | Unanswered)
    return reply


@pytest.mark.parametrize(
    ("form", "result"),
    [
        ("kusto-v2", blocks(FRAMES)),
        ("kusto-v2", wrapped(FRAMES)),
        ("kusto-v2", blocks(*FRAMES)),
        ("kusto-v2", blocks(PROGRESSIVE)),
        ("kusto-v2", blocks(f"```json\n{json.dumps(FRAMES)}\n```")),
        ("json-rows", blocks({"columns": NAMED, "rows": ROWS})),
        ("json-rows", blocks({"status": 200, "results": {"items": {"schema": NAMED, "results": BY_NAME}}})),
        ("json-rows", blocks({"tables": [{"name": "PrimaryResult", "columns": NAMED, "rows": ROWS}]})),
    ],
)
def test_rows_come_out_with_their_types(form: str, result: dict[str, Any]) -> None:
    reply = formed(result, form)
    assert isinstance(reply, Returned)
    assert (reply.rows, json.loads(reply.encoded)) == (2, reply.value)
    read = QueryResult.from_dict(reply.value)
    assert [dict(row) for row in read.rows] == TYPED
    assert [column.type for column in read.columns] == ["datetime", "string", "long", "dynamic"]
    assert (read.coverage.workspace, read.coverage.rows_total, read.coverage.partial) == ("adx", 2, False)


@pytest.mark.parametrize("value", [BY_NAME, {"value": BY_NAME}, {"count": 2, "data": BY_NAME}])
def test_types_that_nobody_told_are_inferred(value: Any) -> None:
    reply = formed(blocks(value), "json-rows")
    assert isinstance(reply, Returned)
    read = QueryResult.from_dict(reply.value)
    assert [(column.name, column.type) for column in read.columns] == [
        ("Time", "datetime"),
        ("Account", "string"),
        ("Count", "long"),
        ("More", "string"),
    ]
    assert [row["Count"] for row in read.rows] == [3, 1]


def test_errors_beside_the_rows_make_them_partial() -> None:
    errors = {"OneApiErrors": [{"error": {"code": "LimitsExceeded", "@message": "Query exceeds 64 MB."}}]}
    cut = {**TABLE, "Rows": [ROWS[0], errors]}
    reply = formed(blocks([HEAD, cut, {**END, "HasErrors": True, **errors}]), "kusto-v2")
    assert isinstance(reply, Returned)
    coverage = QueryResult.from_dict(reply.value).coverage
    assert (coverage.partial, coverage.partial_reason) == (True, "Query exceeds 64 MB.")
    assert (coverage.rows_returned, coverage.rows_total) == (1, None)


@pytest.mark.parametrize("form", ["kusto-v2", "json-rows"])
@pytest.mark.parametrize(
    "result",
    [
        blocks("ana@contoso.example signed in"),
        blocks('{"rows": [[1'),
        blocks([1, 2]),
        blocks({"columns": NAMED, "rows": [[1]]}),
        blocks([HEAD, {**TABLE, "Rows": [[1]]}]) | {"x": 1},
        {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"content": []},
    ],
)
def test_what_does_not_hold_to_its_form_is_no_result(form: str, result: dict[str, Any]) -> None:
    if form == "json-rows" and "x" in result:
        result = blocks([1])
    reply = formed(result, form)
    assert isinstance(reply, Unanswered)
    assert reply.error.code is QueryErrorCode.PROTOCOL
    assert form in reply.error.message
    assert "ana@" not in reply.error.message


def test_text_stays_what_it_is() -> None:
    reply = formed(blocks(FRAMES), "text")
    assert isinstance(reply, Returned)
    assert reply.value == json.dumps(FRAMES)


POLICY = """
tools:
  - name: kusto_query
    server: {server}
    effect: read
    result: {form}
    parameters: [{{name: query, type: string, required: true}}]
    output_labels: [{{path: /rows/*/Account, sensitivity: HIGH, integrity: UNTRUSTED}}]
    exposure: [{{path: /rows/*/Account, mode: hide}}]
    taint_rules: [{{rule_id: kusto_query_any, condition: "true", taint_level: MEDIUM}}]
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[RunningGateway]:
    policy = parse_policy(POLICY.format(server="adx", form="kusto-v2"))
    with FakeToolServer().running() as executor, running_gateway(policy, tmp_path, executor) as running:
        yield running


@pytest.mark.requirement("TAINT-1")
@pytest.mark.anyio
async def test_parts_of_a_text_are_hidden_and_an_agent_reads_rows(gateway: RunningGateway) -> None:
    gateway.executor.on("kusto_query", AnswersText((json.dumps(FRAMES),)))
    async with HttpToolGateway(gateway.url, gateway.key) as client:
        outcome = await client.execute(ToolCall("c1", "shift", "kusto_query", {"query": "T"}))
    assert isinstance(outcome, Succeeded)
    assert isinstance(outcome.result, QueryResult)
    first = outcome.result.rows[0]
    assert (first["Count"], first["Time"], first["More"]) == (3, "2026-01-01T00:00:00Z", {"ip": "192.0.2.1"})
    assert first["Account"] == "⟦r1#/rows/0/Account⟧"
    assert "ana@" not in json.dumps(outcome.result.to_dict())


@pytest.mark.requirement("TAINT-1")
def test_nothing_is_told_of_a_text_in_which_the_hidden_part_cannot_be_found(gateway: RunningGateway) -> None:
    gateway.executor.on("kusto_query", AnswersText(("Account ana@contoso.example, 3 times",)))
    answer = gateway.call("kusto_query", {"query": "T"})
    assert (answer.status, answer.body["error"]["code"]) == (502, "protocol")
    assert "ana@" not in json.dumps(answer.body)


def test_a_form_is_for_servers_of_others_and_one_of_those_there_are() -> None:
    assert parse_policy(POLICY.format(server="adx", form="kusto-v2")).tools["kusto_query"].result == "kusto-v2"
    for server, form in (("sentinel", "kusto-v2"), ("adx", "csv")):
        with pytest.raises(ConfigurationError) as caught:
            parse_policy(POLICY.format(server=server, form=form))
        assert "result" in str(caught.value.problems)
