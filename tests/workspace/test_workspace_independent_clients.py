"""Microsoft's own clients against the embedded workspace: they know nothing of us, so what they read is the wire.

DefaultAzureCredential signs in at the identity endpoint; azure-monitor-query asks queries; azure-mgmt-securityinsight
reads and writes incidents, comments, alerts, entities, bookmarks and relations as its typed models.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from arm_client import IDENTITY_HEADER, WORKSPACE_ID, ArmClient, app_over
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.identity import DefaultAzureCredential
from azure.mgmt.securityinsight import SecurityInsightsMgmtClient
from azure.mgmt.securityinsight import models as sentinel
from azure.monitor.query import LogsBatchQuery, LogsQueryClient, LogsQueryPartialResult, LogsQueryResult

from sentinel_rag.workspace.sample.company import WORKSPACE_RESOURCE
from sentinel_rag.workspace.serving.authentication import TokenIssuer
from sentinel_rag.workspace.workspace import Workspace
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.requirement("DATA-4"), pytest.mark.requirement("DATA-2")]

END = datetime(2025, 3, 12, 15, tzinfo=UTC)
MAIN = 124
LOGS, MANAGEMENT = "https://api.loganalytics.io", "https://management.azure.com"
_PARTS = WORKSPACE_RESOURCE.strip("/").split("/")
SUBSCRIPTION, PLACE = _PARTS[1], (_PARTS[3], _PARTS[-1])
SIGN_IN = ("AZURE_", "IDENTITY_", "MSI_", "IMDS_")


class LoopbackPolicy(BearerTokenCredentialPolicy):
    """What a client needs to send a token over plain http, which none does by itself."""

    def on_request(self, request: Any) -> None:
        request.context.options["enforce_https"] = False
        super().on_request(request)


@dataclass
class Served:
    url: str
    now: float = 1_700_000_000.0

    def clock(self) -> float:
        return self.now


@pytest.fixture
def served(small_estate: Workspace) -> Iterator[Served]:
    state = Served("", datetime.now(UTC).timestamp())
    with serve(app_over(small_estate, max_rows=1000, issuer=TokenIssuer(state.clock))) as url:
        state.url = url
        yield state


@pytest.fixture(autouse=True)
def identity(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An App Service's environment, and no other way to sign in."""
    import os

    for name in list(os.environ):
        if name.startswith(SIGN_IN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{served.url}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", IDENTITY_HEADER)


@pytest.fixture
def manager(served: Served) -> Iterator[SecurityInsightsMgmtClient]:
    with (
        DefaultAzureCredential() as credential,
        SecurityInsightsMgmtClient(
            credential,
            SUBSCRIPTION,
            base_url=served.url,
            api_version="2025-09-01",
            authentication_policy=LoopbackPolicy(credential, f"{MANAGEMENT}/.default"),
        ) as client,
    ):
        yield client


@pytest.fixture
def logs(served: Served) -> Iterator[LogsQueryClient]:
    with (
        DefaultAzureCredential() as credential,
        LogsQueryClient(
            credential,
            endpoint=served.url,
            authentication_policy=LoopbackPolicy(credential, f"{LOGS}/.default"),
        ) as client,
    ):
        yield client


def main_incident(manager: SecurityInsightsMgmtClient) -> sentinel.Incident:
    (found,) = manager.incidents.list(*PLACE, filter=f"properties/incidentNumber eq {MAIN}")
    return found


def test_incidents_are_listed_over_pages_and_read(manager: SecurityInsightsMgmtClient, logs: LogsQueryClient) -> None:
    listed = list(manager.incidents.list(*PLACE, top=5))
    answer = logs.query_workspace(WORKSPACE_ID, "SecurityIncident | distinct IncidentNumber", timespan=None)
    assert isinstance(answer, LogsQueryResult)
    assert {each.properties.incident_number for each in listed} == {row[0] for row in answer.tables[0].rows}
    assert len(listed) == len(answer.tables[0].rows) > 5
    one = manager.incidents.get(*PLACE, main_incident(manager).name)
    properties = one.properties
    assert (properties.severity, properties.status, properties.incident_number) == ("High", "Active", MAIN)
    assert isinstance(properties.created_time_utc, datetime)
    assert properties.created_time_utc.tzinfo is not None
    assert properties.owner.assigned_to
    assert properties.additional_data.alerts_count == 8
    assert one.type == "Microsoft.SecurityInsights/Incidents"


def test_an_incident_is_created_and_updated_under_its_etag(manager: SecurityInsightsMgmtClient) -> None:
    name = str(uuid.uuid4())
    made = manager.incidents.create_or_update(
        *PLACE,
        name,
        sentinel.Incident(
            properties=sentinel.IncidentProperties(title="By the official client", severity="Low", status="New")
        ),
    )
    assert (made.name, made.properties.title) == (name, "By the official client")
    made.properties.status = "Closed"
    made.properties.classification = "FalsePositive"
    made.properties.classification_reason = "InaccurateData"
    closed = manager.incidents.create_or_update(*PLACE, name, made)
    assert (closed.properties.status, closed.properties.classification) == ("Closed", "FalsePositive")
    assert closed.etag != made.etag
    made.properties.severity = "High"
    with pytest.raises(HttpResponseError) as stale:
        manager.incidents.create_or_update(*PLACE, name, made)
    assert stale.value.status_code == 409
    assert stale.value.error is not None
    assert stale.value.error.code == "Conflict"
    assert manager.incidents.get(*PLACE, name).properties.severity == "Low"
    with pytest.raises(ResourceNotFoundError):
        manager.incidents.get(*PLACE, str(uuid.uuid4()))


def test_comments_are_written_and_read(manager: SecurityInsightsMgmtClient) -> None:
    incident, comment = main_incident(manager).name, str(uuid.uuid4())
    before = list(manager.incident_comments.list(*PLACE, incident))
    written = manager.incident_comments.create_or_update(
        *PLACE,
        incident,
        comment,
        sentinel.IncidentComment(properties=sentinel.IncidentCommentProperties(message="Seen — näch|ste")),
    )
    assert (written.name, written.properties.message) == (comment, "Seen — näch|ste")
    assert isinstance(written.properties.created_time_utc, datetime)
    assert written.properties.author.name
    assert manager.incident_comments.get(*PLACE, incident, comment).properties.message == "Seen — näch|ste"
    assert len(list(manager.incident_comments.list(*PLACE, incident))) == len(before) + 1
    manager.incident_comments.delete(*PLACE, incident, comment)
    assert len(list(manager.incident_comments.list(*PLACE, incident))) == len(before)


def test_alerts_and_entities_are_its_typed_models(manager: SecurityInsightsMgmtClient) -> None:
    incident = main_incident(manager).name
    alerts = manager.incidents.list_alerts(*PLACE, incident).value
    assert {type(alert) for alert in alerts} == {sentinel.SecurityAlert}
    assert all(alert.properties.system_alert_id and alert.properties.severity for alert in alerts)
    assert all(isinstance(alert.properties.time_generated, datetime) for alert in alerts)
    found = manager.incidents.list_entities(*PLACE, incident)
    kinds = {type(entity) for entity in found.entities}
    assert {sentinel.AccountEntity, sentinel.HostEntity, sentinel.IpEntity, sentinel.ProcessEntity} <= kinds
    assert {each.entity_kind: each.count for each in found.meta_data} == {
        kind: sum(entity.kind == kind for entity in found.entities)
        for kind in {entity.kind for entity in found.entities}
    }
    assert all(entity.properties.account_name for entity in found.entities if type(entity) is sentinel.AccountEntity)


def test_bookmarks_and_relations_are_its_typed_models(manager: SecurityInsightsMgmtClient) -> None:
    incident, bookmark = main_incident(manager).name, str(uuid.uuid4())
    moment = datetime(2025, 3, 12, 9, 30, tzinfo=UTC)
    made = manager.bookmarks.create_or_update(
        *PLACE,
        bookmark,
        sentinel.Bookmark(
            properties=sentinel.BookmarkProperties(
                display_name="odd sign-in", query="SigninLogs | take 1", labels=["triage"], event_time=moment
            )
        ),
    )
    assert (made.name, made.properties.event_time, made.properties.labels) == (bookmark, moment, ["triage"])
    assert made.properties.created_by.name
    relation = manager.incident_relations.create_or_update(
        *PLACE,
        incident,
        "by-the-official-client",
        sentinel.Relation(properties=sentinel.RelationProperties(related_resource_id=made.id)),
    )
    assert relation.properties.related_resource_name == bookmark
    assert [each.name for each in manager.incident_relations.list(*PLACE, incident)] == ["by-the-official-client"]
    (held,) = manager.incidents.list_bookmarks(*PLACE, incident).value
    assert isinstance(held, sentinel.HuntingBookmark)
    assert (held.properties.display_name, held.properties.query) == ("odd sign-in", "SigninLogs | take 1")
    assert [each.name for each in manager.bookmarks.list(*PLACE)] == [bookmark]
    manager.incident_relations.delete(*PLACE, incident, "by-the-official-client")
    manager.bookmarks.delete(*PLACE, bookmark)
    assert manager.incidents.list_bookmarks(*PLACE, incident).value == []


def test_queries_one_by_one_partial_and_in_a_batch(logs: LogsQueryClient) -> None:
    whole = logs.query_workspace(
        WORKSPACE_ID, "SecurityAlert | summarize Alerts = count()", timespan=(END - timedelta(days=30), END)
    )
    assert isinstance(whole, LogsQueryResult)
    partial = logs.query_workspace(WORKSPACE_ID, "range x from 1 to 5000 step 1", timespan=None)
    assert isinstance(partial, LogsQueryPartialResult)
    assert len(partial.partial_data[0].rows) == 1000
    cut = logs.query_workspace(WORKSPACE_ID, "set truncationmaxrecords=5; SecurityIncident", timespan=None)
    assert isinstance(cut, LogsQueryPartialResult)
    assert len(cut.partial_data[0].rows) == 5
    batch = logs.query_batch(
        [
            LogsBatchQuery(workspace_id=WORKSPACE_ID, query="print x = 1", timespan=None),
            LogsBatchQuery(workspace_id=WORKSPACE_ID, query="Nope", timespan=None),
            LogsBatchQuery(workspace_id=str(uuid.uuid4()), query="print x = 1", timespan=None),
            LogsBatchQuery(workspace_id=WORKSPACE_ID, query="range x from 1 to 5000 step 1", timespan=None),
        ]
    )
    assert [getattr(each, "status", None) for each in batch] == ["Success", "Failure", "Failure", "PartialError"]
    assert batch[0].tables[0].rows[0]["x"] == 1
    assert "Nope" in batch[1].message
    assert batch[2].code == "FailedToResolveResource"


@pytest.mark.parametrize("chain", [None, "prod", "ManagedIdentityCredential"])
def test_the_default_chain_signs_in_at_the_identity_endpoint(
    served: Served, monkeypatch: pytest.MonkeyPatch, chain: str | None
) -> None:
    if chain is not None:
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", chain)
    with DefaultAzureCredential() as credential:
        for audience in (LOGS, MANAGEMENT):
            token = credential.get_token(f"{audience}/.default")
            assert token.expires_on > served.now


def test_a_chain_without_the_identity_endpoint_signs_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    with DefaultAzureCredential() as credential, pytest.raises(ClientAuthenticationError):
        credential.get_token(f"{LOGS}/.default")


def test_a_wrong_identity_header_signs_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_HEADER", "another-header")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
    with DefaultAzureCredential() as credential, pytest.raises(ClientAuthenticationError):
        credential.get_token(f"{LOGS}/.default")


def test_a_token_of_another_audience_and_an_expired_one_are_refused(served: Served) -> None:
    rest, query = ArmClient(served.url), ArmClient(served.url, audience=LOGS)
    path = f"/v1/workspaces/{WORKSPACE_ID}/query"

    def ask(token: str) -> tuple[int, str]:
        reply = query.send("POST", path, {"query": "print 1"}, {"authorization": f"Bearer {token}"})
        return reply.status, "" if reply.status == 200 else reply.error[0]

    assert ask(query.token) == (200, "")
    assert ask(rest.token) == (403, "InvalidAuthenticationTokenAudience")
    rest.token, own = query.token, rest.token
    assert rest.arm("GET", "incidents").error[0] == "InvalidAuthenticationTokenAudience"
    rest.token = own
    assert rest.arm("GET", "incidents").status == 200
    served.now += 24 * 3600 + 1
    assert ask(query.token) == (403, "InvalidAuthenticationToken")
    expired = rest.arm("GET", "incidents")
    assert (expired.status, expired.error[0]) == (401, "InvalidAuthenticationToken")
    assert ask(ArmClient(served.url, audience=LOGS).token) == (200, "")
