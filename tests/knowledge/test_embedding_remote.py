"""Embeddings over the OpenAI wire, against a scripted server: batches, retries, and answers that are none."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.knowledge.embedding.remote import (
    Admission,
    EmbeddingEndpoint,
    Pace,
    RemoteEmbedder,
    azure_embeddings,
    refusal_of,
)
from sentinel_rag_testing.scripted_model import ScriptedModel
from sentinel_rag_testing.scripted_model.replies import Cut, Hang, Reply, body_reply, json_reply
from sentinel_rag_testing.scripted_model.server import ModelHttpRequest

KEY = "embedding-key"
DIMENSIONS = 8


class Key:
    async def headers(self) -> Mapping[str, str]:
        return {"api-key": KEY}


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector that tells which text it was made for."""
    return [float(len(text)), float(sum(map(ord, text)) % 997), *[1.0] * (dimensions - 2)]


def answer(request: ModelHttpRequest) -> Reply:
    """What Azure answers: base64 of little-endian float32, here in another order than asked."""
    data = [
        {"object": "embedding", "index": index, "embedding": encoded(vector_of(text, request.body["dimensions"]))}
        for index, text in enumerate(request.body["input"])
    ]
    return json_reply({"object": "list", "data": list(reversed(data)), "model": request.model, "usage": {}})


def encoded(vector: list[float]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


@contextmanager
def embedder(
    server: ScriptedModel, *, dimensions: int = DIMENSIONS, admission: Admission | None = None, **options: Any
) -> Iterator[RemoteEmbedder]:
    with server.running() as url:
        endpoint = azure_embeddings(url, "embed-large", admission or Key(), dimensions=dimensions)
        with RemoteEmbedder(endpoint, first_wait_s=0.0, **options) as opened:
            yield opened


def after(*replies: Reply) -> Callable[[ModelHttpRequest], Reply]:
    """These replies first, then good answers."""
    waiting = list(replies)
    return lambda request: waiting.pop(0) if waiting else answer(request)


@pytest.mark.requirement("KNOW-5")
def test_texts_are_asked_for_in_batches_and_come_back_in_their_order() -> None:
    texts = [f"text {'x' * number}" for number in range(150)]
    server = ScriptedModel(key=KEY, respond=answer)
    with embedder(server, dimensions=1024) as model:
        found = model.embed_documents(texts)
        query = model.embed_query("text xx")
        assert (model.space.model, model.space.dimensions) == ("embed-large", 1024)
        assert model.embed_documents([]).shape == (0, 1024)
    assert found.shape == (150, 1024)
    assert found.dtype == np.float32
    assert np.array_equal(found, np.asarray([vector_of(text, 1024) for text in texts], dtype=np.float32))
    assert np.array_equal(query, found[2])
    assert [len(request.body["input"]) for request in server.requests] == [64, 64, 22, 1]
    assert {request.path for request in server.requests} == {"/openai/v1/embeddings"}
    assert server.requests[0].body["dimensions"] == 1024
    assert server.connections == 1


def test_azure_with_an_api_version_and_a_compatible_server_are_asked_on_their_paths() -> None:
    server = ScriptedModel(key=KEY, respond=answer)
    with server.running() as url:
        dated = azure_embeddings(f"{url}/openai/x?y", "my embed", Key(), dimensions=8, api_version="2024-10-21")
        with RemoteEmbedder(dated) as model:
            model.embed_query("x")
    assert server.requests[0].path == "/openai/deployments/my%20embed/embeddings"
    assert server.requests[0].query == {"api-version": "2024-10-21"}

    def plain(request: ModelHttpRequest) -> Reply:
        """A server that sends numbers, and whose model has the dimensions that it has."""
        if "dimensions" in request.body:
            return json_reply({"message": "", "error": {"message": "Model does not support matryoshka"}}, 400)
        return json_reply({"data": [{"embedding": vector_of(text)} for text in request.body["input"]]})

    class NoKey:
        async def headers(self) -> Mapping[str, str]:
            return {}

    server = ScriptedModel(respond=plain)
    with server.running() as url:
        endpoint = EmbeddingEndpoint(f"{url}/v1", "nomic", 8, NoKey())
        with RemoteEmbedder(endpoint) as model:
            assert [model.embed_query("abc")[0], model.embed_query("ab")[0]] == [3, 2]
    assert ["dimensions" in request.body for request in server.requests] == [True, False, False]


def test_large_texts_are_parted_over_requests_and_blank_ones_are_not_refused() -> None:
    server = ScriptedModel(key=KEY, respond=answer)
    with embedder(server) as model:
        found = model.embed_documents(["y" * 30_000] * 25 + ["", " \n"])
    assert found.shape == (27, DIMENSIONS)
    assert [len(request.body["input"]) for request in server.requests] == [10, 10, 7]
    assert max(len(text) for request in server.requests for text in request.body["input"]) == 20_000


@pytest.mark.parametrize(
    "refusal",
    [
        json_reply({"error": {"code": "429", "message": "slow down"}}, 429, retry_after="0"),
        json_reply({"error": {"code": "429"}}, 429, retry_after_ms="1"),
        body_reply(b"<html>bad gateway</html>", 502),
        json_reply({}, 503),
        Reply((Cut(),), status=0),
    ],
    ids=["429", "429-ms", "502", "503", "cut"],
)
def test_what_passes_is_tried_again(refusal: Reply) -> None:
    server = ScriptedModel(key=KEY, respond=after(refusal, refusal))
    with embedder(server) as model:
        assert model.embed_query("abc")[0] == 3
    assert len(server.requests) == 3


def test_a_text_that_is_too_long_for_the_model_is_cut_and_asked_again() -> None:
    said = "This model's maximum context length is 8192 tokens, however you requested 9000 tokens."
    server = ScriptedModel(key=KEY, respond=after(json_reply({"error": {"message": said}}, 400)))
    with embedder(server) as model:
        assert model.embed_query("z" * 10_000)[0] == 6_000
    assert [len(request.body["input"][0]) for request in server.requests] == [10_000, 6_000]


REFUSED = [
    (
        json_reply({"error": {"message": "no"}}, 401),
        1,
        "lets nobody in with this key",
        "Cognitive Services OpenAI User",
    ),
    (json_reply({"error": {"code": "DeploymentNotFound"}}, 404), 1, "knows no such model or deployment", "deployment"),
    (
        json_reply({"error": {"code": "429"}}, 429, retry_after="3600"),
        1,
        "takes no more requests",
        "what is done stays",
    ),
    (json_reply({"error": {"code": "429"}}, 429), 5, "takes no more requests", "what is done stays"),
    (
        json_reply({"error": {"code": "insufficient_quota"}}, 429),
        1,
        "credit at the embedding service is used up",
        "quota",
    ),
    (json_reply({"error": {"message": "no such thing"}}, 400), 1, "(400): no such thing", "dimensions"),
    (body_reply(b"<html>moved</html>", 302, location="http://127.0.0.1:9/"), 1, "refused the request (302)", "Check"),
    (json_reply({}, 500), 5, "The embedding service failed (500)", "what is done stays"),
    (body_reply(b"<html>a login page</html>"), 1, "answer is not JSON", "Check its address"),
    (body_reply(b"[" * 100_000), 1, "answer is not JSON", "Check its address"),
    (json_reply({"error": {"message": "No credit"}}), 1, "answer says No credit", "Check its address"),
    (json_reply({"data": []}), 1, "holds 0 vectors for 1 texts", "embedding model"),
    (json_reply({"data": [{"index": 7, "embedding": [1] * 8}]}), 1, "holds 1 vectors for 1 texts", "embedding model"),
    (json_reply({"data": [{"index": 0, "embedding": "!!"}]}), 1, "a vector that is none", "embedding model"),
    (json_reply({"data": [{"index": 0, "embedding": [[1]]}]}), 1, "a vector that is none", "embedding model"),
    (body_reply(b'{"data": [{"index": 0, "embedding": [NaN, 1, 1, 1, 1, 1, 1, 1]}]}'), 1, "a vector that is none", ""),
    (json_reply({"data": [{"index": 0, "embedding": [1.0] * 9}]}), 1, "9 dimensions and not 8", "dimensions to 9"),
    (json_reply([1, 2]), 1, "holds no vectors", "embedding model"),
]


@pytest.mark.parametrize(("reply", "tries", "said", "step"), REFUSED, ids=[case[2][:30] for case in REFUSED])
def test_what_does_not_pass_is_one_sentence_and_a_step(reply: Reply, tries: int, said: str, step: str) -> None:
    server = ScriptedModel(key=KEY, replies=[reply])
    with embedder(server) as model, pytest.raises(SentinelError) as raised:
        model.embed_query("abc")
    assert said in str(raised.value)
    assert step in raised.value.next_step
    assert KEY not in f"{raised.value} {raised.value.next_step}"
    assert len(server.requests) == tries


def test_a_wrong_key_is_refused_and_not_told() -> None:
    class Wrong:
        async def headers(self) -> Mapping[str, str]:
            return {"api-key": "canary-of-a-key"}

    server = ScriptedModel(key=KEY, respond=answer)
    with embedder(server, admission=Wrong()) as model, pytest.raises(SentinelError) as raised:
        model.embed_query("abc")
    assert raised.value.code == "embedding_access"
    assert "canary" not in f"{raised.value.to_dict()}"


def test_silence_ends_by_the_time_limit() -> None:
    server = ScriptedModel(key=KEY, replies=[Reply((Hang(),))])
    with embedder(server, timeout_s=0.3, attempts=2) as model, pytest.raises(SentinelError, match="did not answer"):
        model.embed_query("abc")
    assert len(server.requests) <= 2  # on a busy machine a try may end before it was even heard


def test_nobody_there_is_told() -> None:
    endpoint = azure_embeddings("http://127.0.0.1:9", "embed", Key(), dimensions=8)
    with RemoteEmbedder(endpoint, attempts=1) as model, pytest.raises(SentinelError, match="cannot be reached"):
        model.embed_query("abc")


@pytest.mark.parametrize(
    ("url", "dimensions", "said"),
    [
        ("http://10.0.0.9/v1", 8, "plain http to another machine"),
        ("https://user@host/v1", 8, "without a user name"),
        ("ftp://host", 8, "not an http or https URL"),
        ("https://host/v1", 0, "0 is no number of dimensions"),
    ],
)
def test_an_endpoint_that_cannot_be_is_refused_when_it_is_made(url: str, dimensions: int, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        EmbeddingEndpoint(url, "m", dimensions, Key())


def test_the_wait_is_read_in_each_form() -> None:
    now = datetime(2026, 11, 28, 12, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=30), usegmt=True)
    for headers, expected in (
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": later}, 30.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({}, None),
    ):
        assert refusal_of(429, headers, b"", now=now).wait_s == expected


def test_a_pace_spreads_tokens_over_the_minute() -> None:
    pace = Pace(6_000)  # 100 a second, 600 at once
    assert [pace.wait(600, 1000.0), pace.wait(300, 1000.0), pace.wait(100, 1000.0)] == [0.0, 0.0, 3.0]
    assert pace.wait(100, 1002.0) == 2.0
    assert pace.wait(100, 5000.0) == 0.0
    unlimited = Pace(0)
    assert [unlimited.wait(10**9, 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
