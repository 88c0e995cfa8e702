"""The double of Azure AI Search refuses what the service is documented to refuse, and answers in its shapes.

What is checked here is what the store could lean on by mistake: a laxer double would prove nothing.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.azure_search import AzureSearchDouble, running_azure_search
from tests.support.azure_search.porter import stem
from tests.support.azure_search.service import Fault
from tests.support.azure_search.words import bm25, phrases, tokens

VERSION = "?api-version=2024-07-01"
DEFINITION: dict[str, Any] = {
    "name": "kb",
    "fields": [
        {"name": "id", "type": "Edm.String", "key": True, "sortable": True},
        {"name": "title", "type": "Edm.String", "filterable": False},
        {"name": "tags", "type": "Collection(Edm.String)", "searchable": False, "filterable": True},
        {"name": "year", "type": "Edm.Int64", "filterable": True},
        {"name": "hidden", "type": "Edm.String", "searchable": False, "retrievable": False},
        {
            "name": "vector",
            "type": "Collection(Edm.Single)",
            "searchable": True,
            "dimensions": 2,
            "vectorSearchProfile": "p",
        },
    ],
    "vectorSearch": {
        "algorithms": [{"name": "a", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "cosine"}}],
        "profiles": [{"name": "p", "algorithm": "a"}],
    },
}
DOCUMENTS = [
    {"id": "1", "title": "encrypted files", "tags": ["red"], "year": 2024, "vector": [1.0, 0.0]},
    {"id": "2", "title": "an encrypted file, and encrypted again", "tags": ["blue", "red"], "year": 2025},
    {"id": "3", "title": "stone", "tags": [], "vector": [0.0, 1.0]},
]
Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, AzureSearchDouble]]:
    with running_azure_search() as running:
        yield running


@pytest.fixture
def ask(running: tuple[str, AzureSearchDouble]) -> Iterator[Ask]:
    """One request to a double that holds DEFINITION and DOCUMENTS: its status, and its body."""
    url, double = running
    double.reset()
    connection = http.client.HTTPConnection(url.removeprefix("http://"))

    def asked(
        method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, version: str = VERSION
    ) -> tuple[int, Any]:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"api-key": "double-key", "Content-Type": "application/json", **(headers or {})}
        connection.request(method, path + version, content, {name: value for name, value in sent.items() if value})
        response = connection.getresponse()
        received = response.read()
        return response.status, json.loads(received) if received else None

    asked("DELETE", "/indexes('kb')")
    assert asked("PUT", "/indexes('kb')", DEFINITION)[0] == 201
    assert upload(asked, *DOCUMENTS)[0] == 200
    yield asked
    connection.close()


def upload(ask: Ask, *documents: dict[str, Any], action: str = "upload") -> tuple[int, Any]:
    return ask(
        "POST", "/indexes('kb')/docs/search.index", {"value": [{"@search.action": action, **d} for d in documents]}
    )


def search(ask: Ask, **query: Any) -> tuple[int, Any]:
    return ask("POST", "/indexes('kb')/docs/search.post.search", query)


def ids(answer: tuple[int, Any]) -> list[str]:
    assert answer[0] == 200, answer
    return [row["id"] for row in answer[1]["value"]]


@pytest.mark.parametrize(
    ("headers", "version", "status", "code"),
    [
        ({"api-key": ""}, VERSION, 401, "Unauthorized"),
        ({"api-key": "another"}, VERSION, 403, "Forbidden"),
        ({"api-key": "", "Authorization": "Bearer nobody"}, VERSION, 403, "Forbidden"),
        ({}, "", 400, "InvalidApiVersionParameter"),
        ({}, "?api-version=2020-06-30", 400, "InvalidApiVersionParameter"),
        ({"Content-Type": "text/plain"}, VERSION, 415, ""),
        ({"Accept": "text/html"}, VERSION, 406, ""),
    ],
)
def test_who_asks_and_how_is_checked_first(
    ask: Ask, headers: dict[str, str], version: str, status: int, code: str
) -> None:
    told = ask("POST", "/indexes('kb')/docs/search.post.search", {"search": "*"}, headers, version)
    assert (told[0], told[1]["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ("year ge 2025", ["2"]),
        ("year eq null", ["3"]),
        ("year ne null and not (id eq '1')", ["2"]),
        ("tags/any(t: t eq 'blue' or t eq 'green')", ["2"]),
        ("tags/any(t: search.in(t, 'blue|red', '|'))", ["1", "2"]),
        ("search.in(id, '1,3', ',') or id eq 'it''s'", ["1", "3"]),
        ("id gt '1' and id le '3'", ["2", "3"]),
        ("false", []),
    ],
)
def test_a_filter_means_what_it_says(ask: Ask, filter: str, found: list[str]) -> None:
    assert sorted(ids(search(ask, search="*", filter=filter, select="id"))) == found


@pytest.mark.parametrize(
    "filter",
    [
        "title eq 'stone'",  # not filterable
        "nothing eq 'x'",
        "year eq '2024'",
        "id eq 1",
        "tags eq 'red'",
        "tags/any(t: t ne 'red')",
        "tags/any(t: t eq 'red' and t eq 'blue')",
        "tags/any(t: not (t eq 'red'))",
        "tags/any(t: id eq 'red')",
        "year gt null",
        "id eq 'it's'",
        'id eq "1"',
        "id == '1'",
        "(id eq '1'",
        "id eq '1' and",
        "search.in(year, '1', ',')",
        "search.in(id, '1', '')",
        "id eq '1'; drop",
        " or ".join(f"id eq '{n}'" for n in range(600)),
    ],
)
def test_a_filter_that_the_service_refuses_is_refused(ask: Ask, filter: str) -> None:
    status, told = search(ask, search="*", filter=filter)
    assert status == 400
    assert told["error"]["code"] == "InvalidRequestParameter"
    assert "$filter" in told["error"]["message"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"search": "*", "top": -1}, 400),
        ({"search": "*", "skip": 100_001}, 400),
        ({"search": "*", "orderby": "tags asc"}, 400),
        ({"search": "*", "select": "hidden"}, 400),
        ({"search": "*", "select": "vector"}, 400),
        ({"search": "*", "wanted": 1}, 400),
        ({"search": "x", "searchFields": "year"}, 400),
        ({"search": "x", "searchFields": "vector"}, 400),
        ({"vectorQueries": [{"kind": "vector", "vector": [1.0], "fields": "vector", "k": 1}]}, 400),
        ({"vectorQueries": [{"kind": "vector", "vector": [1.0, 0.0], "fields": "title", "k": 1}]}, 400),
        ({"vectorQueries": [{"kind": "vector", "vector": [1.0, 0.0], "fields": "vector", "k": 0}]}, 400),
        # What the service knows and the double does not is never answered.
        ({"search": "a AND b*"}, 501),
        ({"search": "x", "queryType": "full"}, 501),
        ({"search": "x", "searchMode": "all"}, 501),
        ({"search": "*", "filter": "tags/all(t: t eq 'x')"}, 501),
        ({"vectorQueries": [{"kind": "text", "text": "x", "fields": "vector", "k": 1}]}, 501),
        (
            {"search": "x", "vectorQueries": [{"kind": "vector", "vector": [1.0, 0.0], "fields": "vector", "k": 1}]},
            501,
        ),
    ],
)
def test_a_query_that_cannot_be_is_refused(ask: Ask, query: dict[str, Any], status: int) -> None:
    assert search(ask, **query)[0] == status


def test_rankings_filter_first_and_score_as_documented(ask: Ask) -> None:
    status, told = search(
        ask, search='"encrypting"', searchFields="title", select="id", count=True, filter="year lt 2025"
    )
    assert (status, told["@odata.count"]) == (200, 0)  # the standard analyzer does not stem
    status, told = search(ask, search="encrypted", searchFields="title", select="id,title")
    assert [row["id"] for row in told["value"]] == ["1", "2"]  # the shorter text
    vector = {"kind": "vector", "vector": [1.0, 1.0], "fields": "vector", "k": 1}
    status, told = search(ask, vectorQueries=[vector], filter="id ne '1'", select="id", vectorFilterMode="preFilter")
    assert [row["id"] for row in told["value"]] == ["3"]
    assert abs(told["value"][0]["@search.score"] - 1 / (2 - 0.5**0.5)) < 1e-6


def test_pages_end_early_and_say_so(ask: Ask, running: tuple[str, AzureSearchDouble]) -> None:
    running[1].most_rows = 2
    _, told = search(ask, search="*", orderby="id asc", select="id")
    assert [row["id"] for row in told["value"]] == ["1", "2"]
    assert told["@search.nextPageParameters"]["skip"] == 2
    _, told = search(ask, search="*", orderby="id asc", select="id", skip=2)
    assert "@search.nextPageParameters" not in told


def test_each_document_has_its_own_outcome(ask: Ask) -> None:
    status, told = upload(ask, {"id": "9", "title": "new"}, {"id": "1", "title": "changed"})
    assert (status, [each["statusCode"] for each in told["value"]]) == (200, [201, 200])
    status, told = upload(ask, {"id": "1", "year": 1999}, {"id": "absent", "year": 1}, action="merge")
    assert status == 207
    assert [(each["key"], each["status"], each["statusCode"]) for each in told["value"]] == [
        ("1", True, 200),
        ("absent", False, 404),
    ]
    assert upload(ask, {"id": "absent"}, {"id": "9"}, action="delete")[0] == 200
    assert ids(search(ask, search="*", filter="year eq 1999", select="id")) == ["1"]
    # An upload replaces the whole document, a merge only what it names.
    assert ids(search(ask, search="*", filter="tags/any(t: t eq 'red')", select="id")) == ["2"]
    status, told = upload(ask, {"id": "t", "tags": ["x" * 32_767]})
    assert (status, told["value"][0]["statusCode"]) == (207, 400)


@pytest.mark.parametrize(
    "document",
    [
        {"id": "a/b"},
        {"id": "_a"},
        {"id": "x" * 1_025},
        {"id": None},
        {"title": "no key"},
        {"id": "a", "unknown": 1},
        {"id": "a", "year": "2024"},
        {"id": "a", "year": 2**63},
        {"id": "a", "tags": "red"},
        {"id": "a", "tags": None},
        {"id": "a", "title": "\ud800"},
        {"id": "a", "title": "\0"},
        {"id": "a", "vector": [1.0, 0.0, 0.0]},
        {"id": "a", "vector": [1.0, "x"]},
    ],
)
def test_a_document_that_cannot_be_makes_its_batch_refused(ask: Ask, document: dict[str, Any]) -> None:
    assert upload(ask, {"id": "fine", "title": "fine"}, document)[0] == 400
    assert ids(search(ask, search="*", filter="id eq 'fine'", select="id")) == []


def test_a_batch_has_its_limits(ask: Ask, running: tuple[str, AzureSearchDouble]) -> None:
    assert upload(ask, *({"id": f"n{n}"} for n in range(1_001)))[0] == 400
    assert upload(ask)[0] == 400
    assert upload(ask, {"id": "a"}, action="replace")[0] == 400
    running[1].largest_body = 100
    assert upload(ask, {"id": "a", "title": "x" * 200})[0] == 413
    assert ask("POST", "/indexes('kb')/docs/search.index", b"[1")[0] == 400


def test_a_change_is_found_late_if_that_is_wanted(ask: Ask, running: tuple[str, AzureSearchDouble]) -> None:
    running[1].lag = 2
    upload(ask, {"id": "late", "title": "late"})
    found = [ids(search(ask, search="*", filter="id eq 'late'", select="id")) for _ in range(5)]
    assert (found[:2], found[-1]) == ([[], []], ["late"])


def changed(**parts: Any) -> dict[str, Any]:
    return {**DEFINITION, **parts}


def field(of: str, /, **parts: Any) -> dict[str, Any]:
    return next({**each, **parts} for each in DEFINITION["fields"] if each["name"] == of)


@pytest.mark.parametrize(
    ("definition", "status"),
    [
        (changed(fields=DEFINITION["fields"][1:]), 400),
        (changed(fields=[*DEFINITION["fields"], {"name": "more", "type": "Edm.String"}]), 200),
        (changed(fields=[field("id"), field("title", filterable=True), *DEFINITION["fields"][2:]]), 400),
        (changed(fields=[*DEFINITION["fields"], field("vector", name="second", dimensions=1)]), 400),
        (changed(fields=[*DEFINITION["fields"], field("vector", name="second", vectorSearchProfile="q")]), 400),
        (changed(fields=[*DEFINITION["fields"], field("year", name="more", searchable=True)]), 400),
        (changed(fields=[*DEFINITION["fields"], field("tags", name="more", sortable=True)]), 400),
        (changed(fields=[*DEFINITION["fields"], field("title", name="more", analyzer="of-nobody")]), 400),
        (changed(fields=[*DEFINITION["fields"], field("title")]), 400),
        (changed(name="other"), 400),
        (changed(semantic={}), 501),
        (changed(fields=[*DEFINITION["fields"], {"name": "more", "type": "Edm.GeographyPoint"}]), 501),
    ],
)
def test_a_definition_changes_only_by_new_fields(ask: Ask, definition: dict[str, Any], status: int) -> None:
    assert ask("PUT", "/indexes('kb')", definition, {"Prefer": "return=representation"})[0] == status


def test_etags_keep_two_from_defining_at_once(ask: Ask) -> None:
    etag = ask("GET", "/indexes('kb')")[1]["@odata.etag"]
    assert ask("PUT", "/indexes('kb')", DEFINITION, {"If-None-Match": "*"})[0] == 412
    assert ask("PUT", "/indexes('kb')", DEFINITION, {"If-Match": etag}) == (204, None)
    assert ask("PUT", "/indexes('kb')", DEFINITION, {"If-Match": etag})[0] == 412
    assert ask("GET", "/indexes('absent')")[0] == 404
    assert ask("POST", "/indexes('absent')/docs/search.post.search", {"search": "*"})[0] == 404


def test_a_fault_comes_as_often_as_it_is_wanted(ask: Ask, running: tuple[str, AzureSearchDouble]) -> None:
    running[1].faults = [Fault(429, 1, "search.post", {"Retry-After": "1"})]
    assert [ask("GET", "/indexes('kb')")[0], search(ask, search="*")[0], search(ask, search="*")[0]] == [200, 429, 200]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("203.0.113.7 and 7.113", ("203.0.113.7", "and", "7.113")),
        ("T1566.001", ("t1566.001",)),
        ("a.singh@contoso.example", ("a.singh", "contoso.example")),
        (r"C:\Users\x.exe", ("c", "users", "x.exe")),
        ("read/purged, 1,000 it's", ("read", "purged", "1,000", "it's")),
    ],
)
def test_tokens_are_those_of_the_standard_tokenizer(text: str, expected: tuple[str, ...]) -> None:
    assert tokens(text, ("lowercase",)) == expected


def test_stems_are_porter_s() -> None:
    words = {
        "caresses": "caress", "ponies": "poni", "cats": "cat", "agreed": "agre", "plastered": "plaster",
        "motoring": "motor", "conflated": "conflat", "hopping": "hop", "falling": "fall", "filing": "file",
        "happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit", "digitizer": "digit",
        "vietnamization": "vietnam", "hopefulness": "hope", "formality": "formal", "sensibility": "sensibl",
        "triplicate": "triplic", "electrical": "electr", "revival": "reviv", "adjustable": "adjust",
        "replacement": "replac", "adoption": "adopt", "effective": "effect", "probate": "probat", "rate": "rate",
        "controlling": "control", "encryption": "encrypt", "encrypted": "encrypt", "T1566": "T1566",
    }  # fmt: skip
    assert {word: stem(word) for word in words} == words


def test_bm25_weighs_rare_words_short_texts_and_phrases() -> None:
    texts = {"a": ("red", "stone"), "b": ("red", "red", "stone", "tree"), "c": ("blue", "tree", "red"), "d": ("x",) * 4}
    assert phrases('"red stone" blue', ("lowercase",)) == [("red", "stone"), ("blue",)]
    scores = bm25([("blue",), ("red",)], texts)
    assert max(scores, key=lambda key: scores[key]) == "c"
    # ln(1 + (4 - 1 + .5) / (1 + .5)) * 1 / (1 + 1.2 * (1 - .75 + .75 * 3 / 3.25))
    assert abs(bm25([("blue",)], texts)["c"] - 0.56504) < 1e-4
    assert bm25([("red", "stone")], texts).keys() == {"a", "b"}
    assert bm25([("red",)], {}) == {}
