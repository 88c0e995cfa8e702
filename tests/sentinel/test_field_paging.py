"""Field reports B1, B2, B4, B6: no list stops in the middle without saying so, and none brings more than was asked."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from estate_rows import alert, incident
from sentinel_servers import ScriptedArm, managed
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.sentinel.rest import Incident
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-2"), pytest.mark.requirement("TOOL-3")]

MANY = 1_230


@pytest.fixture(scope="module")
def estate(serving: Any) -> Any:
    def time(n: int) -> str:
        return f"2024-07-{1 + n // 48:02d}T{n % 48 // 2:02d}:{n % 2 * 30:02d}:00Z"

    return serving(
        SecurityIncident=[incident(n, time(n), Severity=("High", "Medium", "Low")[n % 3]) for n in range(1, MANY + 1)],
        SecurityAlert=[
            alert(f"a{n:04d}", time(n), Entities=[{"Type": "ip", "Address": f"192.0.2.{n % 250}"}])
            for n in range(1, MANY + 1)
        ],
        SigninLogs=[
            {"TimeGenerated": time(n), "UserPrincipalName": f"u{n}@c.example", "ResultType": "0"}
            for n in range(1, MANY + 1)
        ],
    )


LISTS = [
    ("query_incidents", {}, "number", MANY),
    ("query_alerts", {}, "alert_id", MANY),
    ("get_top_entities", {"kind": "ip"}, "name", 250),
    ("run_kql_query", {"template": "raw_signins"}, "UserPrincipalName", MANY),
]


@pytest.mark.parametrize(("tool", "arguments", "key", "total"), LISTS, ids=lambda value: str(value)[:20])
async def test_a_list_shows_its_page_and_tells_the_total(
    estate: Any, tool: str, arguments: dict[str, Any], key: str, total: int
) -> None:
    """Field reports B1 and B2: the total is right, however many rows a page has."""
    result = await estate.ask(tool, **arguments)
    assert (result.coverage.rows_returned, result.coverage.rows_total) == (20, total)
    assert len({row[key] for row in result.rows}) == 20
    assert not result.coverage.partial


@pytest.mark.parametrize(("tool", "arguments", "key", "total"), LISTS, ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("limit", [1, 5, 100])
async def test_no_more_rows_come_than_were_asked_for(
    estate: Any, tool: str, arguments: dict[str, Any], key: str, total: int, limit: int
) -> None:
    """Field report B6: a limit of 5 brings 5 rows, and their text is small."""
    result = await estate.ask(tool, limit=limit, **arguments)
    assert len(result.rows) == min(limit, total)
    assert result.coverage.rows_total == total
    assert len(str(result.to_dict()["rows"])) < 2_500 * limit


@pytest.mark.parametrize(("tool", "arguments", "key", "total"), LISTS, ids=lambda value: str(value)[:20])
async def test_the_next_pages_are_the_rest_of_the_same_list(
    estate: Any, tool: str, arguments: dict[str, Any], key: str, total: int
) -> None:
    """Field report B1: "the next 20" can be had, to the end, each row once."""
    seen: list[Any] = []
    for offset in range(0, total + 100, 100):
        page: QueryResult = await estate.ask(tool, limit=100, offset=offset, **arguments)
        seen += [row[key] for row in page.rows]
        assert page.coverage.rows_total == total
        assert page.coverage.rows_returned == max(0, min(100, total - offset))
    assert len(seen) == len(set(seen)) == total
    first = await estate.ask(tool, limit=100, **arguments)
    assert seen[:100] == [row[key] for row in first.rows]


async def test_a_list_of_exactly_one_page_is_told_from_one_that_goes_on(serving: Any) -> None:
    """Field report B4: as many rows as a page holds are no proof that there are no more; the count is."""
    for count in (20, 21):
        served = serving(
            SecurityIncident=[incident(n, f"2024-07-01T00:{n:02d}:00Z") for n in range(count)],
            SecurityAlert=[alert(f"a{n}", f"2024-07-01T00:{n:02d}:00Z") for n in range(count)],
        )
        for tool in ("query_incidents", "query_alerts"):
            result = await served.ask(tool)
            assert (result.coverage.rows_returned, result.coverage.rows_total) == (20, count)


@pytest.mark.parametrize("offset", [-1, 10_001, "5", 1.5])
async def test_an_offset_that_is_none_is_refused(estate: Any, offset: Any) -> None:
    error = await estate.refusal("query_incidents", offset=offset)
    assert error.field == "offset"


class PagingArm:
    """A service that has `total` incidents and ends each page at `size`, whatever `$top` asks for."""

    def __init__(self, total: int, size: int, *, links: bool = True) -> None:
        self.total, self.size, self.links = total, size, links
        self.asked: list[dict[str, list[str]]] = []

    def app(self) -> Starlette:
        return Starlette(
            routes=[Route("/msi/token", ScriptedArm().token), Route("/{path:path}", self.page, methods=["GET"])]
        )

    async def page(self, request: Request) -> Response:
        self.asked.append(parse_qs(urlsplit(str(request.url)).query))
        start = int(request.query_params.get("$skipToken", "0"))
        end = min(start + self.size, self.total)
        properties = {"title": "t", "severity": "Low", "status": "New"}
        body: dict[str, Any] = {
            "value": [
                {"name": f"{n:08d}", "etag": "1", "properties": {**properties, "incidentNumber": n}}
                for n in range(start, end)
            ]
        }
        if self.links and end < self.total:
            body["nextLink"] = str(request.url.include_query_params(**{"$skipToken": str(end)}))
        return JSONResponse(body)


@pytest.mark.parametrize(("size", "pages"), [(50, 25), (200, 7), (1000, 2), (1230, 1), (7, 176)])
async def test_a_list_is_read_over_next_link_whatever_the_page_size(size: int, pages: int) -> None:
    """Field reports B1 (pages of 50) and B2 (pages of 200): all 1,230 incidents, each once."""
    arm = PagingArm(MANY, size)
    with serve(arm.app()) as url:
        async with managed(url) as rest:
            found = await rest.list_incidents()
            assert [each.number for each in found] == list(range(MANY))
            assert len(arm.asked) == pages
            assert {asked["api-version"][0] for asked in arm.asked} == {"2025-09-01"}
            assert found.complete


async def test_a_limit_ends_the_walk_and_is_told() -> None:
    """Field report B6, of the REST client: five are wanted, so five are asked of the service; that is not all."""
    arm = PagingArm(MANY, 50)
    with serve(arm.app()) as url:
        async with managed(url) as rest:
            found = await rest.list_incidents(limit=5)
    assert isinstance(found[0], Incident)
    assert (len(found), found.complete) == (5, False)
    assert [asked["$top"] for asked in arm.asked] == [["5"]]


@pytest.mark.parametrize(
    ("total", "size", "complete"),
    [(100, 100, False), (99, 100, True), (200, 200, False), (1000, 1000, False), (0, 100, True), (50, 50, False)],
)
async def test_a_page_that_is_exactly_full_and_names_no_next_one_may_not_be_the_end(
    total: int, size: int, complete: bool
) -> None:
    """Field report B4: 100 come back and no nextLink: nobody can tell, so it is not called complete."""
    with serve(PagingArm(total, size, links=False).app()) as url:
        async with managed(url) as rest:
            found = await rest.list_incidents()
    assert (len(found), found.complete) == (total, complete)


async def test_a_kept_list_tells_when_it_was_read() -> None:
    """Field report I4: what is answered from memory shows its age."""
    now = 100.0
    with serve(PagingArm(3, 50).app()) as url:
        async with managed(url, clock=lambda: now) as rest:
            first = await rest.list_incidents()
            now = 130.0
            again = await rest.list_incidents()
            assert again is first
            assert now - again.read_at == 30.0
            now = 161.0
            assert (await rest.list_incidents()).read_at == 161.0
