"""What REST adds to an incident's detail: bookmarks, the state of this moment, and what is said where it is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from action_estate import MAIN, Estate, estate
from estate_rows import incident
from sentinel_servers import NOW, ScriptedArm, connected, managed
from starlette.responses import JSONResponse

from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.sentinel.rest.connection import LIMITS, RateBuckets, RestOperation
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-2")]

PROVIDER = f"{EMBEDDED_RESOURCE_ID}/providers/Microsoft.SecurityInsights"
BOOKMARK = "73e01a99-5cd7-4139-a149-9f2736ff2ab5"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


async def bookmarked(served: Estate, count: int = 1, notes: str = "seen twice") -> str:
    """Bookmarks on the main incident, written by a client of the REST API; the incident's GUID."""
    name = str(served.newest("IncidentName")[0])
    async with managed(served.url) as rest:
        base = f"{served.url}{PROVIDER}"
        version = "api-version=2025-09-01"
        for number in range(count):
            guid = f"{BOOKMARK[:-2]}{number:02d}"
            properties = {"displayName": f"mark {number}", "query": "SigninLogs | take 5", "notes": notes}
            await rest.connection.write("PUT", f"{base}/bookmarks/{guid}?{version}", {"properties": properties})
            related = {
                "relatedResourceId": f"{EMBEDDED_RESOURCE_ID}/providers/Microsoft.SecurityInsights/Bookmarks/{guid}"
            }
            url = f"{base}/incidents/{name}/relations/rel-{number}?{version}"
            await rest.connection.write("PUT", url, {"properties": related})
    return name


async def test_bookmarks_are_part_of_the_detail(served: Estate) -> None:
    assert (await served.ask("get_incident_detail", incident=str(MAIN))).rows[0]["bookmarks"] == []
    await bookmarked(served)
    (row,) = (await served.ask("get_incident_detail", incident=str(MAIN))).rows
    (bookmark,) = row["bookmarks"]
    assert bookmark["bookmark_id"] == f"{BOOKMARK[:-2]}00"
    assert (bookmark["name"], bookmark["notes"], bookmark["query"]) == ("mark 0", "seen twice", "SigninLogs | take 5")
    assert (bookmark["created_by"], bookmark["labels"]) == ("External application - Sentinel RAG", [])
    assert str(bookmark["created_time"]).endswith("Z")


async def test_relations_are_read_by_the_client(served: Estate) -> None:
    name = await bookmarked(served, 3)
    async with managed(served.url) as rest:
        relations = await rest.relations(name)
    assert [(each.name, each.related_name) for each in relations] == [
        (f"rel-{number}", f"{BOOKMARK[:-2]}{number:02d}") for number in range(3)
    ]
    assert {each.related_type for each in relations} == {"Microsoft.SecurityInsights/Bookmarks"}


async def test_many_long_bookmarks_do_not_burst_the_compact_form(served: Estate) -> None:
    await bookmarked(served, 20, notes="word " * 2000)
    compact = await served.ask("get_incident_detail", incident=str(MAIN))
    full = await served.ask("get_incident_detail", incident=str(MAIN), detail="full")
    assert len(full.rows[0]["bookmarks"]) == 20
    assert len(str(compact.rows[0])) < 25_000
    assert len(compact.rows[0]["bookmarks"]) + compact.summary["left_out"].get("bookmarks", 0) == 20
    assert compact.summary["left_out"]["cut_texts"] >= len(compact.rows[0]["bookmarks"])
    assert all(len(str(each["notes"])) == len("word " * 2000) - 1 for each in full.rows[0]["bookmarks"])


async def test_bookmarks_are_asked_once_while_the_incident_stays_as_it_is(served: Estate) -> None:
    await bookmarked(served)
    served.faults()
    async with connected(served.url) as logs, managed(served.url) as rest:
        service = SentinelService({"lab": logs}, rest={"lab": rest})
        for _ in range(3):
            await service.call("get_incident_detail", {"incident": str(MAIN)})
    assert served.requests()["rest POST"] == 1
    assert served.requests()["rest GET"] == 3  # the incident's state is asked each time


async def test_where_rest_fails_the_log_is_told_with_a_note(served: Estate) -> None:
    await bookmarked(served)
    served.faults({"kind": "forbidden", "wire": "rest", "times": None})
    result = await served.ask("get_incident_detail", incident=str(MAIN))
    assert result.rows[0]["number"] == MAIN
    assert any("is told as the log has it" in note and "Sentinel Reader" not in note for note in result.notes)
    served.faults({"kind": "forbidden", "wire": "rest", "method": "POST", "times": None})
    result = await served.ask("get_incident_detail", incident=str(MAIN))
    assert result.rows[0]["bookmarks"] == []
    assert any("has 1 bookmark that could not be read" in note for note in result.notes)


async def test_the_limit_of_five_minutes_is_told_and_not_met_with_a_refusal(served: Estate) -> None:
    await bookmarked(served)
    buckets = RateBuckets()
    for _ in range(LIMITS[RestOperation.GET_BOOKMARKS]):
        buckets.take(RestOperation.GET_BOOKMARKS)
    served.faults()
    async with connected(served.url) as logs, managed(served.url, buckets=buckets) as rest:
        result = await SentinelService({"lab": logs}, rest={"lab": rest}).call(
            "get_incident_detail", {"incident": str(MAIN)}
        )
    assert isinstance(result, QueryResult)
    assert any("limit to read bookmarks" in note for note in result.notes)
    assert "rest POST" not in served.requests()


async def test_without_rest_the_number_of_bookmarks_is_told(served: Estate) -> None:
    await bookmarked(served, 2)
    async with connected(served.url) as logs:
        result = await SentinelService({"lab": logs}).call("get_incident_detail", {"incident": str(MAIN)})
    assert isinstance(result, QueryResult)
    assert result.rows[0]["bookmarks"] == []
    assert any("has 2 bookmarks that could not be read: REST is not configured" in note for note in result.notes)


def scripted(number: int, **over: Any) -> JSONResponse:
    properties = {
        "title": f"Incident number {number}",
        "severity": "Medium",
        "status": "New",
        "owner": {"assignedTo": None},
        "lastModifiedTimeUtc": "2024-07-02T12:00:00.0000000Z",
        "additionalData": {"bookmarksCount": 0},
        **over,
    }
    return JSONResponse({"name": "x", "etag": '"1"', "properties": properties})


async def detail(serving: Any, answer: JSONResponse) -> QueryResult:
    """The detail of incident 1, whose log is of 1 July, while REST gives `answer`."""
    served = serving(SecurityIncident=[incident(1, "2024-07-01T00:00:00Z")])
    arm = ScriptedArm(answers=[answer])
    with serve(arm.app()) as url:
        async with connected(served.url) as logs, managed(url) as rest:
            service = SentinelService({"lab": logs}, rest={"lab": rest}, clock=lambda: NOW)
            result = await service.call("get_incident_detail", {"incident": "1"})
    assert isinstance(result, QueryResult)
    return result


async def test_a_change_that_the_log_does_not_have_yet_is_told(serving: Any) -> None:
    """Field report I4: a status changed elsewhere is what the next answer shows."""
    changed = {"status": "Closed", "classification": "TruePositive", "owner": {"assignedTo": "Ana Lima"}}
    result = await detail(serving, scripted(1, **changed))
    row = result.rows[0]
    assert (row["status"], row["classification"], row["owner"]) == ("Closed", "TruePositive", "Ana Lima")
    assert row["updated_time"] == "2024-07-02T12:00:00Z"
    (note,) = [note for note in result.notes if "has not caught up" in note]
    assert "status Closed, classification TruePositive, owner Ana Lima since 2024-07-02T12:00:00Z" in note


@pytest.mark.parametrize(
    "over",
    [
        {"status": "Closed", "lastModifiedTimeUtc": "2024-07-01T00:00:00.0000000Z"},
        {"status": "Closed", "lastModifiedTimeUtc": None},
        {"status": "Closed", "lastModifiedTimeUtc": "soon"},
        {},
    ],
)
async def test_a_log_that_is_as_new_stands(serving: Any, over: dict[str, Any]) -> None:
    result = await detail(serving, scripted(1, **over))
    assert result.rows[0]["status"] == "New"
    assert not any("caught up" in note for note in result.notes)


async def test_an_incident_that_sentinel_has_no_more_is_told_from_the_log(serving: Any) -> None:
    result = await detail(serving, JSONResponse({"error": {"code": "NotFound", "message": "gone"}}, 404))
    assert result.rows[0]["status"] == "New"
    assert not any("as the log has it" in note for note in result.notes)
