"""What the wires do on bad days that no other test shows: tokens taken back; bodies cut, packed, endless, mislabelled;
certificates nobody trusts; and how long the policies wait."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from action_estate import MAIN, Estate, estate
from sentinel_servers import IDENTITY_HEADER, NOW, WORKSPACE_ID, ScriptedArm, connected, managed
from starlette.responses import JSONResponse, Response, StreamingResponse

from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, QueryResult
from sentinel_rag.sentinel.azure_policies import MOST_WAITED_S, QueryRetryPolicy, ResourceRetryPolicy
from sentinel_rag.sentinel.credentials import IdentityEndpointCredential, azure_credential
from sentinel_rag.sentinel.logs.log_analytics import LogAnalytics
from sentinel_rag.sentinel.response_bodies import retry_after_seconds
from sentinel_rag.sentinel.rest import ArmConnection, SentinelRest
from sentinel_rag.sentinel.service import SentinelService
from sentinel_rag.workspace.server import EMBEDDED_RESOURCE_ID
from sentinel_rag_testing.loopback import serve

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("DATA-1")]

ONE_ROW = {"tables": [{"name": "PrimaryResult", "columns": [{"name": "n", "type": "long"}], "rows": [[1]]}]}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path) as running:
        yield running


async def failure(wire: Any, *answers: Response, **options: Any) -> QueryError:
    wire.answers = list(answers)
    async with connected(wire.url, **options) as workspace:
        with pytest.raises(QueryFailedError) as caught:
            await workspace.query("T")
    return caught.value.error


@pytest.mark.requirement("DATA-6")
@pytest.mark.parametrize("wire_name", ["logs", "rest"])
async def test_a_token_that_was_taken_back_is_asked_for_anew_once(served: Estate, wire_name: str) -> None:
    """Continuous access evaluation: a 401 with a claims challenge in the middle of a run."""
    served.faults({"kind": "unauthorized", "wire": wire_name, "skip": 1})
    async with connected(served.url) as logs, managed(served.url) as rest:
        service = SentinelService({"lab": logs}, rest={"lab": rest}, clock=lambda: NOW)
        for _ in range(3):
            outcome = await service.call("get_incident_detail", {"incident": str(MAIN)})
            assert isinstance(outcome, QueryResult), outcome
            assert not any("as the log has it" in note for note in outcome.notes)
    assert served.admin("GET", "faults")["faults"] == []


async def test_a_challenge_that_never_ends_is_access_denied(served: Estate) -> None:
    served.faults({"kind": "unauthorized", "times": None})
    error = await served.refusal("query_incidents")
    assert error.code is QueryErrorCode.ACCESS_DENIED
    assert "Sign in again" in error.next_step
    assert served.requests()["logs POST"] <= 10


async def test_a_token_that_ends_in_the_middle_is_renewed(wire: Any) -> None:
    """azure-core renews what ends within five minutes; the identity endpoint is asked as often as it takes."""
    asked = 0

    class Short(IdentityEndpointCredential):
        async def get_token(self, *scopes: str, **options: Any) -> Any:
            nonlocal asked
            asked += 1
            token = await super().get_token(*scopes, **options)
            return token._replace(expires_on=int(datetime.now(UTC).timestamp()) + (60 if asked < 3 else 3600))

    wire.answers = [JSONResponse(ONE_ROW)]
    async with LogAnalytics(Short(f"{wire.url}/msi/token", IDENTITY_HEADER), endpoint=wire.url) as connection:
        for _ in range(6):
            await connection.workspace("lab", WORKSPACE_ID).query("T")
    assert asked == 3


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (401, "AuthenticationFailed", "Sign in again"),
        (403, "InvalidAuthenticationToken", "Sign in again"),
        (403, "InvalidAuthenticationTokenAudience", "for another service"),
        (403, "InsufficientAccessError", "Log Analytics Reader"),
        (403, "AuthorizationFailed", "Log Analytics Reader"),
    ],
)
async def test_each_kind_of_refusal_has_its_own_next_step(wire: Any, status: int, code: str, words: str) -> None:
    error = await failure(wire, JSONResponse({"error": {"code": code, "message": "no"}}, status))
    assert error.code is QueryErrorCode.ACCESS_DENIED
    assert words in error.next_step
    assert len(wire.requests) == 1


@pytest.mark.requirement("DATA-6")
@pytest.mark.parametrize("kind", ["truncated", "too_large", "empty", "html", "forbidden", "timeout", "server_error"])
async def test_no_bad_answer_is_an_empty_result(served: Estate, kind: str) -> None:
    """Field report C3, and its whole kind: a result that could not be had is never "no results"."""
    served.faults({"kind": kind, "wire": "logs", "times": None})
    for tool, arguments in (("query_incidents", {}), ("query_alerts", {}), ("get_threat_summary", {})):
        error = await served.refusal(tool, **arguments)
        assert error.message
        assert error.next_step
    if kind == "too_large":
        assert error.code is QueryErrorCode.QUERY_REJECTED
        assert "E_QUERY_RESULT_SET_TOO_LARGE" in error.message
        assert "64000000" in error.message
        assert "shorter window, fewer rows or a summary" in error.next_step


async def test_a_mislabelled_body_is_read_by_what_it_holds(wire: Any) -> None:
    for content_type in ("text/html", "application/octet-stream", "text/plain; charset=utf-16"):
        wire.answers = [Response(json.dumps(ONE_ROW), media_type=content_type)]
        async with connected(wire.url) as workspace:
            assert (await workspace.query("T")).rows == ((1,),)


async def test_a_packed_body_is_unpacked(wire: Any) -> None:
    packed = gzip.compress(json.dumps(ONE_ROW).encode())
    wire.answers = [Response(packed, headers={"content-encoding": "gzip"}, media_type="application/json")]
    async with connected(wire.url) as workspace:
        assert (await workspace.query("T")).rows == ((1,),)
    assert "gzip" in wire.headers[0]["accept-encoding"]


async def test_a_body_that_says_it_is_packed_and_is_not_is_no_result(wire: Any) -> None:
    broken = Response(b"not gzip at all", headers={"content-encoding": "gzip"}, media_type="application/json")
    error = await failure(wire, broken, retries=0)
    assert error.code in (QueryErrorCode.UNAVAILABLE, QueryErrorCode.PROTOCOL)


@pytest.mark.parametrize("packed", [False, True])
async def test_an_endless_body_is_left_at_the_bound(wire: Any, packed: bool) -> None:
    """A small body that unpacks to a large one is caught as it grows."""
    body = b'{"tables": "' + b"x" * 3_000_000 + b'"}'
    headers = {"content-encoding": "gzip"} if packed else {}
    answer = Response(gzip.compress(body) if packed else body, headers=headers, media_type="application/json")
    error = await failure(wire, answer, largest_body=1_000_000)
    assert error.code is QueryErrorCode.PROTOCOL
    assert "more than any result can have" in error.message


async def test_an_endless_answer_of_the_rest_api_is_left_at_the_bound() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 1_000_000
            await anyio.lowlevel.checkpoint()  # or the server's loop would turn here for ever, whoever has left

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/msi/token":
            await JSONResponse({"access_token": "t", "expires_on": "4102444800"})(scope, receive, send)
        elif scope["type"] == "http":
            await StreamingResponse(endless(), media_type="application/json")(scope, receive, send)

    with serve(app) as url:
        async with managed(url, largest_body=5_000_000) as rest:
            with pytest.raises(QueryFailedError) as caught:
                await rest.list_incidents()
    assert caught.value.error.code is QueryErrorCode.PROTOCOL


class _Answering:
    """What a retry policy looks at of an answer."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.http_response = type("Answer", (), {"headers": headers, "status_code": 429})()
        self.http_request = type("Asked", (), {"method": "GET"})()
        self.context: dict[str, Any] = {}


@pytest.mark.parametrize("policy", [QueryRetryPolicy(), ResourceRetryPolicy()], ids=["logs", "rest"])
def test_a_service_is_waited_for_as_long_as_all_waits_fit(policy: QueryRetryPolicy) -> None:
    def waits(*told: str) -> list[bool]:
        settings: dict[str, Any] = {"total": 3}
        answers: list[Any] = [_Answering({"Retry-After": each}) for each in told]
        return [policy.is_retry(settings, answer) for answer in answers]

    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert waits("7", "20", "4") == [True, True, False]
    assert waits(str(MOST_WAITED_S)) == waits(soon) == [True]
    assert waits("86400") == waits(tomorrow) == [False]
    assert waits("soon", "0", "Wed, 21 Oct 2015 07:28:00 GMT", "3.5.1") == [True] * 4


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("30", 30.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sat, 28 Nov 2026 09:02:00 GMT", 120.0),
        ("Sat, 28 Nov 2026 08:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Sat, 99 Nov 2026 09:02:00 GMT", None),
    ],
)
async def test_how_long_to_wait_is_told_for_a_number_and_for_a_date(header: str | None, seconds: float | None) -> None:
    now = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
    assert retry_after_seconds(header, now=lambda: now) == seconds


async def test_a_throttled_answer_with_a_date_tells_the_seconds(wire: Any) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    body = {"error": {"code": "ThrottledError", "message": "Rate limit of 200 is exceeded."}}
    error = await failure(wire, JSONResponse(body, 429, {"Retry-After": date}), retries=0)
    assert error.retry_after_s is not None
    assert 200 < error.retry_after_s <= 300


async def test_the_client_waits_longer_than_the_service_may_take(wire: Any) -> None:
    """A read timeout at or below `wait` would drop a query that the service is about to answer."""
    from azure.core.pipeline.transport import AioHttpTransport

    seen: list[tuple[str, Any]] = []

    class Watching(AioHttpTransport):
        async def send(self, request: Any, **options: Any) -> Any:
            seen.append((request.headers["Prefer"], options.get("read_timeout")))
            return await super().send(request, **options)

    wire.answers = [JSONResponse(ONE_ROW)]
    for wait_s in (600, 45):
        async with connected(wire.url, wait_s=wait_s, transport=Watching()) as workspace:
            await workspace.query("T")
    assert seen == [("wait=600", 630), ("wait=45", 75)]


@pytest.mark.parametrize("audience", ["https://api.loganalytics.io", "https://api.loganalytics.us"])
async def test_a_token_is_asked_for_the_cloud_and_not_for_the_endpoint(wire: Any, audience: str) -> None:
    asked: list[tuple[str, ...]] = []

    class Listening(IdentityEndpointCredential):
        async def get_token(self, *scopes: str, **options: Any) -> Any:
            asked.append(scopes)
            return await super().get_token(*scopes, **options)

    credential = Listening(f"{wire.url}/msi/token", IDENTITY_HEADER)
    wire.answers = [JSONResponse(ONE_ROW)]
    async with LogAnalytics(credential, endpoint=wire.url, audience=audience) as connection:
        await connection.workspace("lab", WORKSPACE_ID).query("T")
    assert asked == [(f"{audience}/.default",)]


@pytest.mark.parametrize("chain", ["prod", "ManagedIdentityCredential"])
async def test_the_clients_credential_is_azures_chain(
    served: Estate, monkeypatch: pytest.MonkeyPatch, chain: str
) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{served.url}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", IDENTITY_HEADER)
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", chain)
    credential = azure_credential()
    async with (
        LogAnalytics(credential, endpoint=served.url) as logs,
        ArmConnection(credential, endpoint=served.url) as manager,
    ):
        rest = SentinelRest("lab", EMBEDDED_RESOURCE_ID, manager)
        service = SentinelService({"lab": logs.workspace("lab", WORKSPACE_ID)}, rest={"lab": rest})
        outcome = await service.call("get_incident_detail", {"incident": str(MAIN)})
    assert isinstance(outcome, QueryResult)
    assert outcome.rows


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    """A server with a certificate of its own making, which nobody trusts."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _StaticCredential:
    async def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken("a-token", 4102444800)

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def both_clients(url: str) -> AsyncIterator[tuple[Any, SentinelRest]]:
    credential: Any = _StaticCredential()
    async with (
        LogAnalytics(credential, endpoint=url, first_retry_delay_s=0.001) as logs,
        ArmConnection(credential, endpoint=url, first_retry_delay_s=0.001) as manager,
    ):
        yield logs.workspace("lab", WORKSPACE_ID), SentinelRest("lab", EMBEDDED_RESOURCE_ID, manager)


async def test_a_certificate_that_nobody_trusts_is_told(tmp_path: Path) -> None:
    with tls_server(tmp_path) as url:
        async with both_clients(url) as (logs, rest):
            for call in (logs.query("T"), rest.list_incidents(), rest.add_comment("a" * 8, "b" * 8, "x")):
                with pytest.raises(QueryFailedError) as caught:
                    await call
                error = caught.value.error
                assert error.code is QueryErrorCode.UNAVAILABLE
                assert error.message.startswith(f"The TLS certificate of {url} is not accepted: ")
                assert "SSL_CERT_FILE" in error.next_step


async def test_a_server_that_speaks_no_tls_is_told() -> None:
    with serve(ScriptedArm().app()) as url:
        async with both_clients(url.replace("http://", "https://")) as (logs, _):
            with pytest.raises(QueryFailedError) as caught:
                await logs.query("T")
    assert caught.value.error.code is QueryErrorCode.UNAVAILABLE
    assert "https://127.0.0.1" in caught.value.error.message
