"""The store on Azure AI Search, against the double of the service: the contract of all stores, and what holds on a
service without transactions, whose writes are found late and whose answers fail."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from store_contract import EVERYONE, MODEL, StoreContract, by_meaning, by_words, document, put
from tests.support import fork_server
from tests.support.azure_search import AzureSearchDouble, running_azure_search
from tests.support.azure_search.service import Fault
from word_embedder import WordEmbedder

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError
from sentinel_rag.knowledge.chunking import Chunk
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.moving import move
from sentinel_rag.knowledge.stores import EmbeddingMismatchError, KnowledgeStore, LocalStore, StoreEntry, Wanted
from sentinel_rag_azure_search.connection import SearchConnection
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.processes import is_gone, process_name
from sentinel_rag_azure_search.store import AzureSearchStore
from sentinel_rag_azure_search.wire import SearchEndpoint
from waiting import WAIT_S

_NUMBERS = itertools.count()
FOREVER = 1_000_000


class Key:
    """The key of the double; `watch` is called before each request."""

    def __init__(self, key: str = "double-key", watch: Callable[[], None] = lambda: None) -> None:
        self._key = key
        self.watch = watch

    async def headers(self) -> Mapping[str, str]:
        self.watch()
        return {"api-key": self._key}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[str, AzureSearchDouble]]:
    with running_azure_search() as running:
        yield running


class Service:
    """One index of the double, which does nothing on demand but what a test asks for."""

    def __init__(self, url: str, double: AzureSearchDouble) -> None:
        self.url = url
        self.double = double
        self.index = f"kb-{next(_NUMBERS)}"
        double.reset()

    @contextmanager
    def opened(self, admission: Key | None = None, **options: float) -> Iterator[AzureSearchStore]:
        connection = SearchConnection(
            SearchEndpoint(self.url, self.index), admission or Key(), attempts=3, first_wait_s=0.001
        )
        with AzureSearchStore(connection, **options) as store:  # type: ignore[arg-type]
            yield store

    def kinds(self, kind: str) -> int:
        return sum(record["kind"] == kind for record in self.double.documents(self.index))


@pytest.fixture
def service(running: tuple[str, AzureSearchDouble]) -> Service:
    return Service(*running)


class TestAzureSearchStore(StoreContract):
    @pytest.fixture
    def store(self, service: Service) -> Iterator[KnowledgeStore]:
        with service.opened() as store:
            yield store


def test_a_store_that_is_only_read_is_never_written(service: Service) -> None:
    with service.opened() as store:
        assert by_words(store, "apple") == by_meaning(store, "apple") == []
        assert store.versions(Collection.PLAYBOOKS) == {}
        assert store.state().space is None
        assert store.remove(Collection.PLAYBOOKS, ["a"]) == 0
    assert {path.rpartition("/")[2] for _, path in service.double.requests} == {"search.post.search"}


@pytest.mark.requirement("KNOW-4")
def test_what_was_written_is_found_when_the_call_returns_however_late_the_service_is(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions are not equally late: a put's last write can be found long before its first."""
    monkeypatch.setattr("sentinel_rag_azure_search.index._LONGEST_LOOK_S", 0.001)
    service.double.lag = 16
    with service.opened() as store:
        put(store, document("a", "apple pie"), document("b", "stone"))
        assert by_words(store, "apple") == by_meaning(store, "apple", limit=1) == ["a"]
        for turn in range(2):
            put(store, document("a", f"plum of turn {turn}"))
            assert (by_words(store, "apple"), by_words(store, "plum")) == ([], ["a"])
            (chunk,) = store.document_chunks(Collection.PLAYBOOKS, "a", frozenset())
            assert chunk.text == f"plum of turn {turn}"
        assert store.remove(Collection.PLAYBOOKS, ["a"]) == 1
        assert by_words(store, "plum stone") == ["b"]
        other = WordEmbedder(model="new", dimensions=16)
        assert store.re_embed(other.space, other.embed_documents) == 1
        assert store.state().space == other.space


def test_a_write_that_is_never_found_fails_and_leaves_nothing(service: Service) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"))
    service.double.lag = FOREVER
    with service.opened(visible_within_s=0.05) as store:
        with pytest.raises(UnavailableError, match="cannot be found after") as raised:
            put(store, document("a", "plum"))
        assert raised.value.code == "azure_search_not_visible"
        assert by_words(store, "apple plum") == ["a"]
    service.double.lag = 0
    with service.opened() as store:
        put(store, document("b", "plum"))
        assert by_words(store, "apple plum") in (["a", "b"], ["b", "a"])
    assert (service.kinds("put"), service.kinds("document")) == (0, 2)


@pytest.mark.requirement("KNOW-4")
def test_whoever_looks_during_a_put_sees_all_of_it_or_nothing(service: Service) -> None:
    """A reader looks before each request that the writer makes."""
    names = [f"d{n}" for n in range(4)]
    with service.opened() as reader, service.opened() as first:
        put(first, *(document(name, "apple of turn0") for name in names))
        seen: list[list[tuple[str, str]]] = []

        def look() -> None:
            found = reader.load([each.key for each in reader.by_words("apple", EVERYONE, 50)], frozenset())
            seen.append(sorted((chunk.document_id, chunk.text) for chunk in found))

        with service.opened(Key(watch=look)) as writer:
            for turn in (1, 2):
                put(writer, *(document(name, f"apple of turn{turn}") for name in names))
    wholes = [[(name, f"apple of turn{turn}") for name in names] for turn in range(3)]
    assert all(each in wholes for each in seen)
    assert [whole for whole, _ in itertools.groupby(seen)] == wholes
    assert len(seen) > 20


@pytest.mark.requirement("KNOW-4")
def test_whoever_began_to_look_before_a_put_ended_still_finds_what_it_replaced(service: Service) -> None:
    """A reader asks which puts are open, then the put ends, then the reader asks for what fits. Without that care it
    would find neither the old nor the new."""
    asked, ended = threading.Event(), threading.Event()
    requests = itertools.count(1)
    seen: list[int] = []

    def between() -> None:
        if next(requests) == 2:
            asked.set()
            assert ended.wait(WAIT_S)

    def look() -> None:
        with service.opened(Key(watch=between)) as reader:
            seen.append(len(reader.by_words("apple", EVERYONE, 9)))

    with service.opened() as store:
        put(store, document("a", "apple"), document("b", "apple"))
        reader = threading.Thread(target=look)

        def start() -> None:
            if service.kinds("document") == 4 and not asked.is_set():
                reader.start()
                assert asked.wait(WAIT_S)

        with service.opened(Key(watch=start)) as writer:
            put(writer, document("a", "apple"), document("b", "apple and more"))
            ended.set()
            reader.join()
    assert seen == [2]


@pytest.mark.parametrize("refused", [0, 2, 5])
def test_a_put_of_which_the_service_refuses_a_part_changes_nothing(service: Service, refused: int) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"), document("b", "apple"))
        before = store.versions(Collection.PLAYBOOKS)

        asked: list[bool] = []

        def refuse() -> None:
            if service.kinds("put") and not asked:
                asked.append(True)
                service.double.refused = [*[0] * refused, 400]

        changed = [StoreEntry(document(name, "plum"), ()) for name in ("a", "b", "c")]
        with service.opened(Key(watch=refuse)) as writer, pytest.raises(UnavailableError, match="refused a document"):
            writer.put(changed, MODEL.space)
        assert store.versions(Collection.PLAYBOOKS) == before
        assert sorted(by_words(store, "apple")) == ["a", "b"]
        put(store, document("d", "plum"))
    assert (service.kinds("put"), service.kinds("document"), service.kinds("chunk")) == (0, 3, 3)


def broken_off(service: Service, *documents: object) -> None:
    """A put whose process loses the service when all is written and only the last step is missing, so that it can
    neither end nor undo it."""
    before = service.kinds("document")

    def lose() -> None:
        if service.kinds("document") > before:
            service.double.faults = [Fault(500, FOREVER, "search.index")]

    with service.opened(Key(watch=lose)) as dying, pytest.raises(UnavailableError, match="failed"):
        put(dying, *documents)  # type: ignore[arg-type]
    service.double.faults = []


def test_a_store_that_could_not_undo_its_own_put_goes_on_when_the_service_is_back(service: Service) -> None:
    def lose() -> None:
        if service.kinds("put") and not service.double.faults:
            service.double.faults = [Fault(500, FOREVER, "search.index")]

    key = Key(watch=lose)
    with service.opened(key, patience_s=0) as store:
        with pytest.raises(UnavailableError, match="failed"):
            put(store, document("a", "apple"))
        key.watch = lambda: None
        service.double.faults = []
        assert service.kinds("put") == 1
        put(store, document("b", "apple"))
        assert by_words(store, "apple") == ["b"]
    assert (service.kinds("put"), service.kinds("document")) == (0, 1)


def test_what_a_broken_put_left_is_not_seen_and_the_next_writer_undoes_it(service: Service) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"))
        broken_off(service, document("a", "plum"))
        assert (service.kinds("put"), service.kinds("document")) == (1, 2)
        assert (by_words(store, "apple plum"), store.state().documents[Collection.PLAYBOOKS]) == (["a"], 1)
        with service.opened(patience_s=0) as second:
            with pytest.raises(UnavailableError, match="Another process is writing") as raised:
                put(second, document("a", "pear"))
            assert "10 minutes" in raised.value.next_step
        with service.opened(lease_s=-1) as later:
            put(later, document("b", "pear"))
        assert sorted(by_words(store, "apple plum pear")) == ["a", "b"]
    assert (service.kinds("put"), service.kinds("document")) == (0, 2)


def test_a_process_of_this_machine_that_is_gone_is_known_to_be() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    place = process_name().rpartition(" ")[0]
    assert is_gone(f"{place} {ended.pid}")
    assert not is_gone(process_name())
    assert not is_gone(f"another-machine {ended.pid}")
    assert not is_gone("")


def test_writers_take_turns_and_a_document_is_there_once(service: Service) -> None:
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            with service.opened() as store:
                for turn in range(3):
                    put(store, document("shared", f"apple of {name} {turn}"), document(name, "apple"))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with service.opened() as store:
        assert sorted(by_words(store, "apple")) == ["one", "shared", "two"]
        assert store.state().chunks[Collection.PLAYBOOKS] == 3
    assert service.kinds("put") == 0


def test_what_was_replaced_goes_and_vectors_that_nobody_needs_with_it(service: Service) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"), document("b", "stone"))
        put(store, document("a", "plum"))
        put(store, document("a", "pear"))
    assert (service.kinds("document"), service.kinds("chunk")) == (2, 2)
    assert len(service.double.documents(f"{service.index}-vectors")) == 2
    with service.opened() as store:
        other = WordEmbedder(model="new", dimensions=16)
        store.re_embed(other.space, other.embed_documents)
        assert store.missing_vectors(MODEL.space, {"ab" * 32}) == {"ab" * 32}
    assert len(service.double.documents(f"{service.index}-vectors")) == 2


def test_a_vector_stays_while_any_chunk_has_its_text(service: Service) -> None:
    shared, new = (Chunk(0, (), 1, text, text) for text in ("apple", "plum"))
    vectors = {each.search_hash: MODEL.embed_query(each.text) for each in (shared, new)}
    with service.opened() as store:
        store.keep_vectors(MODEL.space, vectors)
        store.put([StoreEntry(document(name, ""), (shared,)) for name in ("a", "b")], MODEL.space)
        store.put([StoreEntry(document("a", ""), (new,))], MODEL.space)
    with service.opened() as store:
        assert store.missing_vectors(MODEL.space, vectors) == frozenset()


def test_the_space_that_another_process_decided_meanwhile_holds(service: Service) -> None:
    other = WordEmbedder(model="other", dimensions=64)
    decided: list[bool] = []

    def decide() -> None:
        if service.double.requests[-1:] == [("GET", f"/indexes('{service.index}')")] and not decided:
            decided.append(True)
            with service.opened() as first:
                put(first, document("a", "apple"))

    with service.opened(Key(watch=decide)) as second, pytest.raises(EmbeddingMismatchError):
        put(second, document("b", "apple"), model=other)
    assert decided
    with service.opened() as store:
        assert (by_words(store, "apple"), store.state().space) == (["a"], MODEL.space)


@pytest.mark.requirement("KNOW-4")
def test_a_large_put_goes_in_batches_that_the_service_takes_and_is_read_by_pages(service: Service) -> None:
    service.double.most_rows = 300
    entries = [StoreEntry(document(f"{n:04}", ""), (Chunk(0, (), 1, f"apple {n}", f"apple {n}"),)) for n in range(700)]
    with service.opened() as store:
        store.put(entries, None)
        assert max(service.double.batches) == 1_000
        assert sorted(store.versions(Collection.PLAYBOOKS)) == [f"{n:04}" for n in range(700)]
        assert store.state().chunks[Collection.PLAYBOOKS] == 700
        assert len(store.entries(Collection.PLAYBOOKS, [f"{n:04}" for n in range(700)])) == 700
        assert store.remove(Collection.PLAYBOOKS, [f"{n:04}" for n in range(1, 700)]) == 699
        assert by_words(store, "apple") == ["0000"]


def test_a_batch_that_is_too_large_is_parted_and_a_single_piece_is_told(service: Service) -> None:
    with service.opened() as store:
        service.double.largest_body = 6_000
        put(store, document("a", "apple " * 2_000), model=None)
        assert store.state().chunks[Collection.PLAYBOOKS] > 8
        with pytest.raises(UnavailableError, match="takes no piece of this size"):
            store.put([StoreEntry(document("b", ""), (Chunk(0, (), 1, "plum" * 2_000, "plum"),))], None)
        assert store.versions(Collection.PLAYBOOKS).keys() == {"a"}


@pytest.mark.parametrize("status", [409, 422, 429, 503])
def test_a_document_that_the_service_does_not_take_now_is_sent_again(service: Service, status: int) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"))
        service.double.refused = [status, 0, status, status, 0, status]
        put(store, document("b", "apple"), document("c", "apple"))
        assert sorted(by_words(store, "apple")) == ["a", "b", "c"]
        service.double.refused = [status] * 500
        with pytest.raises(UnavailableError, match="does not take 1 documents at present"):
            put(store, document("d", "apple"))


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([Fault(429, 2, headers={"Retry-After": "0"})], None),
        ([Fault(503, 2)], None),
        ([Fault(502, 1), Fault(500, 1)], None),
        ([Fault(503, 3)], "takes no more requests at present (503)"),
        ([Fault(429, 1, headers={"Retry-After": "3600"})], "takes no more requests at present (429)"),
        (
            [Fault(429, 1, headers={"Retry-After": "Fri, 31 Dec 2100 23:59:59 GMT"})],
            "no more requests at present (429)",
        ),
        ([Fault(302, 1, headers={"Location": "https://elsewhere.example/"})], "refused the request (302)"),
        ([Fault(200, 1)], "answers with something that Sentinel RAG did not write"),
        ([Fault(0, 2)], None),
        ([Fault(0, 3)], "cannot be reached, or hangs up"),
        ([Fault(401, 1)], "lets nobody in with this key or sign-in (401)"),
        ([Fault(403, 1, said="Storage quota has been exceeded.")], "is full: Storage quota has been exceeded."),
        ([Fault(429, 1, said="Index quota has been exceeded.")], "is full: Index quota has been exceeded."),
    ],
)
def test_a_refusal_is_tried_again_where_that_helps_and_told_where_not(
    service: Service, faults: list[Fault], said: str | None
) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"))
        service.double.faults = faults
        if said is None:
            assert by_words(store, "apple") == ["a"]
            return
        with pytest.raises(UnavailableError) as raised:
            by_words(store, "apple")
        assert said in str(raised.value)
        assert raised.value.next_step


def test_nobody_gets_in_with_another_key_and_the_key_is_not_told(service: Service) -> None:
    with service.opened(Key("canary-of-a-key")) as store, pytest.raises(UnavailableError) as raised:
        store.state()
    assert raised.value.code == "azure_search_access"
    assert "Search Index Data Contributor" in raised.value.next_step
    assert "canary" not in f"{raised.value.to_dict()}"


def test_an_index_of_something_else_is_left_alone(service: Service) -> None:
    fields = [{"name": "id", "type": "Edm.String", "key": True}, {"name": "kind", "type": "Edm.String"}]
    with closing(SearchConnection(SearchEndpoint(service.url, service.index), Key())) as connection:
        connection.ask("PUT", f"/indexes('{service.index}')", {"name": service.index, "fields": fields})
    with service.opened() as store, pytest.raises(UnavailableError) as raised:
        put(store, document("a", "apple"), model=None)
    assert raised.value.code in ("azure_search_refused", "azure_search_other_index")
    assert service.double.documents(service.index) == []


def test_records_that_somebody_else_wrote_are_told_and_not_believed(service: Service) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"), model=None)
        key = store.by_words("apple", EVERYONE, 1)[0].key
        (whole,) = [each for each in service.double.documents(service.index) if each["key"] == key]
        with closing(SearchConnection(SearchEndpoint(service.url, service.index), Key())) as connection:
            for harm in ({"facets": "{}"}, {"facets": "no JSON"}, {"label": None}, {"label": "7"}):
                action = {"@search.action": "upload", **whole, **harm}
                connection.ask("POST", f"/indexes('{service.index}')/docs/search.index", {"value": [action]})
                with pytest.raises(UnavailableError) as raised:
                    store.load([key], frozenset())
                assert raised.value.code == "azure_search_foreign"


def test_a_service_that_is_not_there_or_is_another_is_told(service: Service) -> None:
    connection = SearchConnection(SearchEndpoint("http://127.0.0.1:9", "kb"), Key(), attempts=1)
    with AzureSearchStore(connection) as store, pytest.raises(UnavailableError, match="cannot be reached"):
        store.state()


@pytest.mark.parametrize(
    ("url", "index"),
    [
        ("ftp://x.search.windows.net", "kb"),
        ("http://x.search.windows.net", "kb"),
        ("https://user:pass@x.search.windows.net", "kb"),
        ("https://x.search.windows.net/indexes", "kb"),
        ("https://x.search.windows.net", "Kb"),
        ("https://x.search.windows.net", "kb--1"),
        ("https://x.search.windows.net", "kb/../other"),
        ("https://", "kb"),
    ],
)
def test_an_address_that_can_be_none_is_refused_at_once(url: str, index: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        SearchEndpoint(url, index)
    assert raised.value.next_step


def test_times_are_compared_to_the_microsecond(service: Service) -> None:
    moment = datetime(2026, 11, 1, 8, 30, 0, 123_456, tzinfo=UTC)
    with service.opened() as store:
        put(store, document("a", "apple", Facets(time=moment)))
        assert by_words(store, "apple", Wanted(since=moment, until=moment)) == ["a"]
        assert by_words(store, "apple", Wanted(since=moment.replace(microsecond=123_457))) == []


def test_any_id_and_any_text_comes_back(service: Service) -> None:
    names = ["a'b", "x" * 40_000, "grüße/日本.md", "a\nb", "!" * 3, "NUL \0", "\ue000"]
    with service.opened() as store:
        facets = Facets(("T1566", "x" * 40_000), ("Impact", "x" * 40_000), "x" * 40_000, "x" * 40_000, "x" * 40_000)
        readers = {name: frozenset({name[:99]}) for name in names}
        put(store, *(document(name, f"apple {name[:9]}", facets, readers=readers[name]) for name in names))
        assert store.versions(Collection.PLAYBOOKS).keys() == set(names)
        for name in names:
            (entry,) = store.entries(Collection.PLAYBOOKS, [name])
            assert (entry.document.readers, entry.document.facets) == (readers[name], facets)
            (chunk,) = store.document_chunks(Collection.PLAYBOOKS, name, readers[name])
            assert (chunk.document_id, chunk.text) == (name, f"apple {name[:9]}")
            assert by_words(store, "apple", Wanted(readers[name], techniques=frozenset({"T1566"}))) == [name]
        assert store.remove(Collection.PLAYBOOKS, names) == len(names)


@pytest.mark.requirement("KNOW-4")
def test_moving_there_and_back_changes_no_bit(service: Service, tmp_path: Path) -> None:
    facets = Facets(("T1566.001",), ("Impact",), "High", "Closed", "TruePositive", datetime(2026, 1, 2, tzinfo=UTC))
    texts = ["NUL \0", "\ue000 \ue000\ue000 0041", "quotes ' \" \\", "日本 🎣", "plain"]
    documents = [
        document(f"{n} {text}", text, facets, readers=frozenset({text}), etag=text) for n, text in enumerate(texts)
    ]

    def everything(store: KnowledgeStore) -> object:
        versions = store.versions(Collection.PLAYBOOKS)
        entries = store.entries(Collection.PLAYBOOKS, sorted(versions))
        hashes = {chunk.search_hash for entry in entries for chunk in entry.chunks}
        vectors = {key: each.tobytes() for key, each in store.kept_vectors(MODEL.space, hashes).items()}
        return store.state(), versions, entries, vectors

    with (
        LocalStore(tmp_path / "a.db") as first,
        service.opened() as middle,
        LocalStore(tmp_path / "b.db") as last,
    ):
        put(first, *documents)
        assert move(first, middle).moved == move(middle, last).moved == len(texts)
        assert everything(first) == everything(middle) == everything(last)
        for text in texts:
            assert middle.readable(frozenset({text}))[Collection.PLAYBOOKS] == 1


WRITER = """
import os
import signal
import sys
sys.path[:0] = {folders!r}
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag_azure_search.connection import SearchConnection
from sentinel_rag_azure_search.store import AzureSearchStore
from sentinel_rag_azure_search.wire import SearchEndpoint
from store_contract import document
from test_store_azure_search import Key
from word_embedder import WordEmbedder
def ingesting(dies_at):
    left = dies_at
    def watch():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    with AzureSearchStore(SearchConnection(SearchEndpoint(sys.argv[1], sys.argv[2]), Key(watch=watch))) as store:
        documents = [document(f"{{n}}", f"apple number {{n}} " + "word " * 300) for n in range(100)]
        documents[0] = document("0", f"apple number 0 of process {{dies_at}}")
        ingest(store, WordEmbedder(dimensions=8), Collection.PLAYBOOKS, documents, complete=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        ingesting(int(line))
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Ingests a hundred documents in a process of its own for each line, which is killed at that request (0: never), and
prints its exit code."""


@pytest.mark.requirement("KNOW-2")
def test_a_killed_ingest_is_completed_by_the_next_and_nothing_is_twice(service: Service) -> None:
    """kill -9 at chosen requests: in the first put, between puts, and in a put that replaces a document. The next
    process goes on at once, since it knows that the other is gone."""
    open_when_killed = []
    before = 0
    program = WRITER.format(folders=[str(Path(__file__).parents[each]) for each in (0, 1)])
    command = [sys.executable, "-c", program, service.url, service.index]
    writers = fork_server.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ingesting(dies_at: int) -> int:
        assert writers.stdin is not None
        assert writers.stdout is not None
        writers.stdin.write(f"{dies_at}\n")
        return int(writers.stdout.readline())

    for dies_at in (30, 16, 26, 36):
        assert ingesting(dies_at) == -signal.SIGKILL
        open_when_killed.append(service.kinds("put"))
        with service.opened() as store:
            count = store.state().documents[Collection.PLAYBOOKS]
            found = by_words(store, "apple number", limit=1_000)
            assert before <= count < 100
            assert (len(found) >= count, len(set(found))) == (True, count)
            assert sum(document_id == "0" for document_id in found) == (1 if count else 0)
            before = count
    assert 1 in open_when_killed
    assert ingesting(0) == 0
    writers.communicate()
    with service.opened() as store:
        assert store.state().documents[Collection.PLAYBOOKS] == 100
        assert sorted(set(by_words(store, "apple number", limit=1_000))) == sorted(f"{n}" for n in range(100))
        assert [chunk.text for chunk in store.document_chunks(Collection.PLAYBOOKS, "0", frozenset())] == [
            "apple number 0 of process 0"
        ]
    assert (service.kinds("put"), service.kinds("document")) == (0, 100)


def loaded(store: KnowledgeStore, keys: Sequence[int | str]) -> list[str]:
    return [chunk.document_id for chunk in store.load(keys, frozenset())]


def test_a_change_of_what_is_gone_is_passed_over(service: Service) -> None:
    """As when a document was removed while everything is embedded anew."""
    with service.opened() as store:
        put(store, document("a", "apple"))
        with closing(SearchConnection(SearchEndpoint(service.url, service.index), Key())) as connection:
            SearchIndex(connection, service.index, "session").merge([{"key": "gone", "retired": None}])
        assert by_words(store, "apple") == ["a"]


def test_keys_of_another_store_are_found_nowhere(service: Service) -> None:
    with service.opened() as store:
        put(store, document("a", "apple"))
        assert loaded(store, [7, "store", "put-x", "' or kind eq 'chunk"]) == []
        assert store.load([], frozenset()) == []
        with suppress(SentinelError):
            store.by_vector(MODEL.space, MODEL.embed_query("apple"), Wanted(collections=frozenset()), 5)
