"""Several workspaces behind one service: by name, all at once, and one that is down among others that are not."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from action_estate import MAIN, estate
from estate_rows import alert, incident
from sentinel_servers import IDENTITY_HEADER, NOW, WORKSPACE_ID, connected, managed
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.app.azure import connected_service
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult, note_code
from sentinel_rag.contracts.tool_schemas import (
    ALL_WORKSPACES_TOOLS,
    OPT_IN_TOOLS,
    SENTINEL_TOOLS,
    WRITING_TOOLS,
)
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-3")]


@pytest.fixture(scope="module")
def prod(serving: Any) -> Any:
    return serving(
        SecurityIncident=[
            incident(1, "2024-07-01T00:00:00Z", Severity="High", Title="prod one"),
            incident(2, "2024-07-03T00:00:00Z", Severity="Low", Title="prod two"),
            incident(3, "2024-07-05T00:00:00Z", Severity="Medium", Title="prod three", Status="Closed"),
        ],
        SecurityAlert=[alert("a", "2024-07-01T00:00:00Z", AlertSeverity="High"), alert("b", "2024-07-03T00:00:00Z")],
    )


@pytest.fixture(scope="module")
def emea(serving: Any) -> Any:
    return serving(
        SecurityIncident=[
            incident(1, "2024-07-02T00:00:00Z", Severity="High", Title="emea one", IncidentName=WORKSPACE_ID),
            incident(2, "2024-07-04T00:00:00.5Z", Severity="High", Title="emea two"),
        ],
        SecurityAlert=[alert("c", "2024-07-02T00:00:00Z")],
    )


def _no_server() -> str:
    with serve(Starlette()) as url:
        return url


@asynccontextmanager
async def service(urls: Mapping[str, str], **options: Any) -> AsyncIterator[SentinelService]:
    """A service over the workspaces at `urls`, put together as the tool server's process does it."""
    entries = [
        {
            "name": name,
            "workspace_id": WORKSPACE_ID,
            "endpoint": url,
            "audience": "https://api.loganalytics.io",
            "identity": {"endpoint": f"{url}/msi/token", "header": IDENTITY_HEADER},
            "authority": None,
            "rest": {"endpoint": url, "audience": "https://management.azure.com", "resource_id": EMBEDDED_RESOURCE_ID},
        }
        for name, url in urls.items()
    ]
    made = connected_service(entries, templates=None)
    try:
        yield made
    finally:
        await made.close()


async def ask(urls: Mapping[str, str], tool: str, **arguments: Any) -> QueryResult:
    async with service(urls) as made:
        outcome = await made.call(tool, arguments)
    assert isinstance(outcome, QueryResult), outcome
    assert QueryResult.from_dict(outcome.to_dict()) == outcome
    return outcome


async def refusal(urls: Mapping[str, str], tool: str, **arguments: Any) -> QueryError:
    async with service(urls) as made:
        outcome = await made.call(tool, arguments)
    assert isinstance(outcome, QueryError), outcome
    return outcome


async def test_a_name_chooses_and_without_one_it_is_the_first(prod: Any, emea: Any) -> None:
    urls = {"prod": prod.url, "emea": emea.url}
    for arguments, name, total in (({}, "prod", 3), ({"workspace": "emea"}, "emea", 2), ({"workspace": ""}, "prod", 3)):
        result = await ask(urls, "query_incidents", **arguments)
        assert (result.coverage.workspace, result.coverage.rows_total) == (name, total)
    detail = await ask(urls, "get_incident_detail", incident="1", workspace="emea")
    assert [row["title"] for row in detail.rows] == ["emea one"]


@pytest.mark.parametrize("name", ["EMEA", " emea", "emea ", "ema", "prod,emea", "ALL", "*"])
async def test_an_unknown_name_is_refused_with_the_known_ones(prod: Any, emea: Any, name: str) -> None:
    error = await refusal({"prod": prod.url, "emea": emea.url}, "query_incidents", workspace=name)
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "workspace")
    assert error.allowed == ("prod", "emea")


async def test_the_names_are_told_without_asking_a_workspace() -> None:
    away = _no_server()
    result = await ask({"prod": away, "emea": away}, "list_workspaces")
    assert result.rows == (
        {"name": "prod", "default": True, "changes": True},
        {"name": "emea", "default": False, "changes": True},
    )
    assert result.summary == {"workspaces": 2, "default": "prod"}


async def test_every_tool_over_a_workspace_takes_its_name() -> None:
    with_workspace = {tool.name for tool in SENTINEL_TOOLS if "workspace" in tool.parameter_schemas()}
    assert with_workspace == {tool.name for tool in SENTINEL_TOOLS} - {"list_kql_templates", "list_workspaces"}
    assert {"query_incidents", "query_alerts", "list_tables"} == ALL_WORKSPACES_TOOLS


async def test_all_puts_lists_together_in_their_order_with_totals_for_each(prod: Any, emea: Any) -> None:
    urls = {"prod": prod.url, "emea": emea.url}
    result = await ask(urls, "query_incidents", workspace="all", order="newest")
    assert [(row["workspace"], row["title"]) for row in result.rows] == [
        ("prod", "prod three"),
        ("emea", "emea two"),
        ("prod", "prod two"),
        ("emea", "emea one"),
        ("prod", "prod one"),
    ]
    assert result.summary["by_workspace"] == {
        "prod": {"rows_total": 3, "error": None},
        "emea": {"rows_total": 2, "error": None},
    }
    assert result.summary["by_severity"] == {"High": 3, "Medium": 1, "Low": 1}
    assert result.summary["by_status"] == {"New": 4, "Closed": 1}
    assert (result.coverage.workspace, result.coverage.rows_total, result.coverage.partial) == ("prod, emea", 5, False)
    assert result.coverage.table_rows == 5
    assert {column.name for column in result.columns} >= {"workspace"}
    oldest = await ask(urls, "query_incidents", workspace="all", order="oldest", limit=2)
    assert [row["title"] for row in oldest.rows] == ["prod one", "emea one"]
    severest = await ask(urls, "query_incidents", workspace="all", order="severity", limit=4)
    assert [row["title"] for row in severest.rows] == ["emea two", "emea one", "prod one", "prod three"]


async def test_a_note_of_one_workspace_among_all_keeps_its_code(prod: Any, serving: Any) -> None:
    reopened = incident(7, "2024-07-02T00:00:00Z", Status="Active", ClosedTime="2024-07-01T00:00:00Z")
    result = await ask(
        {"prod": prod.url, "apac": serving(SecurityIncident=[reopened]).url}, "query_incidents", workspace="all"
    )
    told = [note for note in result.notes if note_code(note) == "closed_and_open_again"]
    assert len(told) == 1
    assert told[0].startswith("apac: Incident 7 carries a closing time")


async def test_the_pages_of_all_are_those_of_one_list(prod: Any, emea: Any) -> None:
    urls = {"prod": prod.url, "emea": emea.url}
    whole = (await ask(urls, "query_incidents", workspace="all")).rows
    pages = [await ask(urls, "query_incidents", workspace="all", limit=2, offset=n) for n in (0, 2, 4, 6)]
    assert tuple(row for page in pages for row in page.rows) == whole
    assert [page.coverage.rows_returned for page in pages] == [2, 2, 1, 0]
    assert {page.coverage.rows_total for page in pages} == {5}


async def test_alerts_and_tables_of_all(prod: Any, emea: Any) -> None:
    urls = {"prod": prod.url, "emea": emea.url}
    alerts = await ask(urls, "query_alerts", workspace="all")
    assert [(row["workspace"], row["name"]) for row in alerts.rows] == [("prod", "b"), ("emea", "c"), ("prod", "a")]
    assert alerts.summary["by_name"] == {"a": 1, "b": 1, "c": 1}
    tables = await ask(urls, "list_tables", workspace="all")
    assert [(row["workspace"], row["table"], row["rows"]) for row in tables.rows] == [
        ("prod", "SecurityIncident", 3),
        ("prod", "SecurityAlert", 2),
        ("emea", "SecurityIncident", 2),
        ("emea", "SecurityAlert", 1),
    ]
    assert tables.summary["rows"] == 8


async def test_what_a_name_was_read_as_is_told_for_each_workspace(serving: Any, emea: Any) -> None:
    host = {"$id": "2", "Type": "host", "HostName": "srv-01"}
    hosts = serving(SecurityAlert=[alert("d", "2024-07-02T00:00:00Z", Entities=[host])])
    result = await ask({"hosts": hosts.url, "emea": emea.url}, "query_alerts", workspace="all", entity="srv")
    assert [(row["workspace"], row["name"]) for row in result.rows] == [("hosts", "d")]
    codes = {name: each["code"] for name, each in result.summary["names"].items()}
    assert codes == {"hosts: entity": "name_completed", "emea: entity": "name_unknown"}


async def test_names_that_were_not_all_told_are_not_added_up(serving: Any, emea: Any) -> None:
    many = serving(SecurityAlert=[alert(f"name {n}", "2024-07-01T00:00:00Z") for n in range(30)])
    result = await ask({"many": many.url, "emea": emea.url}, "query_alerts", workspace="all", limit=1)
    assert "by_name" not in result.summary
    assert result.summary["by_severity"] == {"Medium": 31}


@pytest.mark.parametrize(
    "tool",
    sorted(
        {tool.name for tool in SENTINEL_TOOLS if "workspace" in tool.parameter_schemas()}
        - ALL_WORKSPACES_TOOLS
        - OPT_IN_TOOLS
    ),
)
async def test_what_cannot_be_added_up_asks_one_at_a_time(prod: Any, emea: Any, tool: str) -> None:
    required = {"incident": "1", "kind": "ip", "template": "raw_signins", "message": "x", "text": "abc"}
    schema = next(each for each in SENTINEL_TOOLS if each.name == tool)
    arguments = {name: required.get(name, "x") for name in schema.required()}
    error = await refusal({"prod": prod.url, "emea": emea.url}, tool, workspace="all", **arguments)
    assert (error.code, error.field, error.allowed) == (
        QueryErrorCode.INVALID_ARGUMENT,
        "workspace",
        ("prod", "emea"),
    )


async def test_one_that_is_down_stops_no_other(prod: Any) -> None:
    urls = {"down": _no_server(), "prod": prod.url}
    assert (await ask(urls, "query_incidents", workspace="prod")).coverage.rows_total == 3
    error = await refusal(urls, "query_incidents")
    assert error.code is QueryErrorCode.UNAVAILABLE
    assert error.message.startswith("Workspace down: ")
    result = await ask(urls, "query_incidents", workspace="all")
    assert len(result.rows) == 3
    assert result.coverage.workspace == "prod"
    assert (result.coverage.partial, result.coverage.rows_total) == (True, None)
    assert result.coverage.partial_reason.startswith("down: ")
    told = result.summary["by_workspace"]
    assert isinstance(told, Mapping)
    assert told["prod"] == {"rows_total": 3, "error": None}
    assert "cannot be reached" in told["down"]["error"]


async def test_one_that_never_answers_is_left_behind(prod: Any) -> None:
    release = threading.Event()

    async def never(_: Request) -> Response:
        await anyio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
        return JSONResponse({"tables": []})

    async def token(_: Request) -> Response:
        return JSONResponse({"access_token": "t", "expires_on": "4102444800"})

    app = Starlette(routes=[Route("/msi/token", token), Route("/v1/{rest:path}", never, methods=["GET", "POST"])])
    with serve(app) as url:
        async with connected(url) as one, connected(prod.url) as well:
            stuck = one.connection.workspace("stuck", WORKSPACE_ID)
            both = SentinelService({"stuck": stuck, "lab": well}, clock=lambda: NOW, longest_wait_s=5)
            result = await both.call("query_incidents", {"workspace": "all"})
        release.set()
    assert isinstance(result, QueryResult)
    assert len(result.rows) == 3
    assert "stuck: It did not answer within" in result.coverage.partial_reason


async def test_where_none_answers_every_reason_is_told() -> None:
    error = await refusal({"a": _no_server(), "b": _no_server()}, "query_alerts", workspace="all")
    assert error.code is QueryErrorCode.UNAVAILABLE
    assert error.message.startswith("No workspace answered. a: ")
    assert " b: " in error.message


async def test_a_wrong_argument_is_the_callers_and_not_the_workspaces(prod: Any, emea: Any) -> None:
    error = await refusal(
        {"prod": prod.url, "emea": emea.url},
        "query_incidents",
        workspace="all",
        severity="Low",
        min_severity="High",
    )
    assert (error.code, error.field) == (QueryErrorCode.INVALID_ARGUMENT, "severity")


async def test_a_change_names_its_workspace_where_there_are_several(tmp_path: Path, emea: Any) -> None:
    with estate(tmp_path) as served:
        urls = {"lab": served.url, "emea": emea.url}
        for tool in sorted(WRITING_TOOLS):
            arguments = {"message": "x"} if tool == "add_incident_comment" else {"severity": "Low"}
            error = await refusal(urls, tool, incident=str(MAIN), **arguments)
            assert (error.field, error.allowed) == ("workspace", ("lab", "emea"))
        assert served.versions() == served.versions()
        before = served.versions()
        result = await ask(urls, "update_incident", incident=str(MAIN), severity="Low", workspace="lab")
        assert result.coverage.workspace == "lab"
        assert served.versions() == before + 1
        # With one workspace there is nothing to mistake.
        await ask({"lab": served.url}, "update_incident", incident=str(MAIN), severity="High")


CHANCE_S = 0.5
"""How long a sixth query has to show itself while five run."""


@pytest.mark.requirement("DATA-1")
async def test_five_queries_at_once_over_all_workspaces_and_endpoints_together() -> None:
    running, most = 0, 0
    gate, lock = threading.Event(), threading.Lock()

    async def query(_: Request) -> Response:
        nonlocal running, most
        with lock:
            running += 1
            if not gate.is_set():  # behind it a query that was given up still counts here for a moment
                most = max(most, running)
            if running == 5:
                threading.Timer(CHANCE_S, gate.set).start()
        await anyio.to_thread.run_sync(gate.wait)
        with lock:
            running -= 1
        return JSONResponse({"tables": [{"name": "PrimaryResult", "columns": [], "rows": []}]})

    async def token(_: Request) -> Response:
        return JSONResponse({"access_token": "t", "expires_on": "4102444800"})

    def app() -> Starlette:
        return Starlette(
            routes=[Route("/v1/workspaces/{id}/query", query, methods=["POST"]), Route("/msi/token", token)]
        )

    with serve(app()) as one, serve(app()) as other:
        async with service({"a": one, "b": one, "c": other}) as made, anyio.create_task_group() as group:
            for name in ("a", "b", "c") * 4:
                group.start_soon(made.call, "get_threat_summary", {"workspace": name})
    assert most == 5


@pytest.mark.requirement("DATA-1")
async def test_an_endpoint_that_never_answers_leaves_the_others_a_query(prod: Any) -> None:
    release = threading.Event()

    async def never(_: Request) -> Response:
        await anyio.to_thread.run_sync(release.wait, abandon_on_cancel=True)
        return JSONResponse({"tables": []})

    async def token(_: Request) -> Response:
        return JSONResponse({"access_token": "t", "expires_on": "4102444800"})

    app = Starlette(routes=[Route("/msi/token", token), Route("/v1/{rest:path}", never, methods=["GET", "POST"])])
    with serve(app) as url:
        async with service({"stuck": url, "prod": prod.url}) as made, anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(made.call, "query_incidents", {"workspace": "stuck"})
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(WAIT_S):
                outcome = await made.call("query_incidents", {"workspace": "prod"})
            group.cancel_scope.cancel()
        release.set()
    assert isinstance(outcome, QueryResult)
    assert outcome.coverage.rows_total == 3


async def test_workspaces_of_one_subscription_share_its_limits(tmp_path: Path) -> None:
    with estate(tmp_path) as served:
        async with service({"a": served.url, "b": served.url}) as made:
            outcomes = [
                await made.call("add_incident_comment", {"incident": str(MAIN), "message": "x", "workspace": name})
                for name in ("a", "b") * 38
            ]
    throttled = [each for each in outcomes if isinstance(each, QueryError)]
    assert [each.code for each in throttled] == [QueryErrorCode.THROTTLED]
    assert len(outcomes) - len(throttled) == 75


async def test_a_default_that_is_none_is_a_configuration_error(prod: Any) -> None:
    async with connected(prod.url) as workspace, managed(prod.url) as rest:
        with pytest.raises(ConfigurationError, match="not configured"):
            SentinelService({"prod": workspace}, default="emea", rest={"prod": rest})
