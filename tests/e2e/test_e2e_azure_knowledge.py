"""Knowledge wholly in Azure, played on loopback: the installed command, Azure OpenAI for the vectors, Azure AI Search
for the store. Nothing of it stays in the home folder."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.azure_search import AzureSearchDouble, running_azure_search

from sentinel_rag_testing.scripted_model import ScriptedModel
from sentinel_rag_testing.scripted_model.replies import Reply, json_reply
from sentinel_rag_testing.scripted_model.server import ModelHttpRequest
from waiting import WAIT_S

MEANING: Mapping[str, str] = {"dispatch": "mail", "letter": "mail", "machine": "host", "computer": "host"}
"""What the scripted model takes for the same: words that the texts do not share."""


def embedded(request: ModelHttpRequest) -> Reply:
    """Vectors by which texts are near that share words, or their meaning."""
    size = request.body["dimensions"]

    def vector(text: str) -> list[float]:
        found = [0.0] * size
        for word in re.findall(r"[a-z]+", text.casefold()):
            place = int.from_bytes(hashlib.sha256(MEANING.get(word, word).encode()).digest()[:4]) % size
            found[place] += 1.0
        return found

    vectors = [vector(text) for text in request.body["input"]]
    return json_reply({"data": [{"index": n, "embedding": each} for n, each in enumerate(vectors)]})


def executed(url: str, key: str, tool: str, **arguments: Any) -> tuple[int, Any]:
    """One call through the gateway, as the agent makes it."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        body = json.dumps({"session_id": "e2e-knowledge", "tool_name": tool, "args": arguments})
        connection.request("POST", "/v1/proxy-execute", body, {"X-API-Key": key, "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.requirement("KNOW-4")
@pytest.mark.requirement("KNOW-5")
def test_knowledge_in_azure_is_ingested_found_by_meaning_and_searched_by_the_agent(
    sentinel: Any, tmp_path: Path
) -> None:
    books = tmp_path / "books"
    books.mkdir()
    (books / "mail.md").write_text("# Mail\n\n## Contain\n\nPurge the mail.\n")
    (books / "host.md").write_text("---\nreaders: [tier3]\n---\n# Host\n\nTake the host off the network.\n")
    model = ScriptedModel(key="canary-of-the-model", models=frozenset({"embed-large"}), respond=embedded)
    double = AzureSearchDouble(key="canary-of-the-search")
    double.lag = 1
    with model.running() as model_url, running_azure_search(double) as (url, _):
        azure = type(sentinel)(
            sentinel.home,
            {
                "SENTINEL_EMBEDDINGS": "azure",
                "SENTINEL_EMBEDDINGS_NAME": "embed-large",
                "AZURE_OPENAI_ENDPOINT": model_url,
                "AZURE_OPENAI_API_KEY": "canary-of-the-model",
                "SENTINEL_KNOWLEDGE_STORE": "azure-search",
                "SENTINEL_AZURE_SEARCH_ENDPOINT": url,
                "SENTINEL_AZURE_SEARCH_KEY": "canary-of-the-search",
            },
        )
        report = azure.json("knowledge", "ingest", str(books))
        status = azure.json("knowledge", "status")
        assert status["vectors"] == "embed-large (1024 dimensions)"
        assert status["store"] == f"index sentinel-knowledge at {url}"
        # No word of the question is in the text.
        (hit, *_) = azure.json("knowledge", "search", "dispatch of a letter")["hits"]
        assert (hit["citation"], hit["by_words"], hit["by_meaning"]) == ("mail.md > Mail > Contain", None, 1)
        with azure.up() as parts:
            status_code, answer = executed(
                parts["interceptor"]["url"],
                azure.environment["SENTINEL_API_KEY"],
                "search_knowledge_base",
                query="purge a letter, machine off the network",
            )
        assert status_code == 200, answer
        hits = answer["result"]["hits"]
        assert [each["citation"] for each in hits] == ["mail.md > Mail > Contain"]
        assert hits[0]["why"]["by_meaning"] == 1
    assert "canary" not in f"{report} {status} {answer}"
    assert {request.path for request in model.requests} == {"/openai/v1/embeddings"}
    assert not any((sentinel.home / "knowledge").glob("*.db*"))
