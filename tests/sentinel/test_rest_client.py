"""The client of Sentinel's REST API, against the embedded workspace and against a scripted service that misbehaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from action_estate import MAIN, Estate, estate
from sentinel_servers import ScriptedArm, managed
from starlette.responses import HTMLResponse, JSONResponse, Response

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryErrorCode, QueryFailedError
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential
from sentinel_rag.sentinel.rest import ArmConnection, Incident, SentinelRest
from sentinel_rag.sentinel.rest.connection import LIMITS, RateBuckets, RestOperation
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-2")]

NAME = "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d01"
BODY: dict[str, Any] = {"name": NAME, "etag": '"1"', "properties": {"title": "t", "severity": "Low", "status": "New"}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


@pytest.fixture
def arm() -> Iterator[ScriptedArm]:
    scripted = ScriptedArm()
    with serve(scripted.app()) as url:
        scripted.url = url
        yield scripted


async def failure_of(call: Any) -> Any:
    with pytest.raises(QueryFailedError) as caught:
        await call
    return caught.value.error


def many(folder: Path, count: int) -> str:
    export = folder / "many.jsonl"
    rows = [
        {
            "TimeGenerated": "2025-03-13T00:00:00Z",
            "IncidentName": f"00000000-0000-4000-8000-{number:012d}",
            "IncidentNumber": 1000 + number,
            "Title": f"Incident {number}",
            "Severity": "Low",
            "Status": "New",
            "CreatedTime": f"2025-03-{1 + number % 12:02d}T00:00:00Z",
        }
        for number in range(count)
    ]
    export.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(export)


async def test_a_list_is_followed_over_its_pages_to_the_end(served: Estate, tmp_path: Path) -> None:
    served.admin("POST", "import", {"path": many(tmp_path, 1230), "table": "SecurityIncident"})
    served.faults()
    async with managed(served.url) as rest:
        incidents = await rest.list_incidents(odata_filter="properties/incidentNumber ge 1000")
        assert len({incident.name for incident in incidents}) == 1230
        assert served.requests()["rest GET"] == 2
        first = await rest.list_incidents(odata_filter="properties/incidentNumber ge 1000", limit=20)
        assert first == incidents[:20]
        assert served.requests()["rest GET"] == 3
        assert len(await rest.list_incidents(limit=1100)) == 1100


async def test_a_list_is_kept_for_a_minute_and_an_own_write_is_seen_at_once(served: Estate) -> None:
    now = 0.0
    served.faults()
    async with managed(served.url, clock=lambda: now) as rest:

        def asked() -> int:
            return served.requests().get("rest GET", 0)

        first = await rest.list_incidents(odata_filter="properties/severity eq 'High'")
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(lambda: rest.list_incidents(odata_filter="properties/severity eq 'High'"))
        assert asked() == 1
        now = 59.9
        assert await rest.list_incidents(odata_filter="properties/severity eq 'High'") == first
        assert asked() == 1
        now = 60.0
        await rest.list_incidents(odata_filter="properties/severity eq 'High'")
        assert asked() == 2
        incident = next(incident for incident in first if incident.number == MAIN)
        await rest.update_incident(incident, {"severity": "Low"})
        second = await rest.list_incidents(odata_filter="properties/severity eq 'High'")
        assert {i.number for i in first} - {i.number for i in second} == {MAIN}
        await rest.add_comment(incident.name, NAME, "hello")
        third = {i.number: i for i in await rest.list_incidents()}
        assert third[MAIN].properties["additionalData"]["commentsCount"] == 3


async def test_many_that_ask_at_once_are_one_request(served: Estate) -> None:
    served.faults({"kind": "slow", "wire": "rest", "delay_s": 0.05})
    async with managed(served.url) as rest, anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(rest.list_incidents)
    assert served.requests()["rest GET"] == 1


async def test_alerts_entities_and_comments_of_an_incident(served: Estate) -> None:
    served.faults()
    async with managed(served.url) as rest:
        (incident,) = await rest.list_incidents(odata_filter=f"properties/incidentNumber eq {MAIN}")
        for _ in range(3):
            assert len(await rest.alerts(incident)) == 8
            assert {e["kind"] for e in await rest.entities(incident)} >= {"Account", "Host", "Ip", "Process"}
        assert served.requests()["rest POST"] == 2  # kept until the incident's etag changes
        changed = await rest.update_incident(incident, {"severity": "Low"})
        assert changed.etag != incident.etag
        assert len(await rest.alerts(changed)) == 8
        assert served.requests()["rest POST"] == 3
        comments = await rest.comments(incident.name)
        assert [comment.author for comment in comments] == ["asa.oberg@woodgrove.example"] * 2


async def test_the_clients_own_count_keeps_the_services_limits(served: Estate) -> None:
    now = 0.0
    buckets = RateBuckets(lambda: now)
    served.faults()
    name = served.newest("IncidentName")[0]
    async with managed(served.url, buckets=buckets) as rest:
        for _ in range(LIMITS[RestOperation.GET_COMMENTS]):
            await rest.comments(name)
        error = await failure_of(rest.comments(name))
        assert (error.code, error.retry_after_s, error.retry_possible) == (QueryErrorCode.THROTTLED, 300.0, True)
        assert "100 requests in 5 minutes" in error.message
        assert "in 300 seconds" in error.next_step
        assert served.requests()["rest GET"] == 100
        await rest.get_incident(name)  # has no limit of its own
        now = 299.0
        assert (await failure_of(rest.comments(name))).retry_after_s == 1.0
        now = 300.0
        for operation, limit in LIMITS.items():
            if operation is RestOperation.GET_COMMENTS:
                continue
            for _ in range(limit):
                buckets.take(operation)
            with pytest.raises(QueryFailedError):
                buckets.take(operation)
    assert served.requests()["rest GET"] == 101


@pytest.mark.parametrize(
    ("status", "body", "code", "words", "calls"),
    [
        (401, {"error": {"code": "InvalidAuthenticationToken", "message": "no"}}, "access_denied", "HTTP 401", 1),
        (403, {"error": {"code": "AuthorizationFailed", "message": "no right"}}, "access_denied", "no right", 1),
        (404, {"error": {"code": "NotFound", "message": "gone"}}, "invalid_argument", "no such incident: gone", 1),
        (
            404,
            {"error": {"code": "ResourceGroupNotFound", "message": "x"}},
            "workspace_not_found",
            "no such workspace",
            1,
        ),
        (404, "<html>", "invalid_argument", "no such incident", 1),
        (400, {"error": {"code": "BadRequest", "message": "Invalid $filter"}}, "query_rejected", "Invalid $filter", 1),
        (409, {"error": {"code": "Conflict", "message": "newer"}}, "conflict", "newer", 1),
        (412, {}, "conflict", "Somebody else", 1),
        (429, {"error": {"code": "429", "message": "slow down"}}, "throttled", "slow down", 4),
        (500, {"error": "invalid_grant", "error_description": "AADSTS70000"}, "unavailable", "AADSTS70000", 4),
        (502, "<html>bad gateway</html>", "unavailable", "HTTP 502", 4),
        (503, {}, "unavailable", "HTTP 503", 4),
        (504, {}, "timeout", "in time", 4),
        (302, "", "unavailable", "HTTP 302", 1),
        (200, "", "protocol", "with nothing", 1),
        (204, "", "protocol", "with nothing", 1),
        (200, "<html>", "protocol", "not a JSON object", 1),
        (200, [], "protocol", "not a JSON object", 1),
        (200, {"value": []}, "protocol", "no incident", 1),
        (200, {"name": 5, "properties": {}}, "protocol", "no incident", 1),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_what_a_failing_answer_means(
    arm: ScriptedArm, status: int, body: Any, code: str, words: str, calls: int
) -> None:
    headers = {"location": "http://203.0.113.9/"} if status == 302 else {}
    arm.answers = [
        Response(body, status, headers) if isinstance(body, str) else JSONResponse(body, status, headers=headers)
    ]
    async with managed(arm.url) as rest:
        error = await failure_of(rest.get_incident(NAME))
    assert (error.code.value, len(arm.calls)) == (code, calls)
    assert words in error.message
    assert error.next_step


async def test_retry_after_is_told_when_the_retries_are_used_up(arm: ScriptedArm) -> None:
    arm.answers = [JSONResponse({}, 429, headers={"Retry-After": "240"})]
    async with managed(arm.url, retries=0) as rest:
        error = await failure_of(rest.get_incident(NAME))
    assert (error.code, error.retry_after_s) == (QueryErrorCode.THROTTLED, 240.0)
    assert "240 seconds" in error.next_step


async def test_reads_are_repeated_after_short_faults(served: Estate) -> None:
    served.faults(
        {"kind": "throttled", "method": "GET", "retry_after_s": None},
        {"kind": "html", "method": "GET"},
        {"kind": "timeout", "method": "GET"},
    )
    async with managed(served.url) as rest:
        assert len(await rest.list_incidents()) == 28
    assert served.requests()["rest GET"] == 4


@pytest.mark.parametrize(
    "link", ["http://203.0.113.9/x", "https://127.0.0.1/x", "//203.0.113.9/x", "file:///etc/passwd"]
)
async def test_a_next_link_to_another_host_gets_no_token(arm: ScriptedArm, link: str) -> None:
    arm.answers = [JSONResponse({"value": [BODY], "nextLink": link})]
    async with managed(arm.url) as rest:
        error = await failure_of(rest.list_incidents())
    assert error.code is QueryErrorCode.PROTOCOL
    assert "another host" in error.message
    assert len(arm.calls) == 1


async def test_pages_that_lead_back_to_each_other_end(arm: ScriptedArm) -> None:
    links = [f"{arm.url}/subscriptions/a", f"{arm.url}/subscriptions/b"]
    arm.answers = [JSONResponse({"value": [BODY], "nextLink": links[n % 2]}) for n in range(9)]
    async with managed(arm.url) as rest:
        error = await failure_of(rest.list_incidents())
    assert error.code is QueryErrorCode.PROTOCOL
    assert len(arm.calls) == 3


@pytest.mark.parametrize("body", [{"value": {}}, {"value": [5]}, {}])
async def test_a_page_that_is_none_is_no_empty_list(arm: ScriptedArm, body: Any) -> None:
    arm.answers = [JSONResponse(body)]
    async with managed(arm.url) as rest:
        for call in (rest.list_incidents(), rest.comments(NAME), rest.alerts(Incident(NAME, "", {}))):
            assert (await failure_of(call)).code is QueryErrorCode.PROTOCOL


async def test_a_failure_is_not_kept_as_an_answer(arm: ScriptedArm) -> None:
    arm.answers = [JSONResponse({}, 400), JSONResponse({"value": [BODY]})]
    async with managed(arm.url) as rest:
        await failure_of(rest.list_incidents())
        assert [incident.name for incident in await rest.list_incidents()] == [NAME]


async def test_a_server_that_is_away_is_told_and_a_write_to_it_was_surely_not_taken() -> None:
    with serve(ScriptedArm().app()) as url:
        pass
    credential = _StaticCredential()
    async with ArmConnection(credential, endpoint=url) as connection:
        rest = SentinelRest("lab", EMBEDDED_RESOURCE_ID, connection)
        for call in (rest.get_incident(NAME), rest.add_comment(NAME, NAME, "x")):
            error = await failure_of(call)
            assert error.code is QueryErrorCode.UNAVAILABLE
            assert url in error.message


async def test_a_write_without_an_etag_is_not_sent_twice(arm: ScriptedArm) -> None:
    arm.answers = [HTMLResponse("bad gateway", 502), JSONResponse({**BODY, "etag": None})]
    async with managed(arm.url) as rest:
        error = await failure_of(rest.update_incident(Incident(NAME, "", BODY["properties"]), {"severity": "High"}))
    assert error.code is QueryErrorCode.OUTCOME_UNKNOWN
    assert [method for method, _ in arm.calls] == ["PUT", "GET"]


@pytest.mark.parametrize("name", ["", "..", "a/../b", "a?b", "%2e%2e", "ä", "a" * 101])
async def test_a_name_that_would_lead_elsewhere_is_not_sent(arm: ScriptedArm, name: str) -> None:
    async with managed(arm.url) as rest:
        for call in (rest.get_incident(name), rest.add_comment(name, NAME, "x"), rest.add_comment(NAME, name, "x")):
            assert (await failure_of(call)).code is QueryErrorCode.INVALID_ARGUMENT
    assert arm.calls == []


def test_a_put_sends_everything_back_that_is_not_read_only() -> None:
    body = Incident(
        NAME, '"1"', {**BODY["properties"], "incidentNumber": 5, "labels": [], "unknown": {"x": 1}}
    ).changed({"severity": "High", "classification": None})
    assert body == {
        "etag": '"1"',
        "properties": {"title": "t", "severity": "High", "status": "New", "labels": [], "unknown": {"x": 1}},
    }


@pytest.mark.parametrize(
    "resource_id",
    [
        "",
        "soc",
        "/subscriptions/s/resourceGroups/g",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.OperationalInsights/workspaces/",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/w",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.OperationalInsights/workspaces/w/x",
    ],
)
async def test_a_resource_id_that_is_none_is_a_configuration_error(resource_id: str) -> None:
    async with ArmConnection(_StaticCredential()) as connection:
        with pytest.raises(ConfigurationError, match="Resource ID"):
            SentinelRest("lab", resource_id, connection)


@pytest.mark.parametrize("endpoint", ["http://management.azure.com", "ftp://127.0.0.1", "management.azure.com"])
async def test_a_token_does_not_cross_a_network_in_the_clear(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="https"):
        ArmConnection(IdentityEndpointCredential("http://127.0.0.1:9/msi/token", "x"), endpoint=endpoint)


class _StaticCredential:
    """A token that nobody asked for; the server in question does not run."""

    async def get_token(self, *scopes: str, **_: Any) -> Any:
        from azure.core.credentials import AccessToken

        assert scopes == ("https://management.azure.com/.default",)
        return AccessToken("a-token", 4102444800)

    async def close(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> _StaticCredential:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
