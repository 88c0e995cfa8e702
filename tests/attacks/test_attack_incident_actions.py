"""Attacker controls: the entities of an alert, the `$filter` of a list, the text of a comment that the agent was talked
into.

Wanted: an entity list that never ends or grows without bound, SQL behind the filter, markup in the portal of whoever
reads the comment. The lists end, the filter is data or refused with its place, and the comment is text. (What a stolen
service could do with a link or an answer is in tests/sentinel/test_rest_client.py.)
"""

from __future__ import annotations

import html
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import QueryFailedError
from sentinel_rag.sentinel.incidents.incident_update import plain_text
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID, create_app
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

INCIDENT = "0d3c2e6a-7f50-4f0e-9a51-1f6a3b1c9d01"
ALERT = "3c1f0f4e-0a52-4a53-9b0c-6f0e6a7f2b91"


class Service:
    """The embedded workspace over one incident with one alert, whose entities are the attacker's."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        query = urlencode({"api-version": "2019-08-01", "resource": "https://management.azure.com"})
        status, body = self.send("GET", f"/msi/token?{query}", {"x-identity-header": "identity-secret"})
        assert status == 200
        self._token = body["access_token"]

    def send(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=WAIT_S)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def arm(self, method: str, path: str, **parameters: str) -> tuple[int, Any]:
        query = urlencode({"api-version": "2025-09-01", **{f"${key}": value for key, value in parameters.items()}})
        path = f"{EMBEDDED_RESOURCE_ID}/providers/Microsoft.SecurityInsights/{path}?{query}"
        return self.send(method, path, {"authorization": f"Bearer {self._token}"})


@pytest.fixture
def service_over(tmp_path: Path) -> Iterator[Any]:
    workspace = Workspace.open(tmp_path / "workspace")

    def fill(entities: str) -> None:
        for table, row in (
            ("SecurityAlert", {"SystemAlertId": ALERT, "AlertName": "x", "Entities": entities}),
            (
                "SecurityIncident",
                {"IncidentName": INCIDENT, "IncidentNumber": 1, "Title": "t", "Severity": "Low", "Status": "New",
                 "AlertIds": [ALERT], "CreatedTime": "2025-01-01T00:00:00Z"},
            ),
        ):  # fmt: skip
            path = tmp_path / f"{table}.jsonl"
            path.write_text(json.dumps({"TimeGenerated": "2025-01-01T00:00:00Z", **row}) + "\n")
            workspace.import_path(path, table=table)

    app = create_app(workspace, workspace_id=ALERT, identity_header="identity-secret", admin_token="admin-secret")
    try:
        with serve(app) as url:
            yield lambda entities: (fill(entities), Service(url))[1]
    finally:
        workspace.close()


def nested(depth: int) -> Any:
    entity: Any = {"$id": "0", "Type": "host", "HostName": "innermost"}
    for level in range(1, depth):
        entity = {"$id": str(level), "Type": "process", "ProcessId": str(level), "ParentProcess": entity}
    return entity


LOOP = [
    {"$id": "1", "Type": "process", "ProcessId": "1", "ParentProcess": {"$ref": "2"}},
    {"$id": "2", "Type": "process", "ProcessId": "2", "ParentProcess": {"$ref": "1"}},
    {"$id": "3", "Type": "process", "ProcessId": "3", "ParentProcess": {"$ref": "3"}},
]
WEB = [
    {"$id": str(n), "Type": "file", "Name": f"f{n}", "FileHashes": [{"$ref": str(m)} for m in range(120)]}
    for n in range(120)
]


@pytest.mark.parametrize(
    ("entities", "count"),
    [
        (json.dumps(LOOP), 3),
        (json.dumps(WEB), 120),
        (json.dumps([nested(400)]), None),
        ("[" * 100_000, 0),
        ('{"Type": "host"}', 0),
        ('[5, null, "x", {"Type": {"a": 1}, "$id": [1]}, {"$ref": "nowhere"}, {"$id": "9"}]', 1),
        ('[{"$id": "1", "Type": "host", "HostName": {"$ref": "1"}}]', 1),
        ("not json", 0),
        ("", 0),
    ],
    ids=["loop", "web", "deep", "brackets", "no list", "odd", "itself", "no json", "nothing"],
)
def test_hostile_entities_end_and_each_is_listed_once(service_over: Any, entities: str, count: int | None) -> None:
    service = service_over(entities)
    status, body = service.arm("POST", f"incidents/{INCIDENT}/entities")
    assert status == 200
    ids = [entity["id"] for entity in body["entities"]]
    assert len(ids) == len(set(ids))
    assert sum(item["count"] for item in body["metaData"]) == len(ids)
    if count is not None:
        assert len(ids) == count
    assert service.arm("POST", f"incidents/{INCIDENT}/alerts")[0] == 200


@pytest.mark.parametrize(
    "text",
    [
        "properties/title eq 'x' or 1 eq 1",
        "properties/title eq 'x'' or ''1'' = ''1'",
        "properties/title eq 'x'); DROP TABLE SecurityIncident; --'",
        'properties/title eq "x" or true',
        "true",
        "properties/title eq 'x' UNION SELECT",
        "properties/owner/email') or ('1' eq '1",
        "contains(properties/title, '%') or contains(properties/title, '_')",
        "read_text('/etc/passwd') eq 'x'",
    ],
)
def test_a_filter_is_never_sql(service_over: Any, text: str) -> None:
    service = service_over("[]")
    status, body = service.arm("GET", "incidents", filter=text)
    assert (status, body.get("value", [])) in ((200, []), (400, []))
    if status == 400:
        assert body["error"]["message"].startswith("Invalid $filter at position ")
    assert len(service.arm("GET", "incidents")[1]["value"]) == 1


PIECES = [*"<>[]()!&#;:\"'`* \n\\x", "&lt;", "&#60;", "&amp;", "](", "][", "]: ", "![", "<img src=x>", "javascript:"]
MARKUP = st.lists(st.sampled_from(PIECES), min_size=1, max_size=40).map("".join)


@given(MARKUP | st.text(min_size=1, max_size=60))
def test_a_comment_is_text_whatever_it_holds(text: str) -> None:
    """Neither a tag, nor a link or an image of Markdown; and the reader sees exactly what was written."""
    try:
        stored = plain_text("message", text, longest=30_000)
    except QueryFailedError:  # a control character; test_incident_actions.py has what is told then
        stored, text = "", ""
    assert html.unescape(stored) == text.replace("\r\n", "\n").replace("\r", "\n")
    assert "<" not in stored
    squeezed = "".join(stored.split())
    assert not any(link in squeezed for link in ("](", "][", "]:"))
