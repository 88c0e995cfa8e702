"""web_search: the shipped pages, and each service in its own wire format, against servers on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response
from tests.support.fake_search import FakeSearch, FoundPage

from sentinel_rag.tools.web import WebOptions, search_provider
from sentinel_rag.tools.web.fetching import PageFetcher
from sentinel_rag.tools.web.search_providers import FOLDER, bundled_pages
from sentinel_rag.tools.web.web_tools import WebTools

pytestmark = pytest.mark.anyio

SERVICES = ("searxng", "brave", "tavily")
PAGES = [FoundPage(f"Title {n}", f"https://site{n}.example/page", f"Snippet {n}") for n in range(1, 8)]


async def search(options: WebOptions, query: str = "what is a panda", **arguments: Any) -> dict[str, Any]:
    tools = WebTools(search_provider(options), PageFetcher())
    try:
        return dict((await tools.call("web_search", {"query": query, **arguments})).value)
    finally:
        await tools.close()


@pytest.mark.parametrize("service", SERVICES)
async def test_each_service_is_asked_and_read_in_its_own_format(service: str) -> None:
    fake = FakeSearch(PAGES)
    with fake.running() as url:
        options = WebOptions(provider=service, url=url, key=fake.key)
        found = await search(options, "cafés & «pandas»", context="why", limit=3)
    assert found == {
        "query": "cafés & «pandas»",
        "results": [{"title": page.title, "url": page.url, "snippet": page.snippet} for page in PAGES[:3]],
        "total": 3,
    }
    [request] = fake.requests
    assert request["query"] == "cafés & «pandas»"
    assert request["count"] in (None, 3)
    assert "why" not in json.dumps(request)
    assert (fake.key in json.dumps(request["headers"])) == (service != "searxng")


@pytest.mark.parametrize("service", SERVICES)
async def test_nothing_found_is_an_empty_list(service: str) -> None:
    fake = FakeSearch()
    with fake.running() as url:
        found = await search(WebOptions(provider=service, url=url, key=fake.key))
    assert found == {"query": "what is a panda", "results": [], "total": 0}


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (lambda: JSONResponse({"secret": "canary"}, 401), "access_denied"),
        (lambda: JSONResponse({"secret": "canary"}, 403), "access_denied"),
        (lambda: JSONResponse({"secret": "canary"}, 422), "access_denied"),
        (lambda: JSONResponse({"secret": "canary"}, 429, {"Retry-After": "7"}), "throttled"),
        (lambda: JSONResponse({"secret": "canary"}, 432), "throttled"),
        (lambda: Response("canary", 500), "unavailable"),
        (lambda: RedirectResponse("http://127.0.0.1:1/canary"), "unavailable"),
        (lambda: Response("<html>canary</html>"), "protocol"),
        (lambda: Response("[1, 2]"), "protocol"),
        (lambda: Response("[" * 100_000), "protocol"),
        (lambda: JSONResponse({"results": "canary", "web": "canary"}), "protocol"),
        (lambda: JSONResponse({"results": {"a": "canary"}, "web": {"results": 3}}), "protocol"),
        (lambda: Response(b" " * 3_000_000 + b"{}"), "protocol"),
        (lambda: Response(b"canary", headers={"Content-Encoding": "gzip"}), "protocol"),
    ],
)
@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_that_fails_is_told_by_name_without_its_words(
    service: str, answer: Callable[[], Response], code: str
) -> None:
    fake = FakeSearch(PAGES, answer=answer())
    with fake.running() as url:
        error = await search(WebOptions(provider=service, url=url, key=fake.key))
    assert (error["kind"], error["code"]) == ("error", code)
    assert error["next_step"]
    text = json.dumps(error)
    assert "canary" not in text
    assert fake.key not in text
    assert len(fake.requests) == 1
    if code == "throttled" and answer().headers.get("Retry-After"):
        assert error["retry_after_s"] == 7.0


async def test_a_wrong_key_is_access_denied() -> None:
    fake = FakeSearch(PAGES)
    with fake.running() as url:
        for service in ("brave", "tavily"):
            error = await search(WebOptions(provider=service, url=url, key="wrong-key"))
            assert error["code"] == "access_denied"
            assert "SENTINEL_SEARCH_API_KEY" in error["next_step"]
            assert "wrong-key" not in json.dumps(error)


async def test_a_service_that_is_away_is_unavailable() -> None:
    with FakeSearch().running() as url:
        pass
    error = await search(WebOptions(provider="searxng", url=url))
    assert (error["code"], error["retry_possible"]) == ("unavailable", True)


async def test_entries_without_a_usable_address_are_left_out() -> None:
    entries: list[Any] = [
        {"title": "t", "url": "javascript:alert(1)", "content": "x"},
        {"title": "t", "url": "https://x.example/" + "a" * 2_000, "content": "x"},
        {"title": "t", "content": "x"},
        "text",
        None,
        {"title": None, "url": "https://ok.example/", "content": 7},
        {"title": "two\nlines " + "x" * 400, "url": "https://ok.example/2", "content": "y" * 2_000},
    ]
    with FakeSearch(answer=JSONResponse({"results": entries})).running() as url:
        found = await search(WebOptions(provider="searxng", url=url))
    assert [(hit["url"], hit["snippet"][:3]) for hit in found["results"]] == [
        ("https://ok.example/", ""),
        ("https://ok.example/2", "yyy"),
    ]
    assert found["results"][0]["title"] == "https://ok.example/"
    assert len(found["results"][1]["title"]) == 300
    assert "\n" not in found["results"][1]["title"]
    assert len(found["results"][1]["snippet"]) == 1_000


async def test_braves_marks_and_escapes_become_plain_text() -> None:
    page = FoundPage(
        "<strong>Panda</strong> &amp; bear", "https://x.example/", "a <strong>panda</strong> isn&#x27;t &lt;b&gt;"
    )
    fake = FakeSearch([page])
    with fake.running() as url:
        found = await search(WebOptions(provider="brave", url=url, key=fake.key))
    assert found["results"][0]["title"] == "Panda & bear"
    assert found["results"][0]["snippet"] == "a panda isn't <b>"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("what is a panda", "Giant panda"),
        ("pandas", "Giant panda"),
        ("What is phishing?", "Phishing"),
        ("brute force attack", "Brute-force attack"),
        ("explain Kerberoasting", "Kerberoasting"),
        ("lateral movement", "Lateral movement"),
        ("pass the hash", "Pass the hash"),
        ("T1486", "Ransomware"),
        ("KQL", "Kusto Query Language (KQL)"),
    ],
)
async def test_without_a_provider_the_shipped_pages_answer_and_say_so(query: str, title: str) -> None:
    found = await search(WebOptions(), query)
    assert found["results"][0]["title"] == title
    assert {hit["source"] for hit in found["results"]} == {"bundled sample"}


@pytest.mark.parametrize("query", ["quantum computing", "what is", "the", "🐼", "panda quantum computing", "'; DROP--"])
async def test_a_wrong_page_is_no_result(query: str) -> None:
    assert (await search(WebOptions(), query))["results"] == []


def test_every_shipped_page_has_a_title_and_a_snippet_that_fits() -> None:
    assert len(bundled_pages()) == len(list(FOLDER.glob("*.md"))) >= 12
    for url, page in bundled_pages().items():
        assert url == page.url
        assert page.title
        assert 40 < len(page.snippet) < 400
        assert page.snippet.endswith(".")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "x" * 401}, "query"),
        ({"query": ["x"]}, "query"),
        ({"query": "x", "limit": 21}, "limit"),
        ({"query": "x", "limit": 1.5}, "limit"),
        ({"query": "x", "context": "y" * 2_001}, "context"),
        ({"query": "x", "engine": "y"}, "engine"),
    ],
)
async def test_a_bad_argument_names_its_field(arguments: dict[str, Any], field: str) -> None:
    answer = await WebTools(search_provider(WebOptions()), PageFetcher()).call("web_search", arguments)
    assert answer.is_error
    assert (answer.value["code"], answer.value["field"]) == ("invalid_argument", field)
