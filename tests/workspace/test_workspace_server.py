"""The loopback server over real sockets, spoken to by hand and by Azure's own client libraries."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn

from sentinel_rag.workspace.sample.options import EstateOptions
from sentinel_rag.workspace.server import create_app
from sentinel_rag.workspace.workspace import Workspace
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("DATA-4")

WORKSPACE_ID = "6f3a1c52-0d7e-4b1a-9c55-5e3f0a51a7e0"
RESOURCE_ID = "subscriptions/x/resourceGroups/soc/providers/Microsoft.OperationalInsights/workspaces/w"
END = datetime(2025, 3, 12, 15, tzinfo=UTC)
AUDIENCE = "https://api.loganalytics.io"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        text = gzip.decompress(self.raw) if self.headers.get("content-encoding") == "gzip" else self.raw
        return json.loads(text)


@dataclass(frozen=True)
class Server:
    port: int
    workspace: Workspace

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            sent = {"content-type": "application/json"} if raw is not None else {}
            connection.request(method, path, raw, {**sent, **(headers or {})})
            response = connection.getresponse()
            lowered = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, lowered, response.read())
        finally:
            connection.close()

    def token(self, resource: str = AUDIENCE) -> str:
        path = f"/msi/token?api-version=2019-08-01&resource={quote(resource, safe='')}"
        reply = self.send("GET", path, headers={"x-identity-header": "identity-secret"})
        assert reply.status == 200
        token: str = reply.body["access_token"]
        return token

    def query(self, kql: str, *, prefer: str = "", timespan: str | None = None, **headers: str) -> Reply:
        body = {"query": kql, "timespan": timespan, "workspaces": None}
        sent = {"authorization": f"Bearer {self.token()}", "prefer": prefer, **headers}
        return self.send("POST", f"/v1/workspaces/{WORKSPACE_ID}/query", body, sent)

    def admin(self, method: str, path: str, body: Any = None, token: str = "admin-secret") -> Reply:
        return self.send(method, f"/admin/{path}", body, {"authorization": f"Bearer {token}"})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    workspace = Workspace.open(tmp_path_factory.mktemp("served"))
    workspace.generate(EstateOptions(days=8, events=500, end=END))
    app = create_app(
        workspace,
        workspace_id=WORKSPACE_ID,
        identity_header="identity-secret",
        admin_token="admin-secret",
        max_rows=1000,
        max_bytes=2_000_000,
    )
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    uvicorn_server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", lifespan="off"))
    thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not uvicorn_server.started:
        time.sleep(0.01)
    yield Server(listener.getsockname()[1], workspace)
    uvicorn_server.should_exit = True
    thread.join()
    listener.close()
    workspace.close()


def test_an_answer_has_the_recorded_shape(server: Server) -> None:
    reply = server.query("SecurityIncident | where IncidentNumber == 124 | summarize arg_max(TimeGenerated, Severity) ")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.headers["x-ms-request-id"]
    assert "preference-applied" not in reply.headers
    assert reply.body == {
        "tables": [
            {
                "name": "PrimaryResult",
                "columns": [{"name": "TimeGenerated", "type": "datetime"}, {"name": "Severity", "type": "string"}],
                "rows": [["2025-03-12T11:56:00Z", "High"]],
            }
        ]
    }


def test_statistics_render_and_wait_on_request(server: Server) -> None:
    prefer = "wait=30,include-statistics=true,include-render=true"
    reply = server.query("Heartbeat | summarize count() by Computer | render piechart", prefer=prefer)
    assert reply.headers["preference-applied"] == prefer
    assert reply.body["statistics"]["query"]["executionTime"] > 0
    assert reply.body["render"]["visualization"] == "piechart"
    assert reply.body["render"]["yMin"] == "NaN"
    assert server.query("print 1", prefer="wait=99999").headers["preference-applied"] == "wait=600"


@pytest.mark.parametrize(
    ("timespan", "expected"),
    [
        (None, 28),
        ("2025-03-10T00:00:00.000Z/2025-03-12T15:00:00.000Z", 5),
        ("2025-03-11T15:00:00Z/PT86400.0S", 5),
        ("P7D", 0),
        ("PT3600.0S", 0),
    ],
)
def test_the_timespan_of_the_request(server: Server, timespan: str | None, expected: int) -> None:
    reply = server.query("SecurityIncident | distinct IncidentNumber | count", timespan=timespan)
    assert reply.status == 200
    ((count,),) = reply.body["tables"][0]["rows"]
    assert (count == 0) == (expected == 0)
    if timespan is None:
        assert count == expected


def test_a_cut_answer_is_a_partial_error(server: Server) -> None:
    reply = server.query("range x from 1 to 5000 step 1")
    assert reply.status == 200
    assert len(reply.body["tables"][0]["rows"]) == 1000
    error = reply.body["error"]
    assert error["code"] == "PartialError"
    inner = error["details"][0]["innererror"]
    assert inner["code"] == "-2133196797"
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in inner["message"]


def test_compression_on_request(server: Server) -> None:
    plain = server.query("range x from 1 to 900 step 1")
    packed = server.query("range x from 1 to 900 step 1", **{"accept-encoding": "gzip, deflate"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.raw) < len(plain.raw)
    assert packed.body == plain.body


def test_errors_of_the_query(server: Server) -> None:
    semantic = server.query("SecurityIncidents | take 1")
    assert semantic.status == 400
    outer = semantic.body["error"]
    assert (outer["code"], outer["message"]) == ("BadArgumentError", "The request had some invalid properties")
    assert outer["correlationId"] == semantic.headers["x-ms-request-id"]
    assert outer["innererror"]["code"] == "SemanticError"
    assert outer["innererror"]["innererror"]["code"] == "SEM0100"
    assert "SecurityIncident?" in outer["innererror"]["innererror"]["message"]

    syntax = server.query("SecurityIncident\n| whre x == 1")
    inner = syntax.body["error"]["innererror"]
    assert (syntax.status, inner["code"]) == (400, "SyntaxError")
    assert (inner["innererror"]["code"], inner["innererror"]["line"]) == ("SYN0002", 2)
    assert isinstance(inner["innererror"]["pos"], int)

    timespan = server.query("Heartbeat", timespan="P1H")
    assert timespan.status == 400
    assert "PT1H" in timespan.body["error"]["innererror"]["message"]

    side = "(range x from 1 to 4000000 step 1 | extend k = 1)"
    late = server.query(f"{side} | join kind=inner {side} on k | count", prefer="wait=1")
    assert late.status == 504
    assert late.headers["preference-applied"] == "wait=1"
    assert late.body["error"]["code"] == "GatewayTimeout"


@pytest.mark.parametrize(
    ("authorization", "status", "code"),
    [
        (None, 401, "AuthenticationFailed"),
        ("Basic abc", 401, "AuthenticationFailed"),
        ("Bearer ", 401, "AuthenticationFailed"),
        ("Bearer wrong", 403, "InvalidAuthenticationToken"),
        ("Bearer admin-secret", 403, "InvalidAuthenticationToken"),
        ("other audience", 403, "InvalidAuthenticationTokenAudience"),
    ],
)
@pytest.mark.parametrize(("method", "endpoint"), [("POST", "query"), ("GET", "metadata")])
def test_queries_and_the_schema_need_a_token_of_their_audience(
    server: Server, method: str, endpoint: str, authorization: str | None, status: int, code: str
) -> None:
    if authorization == "other audience":
        authorization = f"Bearer {server.token('https://management.azure.com')}"
    headers = {} if authorization is None else {"authorization": authorization}
    body = {"query": "print 1"} if method == "POST" else None
    reply = server.send(method, f"/v1/workspaces/{WORKSPACE_ID}/{endpoint}", body, headers)
    assert (reply.status, reply.body["error"]["code"]) == (status, code)
    if status == 401:
        assert reply.headers["www-authenticate"] == "Bearer"


def test_the_schema_names_tables_with_and_without_rows_and_those_imported_since(server: Server, tmp_path: Path) -> None:
    auth = {"authorization": f"Bearer {server.token()}", "accept-encoding": "gzip"}

    def tables(path: str = f"/v1/workspaces/{WORKSPACE_ID}/metadata") -> dict[str, Any]:
        reply = server.send("GET", path, headers=auth)
        assert (reply.status, reply.headers["content-encoding"]) == (200, "gzip")
        return {table["name"]: table for table in reply.body["tables"]}

    before = tables()
    assert {"SecurityAlert", "Syslog"} <= set(before)
    assert "Door_CL" not in before
    assert {"name": "TimeGenerated", "type": "datetime"} in before["SecurityAlert"]["columns"]
    log = tmp_path / "door.jsonl"
    log.write_text('{"TimeGenerated": "2025-03-12T10:00:00Z", "Badge": 7}\n', encoding="utf-8")
    server.workspace.import_path(log, table="Door_CL")
    after = tables(f"/v1/{RESOURCE_ID}/metadata")
    assert after["Door_CL"]["id"] == "t/Door_CL"
    assert {"name": "Badge", "type": "long"} in after["Door_CL"]["columns"]
    wrong = server.send("GET", "/v1/workspaces/00000000-0000-0000-0000-000000000000/metadata", headers=auth)
    assert (wrong.status, wrong.body["error"]["code"]) == (400, "FailedToResolveResource")
    assert server.send("GET", "/v1/elsewhere/metadata", headers=auth).status == 404


def test_workspaces_and_paths(server: Server) -> None:
    auth = {"authorization": f"Bearer {server.token()}"}
    body = {"query": "print 1", "timespan": None}

    def post(path: str, body: Any = body) -> Reply:
        return server.send("POST", path, body, auth)

    assert post(f"/v1/workspaces/{WORKSPACE_ID.upper()}/query").status == 200
    assert post(f"/v1/{RESOURCE_ID}/query").body["tables"][0]["rows"] == [[1]]
    wrong = post("/v1/workspaces/00000000-0000-0000-0000-000000000000/query")
    assert (wrong.status, wrong.body["error"]["code"]) == (400, "FailedToResolveResource")
    others = post(f"/v1/workspaces/{WORKSPACE_ID}/query", {**body, "workspaces": ["other"]})
    assert (others.status, others.body["error"]["code"]) == (400, "FailedToResolveResource")
    for path in ("/v1/nothing/query", "/v1/query", "/nowhere", "/v1/workspaces/x/metrics"):
        reply = post(path)
        assert (reply.status, reply.body["error"]["code"]) == (404, "PathNotFoundError"), path
    assert server.send("GET", f"/v1/workspaces/{WORKSPACE_ID}/query", headers=auth).status == 405


def test_bodies_that_are_no_query(server: Server) -> None:
    auth = {"authorization": f"Bearer {server.token()}"}
    path = f"/v1/workspaces/{WORKSPACE_ID}/query"
    empty = server.send("POST", path, headers=auth)
    assert (empty.status, empty.raw) == (200, b"")
    for body in (b"{", b"[]", b'{"query": 1}', b"{}", b'{"query": "print 1", "timespan": 5}', b"\xff\xfe"):
        reply = server.send("POST", path, body, auth)
        assert (reply.status, reply.body["error"]["code"]) == (400, "BadArgumentError"), body
    huge = server.send("POST", path, b" " * (2 << 20), auth)
    assert huge.status == 413


def test_identity_endpoint(server: Server) -> None:
    path = f"/msi/token?api-version=2019-08-01&resource={quote(AUDIENCE, safe='')}"
    good = {"x-identity-header": "identity-secret"}
    body = server.send("GET", path, headers=good).body
    assert (body["resource"], body["token_type"]) == (AUDIENCE, "Bearer")
    assert int(body["expires_on"]) > time.time()
    assert server.token() != server.token()
    assert server.send("GET", path).status == 401
    assert server.send("GET", path, headers={"x-identity-header": "wrong"}).status == 401
    assert server.send("GET", path.replace("2019", "2018"), headers=good).status == 400
    assert server.send("GET", "/msi/token?api-version=2019-08-01", headers=good).status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "attacker.example"},
        {"host": "attacker.example:80"},
        {"host": "127.0.0.1.attacker.example"},
        {"host": "127.0.0.1@attacker.example"},
        {"host": "[::ffff:203.0.113.1]"},
        {"host": ""},
        {"host": "127.0.0.1:99999999"},
        {"origin": "https://attacker.example"},
        {"origin": "null"},
    ],
)
def test_other_hosts_and_pages_are_refused(server: Server, headers: dict[str, str]) -> None:
    for path in ("/healthz", "/msi/token", "/admin/tables"):
        reply = server.send("GET", path, headers=headers)
        assert (reply.status, reply.body["error"]["code"]) == (403, "HostNotAllowed")
        assert not any(name.startswith("access-control") for name in reply.headers)


def test_health_needs_no_token(server: Server) -> None:
    assert server.send("GET", "/healthz").body == {"status": "ok"}
    assert server.send("GET", "/healthz", headers={"host": f"localhost:{server.port}"}).status == 200


@pytest.mark.parametrize("token", ["", "wrong", "identity-secret", "admin-secretx", "ädmin"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "tables", None),
        ("POST", "import", {"path": "/etc/passwd"}),
        ("POST", "generate", {}),
        ("POST", "query", {"kql": "Heartbeat"}),
    ],
)
def test_admin_needs_the_admin_token(server: Server, method: str, path: str, body: Any, token: str) -> None:
    sent = {"authorization": f"Bearer {token}".encode().decode("latin-1")}
    reply = server.send(method, f"/admin/{path}", body, sent)
    assert (reply.status, reply.body["error"]["code"]) == (401, "unauthenticated")
    query_token = server.admin(method, path, body, token=server.token())
    assert query_token.status == 401


def test_admin_imports_lists_and_queries(server: Server, tmp_path: Path) -> None:
    export = tmp_path / "Served_CL.csv"
    export.write_text("TimeGenerated,Name,Count\n2024-01-01T00:00:00Z,a,1\n2024-01-02T00:00:00Z,b,x\n")
    report = server.admin("POST", "import", {"path": str(export)})
    assert report.status == 200
    assert report.body["reports"][0]["rows_stored"] == 2
    tables = {table["table"]: table for table in server.admin("GET", "tables").body["tables"]}
    assert tables["Served_CL"] == {
        "table": "Served_CL",
        "rows": 2,
        "oldest": "2024-01-01T00:00:00Z",
        "newest": "2024-01-02T00:00:00Z",
    }
    answer = server.admin("POST", "query", {"kql": "Served_CL | project Name | sort by Name asc", "timespan": None})
    assert answer.body["rows"] == [["a"], ["b"]]
    assert server.query("Served_CL | count").body["tables"][0]["rows"] == [[2]]


def test_admin_refusals_are_sentences(server: Server) -> None:
    for body, message in (
        ({"path": "/nowhere/x.csv"}, "There is no file"),
        ({"path": "relative.csv"}, "not absolute"),
        ({"file": "/x"}, "request body is wrong"),
    ):
        reply = server.admin("POST", "import", body)
        assert reply.status == 400
        assert message in reply.body["error"]["message"]
        assert reply.body["error"]["next_step"]
    assert server.admin("POST", "generate", {"days": 1}).status == 400
    bad = server.admin("POST", "query", {"kql": "Nope"})
    assert (bad.status, bad.body["error"]["code"]) == (400, "kql")


def test_admin_generates(server: Server) -> None:
    reply = server.admin("POST", "generate", {"days": 8, "events": 500, "end": END.isoformat()})
    assert reply.status == 200
    assert reply.body["guide"]["main_incident"] == 124


def test_queries_are_answered_while_an_import_runs(server: Server, tmp_path: Path) -> None:
    export = tmp_path / "Long_CL.csv"
    rows = (f"2024-01-01T00:00:00Z,host-{number},{'x' * 40}" for number in range(300_000))
    export.write_text("TimeGenerated,Name,Text\n" + "\n".join(rows) + "\n")
    replies: list[Reply] = []
    importing = threading.Thread(target=lambda: replies.append(server.admin("POST", "import", {"path": str(export)})))
    importing.start()
    answered = 0
    while importing.is_alive():
        assert server.send("GET", "/healthz").status == 200
        assert server.query("SecurityIncident | count").status == 200
        answered += 1
    importing.join()
    assert replies[0].body["reports"][0]["rows_stored"] == 300_000
    assert answered > 0


@pytest.fixture
def identity(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.port}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "identity-secret")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")


@pytest.mark.usefixtures("identity")
def test_azures_own_clients_work_unchanged(server: Server) -> None:
    from azure.core.exceptions import HttpResponseError
    from azure.core.pipeline.policies import BearerTokenCredentialPolicy
    from azure.identity import DefaultAzureCredential
    from azure.monitor.query import LogsQueryClient, LogsQueryPartialResult, LogsQueryResult

    class LoopbackPolicy(BearerTokenCredentialPolicy):
        def on_request(self, request: Any) -> None:
            request.context.options["enforce_https"] = False
            super().on_request(request)

    with (
        DefaultAzureCredential() as credential,
        LogsQueryClient(
            credential,
            endpoint=f"http://127.0.0.1:{server.port}",
            authentication_policy=LoopbackPolicy(credential, f"{AUDIENCE}/.default"),
        ) as client,
    ):
        result = client.query_workspace(
            WORKSPACE_ID,
            "SecurityIncident | summarize arg_max(TimeGenerated, *) by IncidentNumber | where IncidentNumber == 124 "
            "| project IncidentNumber, TimeGenerated, Severity, AlertIds, ClosedTime",
            timespan=(END - timedelta(days=7), END),
            include_statistics=True,
            include_visualization=True,
            server_timeout=30,
        )
        assert isinstance(result, LogsQueryResult)
        row = result.tables[0].rows[0]
        assert (row["IncidentNumber"], row["Severity"], row["ClosedTime"]) == (124, "High", None)
        assert row["TimeGenerated"] == datetime(2025, 3, 12, 11, 56, tzinfo=UTC)
        assert len(json.loads(row["AlertIds"])) == 8
        assert result.statistics is not None
        partial = client.query_workspace(WORKSPACE_ID, "range x from 1 to 5000 step 1", timespan=None)
        assert isinstance(partial, LogsQueryPartialResult)
        assert len(partial.partial_data[0].rows) == 1000
        assert partial.partial_error.details
        by_resource = client.query_resource(f"/{RESOURCE_ID}", "print x = 1", timespan=timedelta(hours=1))
        assert isinstance(by_resource, LogsQueryResult)
        with pytest.raises(HttpResponseError) as refusal:
            client.query_workspace(WORKSPACE_ID, "Nope", timespan=None)
        assert refusal.value.status_code == 400
        assert "Nope" in str(refusal.value)
