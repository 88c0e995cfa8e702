"""Incidents of a served workspace into the store: what is read, what it costs, what follows, what a failure leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest
from incident_estate import END, MAIN, Estate, estate, ingest_estates
from word_embedder import WordEmbedder

from sentinel_rag.contracts.labels import Integrity
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.incident_ingestion import IngestProgress, WorkspaceReport, version_from_text
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import EmbeddingMismatchError, LocalStore, StoredChunk, StoreEntry, Wanted
from sentinel_rag.sentinel.rest import SentinelRest
from sentinel_rag.sentinel.rest.connection import LIMITS, RateBuckets, RestOperation

pytestmark = pytest.mark.requirement("KNOW-2")
INCIDENTS = Wanted(collections=frozenset({Collection.INCIDENTS}))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Estate]:
    with estate(tmp_path / "workspace") as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalStore]:
    with LocalStore(tmp_path / "knowledge.db") as opened:
        yield opened


def figures(report: WorkspaceReport) -> tuple[int, int, int, int]:
    done = report.ingested
    return done.added, done.changed, done.unchanged, done.removed


def held(store: LocalStore) -> list[str]:
    return sorted(store.versions(Collection.INCIDENTS))


def chunks_of(store: LocalStore, words: str, document: str) -> list[StoredChunk]:
    keys = [found.key for found in store.by_words(words, INCIDENTS, 50)]
    return [chunk for chunk in store.load(keys, frozenset()) if chunk.document_id == document]


async def comment(rest: SentinelRest, number: int, text: str) -> None:
    (incident,) = await rest.read_incidents(odata_filter=f"properties/incidentNumber eq {number}")
    await rest.add_comment(incident.name, "73e01a99-5cd7-4139-a149-9f2736ff2ab5", text)


@pytest.mark.requirement("KNOW-1")
def test_every_incident_comes_with_how_it_was_closed_who_took_part_and_what_was_said(
    served: Estate, store: LocalStore
) -> None:
    report = served.ingest(store)
    numbers = served.column("IncidentNumber")
    assert (figures(report), report.listed, report.fault) == ((len(numbers), 0, 0, 0), len(numbers), "")
    assert held(store) == sorted(f"incident-{number}" for number in numbers)
    (main,) = [c for c in chunks_of(store, "attack phishing", f"incident-{MAIN}") if "## Summary" in c.text]
    assert main.facets.severity == "High"
    assert {"T1566", "T1486"} <= set(main.facets.techniques)
    assert "siobhan.o'brien@woodgrove.example" in main.facets.entities
    assert main.label.integrity is Integrity.UNTRUSTED
    closed = [number for number, state in zip(numbers, served.column("Status"), strict=True) if state == "Closed"]
    comments = dict(zip(numbers, served.column("ClassificationComment"), strict=True))
    number = next(number for number in closed if comments[number])
    found = chunks_of(store, comments[number], f"incident-{number}")
    assert any("## How it was closed" in chunk.text and comments[number] in chunk.text for chunk in found)
    said = dict(zip(numbers, served.column("Comments"), strict=True))[MAIN]
    messages = [each["message"] for each in (json.loads(said) if isinstance(said, str) else said)]
    (chunk,) = [c for c in chunks_of(store, messages[0], f"incident-{MAIN}") if "## Comments" in c.text]
    assert all(" ".join(message.split()) in chunk.text for message in messages)


def test_a_second_run_costs_one_list_and_a_change_costs_itself(served: Estate, store: LocalStore) -> None:
    model = WordEmbedder()
    first = served.ingest(store, model)
    served.faults()
    assert figures(served.ingest(store, model)) == (0, 0, first.listed, 0)
    assert served.requests() == {"rest GET": 1}
    before = len(model.embedded)
    served.change(lambda rest: comment(rest, MAIN, "The session was stolen with a proxy kit."))
    served.faults()
    report = served.ingest(store, model)
    assert (figures(report), report.partial) == ((0, 1, first.listed - 1, 0), 0)
    assert sum(served.requests().values()) == 3  # a list, and two queries
    assert len(model.embedded[before:]) == 1  # the incident's other chunk is the same
    assert "stolen with a proxy kit" in model.embedded[before]
    found = KnowledgeSearch(store, model).search("stolen with a proxy kit", INCIDENTS)
    assert found.hits[0].citation == f"incident-{MAIN}"


def test_what_an_earlier_version_read_in_is_brought_up_to_date_without_a_wish(
    served: Estate, store: LocalStore
) -> None:
    """Also what lies before the window, and what Sentinel no longer has."""
    listed = served.ingest(store).listed
    entries = store.entries(Collection.INCIDENTS, held(store))
    for entry in entries:  # as they were kept before: in chunks of another form, by a version of another number
        version = version_from_text(entry.document.etag)
        assert version is not None
        before = replace(entry.document, etag=replace(version, reading=1).text)
        chunk = replace(entry.chunks[0], text="old form", search_text="old form")
        store.put([StoreEntry(before, (chunk,), entry.stored_hash)], None)
    served.delete(MAIN)
    assert figures(served.ingest(store, since=END - timedelta(days=2))) == (0, listed - 1, 0, 1)
    assert chunks_of(store, "old form", f"incident-{MAIN - 1}") == []
    assert store.by_words("old form", INCIDENTS, 50) == []
    assert figures(served.ingest(store)) == (0, 0, listed - 1, 0)


def test_deletes_follow(served: Estate, store: LocalStore) -> None:
    listed = served.ingest(store).listed
    served.delete(MAIN, MAIN - 1)
    report = served.ingest(store)
    assert figures(report) == (0, 0, listed - 2, 2)
    assert f"incident-{MAIN}" not in held(store)
    assert KnowledgeSearch(store, None).search("Multi-stage attack credential dump", INCIDENTS).hits[:1] != ()
    assert chunks_of(store, "Multi-stage attack", f"incident-{MAIN}") == []


def test_a_list_that_shows_nothing_is_not_believed(served: Estate, store: LocalStore) -> None:
    """An emptied workspace and a list that lies look the same; each incident is asked for by name."""
    listed = served.ingest(store).listed
    numbers = served.column("IncidentNumber")
    served.delete(*numbers)
    assert figures(served.ingest(store)) == (0, 0, 0, listed)
    assert held(store) == []


def test_what_is_older_than_the_window_stays_and_is_kept_current(served: Estate, store: LocalStore) -> None:
    listed = served.ingest(store).listed
    days = {"since": END - timedelta(days=2)}
    assert figures(served.ingest(store, **days)) == (0, 0, listed, 0)
    oldest = min(served.column("IncidentNumber"))
    served.change(lambda rest: comment(rest, oldest, "It was the vendor's scanner after all."))
    assert figures(served.ingest(store, **days)) == (0, 1, listed - 1, 0)
    assert chunks_of(store, "vendor's scanner", f"incident-{oldest}")
    served.delete(oldest)
    assert figures(served.ingest(store, **days)) == (0, 0, listed - 1, 1)


def test_only_the_window_is_read_in(served: Estate, store: LocalStore) -> None:
    report = served.ingest(store, since=END - timedelta(days=3))
    created = {name: version_from_text(each.etag) for name, each in store.versions(Collection.INCIDENTS).items()}
    assert 0 < report.listed < len(served.column("IncidentNumber"))
    assert all(
        v is not None and v.created_at is not None and v.created_at >= END - timedelta(days=3) for v in created.values()
    )


def test_two_workspaces_with_the_same_numbers_do_not_collide(tmp_path: Path, store: LocalStore) -> None:
    with estate(tmp_path / "one") as one, estate(tmp_path / "two") as two:
        alone = one.ingest(store).listed
        both = ingest_estates(store, None, {"lab": one, "emea": two})
        assert [report.workspace for report in both] == ["lab", "emea"]
        assert len(held(store)) == 2 * alone
        assert {f"incident-{MAIN}@lab", f"incident-{MAIN}@emea"} <= set(held(store))
        hit = KnowledgeSearch(store, None).search(f"incident {MAIN}", INCIDENTS).hits[0]
        assert hit.citation.startswith(f"incident-{MAIN}@")
        # The second is served no more: what it told goes, and the names are short again.
        lab, emea = ingest_estates(store, None, {"lab": one}, formerly_served=["lab", "emea"])
        assert (lab.fault, lab.served) == ("", True)
        assert (emea.workspace, emea.served, figures(emea)) == ("emea", False, (0, 0, 0, alone))
        assert held(store) == sorted(f"incident-{number}" for number in one.column("IncidentNumber"))


def test_in_a_shared_store_nobody_takes_away_what_others_read_in(tmp_path: Path, store: LocalStore) -> None:
    """Two homes with one workspace each, whose incidents have the same numbers."""
    with estate(tmp_path / "one") as one, estate(tmp_path / "two") as two:
        for _ in range(2):
            for name, served in (("lab", one), ("emea", two)):
                (report,) = ingest_estates(store, None, {name: served}, shared=True, formerly_served=[name])
                assert report.fault == ""
        assert figures(report) == (0, 0, report.listed, 0)
        assert len(held(store)) == 2 * report.listed
        assert {f"incident-{MAIN}@lab", f"incident-{MAIN}@emea"} <= set(held(store))


def test_a_workspace_that_fails_takes_nothing_away_and_the_other_is_read(tmp_path: Path, store: LocalStore) -> None:
    with estate(tmp_path / "one") as one, estate(tmp_path / "two") as two:
        ingest_estates(store, None, {"lab": one, "emea": two})
        before = held(store)
        two.faults({"kind": "forbidden", "wire": "rest", "times": None})
        lab, emea = ingest_estates(store, None, {"lab": one, "emea": two})
    assert lab.fault == ""
    assert "refused the credential" in emea.fault
    assert emea.next_step
    assert held(store) == before


def test_where_the_log_is_closed_rest_tells_the_rest_and_at_its_limit_the_next_run_goes_on(
    served: Estate, store: LocalStore
) -> None:
    clock = [0.0]
    buckets = RateBuckets(lambda: clock[0])
    for _ in range(LIMITS[RestOperation.GET_ENTITIES] - 10):
        buckets.take(RestOperation.GET_ENTITIES)
    first = served.ingest(store, log_is_away=True, buckets=buckets)
    assert (first.fault, first.listed - first.partial) == ("", 10)
    assert len(held(store)) == first.listed  # found by their own words already
    clock[0] += 301
    second = served.ingest(store, log_is_away=True, buckets=buckets)
    assert (figures(second), second.partial) == ((0, first.partial, 10, 0), 0)
    (main,) = [c for c in chunks_of(store, "attack phishing", f"incident-{MAIN}") if "## Summary" in c.text]
    assert "wks-fin-02.woodgrove.example" in main.facets.entities
    assert figures(served.ingest(store, log_is_away=True, buckets=buckets)) == (0, 0, first.listed, 0)


def test_while_the_log_has_not_caught_up_rest_tells_what_is_new_and_the_next_run_looks_again(
    tmp_path: Path, store: LocalStore
) -> None:
    with estate(tmp_path / "now") as now, estate(tmp_path / "before") as before:
        now.ingest(store)
        now.change(lambda rest: comment(rest, MAIN, "Written a moment ago."))
        report = now.ingest(store, log_of=before)
        assert (figures(report)[1], report.partial) == (1, 1)
        (said,) = [c for c in chunks_of(store, "written a moment ago", f"incident-{MAIN}") if c.path == ("Comments",)]
        assert {"T1566", "T1486"} <= set(said.facets.techniques)  # REST tells none: those of the older row
        assert "wks-fin-02.woodgrove.example" in said.facets.entities
        again = now.ingest(store)
        assert (again.partial, again.ingested.added) == (0, 0)
        assert figures(now.ingest(store)) == (0, 0, again.listed, 0)


def test_while_the_log_is_away_the_incidents_come_in_and_are_read_again_once_it_is_back(
    served: Estate, store: LocalStore
) -> None:
    served.faults({"kind": "server_error", "wire": "logs", "times": None})
    first = served.ingest(store)
    assert (first.fault, first.ingested.added, first.partial) == ("", first.listed, first.listed)
    served.faults()
    second = served.ingest(store)
    assert (second.partial, second.ingested.added) == (0, 0)
    (main,) = [c for c in chunks_of(store, "attack phishing", f"incident-{MAIN}") if "## Summary" in c.text]
    assert "T1566" in main.facets.techniques


def test_a_run_that_dies_is_gone_on_with_and_nothing_is_embedded_twice(tmp_path: Path, store: LocalStore) -> None:
    moment = "2026-03-01T10:00:00Z"
    rows = [
        {
            "TimeGenerated": moment,
            "CreatedTime": moment,
            "LastModifiedTime": moment,
            "IncidentNumber": number,
            "IncidentName": str(uuid5(NAMESPACE_OID, str(number))),
            "Title": f"Incident {number}",
            "Severity": "High",
            "Status": "New",
            "AlertIds": [],
            "Comments": [],
        }
        for number in range(1, 91)
    ]
    dying = WordEmbedder(failing_after=70)
    with estate(tmp_path / "many", {"SecurityIncident": rows}) as served:
        since = datetime(2026, 1, 1, tzinfo=UTC)
        with pytest.raises(RuntimeError):
            served.ingest(store, dying, since=since)
        model = WordEmbedder()
        report = served.ingest(store, model, since=since)
    assert len(held(store)) == report.listed == len(rows)
    assert (report.ingested.unchanged, report.ingested.embedded) == (64, 90 - len(dying.embedded))
    assert not set(dying.embedded) & set(model.embedded)


def test_words_first_and_meaning_later_is_no_mix_but_meaning_without_its_model_is(
    served: Estate, store: LocalStore
) -> None:
    first = served.ingest(store, None)
    model = WordEmbedder()
    assert store.state().space is None
    assert figures(served.ingest(store, model)) == (0, 0, first.listed, 0)
    assert store.state().space == model.space
    assert KnowledgeSearch(store, model).search("impossible travel", INCIDENTS).hits[0].why.by_meaning is not None
    served.change(lambda rest: comment(rest, MAIN, "and another"))
    with pytest.raises(EmbeddingMismatchError):
        served.ingest(store, None)


def test_progress_tells_how_many_there_are_and_what_is_left(served: Estate, store: LocalStore) -> None:
    told: list[IngestProgress] = []
    ticks = iter(range(10_000))
    report = served.ingest(store, listener=told.append, clock=lambda: float(next(ticks)))
    assert (told[0].done, told[0].total, told[0].remaining_s) == (0, None, None)
    assert (told[-1].done, told[-1].total, told[-1].remaining_s) == (report.listed, report.listed, 0.0)
    assert [each.done for each in told] == sorted(each.done for each in told)
