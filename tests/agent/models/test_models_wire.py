"""What is sent to a provider and how its answer is closed: addresses, credentials, bodies, replays, cancellation."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from model_failures import failing
from sentinel_rag.agent.models.endpoints import api_key, azure_endpoint, compatible_endpoint, entra_token, no_key
from sentinel_rag.agent.models.failures import (
    Asked,
    ContextOverflowError,
    FailureKind,
    ModelError,
    ModelTimedOutError,
    Overflowing,
    failure_of_response,
)
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    CallProblem,
    Finished,
    ModelRequest,
    ModelToolCall,
    SystemMessage,
    TextDelta,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME
from sentinel_rag_testing.scripted_model import ScriptedModel, calls_reply, json_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Hang, Pause, Repeated, chunk, completion, ending, event_bytes
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("OPS-3")]
HELLO = ModelRequest([UserMessage("Hello?")])


async def _ask(endpoint, request: ModelRequest = HELLO, *, limits: TimeLimits | None = None) -> Finished:
    model = OpenAIWireModel(endpoint, limits=limits)
    try:
        return await complete(model, request)
    finally:
        await model.aclose()


@pytest.mark.parametrize(
    "address", ["{url}", "{url}/", "{url}/openai/v1/", "{url}/openai/deployments/x/chat/completions"]
)
@pytest.mark.parametrize("api_version", [None, "2024-10-21"])
async def test_azure_is_asked_at_its_documented_paths_with_the_key_in_its_header(address, api_version):
    server = ScriptedModel([text_reply("Hi.")], key="azure-key", models=frozenset({"gpt 4o/eu"}))
    with server.running() as url:
        endpoint = azure_endpoint(
            address.format(url=url), "gpt 4o/eu", api_key("azure-key", header="api-key"), api_version=api_version
        )
        assert (await _ask(endpoint)).message.text == "Hi."
    [request] = server.requests
    if api_version is None:
        assert (request.path, request.query) == ("/openai/v1/chat/completions", {})
    else:
        assert request.path == "/openai/deployments/gpt%204o%2Feu/chat/completions"
        assert request.query == {"api-version": "2024-10-21"}
    assert request.headers["api-key"] == "azure-key"
    assert "authorization" not in request.headers


async def test_azure_takes_a_fresh_token_of_entra_id_for_each_request():
    tokens = iter(["first", "second"])

    async def next_token() -> str:
        return next(tokens)

    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        model = OpenAIWireModel(azure_endpoint(url, "gpt-4o", entra_token(next_token)))
        await complete(model, HELLO)
        await complete(model, HELLO)
        await model.aclose()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer first", "Bearer second"]


async def test_a_credential_that_fails_is_an_access_error_without_its_words():
    async def fail() -> str:
        raise RuntimeError("tenant 1234 secret-of-the-library")

    with failing(FailureKind.ACCESS) as caught:
        await _ask(azure_endpoint("https://example.openai.azure.com", "gpt-4o", entra_token(fail)))
    assert "secret" not in str(caught.value) + caught.value.next_step


async def test_a_server_without_a_key_gets_no_authorization():
    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        await _ask(compatible_endpoint(f"{url}/v1/", "llama", no_key))
    assert "authorization" not in server.requests[0].headers
    assert server.requests[0].path == "/v1/chat/completions"


async def test_the_environment_of_another_product_changes_nothing(monkeypatch):
    for name, value in {
        "OPENAI_API_KEY": "sk-other-product",
        "OPENAI_ORG_ID": "org-other",
        "OPENAI_PROJECT_ID": "proj-other",
        "OPENAI_BASE_URL": "http://127.0.0.1:9",
        "OPENAI_ADMIN_KEY": "sk-admin-other",
        "AZURE_OPENAI_AD_TOKEN": "token-other",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        await _ask(compatible_endpoint(f"{url}/v1", "llama", api_key("ours-alone")))
    sent = json.dumps(dict(server.requests[0].headers))
    assert "other" not in sent
    assert server.requests[0].headers["authorization"] == "Bearer ours-alone"


@pytest.mark.requirement("TOOL-1")
async def test_every_tool_of_the_product_is_accepted_and_nothing_that_we_never_send_is_sent():
    server = ScriptedModel([text_reply("Hi.")])
    tools = list(TOOLS_BY_NAME.values())
    with server.running() as url:
        for choice in ToolChoice:
            await _ask(compatible_endpoint(f"{url}/v1", "llama", no_key), ModelRequest(HELLO.messages, tools, choice))
    for request in server.requests:
        text = json.dumps(request.body)
        assert '"strict"' not in text
        assert "parallel_tool_calls" not in text
        assert request.body["store"] is False
        assert request.body["stream_options"] == {"include_usage": True}
        assert [tool["function"]["name"] for tool in request.body["tools"]] == [tool.name for tool in tools]
    assert [request.body.get("tool_choice") for request in server.requests] == [None, "none"]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o", {"max_completion_tokens": 4096, "temperature": 0.0}),
        ("o3-mini", {"max_completion_tokens": 4096}),
        ("gpt-5.1", {"max_completion_tokens": 4096}),
    ],
)
async def test_reasoning_models_of_openai_get_no_temperature(model, expected):
    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        await _ask(azure_endpoint(url, model, no_key))
    body = server.requests[0].body
    assert {key: body[key] for key in ("max_tokens", "max_completion_tokens", "temperature") if key in body} == expected


async def test_what_a_server_refused_once_is_not_sent_again():
    refusal = json_reply({"error": {"message": "Unrecognized request argument supplied: store"}}, 400)
    server = ScriptedModel([refusal, text_reply("Hi.")])
    with server.running() as url:
        model = OpenAIWireModel(compatible_endpoint(f"{url}/v1", "llama", no_key))
        await complete(model, HELLO)
        await complete(model, HELLO)
        await model.aclose()
    assert ["store" in request.body for request in server.requests] == [True, False, False]


async def test_a_conversation_with_every_kind_of_call_is_accepted_when_it_is_replayed():
    broken = ModelToolCall("call_2", "query_alerts", None, "{'limit': ", CallProblem.NO_ARGUMENTS_OBJECT, "Not JSON.")
    whole = ModelToolCall("call_1", "query_alerts", {"limit": 5, "nested": {"a": ("x", 1)}}, "{}")
    messages = [
        SystemMessage("Rules \ud800 with a lone surrogate"),
        UserMessage("Alerts? \udfff"),
        AssistantMessage("", (whole, broken)),
        ToolResultMessage("call_1", "[]"),
        ToolResultMessage("call_2", "Not JSON."),
        AssistantMessage("None."),
        UserMessage("Sure?"),
    ]
    server = ScriptedModel([text_reply("Yes.")])
    with server.running() as url:
        await _ask(compatible_endpoint(f"{url}/v1", "llama", no_key), ModelRequest(messages))
    [request] = server.requests
    assert request.fault is None
    first, second = request.body["messages"][2]["tool_calls"]
    assert json.loads(first["function"]["arguments"]) == {"limit": 5, "nested": {"a": ["x", 1]}}
    assert json.loads(second["function"]["arguments"]) == {"unreadable_arguments": "{'limit': "}
    assert request.body["messages"][2]["content"] == ""


async def test_ids_differ_from_every_id_of_the_conversation_before(question):
    reply = calls_reply(("query_alerts", {}))
    server = ScriptedModel([reply])
    with server.running() as url:
        first = await _ask(compatible_endpoint(f"{url}/v1", "llama", no_key), question)
        [call] = first.message.tool_calls
        messages = [*question.messages, first.message, ToolResultMessage(call.call_id, "[]")]
        second = await _ask(compatible_endpoint(f"{url}/v1", "llama", no_key), ModelRequest(messages, question.tools))
    assert call.call_id == "call_a1"
    assert second.message.tool_calls[0].call_id not in ("", "call_a1")


@pytest.mark.parametrize(
    "address", ["http://models.example.com/v1", "ftp://127.0.0.1/v1", "https://me:pw@host/v1", "host"]
)
def test_an_address_that_would_show_keys_or_is_none_is_refused(address):
    with pytest.raises(ConfigurationError) as caught:
        compatible_endpoint(address, "llama", api_key("the-secret-key"))
    assert caught.value.next_step
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "  ", "schlüssel-key", "two\nlines"])
def test_what_can_be_no_key_is_refused_without_being_shown(key):
    with pytest.raises(ConfigurationError) as caught:
        api_key(key)
    assert not key.strip() or key not in str(caught.value)


def test_no_repr_shows_a_key():
    endpoint = compatible_endpoint("https://host/v1", "llama", api_key("the-secret-key"))
    model = OpenAIWireModel(endpoint)
    assert "secret" not in f"{endpoint!r}{endpoint.admission!r}{model!r}{model.connection!r}"


async def test_nothing_listens_there():
    with failing(FailureKind.UNREACHABLE) as caught:
        await _ask(compatible_endpoint("http://127.0.0.1:9/v1", "llama", no_key))
    assert "127.0.0.1:9" in str(caught.value)
    assert caught.value.retry_possible


async def test_leaving_a_stream_early_gives_the_connection_up(connect, question):
    server = ScriptedModel([stream_reply(chunk({"content": "One. "}), Hang())])
    with server.running() as url:
        async with connect(url).stream(question) as stream:
            assert await anext(stream) == TextDelta("One. ")
            assert server.open_connections == 1
        with anyio.fail_after(WAIT_S):
            while server.open_connections:
                await anyio.sleep(0.005)


async def test_cancelling_amid_an_answer_gives_the_connection_up_and_reaches_the_caller(connect, question):
    server = ScriptedModel([stream_reply(chunk({"content": "One. "}), Hang())])
    heard = anyio.Event()

    async def ask(url: str) -> None:
        async with connect(url).stream(question) as stream:
            async for _ in stream:
                heard.set()

    with server.running() as url, anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, url)
            await heard.wait()
            group.cancel_scope.cancel()
        assert group.cancel_scope.cancelled_caught
        while server.open_connections:
            await anyio.sleep(0.005)


async def test_the_caller_may_take_its_time_between_events(connect, question):
    """A time limit is for the model's silence and never cancels what the caller does meanwhile."""
    server = ScriptedModel([stream_reply(chunk({"content": "One."}), Pause(0.3), *ending())])
    limits = TimeLimits(next_token_s=1.5, whole_answer_s=60, tail_s=1.5)
    with server.running() as url:
        async with connect(url, limits=limits).stream(question) as stream:
            assert await anext(stream) == TextDelta("One.")
            await anyio.sleep(1.8)  # the caller's own work, longer than the model may fall silent
            assert isinstance([event async for event in stream][-1], Finished)


async def test_a_deadline_of_the_caller_comes_first_and_the_model_is_named_before_it(connect, question):
    server = ScriptedModel([stream_reply(Pause(60), chunk({"content": "Late."}), *ending())])
    with server.running() as url:
        model = connect(url)
        await model.connection.opened()
        with anyio.fail_after(2), pytest.raises(ModelTimedOutError, match="had not begun to answer") as caught:
            await complete(model, question, deadline=anyio.current_time() + 2)
    assert caught.value.waited_for == "whole_answer"


@pytest.mark.parametrize(
    ("reply", "said", "settings"),
    [
        (stream_reply(Hang()), "had not begun to answer", {"SENTINEL_MODEL_TIMEOUT_S", "SENTINEL_QUESTION_TIMEOUT_S"}),
        (
            stream_reply(chunk({"content": "Three "}), Hang()),
            "stopped in the middle of its answer",
            {"SENTINEL_MODEL_IDLE_TIMEOUT_S", "SENTINEL_QUESTION_TIMEOUT_S"},
        ),
        (
            stream_reply(Repeated(event_bytes({"choices": [{"index": 0, "delta": {"content": "."}}]}), 100_000, 0.05)),
            "was still writing its answer",
            {"SENTINEL_MODEL_TIMEOUT_S", "SENTINEL_QUESTION_TIMEOUT_S"},
        ),
    ],
    ids=["no-beginning", "silence", "no-end"],
)
async def test_a_time_out_says_what_was_waited_for_and_names_both_settings(
    reply, said, settings, connect, question, short_limits
):
    with (
        ScriptedModel([reply]).running() as url,
        pytest.raises(ModelTimedOutError, match=said) as caught,
    ):
        await complete(connect(url, limits=short_limits), question)
    assert settings <= set(re.findall(r"SENTINEL_\w+", caught.value.next_step))


_EARLIER = [SystemMessage("Be brief."), UserMessage("How many?"), AssistantMessage("Three."), UserMessage("Why?")]
_CALL = AssistantMessage("", (ModelToolCall("c1", "list_tables", "{}", {}),))
_TOO_LONG = {"code": 400, "message": "context size", "type": "exceed_context_size_error", "n_prompt_tokens": 7_483}


@pytest.mark.parametrize(
    ("messages", "overflowing", "said", "helps"),
    [
        (_EARLIER[:2], Overflowing.FIXED_PART, "rules, tools and the question alone", "--ctx-size 16384"),
        ([*_EARLIER[:2], _CALL, ToolResultMessage("c1", "...")], Overflowing.ROWS, "results", "narrower"),
        (_EARLIER, Overflowing.CONVERSATION, "conversation is too long", "/clear"),
    ],
    ids=["first-question", "rows", "conversation"],
)
async def test_a_context_that_is_too_small_is_told_with_what_helps_against_it(messages, overflowing, said, helps):
    server = ScriptedModel([json_reply({"error": {**_TOO_LONG, "n_ctx": 4_096}}, 400)])
    with server.running() as url, pytest.raises(ContextOverflowError, match=said) as caught:
        await _ask(compatible_endpoint(f"{url}/v1", "m", no_key), ModelRequest(messages))
    failure = caught.value
    assert (failure.overflowing, failure.limit_tokens, failure.used_tokens) == (overflowing, 4_096, 7_483)
    assert "4096" in str(failure)
    assert "7483" in str(failure)
    assert helps in failure.next_step
    assert ("/clear" in failure.next_step) is (overflowing is Overflowing.CONVERSATION)


async def test_a_server_on_this_machine_has_no_status_page():
    busy = json_reply({"error": {"message": "Busy"}}, 503)
    with ScriptedModel([busy]).running() as url, failing(FailureKind.PROVIDER) as caught:
        await _ask(compatible_endpoint(f"{url}/v1", "m", no_key))
    assert "on this machine" in str(caught.value)
    assert "status page" not in caught.value.next_step
    elsewhere = failure_of_response(503, {}, b'{"error": {"message": "Busy"}}', asked=Asked("m"))
    assert "status page" in elsewhere.next_step


async def test_a_deadline_that_has_passed_sends_nothing(connect, question):
    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        with pytest.raises(ModelTimedOutError):
            await complete(connect(url), question, deadline=anyio.current_time() - 1)
        assert server.requests == []


async def test_a_stream_that_has_ended_stays_ended(connect, question):
    server = ScriptedModel([text_reply("Hi.")])
    with server.running() as url:
        async with connect(url).stream(question) as stream:
            events = [event async for event in stream]
            assert isinstance(events[-1], Finished)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_a_stream_that_failed_gives_nothing_more(connect, question):
    server = ScriptedModel([stream_reply(chunk({"content": "One."}))])
    with server.running() as url:
        async with connect(url).stream(question) as stream:
            with pytest.raises(ModelError):
                while True:
                    await anext(stream)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_one_connection_serves_one_answer_after_another(connect, question):
    server = ScriptedModel([text_reply("Hi."), json_reply(completion({"content": "Hi."})), text_reply("Hi.")])
    with server.running() as url:
        model = connect(url)
        for _ in range(6):
            await complete(model, question)
    assert server.connections == 1


async def test_a_server_whose_certificate_nobody_trusts_is_told_from_one_without_https(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_own_certificate(tmp_path))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with failing(FailureKind.UNREACHABLE, match="no certificate that this machine trusts"):
            await _ask(compatible_endpoint(f"https://127.0.0.1:{port}/v1", "llama", no_key))
    with ScriptedModel().running() as url, failing(FailureKind.UNREACHABLE, match="does not speak https"):
        endpoint = compatible_endpoint(f"{url.replace('http:', 'https:')}/v1", "llama", no_key)
        await _ask(endpoint, limits=TimeLimits(connect_s=1))


def _own_certificate(folder: Path) -> Path:
    """A key and a certificate that it signed itself, for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(private + certificate.public_bytes(pem))
    return file


@pytest.mark.requirement("OPS-1")
def test_nothing_heavy_is_imported_before_the_first_request():
    script = (
        "import sys; from sentinel_rag.agent.models import endpoints, openai_wire;"
        "openai_wire.OpenAIWireModel(endpoints.compatible_endpoint('https://h/v1', 'm', endpoints.no_key));"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"openai", "httpx", "httpx2", "pydantic", "aiohttp", "azure", "mcp", "duckdb", "starlette"}


async def test_without_the_library_the_extra_is_named():
    script = (
        "import sys, anyio; sys.modules['openai'] = None\n"
        "from sentinel_rag.agent.models import endpoints, failures, openai_wire, port\n"
        "model = openai_wire.OpenAIWireModel(endpoints.compatible_endpoint('https://h/v1', 'm', endpoints.no_key))\n"
        "async def ask():\n"
        "    try: await port.complete(model, port.ModelRequest([port.UserMessage('Hi')]))\n"
        "    except failures.ModelError as error: print(error.code, error.next_step)\n"
        "anyio.run(ask)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("model_not_installed Install it: pip install 'sentinel-rag[openai]'")
