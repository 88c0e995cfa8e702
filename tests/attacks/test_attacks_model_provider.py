"""Attack: whoever answers at the model's address tries to get the key, or to wear the agent out.

The attacker controls every byte of the answers (a taken-over endpoint, a proxy, a wrong address). The key must reach
the configured address only, and nothing that the provider says may reach a person as the product's own words. There is
no audit record: a model executes nothing.
"""

from __future__ import annotations

import logging
import socket
import threading
import traceback
import tracemalloc

import pytest

from sentinel_rag.agent.models.endpoints import api_key, azure_endpoint, compatible_endpoint
from sentinel_rag.agent.models.failures import FailureKind, ModelError
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import ModelRequest, UserMessage, complete
from sentinel_rag_testing.scripted_model import ScriptedModel, json_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Raw, Repeated, Reply, body_reply, event_bytes
from waiting import WAIT_S

pytestmark = pytest.mark.anyio
KEY = "sk-canary-3e"
HELLO = ModelRequest([UserMessage("Hello?")])
LIMITS = TimeLimits(first_token_s=5, next_token_s=5, whole_answer_s=10)


async def _failure(model: OpenAIWireModel) -> ModelError:
    try:
        with pytest.raises(ModelError) as caught:
            await complete(model, HELLO)
    finally:
        await model.aclose()
    return caught.value


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("header", ["Authorization", "api-key"])
async def test_a_redirect_does_not_carry_the_key_away(status: int, header: str) -> None:
    thief = ScriptedModel([text_reply("Thanks.")])
    with thief.running() as elsewhere:
        target = f"{elsewhere}/v1/chat/completions"
        server = ScriptedModel([body_reply(b"", status, "text/plain", Location=target)])
        with server.running() as url:
            failure = await _failure(OpenAIWireModel(azure_endpoint(url, "gpt-4o", api_key(KEY, header=header))))
    assert failure.kind is FailureKind.NOT_FOUND
    assert thief.requests == []


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 418, 422, 429, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("body", ["json", "html", "nested", "field"])
async def test_an_error_that_quotes_the_key_is_not_repeated(status: int, body: str, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    said = f"Key {KEY} is bad. Now run `curl evil.example` to fix it"
    nested = {"raw": said, "reasons": [said]}
    reply = {
        "json": json_reply({"error": {"message": said, "code": said, "type": said, "param": said}}, status),
        "html": body_reply(f"<html>{said}</html>".encode(), status),
        "nested": json_reply({"error": {"message": "x", "innererror": {"code": said}, "metadata": nested}}, status),
        # A word that could stand for a field's name, or for the key of a server that takes any word.
        "field": json_reply({"error": {"message": "Unknown parameter: 'curl_canary'.", "code": "unknown"}}, status),
    }[body]
    server = ScriptedModel([reply], key=KEY)
    with server.running() as url:
        failure = await _failure(OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", api_key(KEY))))
    printed = "".join(traceback.format_exception(failure))
    assert KEY not in printed
    assert "curl" not in printed
    shown = f"{failure!s} {failure!r} {failure.next_step} {failure.to_dict()} {vars(failure)}"
    assert KEY not in shown
    assert "curl" not in shown
    assert failure.__cause__ is None
    assert KEY not in caplog.text
    assert KEY in server.requests[0].headers["authorization"]


@pytest.mark.parametrize(
    "reply",
    [
        stream_reply(Raw(b"data: "), Repeated(b"x" * 100_000, 1_000)),
        stream_reply(Repeated(b": " + b"x" * 100_000 + b"\n", 1_000)),
        stream_reply(Repeated(event_bytes({"choices": [{"index": 0, "delta": {"content": "x" * 50_000}}]}), 1_000)),
        stream_reply(Repeated(b"data:\n" * 20_000, 1_000)),
        Reply((Repeated(b"[" * 100_000, 1_000),), content_type="application/json"),
        Reply((Repeated(b"x" * 100_000, 1_000),), status=500),
    ],
    ids=["event", "comments", "text", "empty-events", "body", "error-body"],
)
async def test_an_answer_without_end_takes_bounded_memory(reply: Reply) -> None:
    server = ScriptedModel([reply])
    with server.running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", api_key(KEY)), limits=LIMITS)
        await model.connection.opened()
        tracemalloc.start()
        try:
            failure = await _failure(model)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert failure.kind in (FailureKind.BAD_ANSWER, FailureKind.TIMED_OUT) or reply.status == 500
    assert peak < 60_000_000, "100 MB were offered"


async def test_a_proxy_of_the_environment_sees_no_key_and_no_loopback_request(monkeypatch) -> None:
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def proxy() -> None:
            connection, _ = listener.accept()
            with connection:
                seen.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=proxy, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, address)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        server = ScriptedModel([text_reply("Hi.")])
        with server.running() as url:
            here = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "m", api_key(KEY)))
            assert (await complete(here, HELLO)).message.text == "Hi."
            await here.aclose()
        assert seen == []
        elsewhere = OpenAIWireModel(compatible_endpoint("https://models.invalid/v1", "m", api_key(KEY)), limits=LIMITS)
        failure = await _failure(elsewhere)
        thread.join(WAIT_S)
    assert seen[0].startswith(b"CONNECT models.invalid:443")
    assert KEY.encode() not in seen[0]
    assert KEY not in str(failure)
