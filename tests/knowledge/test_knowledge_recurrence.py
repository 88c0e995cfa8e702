"""Past incidents in search: age counts a little, what recurs comes once, and what is shared is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_embedder import WordEmbedder

from sentinel_rag.knowledge.documents import Collection, Facets, IncidentRecord, incident_document
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.search import HALF_LIFE_DAYS, WEIGHT, KnowledgeSearch, SearchAnswer, recency_factor
from sentinel_rag.knowledge.stores import LocalStore, Wanted
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import TOOL, KnowledgeTools

pytestmark = pytest.mark.requirement("KNOW-3")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


def incident(number: int, title: str, *, days: float, **over: object) -> IncidentRecord:
    return IncidentRecord(number=number, title=title, created=NOW - timedelta(days=days), **over)  # type: ignore[arg-type]


def searched(
    store: LocalStore, query: str, *records: IncidentRecord, like: Facets | None = None, limit: int = 10
) -> SearchAnswer:
    model = WordEmbedder()
    ingest(store, model, Collection.INCIDENTS, map(incident_document, records), complete=True)
    search = KnowledgeSearch(store, model, clock=lambda: NOW)
    return search.search(query, Wanted(), limit=limit, per_document=1, like=like)


@given(st.floats(-3e5, 3e5), st.floats(0, 3e5))
def test_age_takes_little_and_always_more(age: float, further: float) -> None:
    now = recency_factor(NOW - timedelta(days=age), NOW)
    assert 1 - WEIGHT <= recency_factor(NOW - timedelta(days=age + further), NOW) <= now <= 1


def test_half_of_it_is_taken_after_the_half_life_and_a_time_that_nobody_knows_is_long_ago() -> None:
    assert recency_factor(NOW - timedelta(days=HALF_LIFE_DAYS), NOW) == pytest.approx(1 - WEIGHT / 2)
    assert recency_factor(None, NOW) == 1 - WEIGHT
    assert recency_factor(NOW + timedelta(days=3), NOW) == 1


def test_of_two_that_fit_alike_the_recent_one_comes_first(store: LocalStore) -> None:
    old = incident(1, "Token theft by a proxy kit", days=400, entities=(("account", "ann@example.test"),))
    new = incident(2, "Token theft by a proxy kit", days=2, entities=(("account", "bob@example.test"),))
    for records in ((old, new), (new, old)):
        assert searched(store, "proxy kit token theft", *records).hits[0].citation == "incident-2"


def test_a_much_better_match_wins_however_old_it_is(store: LocalStore) -> None:
    fits = incident(1, "Consent phishing with a rogue OAuth application", days=2_000)
    recent = [incident(n, f"Rogue access point {n} seen", days=1) for n in range(2, 12)]
    found = searched(store, "rogue OAuth application consent phishing", fits, *recent)
    assert found.hits[0].citation == "incident-1"


class TestRecurring:
    """An hourly false alarm of one rule, and what it must not hide."""

    TITLE = "Rare process on a server"

    def hourly(self, count: int, *, first: int = 100) -> list[IncidentRecord]:
        return [
            incident(
                first + n,
                self.TITLE,
                days=n / 24,
                entities=(("host", "srv-app-01"), ("account", "svc-app"), ("file", "app.exe"), ("ip", "192.0.2.1")),
                classification="FalsePositive",
            )
            for n in range(count)
        ]

    def test_one_hit_stands_for_all_and_says_how_many(self, store: LocalStore) -> None:
        found = searched(store, "rare process on a server", *self.hourly(13))
        (hit,) = found.hits
        assert len(hit.alike) == 12
        assert hit.citation not in hit.alike
        assert [f"{hit.citation}: 12 more like it were found" in remark for remark in found.remarks] == [True]

    def test_the_one_that_was_real_is_not_hidden_by_those_that_were_not(self, store: LocalStore) -> None:
        real = incident(
            7,
            self.TITLE,
            days=200,
            entities=(("host", "srv-app-01"), ("account", "svc-app"), ("file", "app.exe"), ("ip", "192.0.2.1")),
            classification="TruePositive",
        )
        elsewhere = incident(8, self.TITLE, days=300, entities=(("host", "srv-db-01"),), classification="FalsePositive")
        bare = [incident(n, self.TITLE, days=300, classification="FalsePositive") for n in (9, 10)]
        found = searched(store, "rare process on a server", *self.hourly(30), real, elsewhere, *bare)
        citations = {hit.citation for hit in found.hits}
        assert {"incident-7", "incident-8", "incident-9", "incident-10"} <= citations
        assert len(citations) == 5

    def test_a_rule_that_takes_every_place_does_not_push_the_others_out(self, store: LocalStore) -> None:
        other = incident(7, "Process of a backup on a server", days=90, entities=(("host", "srv-bak-01"),))
        found = searched(store, "rare process on a server", *self.hourly(120), other, limit=2)
        assert [hit.citation for hit in found.hits][1] == "incident-7"
        # It stops where it has as many hits as were asked for, and says that it did not count to the end.
        assert 100 <= len(found.hits[0].alike) <= 119
        assert f": at least {len(found.hits[0].alike)} more like it were found" in found.remarks[-1]


def test_what_is_shared_with_the_incident_asked_about_is_told(store: LocalStore) -> None:
    like = Facets(techniques=("T1566",), tactics=("InitialAccess",), entities=("Ann@example.test", "203.0.113.9"))
    past = incident(
        3,
        "Mail with a link",
        days=20,
        techniques=("T1566.002", "T1078"),
        tactics=("InitialAccess", "LateralMovement"),
        entities=(("account", "ann@example.test"), ("ip", "198.51.100.7")),
    )
    found = searched(store, "mail link, then lateral movement", past, like=like)
    why = found.hits[0].why
    assert (why.techniques, why.entities) == (("T1566.002",), ("ann@example.test",))
    assert why.tactics == ("InitialAccess", "LateralMovement")


@pytest.mark.anyio
async def test_the_tool_says_why_words_alone_were_searched_and_what_recurs_beside_it(store: LocalStore) -> None:
    ingest(store, None, Collection.INCIDENTS, map(incident_document, TestRecurring().hourly(5)), complete=True)
    asked = {"query": "rare process on a server"}
    for opened, why in (
        (OpenedStore(store, WordEmbedder()), "holds no vectors yet; make them with: sentinel knowledge ingest"),
        (
            OpenedStore(store, None, "The tokenizer is missing.", "Run: sentinel knowledge install"),
            "The tokenizer is missing.",
        ),
    ):
        answer = await KnowledgeTools(KnowledgeBase(lambda opened=opened: opened)).call(TOOL, asked, {})
        first, second, *_ = answer.value["remarks"]
        assert first.startswith("Searched by words only")
        assert why in first
        assert "4 more like it were found" in second


@pytest.mark.anyio
async def test_like_an_incident_that_recurs_are_the_others_of_its_kind(store: LocalStore) -> None:
    """The incident asked about is left out before it could stand for all that recur with it."""
    ingest(store, None, Collection.INCIDENTS, map(incident_document, TestRecurring().hourly(5)), complete=True)
    tools = KnowledgeTools(KnowledgeBase(lambda: OpenedStore(store, None)))
    answer = await tools.call(TOOL, {"like_incident": "102"}, {})
    (cited,) = {hit["citation"] for hit in answer.value["hits"]}
    assert cited in {f"incident-{number}" for number in (100, 101, 103, 104)}
    assert any("3 more like it were found" in remark for remark in answer.value["remarks"])
