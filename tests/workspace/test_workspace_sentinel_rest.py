"""Microsoft Sentinel's REST API over the embedded workspace: what any client of the wire sees, on real sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from arm_client import PATH, ArmClient, Reply, app_over

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.serving.arm_authentication import RequestLimits
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = pytest.mark.requirement("DATA-4")

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
MAIN = 124
COMMENT = "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d01"


@pytest.fixture
def client(small_estate: Workspace) -> Iterator[ArmClient]:
    with serve(app_over(small_estate)) as url:
        yield ArmClient(url)


def incident(client: ArmClient, number: int = MAIN) -> dict[str, Any]:
    (found,) = client.arm("GET", "incidents", filter=f"properties/incidentNumber eq {number}").body["value"]
    body: dict[str, Any] = found
    return body


def writable(body: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"etag": body["etag"], "properties": {**body["properties"], **changes}}


def test_an_incident_has_the_recorded_shape(client: ArmClient) -> None:
    body = incident(client)
    properties = body.pop("properties")
    name = body["name"]
    assert body == {
        "id": f"{PATH}/Incidents/{name}",
        "name": name,
        "etag": body["etag"],
        "type": "Microsoft.SecurityInsights/Incidents",
    }
    assert body["etag"].startswith('"')
    assert body["etag"].endswith('"')
    assert (properties["incidentNumber"], properties["severity"], properties["status"]) == (MAIN, "High", "Active")
    assert set(properties["owner"]) == {"objectId", "email", "assignedTo", "userPrincipalName"}
    assert properties["additionalData"]["alertsCount"] == 8
    assert properties["additionalData"]["commentsCount"] == 2
    assert properties["createdTimeUtc"].endswith("0Z")
    assert len(properties["createdTimeUtc"].partition(".")[2]) == 8
    assert properties["relatedAnalyticRuleIds"][0].startswith(f"{PATH}/alertRules/")
    assert "classification" not in properties


def test_the_list_holds_each_incident_once_in_its_newest_version(client: ArmClient) -> None:
    listed = client.arm("GET", "incidents", top=1000).body
    assert "nextLink" not in listed
    newest = client.kql(
        "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber "
        "| project IncidentNumber, Title, Severity, Status"
    )
    shown = [body["properties"] for body in listed["value"]]
    assert sorted([p["incidentNumber"], p["title"], p["severity"], p["status"]] for p in shown) == sorted(newest)
    created = [properties["createdTimeUtc"] for properties in shown]
    assert created == sorted(created, reverse=True)


def test_pages_are_linked_to_the_end_and_fit_together_while_incidents_are_written(client: ArmClient) -> None:
    everything = [body["name"] for body in client.arm("GET", "incidents", top=1000).body["value"]]
    page = client.arm("GET", "incidents", top=5).body
    names = [body["name"] for body in page["value"]]
    newer = "11111111-2222-4333-8444-555555555555"
    created = client.arm(
        "PUT", f"incidents/{newer}", {"properties": {"title": "t", "severity": "Low", "status": "New"}}
    )
    assert created.status == 201
    while "nextLink" in page:
        link = urlsplit(page["nextLink"])
        assert link.netloc == urlsplit(client.url).netloc
        assert "api-version=2025-09-01" in link.query
        page = client.follow(page["nextLink"]).body
        assert 1 <= len(page["value"]) <= 5
        names += [body["name"] for body in page["value"]]
    assert names == everything
    assert client.arm("GET", "incidents", top=1).body["value"][0]["name"] == newer


def test_without_top_a_page_holds_fifty(client: ArmClient) -> None:
    for number in range(60):
        name = f"00000000-0000-4000-8000-{number:012d}"
        assert client.arm(
            "PUT", f"incidents/{name}", {"properties": {"title": "x", "severity": "Low", "status": "New"}}
        )
    page = client.arm("GET", "incidents").body
    assert len(page["value"]) == 50
    assert "nextLink" in page


def test_a_skip_token_of_another_question_is_refused(client: ArmClient) -> None:
    link = client.arm("GET", "incidents", top=2, filter="properties/severity eq 'High'").body["nextLink"]
    reply = client.follow(link.replace("High", "Low"))
    assert (reply.status, reply.error) == (400, ("BadRequest", "$skipToken belongs to another query."))
    forged = client.arm("GET", "incidents", skipToken="bm90IGpzb24")
    assert (forged.status, forged.error[0]) == (400, "BadRequest")


def test_an_update_appends_a_version_that_queries_see(client: ArmClient) -> None:
    before = incident(client)
    rows = client.kql(f"SecurityIncident | where IncidentNumber == {MAIN} | count")[0][0]
    reply = client.arm(
        "PUT",
        f"incidents/{before['name']}",
        writable(before, severity="Low", owner={"userPrincipalName": "li.na@woodgrove.example"}),
    )
    assert reply.status == 200
    after = reply.body
    assert after["etag"] != before["etag"]
    assert after["properties"]["severity"] == "Low"
    assert after["properties"]["owner"]["assignedTo"] == "李 娜"  # the directory completes a person that it knows
    assert after["properties"]["lastModifiedTimeUtc"] > before["properties"]["lastModifiedTimeUtc"]
    unchanged = (
        "title",
        "status",
        "labels",
        "incidentNumber",
        "createdTimeUtc",
        "additionalData",
        "firstActivityTimeUtc",
    )
    assert [after["properties"][key] for key in unchanged] == [before["properties"][key] for key in unchanged]
    assert client.arm("GET", f"incidents/{before['name']}").body == after
    assert client.kql(f"SecurityIncident | where IncidentNumber == {MAIN} | count") == [[rows + 1]]
    ((severity, modified_by, owner, alerts),) = client.kql(
        f"SecurityIncident | where IncidentNumber == {MAIN} | summarize arg_max(TimeGenerated, *) by IncidentNumber "
        "| project Severity, ModifiedBy, tostring(Owner.assignedTo), array_length(AlertIds)"
    )
    assert (severity, modified_by, owner, alerts) == ("Low", "External application - Sentinel RAG", "李 娜", 8)


def test_a_property_that_a_put_leaves_out_is_lost(client: ArmClient) -> None:
    before = incident(client)
    assert before["properties"]["owner"]["assignedTo"]
    bare = {"title": "Other", "severity": "Medium", "status": "New"}
    after = client.arm("PUT", f"incidents/{before['name']}", {"properties": bare}).body["properties"]
    assert (after["title"], after["owner"]["assignedTo"], after["labels"]) == ("Other", None, [])
    assert "firstActivityTimeUtc" not in after
    assert after["incidentNumber"] == MAIN


def test_closing_needs_a_classification_and_sets_the_closing_time_and_reopening_keeps_it(client: ArmClient) -> None:
    before = incident(client)
    path = f"incidents/{before['name']}"
    refused = client.arm("PUT", path, writable(before, status="Closed"))
    assert (refused.status, refused.error[0]) == (400, "BadRequest")
    assert "classification" in refused.error[1]
    closed = client.arm(
        "PUT",
        path,
        writable(before, status="Closed", classification="TruePositive", classificationReason="SuspiciousActivity"),
    ).body
    assert closed["properties"]["classification"] == "TruePositive"
    query = f"SecurityIncident | where IncidentNumber == {MAIN} | top 1 by TimeGenerated | project Status, ClosedTime"
    ((status, closed_time),) = client.kql(query)
    assert (status, closed_time) == ("Closed", closed["properties"]["lastModifiedTimeUtc"].rstrip("0Z") + "Z")
    client.arm("PUT", path, writable(closed, status="Active"))
    assert client.kql(query) == [["Active", closed_time]]


def test_a_stale_etag_changes_nothing(client: ArmClient) -> None:
    before = incident(client)
    path = f"incidents/{before['name']}"
    assert client.arm("PUT", path, writable(before, severity="Low")).status == 200
    by_body = client.arm("PUT", path, writable(before, severity="Medium"))
    assert (by_body.status, by_body.error[0]) == (409, "Conflict")
    by_header = client.arm("PUT", path, {"properties": before["properties"]}, if_match=before["etag"])
    assert (by_header.status, by_header.error[0]) == (412, "PreconditionFailed")
    assert incident(client)["properties"]["severity"] == "Low"
    current = incident(client)
    assert client.arm("PUT", path, writable(current, severity="High"), if_match=current["etag"]).status == 200
    assert client.arm("PUT", path, {"properties": current["properties"]}, if_match="*").status == 200
    unknown = "99999999-0000-4000-8000-000000000000"
    assert client.arm("PUT", f"incidents/{unknown}", {"properties": before["properties"]}, if_match="*").status == 201


def test_of_many_writers_with_one_etag_one_wins(client: ArmClient) -> None:
    before = incident(client)
    path = f"incidents/{before['name']}"
    rows = client.kql(f"SecurityIncident | where IncidentNumber == {MAIN} | count")[0][0]
    statuses: list[int] = []

    def write(number: int) -> None:
        statuses.append(client.arm("PUT", path, writable(before, title=f"writer {number}")).status)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(statuses) == [200] + [409] * 7
    assert client.kql(f"SecurityIncident | where IncidentNumber == {MAIN} | count") == [[rows + 1]]


def test_comments_are_listed_written_changed_and_taken_away(client: ArmClient) -> None:
    name = incident(client)["name"]
    path = f"incidents/{name}/comments"
    imported = client.arm("GET", path).body["value"]
    assert len(imported) == 2
    assert client.arm("GET", f"{path}/{imported[0]['name']}").body == imported[0]
    text = "Isolated <b>srv-file-01</b> — näch|ste 'Schritte'\n\n- one"
    written = client.arm("PUT", f"{path}/{COMMENT}", {"properties": {"message": text}})
    assert written.status == 201
    assert written.body["properties"]["message"] == text
    assert written.body["properties"]["author"]["name"] == "External application - Sentinel RAG"
    assert not written.body["etag"].startswith('"')
    assert next(body["name"] for body in client.arm("GET", path).body["value"]) == COMMENT
    ((count, message, counter),) = client.kql(
        f"SecurityIncident | where IncidentNumber == {MAIN} | top 1 by TimeGenerated "
        "| project array_length(Comments), tostring(Comments[2].message), toint(AdditionalData.commentsCount)"
    )
    assert (count, message, counter) == (3, text, 3)
    again = client.arm("PUT", f"{path}/{COMMENT.upper()}", {"properties": {"message": "other"}})
    assert (again.status, again.body["properties"]["message"]) == (200, "other")
    stale = client.arm("PUT", f"{path}/{COMMENT}", {"etag": written.body["etag"], "properties": {"message": "x"}})
    assert stale.status == 409
    assert client.arm("DELETE", f"{path}/{COMMENT}").status == 200
    assert client.arm("DELETE", f"{path}/{COMMENT}").status == 204
    assert client.arm("GET", path).body["value"] == imported
    assert client.arm("GET", f"{path}/{COMMENT}").status == 404


def test_the_limits_for_five_minutes_and_the_most_comments_of_an_incident(tmp_path: Path) -> None:
    now = 1000.0
    workspace = Workspace.open(tmp_path / "workspace")
    try:
        with serve(app_over(workspace, request_limits=RequestLimits(lambda: now))) as url:
            client = ArmClient(url)
            client.arm(
                "PUT", f"incidents/{COMMENT}", {"properties": {"title": "t", "severity": "Low", "status": "New"}}
            )

            def comment(number: int) -> Reply:
                path = f"incidents/{COMMENT}/comments/00000000-0000-4000-8000-{number:012d}"
                return client.arm("PUT", path, {"properties": {"message": f"comment {number}"}})

            assert [comment(number).status for number in range(75)] == [201] * 75
            throttled = comment(75)
            assert (throttled.status, throttled.headers["retry-after"]) == (429, "300")
            assert throttled.error[0] == "TooManyRequests"
            now += 299
            assert comment(75).headers["retry-after"] == "1"
            now += 1
            assert [comment(number).status for number in range(75, 100)] == [201] * 25
            over = comment(100)
            assert (over.status, over.error) == (400, ("BadRequest", "An incident holds at most 100 comments."))
            assert len(client.arm("GET", f"incidents/{COMMENT}/comments").body["value"]) == 100
            statuses = [client.arm("GET", f"incidents/{COMMENT}").status for _ in range(260)]
            assert statuses == [200] * 249 + [429] * 11  # ARM's own bucket of 250 reads
            now += 0.05
            assert client.arm("GET", f"incidents/{COMMENT}").status == 200
    finally:
        workspace.close()


def test_alerts_and_entities_of_an_incident(client: ArmClient) -> None:
    name = incident(client)["name"]
    alerts = client.arm("POST", f"incidents/{name}/alerts").body["value"]
    assert len(alerts) == 8
    first = alerts[0]
    assert (first["kind"], first["type"]) == ("SecurityAlert", "Microsoft.SecurityInsights/Entities")
    assert first["id"].endswith(f"/Entities/{first['name']}")
    assert first["properties"]["systemAlertId"] == first["name"]
    assert first["properties"]["tactics"] == ["InitialAccess"]
    entities = client.arm("POST", f"incidents/{name}/entities").body
    assert {item["entityKind"]: item["count"] for item in entities["metaData"]} == {
        "Account": 2,
        "CloudApplication": 1,
        "File": 3,
        "FileHash": 3,
        "Host": 3,
        "Ip": 3,
        "MailMessage": 1,
        "Mailbox": 1,
        "Process": 3,
        "Url": 1,
    }
    by_id = {entity["id"]: entity for entity in entities["entities"]}
    process = next(entity for entity in by_id.values() if entity["kind"] == "Process")
    assert by_id[process["properties"]["imageFileEntityId"]]["kind"] == "File"
    assert by_id[process["properties"]["hostEntityId"]]["kind"] == "Host"
    file = by_id[process["properties"]["imageFileEntityId"]]
    assert by_id[file["properties"]["fileHashEntityIds"][0]]["properties"]["algorithm"] == "SHA256"


@pytest.mark.parametrize(
    ("expression", "kql"),
    [
        ("properties/status eq 'New'", 'Status == "New"'),
        ("properties/status ne 'New' and properties/severity eq 'High'", 'Status != "New" and Severity == "High"'),
        (
            "(properties/severity eq 'High' or properties/severity eq 'Low') and not (properties/status eq 'Closed')",
            'Severity in ("High", "Low") and Status != "Closed"',
        ),
        ("properties/createdTimeUtc ge 2025-03-10T00:00:00Z", "CreatedTime >= datetime(2025-03-10)"),
        ("PROPERTIES/CREATEDTIMEUTC lt 2025-03-10T01:00:00+01:00", "CreatedTime < datetime(2025-03-10)"),
        ("properties/incidentNumber gt 120", "IncidentNumber > 120"),
        ("contains(properties/title, 'SIGN-IN')", 'Title contains "sign-in"'),
        ("startswith(properties/title,'Multi') or endswith(properties/title,'x')", 'Title startswith "Multi"'),
        ("properties/owner/userPrincipalName eq null", "isempty(tostring(Owner.userPrincipalName))"),
        ("properties/owner/assignedTo eq 'Åsa Öberg'", 'tostring(Owner.assignedTo) == "Åsa Öberg"'),
        ("properties/classification ne null", "isnotempty(Classification)"),
    ],
)
def test_a_filter_finds_what_the_same_query_finds(client: ArmClient, expression: str, kql: str) -> None:
    found = client.arm("GET", "incidents", top=1000, filter=expression).body["value"]
    rows = client.kql(
        "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber "
        f"| where {kql} | project IncidentNumber"
    )
    assert sorted(body["properties"]["incidentNumber"] for body in found) == sorted(row[0] for row in rows)
    assert 0 < len(rows) < 28


@pytest.mark.parametrize(
    ("expression", "position", "words"),
    [
        ("properties/status = 'New'", 18, "unexpected \"= 'New'"),
        ("properties/status eq New", 21, "a text in quotes"),
        ("properties/stat eq 'New'", 0, "no property"),
        ("properties/status gt 'New'", 18, "eq and ne only"),
        ("properties/status like 'New'", 18, "eq, ne, gt"),
        ("properties/status eq 'New' and", 30, "a property, found the end"),
        ("properties/status eq 'New' 'x'", 27, "and, or, or the end"),
        ("(properties/status eq 'New'", 27, "')'"),
        ("properties/createdTimeUtc ge '2025-03-10'", 29, "needs a zone"),
        ("properties/createdTimeUtc ge 2025-99-10T00:00:00Z", 29, "not a time"),
        ("contains(properties/incidentNumber, '1')", 9, "text property"),
        ("properties/title eq 'it''s' or", 30, "a property"),
        ("properties/title eq 'open", 20, "unexpected"),
        ("not " * 30 + "properties/status eq 'New'", 84, "deeper than 20"),
        (" or ".join(["properties/status eq 'New'"] * 51), 1500, "more than 50 comparisons"),
        ("x" * 4001, 4000, "longer than 4000"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_filter_that_is_not_understood_is_refused_with_its_place(
    client: ArmClient, expression: str, position: int, words: str
) -> None:
    reply = client.arm("GET", "incidents", filter=expression)
    code, message = reply.error
    assert (reply.status, code) == (400, "BadRequest")
    assert message.startswith(f"Invalid $filter at position {position}: ")
    assert words in message


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"orderby": "properties/nope desc"}, "Invalid $orderby at position 0"),
        ({"orderby": "properties/createdTimeUtc sideways"}, "Invalid $orderby"),
        ({"top": "0"}, "$top"),
        ({"top": "1001"}, "$top"),
        ({"top": "ten"}, "$top"),
    ],
    ids=str,
)
def test_other_odata_that_is_not_understood_is_refused(
    client: ArmClient, parameters: dict[str, str], words: str
) -> None:
    reply = client.arm("GET", "incidents", **parameters)
    assert (reply.status, reply.error[0]) == (400, "BadRequest")
    assert words in reply.error[1]


def test_order_by_a_property(client: ArmClient) -> None:
    bodies = client.arm("GET", "incidents", top=1000, orderby="properties/title asc,properties/incidentNumber desc")
    shown = [(b["properties"]["title"], -b["properties"]["incidentNumber"]) for b in bodies.body["value"]]
    assert shown == sorted(shown)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"severity": "Low", "status": "New"}, "'title'"),
        ({"title": " ", "severity": "Low", "status": "New"}, "'title'"),
        ({"title": "t", "status": "New"}, "'severity'"),
        ({"title": "t", "severity": "Critical", "status": "New"}, "'severity'"),
        ({"title": "t", "severity": "Low", "status": 5}, "'status'"),
        ({"title": "t", "severity": "Low", "status": "New", "owner": "me"}, "'owner'"),
        ({"title": "t", "severity": "Low", "status": "New", "labels": ["x"]}, "'labels'"),
        ({"title": "t", "severity": "Low", "status": "New", "labels": [{}]}, "labelName"),
        ({"title": "t", "severity": "Low", "status": "New", "description": "x" * 5001}, "5000 characters"),
        ({"title": "t", "severity": "Low", "status": "New", "firstActivityTimeUtc": "soon"}, "firstActivityTimeUtc"),
    ],
    ids=str,
)
def test_a_body_that_the_service_would_refuse_is_refused(
    client: ArmClient, properties: dict[str, Any], words: str
) -> None:
    reply = client.arm("PUT", f"incidents/{COMMENT}", {"properties": properties})
    assert (reply.status, reply.error[0]) == (400, "BadRequest")
    assert words in reply.error[1]
    assert client.arm("GET", f"incidents/{COMMENT}").status == 404


def test_other_bad_requests(client: ArmClient) -> None:
    name = incident(client)["name"]
    for body in (b"{", b"[]", b'{"properties": 5}', b'\xff{"properties": {}}'):
        assert client.arm("PUT", f"incidents/{name}", body).status == 400
    assert client.arm("PUT", f"incidents/{name}", b" " * (1 << 20) + b"{}").status == 413
    assert client.arm("PUT", "incidents/not-a-guid", {"properties": {}}).error == (
        "BadRequest",
        "The id 'not-a-guid' is not a GUID.",
    )
    long = {"properties": {"message": "x" * 30_001}}
    assert "30000" in client.arm("PUT", f"incidents/{name}/comments/{COMMENT}", long).error[1]
    assert client.arm("PUT", f"incidents/{name}/comments/{COMMENT}", {"properties": {"message": " "}}).status == 400
    unknown = "99999999-0000-4000-8000-000000000000"
    for method, path in (
        ("GET", f"incidents/{unknown}"),
        ("POST", f"incidents/{unknown}/alerts"),
        ("POST", f"incidents/{unknown}/entities"),
        ("GET", f"incidents/{unknown}/comments"),
    ):
        assert (client.arm(method, path).status, client.arm(method, path).error[0]) == (404, "NotFound")
    missing = client.arm("PUT", f"incidents/{unknown}/comments/{COMMENT}", {"properties": {"message": "x"}})
    assert missing.status == 404
    assert client.arm("DELETE", f"incidents/{name}").error[0] == "MethodNotAllowed"
    assert client.arm("GET", "watchlists").error[0] == "InvalidResourceType"


def test_who_may_ask(client: ArmClient) -> None:
    path = f"{PATH}/incidents"
    version = "?api-version=2025-09-01"
    none = client.send("GET", path + version)
    assert (none.status, none.error[0]) == (401, "AuthenticationFailed")
    assert none.headers["www-authenticate"] == "Bearer"
    wrong = client.send("GET", path + version, headers={"authorization": "Bearer x"})
    assert (wrong.status, wrong.error[0]) == (401, "InvalidAuthenticationToken")
    for_logs = ArmClient(client.url, audience="https://api.loganalytics.io")
    assert for_logs.arm("GET", "incidents").error[0] == "InvalidAuthenticationTokenAudience"
    token = {"authorization": f"Bearer {client.token}"}
    assert client.send("GET", path, headers=token).error[0] == "MissingApiVersionParameter"
    assert client.send("GET", f"{path}?api-version=2019-01-01", headers=token).error[0] == "InvalidApiVersionParameter"
    for part, code in (("soc", "ResourceGroupNotFound"), ("woodgrove-soc", "ResourceNotFound")):
        other = path.replace(f"/{part}/", "/other/") + version
        assert (client.send("GET", other, headers=token).status, client.send("GET", other, headers=token).error[0]) == (
            404,
            code,
        )
    shouted = path.upper() + version
    assert client.send("GET", shouted, headers=token).status == 200  # ARM's paths know no case
    assert client.send("GET", path + version, headers={**token, "host": "evil.example"}).status == 403


def test_the_limits_of_the_service_hold_for_reads_of_comments(client: ArmClient) -> None:
    name = incident(client)["name"]
    statuses = [client.arm("GET", f"incidents/{name}/comments").status for _ in range(101)]
    assert statuses == [200] * 100 + [429]
    reply = client.arm("GET", f"incidents/{name}")  # another operation goes on
    assert reply.status == 200
    assert int(reply.headers["x-ms-ratelimit-remaining-subscription-reads"]) < 250
    assert reply.headers["x-ms-request-id"]


def test_an_incident_is_created_with_the_next_number(client: ArmClient) -> None:
    body = {"properties": {"title": "Manual", "severity": "high", "status": "new", "description": "by hand"}}
    reply = client.arm("PUT", f"incidents/{COMMENT}", body)
    assert reply.status == 201
    properties = reply.body["properties"]
    assert (properties["incidentNumber"], properties["severity"], properties["status"]) == (129, "High", "New")
    assert client.arm("POST", f"incidents/{COMMENT}/alerts").body == {"value": []}
    assert client.kql("SecurityIncident | where IncidentNumber == 129 | project Title") == [["Manual"]]


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    first = Workspace.open(folder)
    first.generate(EstateOptions(days=8, events=100, end=END))
    with serve(app_over(first)) as url:
        client = ArmClient(url)
        before = incident(client)
        name = before["name"]
        client.arm("PUT", f"incidents/{name}/comments/{COMMENT}", {"properties": {"message": "kept"}})
        after = client.arm("PUT", f"incidents/{name}", writable(incident(client), title="Renamed")).body
    first.close()
    second = Workspace.open(folder)
    try:
        with serve(app_over(second)) as url:
            client = ArmClient(url)
            assert client.arm("GET", f"incidents/{name}").body == after
            newest = client.arm("GET", f"incidents/{name}/comments").body["value"][0]
            assert (newest["name"], newest["properties"]["message"]) == (COMMENT, "kept")
    finally:
        second.close()
