"""The client against recorded shapes of the wire: what it sends, what it makes of answers, good and bad."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sentinel_servers import connected
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, TimeWindow
from sentinel_rag.sentinel.azure_policies import is_loopback
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.anyio


def table(columns: list[tuple[str, str]], rows: list[list[Any]], **beside: Any) -> Response:
    named = [{"name": name, "type": kind} for name, kind in columns]
    return JSONResponse({"tables": [{"name": "PrimaryResult", "columns": named, "rows": rows}], **beside})


ONE_ROW = table([("n", "long")], [[1]])


def error_body(code: str, message: str, *inner: dict[str, Any]) -> dict[str, Any]:
    error: dict[str, Any] = {"message": message, "code": code, "correlationId": "c0ffee"}
    level = error
    for item in inner:
        level["innererror"] = dict(item)
        level = level["innererror"]
    return {"error": error}


async def failure(wire: Any, *answers: Response, **options: Any) -> QueryError:
    wire.answers = list(answers)
    async with connected(wire.url, **options) as workspace:
        with pytest.raises(QueryFailedError) as caught:
            await workspace.query("T")
    return caught.value.error


@pytest.mark.requirement("DATA-1")
async def test_a_request_carries_query_timespan_wait_and_token(wire: Any) -> None:
    wire.answers = [ONE_ROW]
    start = datetime(2024, 7, 2, 9, 45, tzinfo=UTC)
    async with connected(wire.url) as workspace:
        await workspace.query("T | take 1", TimeWindow(start, start + timedelta(minutes=3)))
        await workspace.query("T | take 1")
    assert wire.requests == [
        {
            "query": "T | take 1",
            "timespan": "2024-07-02T09:45:00Z/2024-07-02T09:48:00Z",
            "workspaces": None,
        },
        {"query": "T | take 1", "timespan": None, "workspaces": None},
    ]
    assert wire.headers[0]["prefer"] == "wait=600"
    assert wire.headers[0]["authorization"] == "Bearer a-token"
    assert wire.headers[0]["x-ms-client-request-id"] != wire.headers[1]["x-ms-client-request-id"]


async def test_every_column_type_is_decoded(wire: Any) -> None:
    wire.answers = [
        table(
            [
                ("Time", "datetime"),
                ("Flag", "bool"),
                ("Guid", "guid"),
                ("Small", "int"),
                ("Large", "long"),
                ("Real", "real"),
                ("Text", "string"),
                ("Span", "timespan"),
                ("Exact", "decimal"),
                ("Bag", "dynamic"),
            ],
            [
                [
                    "2015-12-31T23:59:59.9999999Z",
                    False,
                    "74be27de-1e4e-49d9-b579-fe0b331d3642",
                    12345,
                    9007199254740993,
                    12345.6789,
                    "string value",
                    "-1.00:00:10.5",
                    "0.10101",
                    '{"a":123,"b":[1,{}]}',
                ],
                [None, None, None, None, None, "NaN", "", None, None, None],
                [None, True, None, 0, 0, "-Infinity", "None", "00:00:10", "0.1", '"text"'],
            ],
        )
    ]
    async with connected(wire.url) as workspace:
        rows = (await workspace.query("T")).rows
    assert rows[0] == (
        datetime(2015, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        False,
        "74be27de-1e4e-49d9-b579-fe0b331d3642",
        12345,
        9007199254740993,
        12345.6789,
        "string value",
        -timedelta(days=1, seconds=10, microseconds=500000),
        "0.10101",
        {"a": 123, "b": [1, {}]},
    )
    assert rows[1][:5] == (None,) * 5
    assert rows[1][5] != rows[1][5]
    assert rows[1][6:] == ("", None, None, None)
    assert rows[2][5:] == (float("-inf"), "None", timedelta(seconds=10), "0.1", "text")


@pytest.mark.requirement("TOOL-3")
async def test_a_cut_result_is_told_to_be_partial(wire: Any) -> None:
    detail = {
        "code": "EngineError",
        "message": "Something went wrong processing your query on the server.",
        "innererror": {"code": "-2133196797", "message": "exceeded the limit (E_QUERY_RESULT_SET_TOO_LARGE)"},
    }
    error = {"code": "PartialError", "message": "There were some errors.", "details": [detail]}
    wire.answers = [table([("n", "long")], [[1], [2]], error=error)]
    async with connected(wire.url) as workspace:
        answer = await workspace.query("T")
    assert answer.rows == ((1,), (2,))
    assert answer.partial
    assert answer.partial_reason == "exceeded the limit (E_QUERY_RESULT_SET_TOO_LARGE)"


async def test_a_result_too_large_for_any_row_is_an_error_and_not_empty(wire: Any) -> None:
    error = {"code": "PartialError", "message": "x", "innererror": {"message": "E_QUERY_RESULT_SET_TOO_LARGE"}}
    told = await failure(wire, JSONResponse({"error": error}))
    assert told.code is QueryErrorCode.QUERY_REJECTED
    assert "shorter window" in told.next_step


async def test_a_workspace_without_data_is_an_empty_table(wire: Any) -> None:
    wire.answers = [Response(status_code=204)]
    async with connected(wire.url) as workspace:
        answer = await workspace.query("T")
    assert (answer.columns, answer.rows, answer.partial) == ((), (), False)


SYNTAX = error_body(
    "BadArgumentError",
    "The request had some invalid properties",
    {"code": "SyntaxError", "message": "A recognition error occurred in the query."},
    {"code": "SYN0002", "message": "Query could not be parsed at 'a' on line [1,4]", "line": 1, "pos": 4},
)
SEMANTIC = error_body(
    "BadArgumentError",
    "The request had some invalid properties",
    {"code": "SemanticError", "message": "A semantic error occurred."},
    {
        "code": "SEM0100",
        "message": "'where' operator: Failed to resolve table or column expression named 'AppInsights'",
    },
)


@pytest.mark.requirement("DATA-1")
@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (JSONResponse(SYNTAX, 400), QueryErrorCode.QUERY_REJECTED, "could not be parsed at 'a'"),
        (JSONResponse(SEMANTIC, 400), QueryErrorCode.QUERY_REJECTED, "named 'AppInsights'"),
        (JSONResponse(error_body("AuthenticationFailed", "no header"), 401), QueryErrorCode.ACCESS_DENIED, "401"),
        (JSONResponse(error_body("InsufficientAccessError", "no role"), 403), QueryErrorCode.ACCESS_DENIED, "no role"),
        (
            JSONResponse({"error": "invalid_grant", "error_description": "AADSTS70043"}, 403),
            QueryErrorCode.ACCESS_DENIED,
            "AADSTS70043",
        ),
        (JSONResponse(error_body("PathNotFoundError", "no path"), 404), QueryErrorCode.WORKSPACE_NOT_FOUND, "no path"),
        (
            JSONResponse(error_body("FailedToResolveResource", "not resolved"), 400),
            QueryErrorCode.WORKSPACE_NOT_FOUND,
            "not resolved",
        ),
        (JSONResponse(error_body("GatewayTimeout", "ADX timed out"), 504), QueryErrorCode.TIMEOUT, "ADX timed out"),
        (JSONResponse(error_body("Broken", "oops"), 500), QueryErrorCode.UNAVAILABLE, "oops"),
        (Response("<html>Bad gateway</html>", 502, media_type="text/html"), QueryErrorCode.UNAVAILABLE, "502"),
        (Response("[" * 100_000, 502, media_type="application/json"), QueryErrorCode.UNAVAILABLE, "502"),
        (Response(b"", 200), QueryErrorCode.PROTOCOL, "empty body"),
        (Response("<html></html>", 200, media_type="text/html"), QueryErrorCode.PROTOCOL, "not a query result"),
        (JSONResponse([1], 200), QueryErrorCode.PROTOCOL, "not a query result"),
        (JSONResponse({"tables": []}, 200), QueryErrorCode.PROTOCOL, "without a table"),
        (table([("n", "long")], [["x"]]), QueryErrorCode.PROTOCOL, "not a query result"),
        (table([("n", "long")], [[1, 2]]), QueryErrorCode.PROTOCOL, "not a query result"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_every_failing_answer_is_one_typed_error(
    wire: Any, answer: Response, code: QueryErrorCode, words: str
) -> None:
    error = await failure(wire, answer, retries=0)
    assert error.code is code
    assert words in error.message
    assert error.next_step


async def test_a_syntax_error_carries_line_and_position(wire: Any) -> None:
    error = await failure(wire, JSONResponse(SYNTAX, 400))
    assert (error.line, error.position) == (1, 4)


THROTTLED = error_body("ThrottledError", "Rate limit of 200 is exceeded.")


@pytest.mark.requirement("DATA-1")
async def test_throttling_without_a_header_is_repeated_and_recovers(wire: Any) -> None:
    wire.answers = [JSONResponse(THROTTLED, 429), JSONResponse(THROTTLED, 429), ONE_ROW]
    async with connected(wire.url) as workspace:
        assert (await workspace.query("T")).rows == ((1,),)
    assert len(wire.requests) == 3


async def test_throttling_that_lasts_ends_and_says_how_long_to_wait(wire: Any) -> None:
    error = await failure(wire, JSONResponse(THROTTLED, 429, {"Retry-After": "0.01"}), retries=2)
    assert error.code is QueryErrorCode.THROTTLED
    assert error.retry_possible
    assert error.retry_after_s == 0.01
    assert len(wire.requests) == 3


async def test_a_query_that_timed_out_is_not_repeated(wire: Any) -> None:
    error = await failure(wire, JSONResponse(error_body("GatewayTimeout", "late"), 504, {"Retry-After": "0"}))
    assert error.code is QueryErrorCode.TIMEOUT
    assert len(wire.requests) == 1


async def test_a_rejected_query_is_not_repeated_even_with_retry_after(wire: Any) -> None:
    await failure(wire, JSONResponse(SEMANTIC, 400, {"Retry-After": "0"}))
    assert len(wire.requests) == 1


async def test_an_endpoint_that_is_away_is_told_with_its_address() -> None:
    with socket.socket() as taken:  # bound and never listening: nobody else can get the port either
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with connected(url) as workspace:
            with pytest.raises(QueryFailedError) as caught:
                await workspace.query("T")
    assert caught.value.error.code is QueryErrorCode.UNAVAILABLE
    assert url in str(caught.value)


async def test_a_refused_identity_is_access_denied(wire: Any) -> None:
    wire.token_status = 401
    error = await failure(wire, ONE_ROW)
    assert error.code is QueryErrorCode.ACCESS_DENIED
    assert wire.requests == []


async def test_a_connection_that_breaks_off_is_unavailable() -> None:
    async def half(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/msi/token":
            await JSONResponse({"access_token": "t", "expires_on": "4102444800"})(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        await send({"type": "http.response.body", "body": b'{"tables"', "more_body": False})

    with serve(half) as url:
        async with connected(url) as workspace:
            with pytest.raises(QueryFailedError) as caught:
                await workspace.query("T")
    assert caught.value.error.code is QueryErrorCode.UNAVAILABLE
    assert caught.value.error.retry_possible


@pytest.mark.requirement("DATA-1")
async def test_never_more_than_five_queries_run_at_once() -> None:
    running, most = 0, 0
    gate = threading.Event()
    lock = threading.Lock()

    async def query(request: Request) -> Response:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 5:
                gate.set()
        await anyio.to_thread.run_sync(gate.wait)
        with lock:
            running -= 1
        return ONE_ROW

    async def token(request: Request) -> Response:
        return JSONResponse({"access_token": "t", "expires_on": "4102444800"})

    app = Starlette(routes=[Route("/v1/workspaces/{id}/query", query, methods=["POST"]), Route("/msi/token", token)])
    with serve(app) as url:
        async with connected(url) as workspace:
            answers = await workspace.query_all([("T", None)] * 12)
    assert [answer.rows for answer in answers] == [((1,),)] * 12
    assert most == 5


async def test_the_failure_of_one_of_many_queries_is_told_as_it_is(wire: Any) -> None:
    wire.answers = [ONE_ROW, JSONResponse(SEMANTIC, 400)]
    async with connected(wire.url) as workspace:
        with pytest.raises(QueryFailedError) as caught:
            await workspace.query_all([("A", None), ("B", None), ("C", None)])
    assert caught.value.error.code is QueryErrorCode.QUERY_REJECTED


@pytest.mark.parametrize("endpoint", ["http://logs.example", "http://127.0.0.1.example", "ftp://127.0.0.1", "logs"])
async def test_a_token_may_not_leave_this_machine_in_the_clear(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="https"):
        LogAnalytics(IdentityEndpointCredential("http://127.0.0.1:1/msi/token", "x"), endpoint=endpoint)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:80/x", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:80", True),
        ("http://localhost", True),
        ("http://localhost.example", False),
        ("http://127.0.0.1@evil.example", False),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0", False),
    ],
)
async def test_loopback_is_judged_by_the_host_alone(url: str, local: bool) -> None:
    assert is_loopback(url) is local


async def test_a_workspace_id_that_is_no_guid_is_a_configuration_fault(wire: Any) -> None:
    async with LogAnalytics(IdentityEndpointCredential(wire.url, "x"), endpoint=wire.url) as connection:
        with pytest.raises(ConfigurationError, match="not a GUID"):
            connection.workspace("lab", "../../other")


async def test_a_large_answer_is_whole_and_in_order(wire: Any) -> None:
    rows = [
        [f"2024-07-02T09:45:00.{number:07d}Z", "text ünïcode " * 5, json.dumps([number])] for number in range(20_000)
    ]
    wire.answers = [table([("Time", "datetime"), ("Text", "string"), ("Bag", "dynamic")], rows)]
    async with connected(wire.url) as workspace:
        answer = await workspace.query("T")
    assert [row[2][0] for row in answer.rows] == list(range(20_000))
