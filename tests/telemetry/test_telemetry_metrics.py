"""Metrics read as Prometheus reads them, and bounded whatever is counted."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sentinel_rag.telemetry.metrics import MAX_SERIES, OTHER, Counter, Gauge, Histogram, Registry, request_began
from sentinel_rag.telemetry.process import CountedRequests
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("OBS-2")
TOKEN = "a-token-of-the-tests"


def read(registry: Registry) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(registry.text())}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), max_size=8))
def test_any_label_is_read_as_it_was_counted(labels: list[tuple[str, str]]) -> None:
    registry, counter = Registry(), Counter("things_total", 'Things: "all" of \\ them\nhere.', ("a", "b"))
    registry.add(counter)
    for pair in labels:
        counter.add(*pair)
    counted = {(s.labels["a"], s.labels["b"]): s.value for s in read(registry)["things"].samples}
    assert counted == {pair: labels.count(pair) for pair in labels}


@settings(max_examples=30)
@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_a_histogram_holds_what_was_observed(seconds: list[float]) -> None:
    registry, histogram = Registry(), Histogram("waits_seconds", "Waits.", bounds=(0.1, 1.0, 10.0))
    registry.add(histogram)
    for each in seconds:
        histogram.observe(each)
    samples = read(registry)["waits_seconds"].samples
    buckets = {s.labels["le"]: s.value for s in samples if s.name.endswith("_bucket")}
    assert buckets == {
        "0.1": sum(each <= 0.1 for each in seconds),
        "1.0": sum(each <= 1 for each in seconds),
        "10.0": sum(each <= 10 for each in seconds),
        "+Inf": len(seconds),
    }
    total = next(s.value for s in samples if s.name.endswith("_sum"))
    assert total == pytest.approx(sum(seconds))


def test_more_series_than_there_may_be_are_counted_together() -> None:
    registry, counter, histogram = Registry(), Counter("things_total", "T.", ("a",)), Histogram("w", "W.", ("a",))
    registry.add(counter, histogram)
    for number in range(MAX_SERIES + 50):
        counter.add(f"label-{number}")
        histogram.observe(1, f"label-{number}")
    samples = read(registry)["things"].samples
    assert len(samples) == MAX_SERIES + 1
    assert {s.value for s in samples if s.labels["a"] == OTHER} == {50}
    counts = [s for s in read(registry)["w"].samples if s.name == "w_count"]
    assert len(counts) == MAX_SERIES + 1


def test_a_name_is_there_once_and_a_gauge_asks_when_it_is_read() -> None:
    registry, now = Registry(), [1.0]
    registry.add(Gauge("now", "Now.", lambda: [(("x",), now[0])], ("what",)))
    now[0] = 2.5
    [sample] = read(registry)["now"].samples
    assert (sample.labels, sample.value) == ({"what": "x"}, 2.5)
    with pytest.raises(ValueError, match="Duplicated"):
        registry.add(Counter("now", "Again."))


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[str, Registry, list[int]]]:
    """A small application behind the counting, its registry, and how often somebody looked."""
    registry, looks = Registry(), [0]

    async def item(_: Request) -> Response:
        assert request_began() is not None
        return PlainTextResponse("here")

    async def broken(_: Request) -> Response:
        raise RuntimeError("a fault of the application")

    async def look() -> None:
        looks[0] += 1

    registry.before_reading.append(look)
    inner = Starlette(routes=[Route("/items/{name}", item, methods=["GET", "POST"]), Route("/broken", broken)])
    with serve(CountedRequests(inner, registry, TOKEN)) as url:
        yield url, registry, looks


def ask(url: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_requests_are_counted_by_route_and_never_by_path(counted: tuple[str, Registry, list[int]]) -> None:
    url, _, looks = counted
    before = looks[0]
    for name in ("one", "two", "canary-of-a-path"):
        assert ask(f"{url}/items/{name}")[0] == 200
    assert ask(f"{url}/nothing/canary-of-a-path")[0] == 404
    assert ask(f"{url}/items/x", "PROPFIND")[0] == 405
    assert ask(f"{url}/broken")[0] == 500
    status, text = ask(f"{url}/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert looks == [before + 1]
    assert "canary" not in text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    answered = {
        (s.labels["method"], s.labels["route"], s.labels["status"]): s.value
        for s in families["sentinel_http_requests"].samples
    }
    assert answered == {
        ("GET", "/items/{name}", "200"): 3,
        ("GET", "none", "404"): 1,
        ("other", "/items/{name}", "405"): 1,
        ("GET", "/broken", "500"): 1,
    }
    assert families["sentinel_http_requests_in_flight"].samples[0].value == 0


@pytest.mark.parametrize("given", ["", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN} x", TOKEN])
def test_without_the_token_nothing_is_told(counted: tuple[str, Registry, list[int]], given: str) -> None:
    url, _, _ = counted
    status, text = ask(f"{url}/metrics", Authorization=given)
    assert status == 401
    assert "sentinel_http" not in text


def test_metrics_can_be_read_alone(counted: tuple[str, Registry, list[int]]) -> None:
    url, _, _ = counted
    assert ask(f"{url}/metrics", "POST", Authorization=f"Bearer {TOKEN}")[0] == 405
    assert ask(f"{url}/metrics", "HEAD", Authorization=f"Bearer {TOKEN}") == (200, "")
    with pytest.raises(ValueError, match="16 characters"):
        CountedRequests(Starlette(), Registry(), "short")
