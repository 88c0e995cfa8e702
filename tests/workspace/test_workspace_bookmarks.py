"""Bookmarks and an incident's relations to them over the REST API, and what KQL sees of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arm_client import PATH, ArmClient, app_over

from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.requirement("DATA-2"), pytest.mark.requirement("DATA-4")]

MAIN = 124
ONE, TWO = "73e01a99-5cd7-4139-a149-9f2736ff2ab5", "2216d0e1-91e3-4902-89fd-d2df8c535096"
BOOKMARK: dict[str, Any] = {
    "displayName": "Odd sign-in of näch|ste",
    "query": "SigninLogs | where UserPrincipalName =~ 'asa.oberg@woodgrove.example'",
    "queryResult": '{"UserPrincipalName": "asa.oberg@woodgrove.example"}',
    "notes": "seen from two countries\nwithin an hour",
    "labels": ["triage", "a, b"],
    "eventTime": "2025-03-12T09:30:00.1234567Z",
}


@pytest.fixture
def client(small_estate: Workspace) -> Iterator[ArmClient]:
    with serve(app_over(small_estate)) as url:
        yield ArmClient(url)


def incident(client: ArmClient) -> dict[str, Any]:
    (found,) = client.arm("GET", "incidents", filter=f"properties/incidentNumber eq {MAIN}").body["value"]
    body: dict[str, Any] = found
    return body


def put(client: ArmClient, name: str = ONE, **over: Any) -> Any:
    return client.arm("PUT", f"bookmarks/{name}", {"properties": {**BOOKMARK, **over}})


def related(name: str) -> dict[str, Any]:
    return {"properties": {"relatedResourceId": f"{PATH}/Bookmarks/{name}"}}


def test_a_bookmark_is_written_read_listed_changed_and_taken_away(client: ArmClient) -> None:
    assert client.arm("GET", "bookmarks").body == {"value": []}
    written = put(client)
    assert written.status == 201
    body = written.body
    assert (body["name"], body["type"]) == (ONE, "Microsoft.SecurityInsights/Bookmarks")
    assert body["id"] == f"{PATH}/Bookmarks/{ONE}"
    shown = body["properties"]
    assert {key: shown[key] for key in BOOKMARK} == {**BOOKMARK, "eventTime": "2025-03-12T09:30:00.1234560Z"}
    assert shown["createdBy"] == shown["updatedBy"]
    assert shown["createdBy"]["name"] == "External application - Sentinel RAG"
    assert client.arm("GET", f"bookmarks/{ONE.upper()}").body == body
    changed = client.arm("PUT", f"bookmarks/{ONE}", {"etag": body["etag"], "properties": {**BOOKMARK, "notes": "x"}})
    assert (changed.status, changed.body["properties"]["notes"]) == (200, "x")
    assert changed.body["properties"]["created"] == shown["created"]
    stale = client.arm("PUT", f"bookmarks/{ONE}", {"etag": body["etag"], "properties": BOOKMARK})
    assert stale.status == 409
    assert client.arm("PUT", f"bookmarks/{ONE}", {"properties": BOOKMARK}, if_match=body["etag"]).status == 412
    assert [each["name"] for each in client.arm("GET", "bookmarks").body["value"]] == [ONE]
    assert client.kql("HuntingBookmark | summarize count(), arg_max(TimeGenerated, Notes) by BookmarkId") == [
        [ONE, 2, client.kql("HuntingBookmark | summarize max(TimeGenerated)")[0][0], "x"]
    ]
    assert client.arm("DELETE", f"bookmarks/{ONE}").status == 200
    assert client.arm("DELETE", f"bookmarks/{ONE}").status == 204
    assert client.arm("GET", f"bookmarks/{ONE}").status == 404
    assert client.arm("GET", "bookmarks").body == {"value": []}
    assert put(client).status == 201  # taken away is not for ever


def test_an_incident_holds_bookmarks_by_relations(client: ArmClient) -> None:
    name = incident(client)["name"]
    put(client)
    put(client, TWO, displayName="second")
    assert client.arm("GET", f"incidents/{name}/relations").body == {"value": []}
    made = client.arm("PUT", f"incidents/{name}/relations/my-relation", related(ONE))
    assert made.status == 201
    assert made.body["name"] == "my-relation"
    assert made.body["properties"] == {
        "relatedResourceId": f"{PATH}/Bookmarks/{ONE}",
        "relatedResourceName": ONE,
        "relatedResourceType": "Microsoft.SecurityInsights/Bookmarks",
    }
    assert client.arm("PUT", f"incidents/{name}/relations/my-relation", related(ONE.upper())).status == 200
    client.arm("PUT", f"incidents/{name}/relations/second-one", related(TWO))
    relations = client.arm("GET", f"incidents/{name}/relations").body["value"]
    assert [each["name"] for each in relations] == ["my-relation", "second-one"]
    assert client.arm("GET", f"incidents/{name}/relations/MY-relation").body == relations[0]
    held = client.arm("POST", f"incidents/{name}/bookmarks").body["value"]
    assert [(each["kind"], each["properties"]["displayName"]) for each in held] == [
        ("Bookmark", BOOKMARK["displayName"]),
        ("Bookmark", "second"),
    ]
    assert held[0]["properties"]["notes"] == BOOKMARK["notes"]
    now = incident(client)
    assert now["properties"]["additionalData"]["bookmarksCount"] == 2
    ((ids, counted),) = client.kql(
        f"SecurityIncident | where IncidentNumber == {MAIN} | top 1 by TimeGenerated "
        "| project tostring(BookmarkIds), toint(AdditionalData.bookmarksCount)"
    )
    assert (json.loads(ids), counted) == ([ONE, TWO], 2)
    moved = client.arm("PUT", f"incidents/{name}/relations/my-relation", related(TWO))
    assert moved.status == 200  # one relation names one bookmark
    assert [each["name"] for each in client.arm("POST", f"incidents/{name}/bookmarks").body["value"]] == [TWO]
    assert client.arm("DELETE", f"incidents/{name}/relations/my-relation").status == 200
    assert client.arm("DELETE", f"incidents/{name}/relations/my-relation").status == 204
    assert client.arm("POST", f"incidents/{name}/bookmarks").body == {"value": []}
    assert client.arm("GET", f"incidents/{name}/relations/my-relation").status == 404


def test_what_is_taken_away_is_held_no_more(client: ArmClient) -> None:
    name = incident(client)["name"]
    put(client)
    client.arm("PUT", f"incidents/{name}/relations/rel", related(ONE))
    client.arm("DELETE", f"bookmarks/{ONE}")
    assert client.arm("POST", f"incidents/{name}/bookmarks").body == {"value": []}
    assert client.arm("GET", f"incidents/{name}/relations").body == {"value": []}


def test_imported_bookmarks_are_shown_as_their_columns_tell(client: ArmClient, tmp_path: Path) -> None:
    name = incident(client)["name"]
    rows = [
        {
            "TimeGenerated": "2025-03-11T00:00:00Z",
            "BookmarkId": TWO.upper(),
            "BookmarkName": "from the portal",
            "CreatedBy": '{"ObjectId":"1","Email":"b@c.example","Name":"Berta"}',
            "CreatedTime": "2025-03-11T00:00:00Z",
            "QueryText": "SigninLogs",
            "Tags": "one, two",
        },
        {
            "TimeGenerated": "2025-03-11T00:00:00Z",
            "BookmarkId": ONE,
            "BookmarkName": "by a script",
            "CreatedBy": "a script",
            "QueryText": "T",
            "Tags": '["x"]',
        },
    ]
    export = tmp_path / "HuntingBookmark.jsonl"
    export.write_text("".join(json.dumps(row) + "\n" for row in rows))
    client.admin("POST", "import", {"path": str(export), "table": "HuntingBookmark"})
    properties = {each["name"].lower(): each["properties"] for each in client.arm("GET", "bookmarks").body["value"]}
    assert properties[TWO]["createdBy"] == {"objectId": "1", "email": "b@c.example", "name": "Berta"}
    assert properties[TWO]["labels"] == ["one", "two"]
    assert properties[ONE]["createdBy"]["name"] == "a script"
    assert properties[ONE]["labels"] == ["x"]
    assert client.arm("PUT", f"incidents/{name}/relations/rel", related(TWO)).status == 201


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("bookmarks/no-guid", {"properties": BOOKMARK}, 400, "is not a GUID"),
        (f"bookmarks/{ONE}", {"properties": {**BOOKMARK, "displayName": " "}}, 400, "'displayName' is required"),
        (f"bookmarks/{ONE}", {"properties": {**BOOKMARK, "query": None}}, 400, "'query' is required"),
        (f"bookmarks/{ONE}", {"properties": {**BOOKMARK, "labels": "x"}}, 400, "'labels' must be a list"),
        (f"bookmarks/{ONE}", {"properties": {**BOOKMARK, "eventTime": "soon"}}, 400, "'eventTime' is not a time"),
        (f"bookmarks/{ONE}", {"properties": {**BOOKMARK, "notes": "x" * 30_001}}, 400, "30000 characters"),
        (f"bookmarks/{ONE}", [], 400, "needs an object"),
        ("incidents/{name}/relations/x", related(ONE), 400, "cannot name a relation"),
        ("incidents/{name}/relations/rel", {"properties": {}}, 400, "'relatedResourceId' is required"),
        ("incidents/{name}/relations/rel", related("a/b"), 400, "must be the id of a bookmark"),
        ("incidents/{name}/relations/rel", related(ONE), 404, "bookmark"),
        (f"incidents/{TWO}/relations/rel", None, 404, "incident"),
    ],
)
def test_what_the_service_would_refuse_is_refused(
    client: ArmClient, path: str, body: Any, status: int, words: str
) -> None:
    path = path.replace("{name}", incident(client)["name"])
    if body is None:
        put(client)
        body = related(ONE)
    reply = client.arm("PUT", path, body)
    assert reply.status == status, reply.raw
    assert words in reply.error[1]


def test_an_incident_holds_at_most_twenty(client: ArmClient) -> None:
    name = incident(client)["name"]
    statuses = []
    for number in range(21):
        guid = f"00000000-0000-4000-8000-{number:012d}"
        put(client, guid)
        statuses.append(client.arm("PUT", f"incidents/{name}/relations/rel-{number}", related(guid)).status)
    assert statuses == [201] * 20 + [400]


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    for expected in (201, 200):
        workspace = Workspace.open(folder)
        try:
            with serve(app_over(workspace)) as url:
                client = ArmClient(url)
                client.arm(
                    "PUT", f"incidents/{TWO}", {"properties": {"title": "t", "severity": "Low", "status": "New"}}
                )
                put(client)
                assert client.arm("PUT", f"incidents/{TWO}/relations/named", related(ONE)).status == expected
                assert [each["name"] for each in client.arm("GET", f"incidents/{TWO}/relations").body["value"]] == [
                    "named"
                ]
        finally:
            workspace.close()
