"""Freeform KQL through all processes with the installed command: on, off, and by a call of the gateway itself."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from waiting import WAIT_S

pytestmark = pytest.mark.requirement("TOOL-5")
PER_PLACE = "SigninLogs | where TimeGenerated > ago(90d) | summarize SignIns = count() by Location | top 3 by SignIns"


def call(url: str, key: str, tool: str, args: dict[str, Any], session: str = "e2e-freeform") -> tuple[int, Any]:
    """One call of `POST /v1/proxy-execute`, as a hijacked agent makes it with its own key."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        body = json.dumps({"session_id": session, "tool_name": tool, "args": args})
        connection.request("POST", "/v1/proxy-execute", body, {"X-API-Key": key, "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def opted_in(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The sample estate with freeform KQL switched on, running."""
    home: Path = tmp_path_factory.mktemp("freeform") / "home"
    settings = {
        "SENTINEL_FREEFORM_KQL": "on",
        "SENTINEL_FREEFORM_TABLES": "SigninLogs,SecurityAlert,DeviceProcessEvents",
    }
    product = type(generated)(generated.copy(home).home, settings)
    with product.up() as addresses:
        yield product, addresses


def test_a_question_that_is_kql_is_answered_with_evidence_and_recorded(opted_in: Any) -> None:
    product, _ = opted_in
    answer = product.json("ask", PER_PLACE)
    assert answer["outcome"] == "answered"
    assert answer["tables"][0]["columns"] == ["Location", "SignIns"]
    assert len(answer["tables"][0]["rows"]) == 3
    made = answer["tools"][-1]
    assert (made["name"], made["arguments"], made["status"]) == ("run_freeform_kql", {"kql": PER_PLACE}, "ok")
    assert answer["evidence"]
    records = [
        json.loads(line) for line in product.run("audit", "show", made["audit_id"], "--json").stdout.splitlines()
    ]
    shown = json.dumps(records)
    assert "run_freeform_kql_any" in shown
    assert "summarize SignIns" in shown


def test_the_zones_are_ready_and_the_tool_is_offered(opted_in: Any) -> None:
    product, addresses = opted_in
    connection = http.client.HTTPConnection(addresses["interceptor"]["url"].removeprefix("http://"), timeout=WAIT_S)
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["checks"]["tools"]) == (200, "ok")
    connection.request("GET", "/v1/tools", headers={"X-API-Key": product.environment["SENTINEL_API_KEY"]})
    offered = {tool["name"] for tool in json.loads(connection.getresponse().read())["tools"]}
    connection.close()
    assert {"run_freeform_kql", "describe_table"} <= offered


def test_a_wrong_name_can_be_put_right_from_the_gateways_answer_alone(opted_in: Any) -> None:
    """Field reports F4, H1 and H2, through all processes: code, place, nearest names, valid columns."""
    product, addresses = opted_in
    url, key = addresses["interceptor"]["url"], product.environment["SENTINEL_API_KEY"]
    kql = "SigninLogs | where Locaton == 'GB' | summarize SignIns = count()"
    status, body = call(url, key, "run_freeform_kql", {"kql": kql, "time_window": "last 90 days"})
    assert (status, body["reason"], body["error"]["code"]) == (422, "invalid_argument", "query_rejected")
    problem = body["error"]["problems"][0]
    assert (problem["code"], problem["line"], problem["column"], problem["length"]) == ("unknown_column", 1, 20, 7)
    assert problem["nearest"][0] == "Location"
    assert "Location" in body["error"]["allowed"]
    start = problem["column"] - 1
    repaired = kql[:start] + problem["nearest"][0] + kql[start + problem["length"] :]
    status, body = call(url, key, "run_freeform_kql", {"kql": repaired, "time_window": "last 90 days"})
    assert status == 200
    assert body["result"]["rows"][0]["SignIns"] > 0
    status, described = call(url, key, "describe_table", {"table": "signinlogs"})
    assert (status, described["result"]["summary"]["table"]) == (200, "SigninLogs")


def test_tables_outside_the_operators_list_stay_shut(opted_in: Any) -> None:
    product, addresses = opted_in
    url, key = addresses["interceptor"]["url"], product.environment["SENTINEL_API_KEY"]
    status, body = call(url, key, "run_freeform_kql", {"kql": "OfficeActivity | count", "time_window": "7d"})
    assert status == 422
    assert body["error"]["problems"][0]["code"] == "table_not_allowed"
    assert body["error"]["allowed"] == ["DeviceProcessEvents", "SecurityAlert", "SigninLogs"]
    assert "result" not in body


def test_what_cannot_be_read_is_not_read_in_an_empty_answer(opted_in: Any) -> None:
    """Field report F1: no row, told apart from an error, with what the table holds."""
    product, _ = opted_in
    done = product.run("ask", "SigninLogs | where TimeGenerated > ago(90d) | where Location == 'nowhere'")
    assert done.returncode == 3
    assert "found no row" in done.stdout
    assert "SigninLogs holds" in done.stdout


@pytest.fixture
def running(sample: Any) -> Callable[..., tuple[int, Any]]:
    """A call of the gateway of the product as it comes: not opted in."""
    with_state = json.loads((sample.home / "run" / "zones.json").read_text())
    url = next(zone["url"] for zone in with_state["zones"] if zone["name"] == "interceptor")
    return lambda tool, args: call(url, sample.environment["SENTINEL_API_KEY"], tool, args)


def test_without_opting_in_a_call_is_denied_on_record_and_the_answer_says_how(
    sample: Any, running: Callable[..., tuple[int, Any]]
) -> None:
    answer = sample.json("ask", PER_PLACE)
    assert (answer["outcome"], answer["tools"]) == ("out_of_scope", [])
    assert "SENTINEL_FREEFORM_KQL=on" in answer["answer"]
    status, body = running("run_freeform_kql", {"kql": PER_PLACE})
    assert (status, body["reason"], body["status"]) == (403, "tool_switched_off", "denied")
    shown = sample.run("audit", "show", body["audit_id"], "--json").stdout
    record = json.loads(shown.splitlines()[0])
    assert "tool_switched_off" in json.dumps(record)
    assert "summarize SignIns" in json.dumps(record)
    replayed = sample.json("policy", "replay")
    assert replayed["decided"] == replayed["same"]


def test_the_columns_of_a_table_can_be_asked_for_without_opting_in(sample: Any) -> None:
    """Field report H2: the schema look-up is always there."""
    answer = sample.json("ask", "which columns does signinlogs have?")
    assert answer["outcome"] == "answered"
    assert answer["tools"][-1]["arguments"] == {"table": "signinlogs"}
    names = {row[0] for row in answer["tables"][0]["rows"]}
    assert {"TimeGenerated", "UserPrincipalName", "Location"} <= names
