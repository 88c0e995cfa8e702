"""What every knowledge store must do. A store's own test file derives from `StoreContract` and opens an empty one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from word_embedder import WordEmbedder

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.knowledge.chunking import Chunk, chunks_of
from sentinel_rag.knowledge.documents import BlockKind, Collection, Document, DocumentBlock, DocumentSection, Facets
from sentinel_rag.knowledge.moving import move
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import (
    EmbeddingMismatchError,
    KnowledgeStore,
    LocalStore,
    StoreEntry,
    VectorSpace,
    Version,
    Wanted,
)

MODEL = WordEmbedder()
EVERYONE = Wanted()


def document(name: str, text: str, facets: Facets | None = None, **fields: object) -> Document:
    """A playbook of one section."""
    sections = (DocumentSection((f"About {name}",), (DocumentBlock(BlockKind.PARAGRAPH, text, 3),)),)
    base = Document(name, Collection.PLAYBOOKS, f"Title {name}", name, sections, facets or Facets())
    return replace(base, **fields)  # type: ignore[arg-type]


def put(store: KnowledgeStore, *documents: Document, model: WordEmbedder | None = MODEL) -> None:
    entries = [StoreEntry(each, chunks_of(each)) for each in documents]
    if model is not None:
        texts = {chunk.search_hash: chunk.search_text for entry in entries for chunk in entry.chunks}
        store.keep_vectors(model.space, {each: model.embed_query(text) for each, text in texts.items()})
    store.put(entries, None if model is None else model.space)


def by_words(store: KnowledgeStore, query: str, wanted: Wanted = EVERYONE, limit: int = 50) -> list[str]:
    keys = [found.key for found in store.by_words(query, wanted, limit)]
    return [chunk.document_id for chunk in store.load(keys, wanted.readers)]


def by_meaning(store: KnowledgeStore, query: str, wanted: Wanted = EVERYONE, limit: int = 50) -> list[str]:
    keys = [found.key for found in store.by_vector(MODEL.space, MODEL.embed_query(query), wanted, limit)]
    return [chunk.document_id for chunk in store.load(keys, wanted.readers)]


LEGS = pytest.mark.parametrize("leg", [by_words, by_meaning], ids=["words", "meaning"])


class StoreContract(ABC):
    """Derive, give `store`, and name the class Test..."""

    @pytest.fixture
    @abstractmethod
    def store(self) -> KnowledgeStore:
        """An empty store."""

    @pytest.mark.requirement("KNOW-4")
    def test_what_was_put_comes_back_whole(self, store: KnowledgeStore) -> None:
        facets = Facets(
            techniques=("T1566.001",),
            tactics=("InitialAccess",),
            severity="High",
            status="Closed",
            classification="TruePositive",
            time=datetime(2026, 11, 1, 8, 30, 0, 250_000, tzinfo=UTC),
            entities=("a.singh@contoso.example",),
        )
        label = Label(Sensitivity.HIGH, Integrity.UNTRUSTED)
        whole = document(
            "incident-7", "Mail was purged.", facets, collection=Collection.INCIDENTS, label=label, etag='"7"'
        )
        put(store, whole)
        (found,) = store.by_words("purged", EVERYONE, 5)
        (chunk,) = store.load([found.key], frozenset())
        assert (chunk.collection, chunk.document_id, chunk.title, chunk.source) == (
            Collection.INCIDENTS,
            "incident-7",
            "Title incident-7",
            "incident-7",
        )
        assert (chunk.facets, chunk.label) == (facets, label)
        text = "## About incident-7\n\nMail was purged."
        assert (chunk.number, chunk.path, chunk.place, chunk.text) == (0, ("About incident-7",), 3, text)
        assert store.versions(Collection.INCIDENTS) == {"incident-7": Version(whole.content_hash, '"7"')}
        assert store.versions(Collection.PLAYBOOKS) == {}
        state = store.state()
        assert state.space == MODEL.space
        assert state.documents == state.chunks == {Collection.INCIDENTS: 1, Collection.PLAYBOOKS: 0}

    def test_halves_of_surrogate_pairs_stop_no_store(self, store: KnowledgeStore) -> None:
        """They come from JSON escapes, from cut texts and from names; no UTF-8 holds them."""
        half = "zebra \ud800 fish"
        facets = Facets(severity=half, status=half, tactics=(half,), entities=(half,))
        put(store, document("a.md", half, facets, title=half, etag=half))
        clean = "zebra \ufffd fish"
        (chunk,) = store.document_chunks(Collection.PLAYBOOKS, "a.md", frozenset())
        assert (chunk.text, chunk.title, chunk.facets) == (
            clean,
            clean,
            Facets((), (clean,), clean, clean, "", None, (clean,)),
        )
        assert store.versions(Collection.PLAYBOOKS)["a.md"].etag == clean
        found = KnowledgeSearch(store, MODEL).search(half, EVERYONE)
        assert [hit.citation for hit in found.hits] == ["a.md > About a.md"]

    @LEGS
    def test_the_best_comes_first_and_the_limit_holds(self, store: KnowledgeStore, leg: object) -> None:
        put(store, document("a", "apple tree"), document("b", "apple apple pie"), document("c", "stone"))
        assert callable(leg)
        assert leg(store, "apple pie")[0] == "b"
        assert len(leg(store, "apple pie", EVERYONE, 1)) == 1
        assert leg(store, "apple pie", EVERYONE, 0) == []

    @LEGS
    @pytest.mark.requirement("KNOW-4")
    def test_what_a_caller_may_not_read_takes_no_place(self, store: KnowledgeStore, leg: object) -> None:
        """Filtered after the search, forty better chunks of others would leave nothing for this caller."""
        secret = [document(f"s{n}", "apple pie", readers=frozenset({"tier3", "hr"})) for n in range(40)]
        put(store, *secret, document("mine", "an apple, far from any pie of theirs", readers=frozenset({"tier2"})))
        put(
            store,
            document("nobody", "apple pie", readers=frozenset()),
            document("all", "apples for everyone and apple pie"),
        )
        assert callable(leg)
        assert leg(store, "apple pie", Wanted(readers=frozenset({"tier2"})), 2) in (["all", "mine"], ["mine", "all"])
        assert leg(store, "apple pie", EVERYONE, 5) == ["all"]
        assert set(leg(store, "apple pie", Wanted(readers=frozenset({"hr"})))) == {f"s{n}" for n in range(40)} | {"all"}

    def test_a_key_that_was_found_by_another_is_not_loaded(self, store: KnowledgeStore) -> None:
        put(store, document("secret", "apple pie", readers=frozenset({"hr"})))
        keys = [found.key for found in store.by_words("apple", Wanted(readers=frozenset({"hr"})), 5)]
        assert len(keys) == 1
        assert store.load(keys, frozenset()) == []

    @pytest.mark.requirement("KNOW-4")
    def test_a_document_is_read_whole_and_in_order_by_those_who_may(self, store: KnowledgeStore) -> None:
        sections = tuple(
            DocumentSection((f"Part {n}",), (DocumentBlock(BlockKind.PARAGRAPH, f"apple {n} " * 140, n),))
            for n in range(1, 4)
        )
        closed = document("incident-7", "", readers=frozenset({"hr"}), collection=Collection.INCIDENTS)
        put(store, replace(closed, sections=sections), document("incident-7", "a playbook that is named alike"))
        chunks = store.document_chunks(Collection.INCIDENTS, "incident-7", frozenset({"hr", "tier1"}))
        assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
        assert [chunk.path for chunk in chunks] == [("Part 1",), ("Part 2",), ("Part 3",)]
        keys = [chunk.key for chunk in chunks]
        assert store.load(keys, frozenset({"hr"})) == chunks
        for readers in (frozenset(), frozenset({"tier1"})):
            assert store.document_chunks(Collection.INCIDENTS, "incident-7", readers) == []
        assert store.document_chunks(Collection.INCIDENTS, "incident-8", frozenset({"hr"})) == []
        (only,) = store.document_chunks(Collection.PLAYBOOKS, "incident-7", frozenset())
        assert only.text == "a playbook that is named alike"

    @pytest.mark.requirement("KNOW-4")
    def test_documents_are_counted_for_those_who_may_read_them(self, store: KnowledgeStore) -> None:
        assert store.readable(frozenset()) == {Collection.INCIDENTS: 0, Collection.PLAYBOOKS: 0}
        put(
            store,
            document("all", "apple"),
            document("hr", "apple", readers=frozenset({"hr", "legal"})),
            document("nobody", "apple", readers=frozenset()),
            document("incident-1", "apple", readers=frozenset({"legal"}), collection=Collection.INCIDENTS),
        )
        assert store.readable(frozenset()) == {Collection.INCIDENTS: 0, Collection.PLAYBOOKS: 1}
        assert store.readable(frozenset({"hr"})) == {Collection.INCIDENTS: 0, Collection.PLAYBOOKS: 2}
        assert store.readable(frozenset({"hr", "legal"})) == {Collection.INCIDENTS: 1, Collection.PLAYBOOKS: 2}

    @LEGS
    @pytest.mark.requirement("KNOW-3")
    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            (Wanted(severities=frozenset({"High"})), {"a", "b"}),
            (Wanted(severities=frozenset({"high", "Low"})), {"a", "b", "c"}),
            (Wanted(statuses=frozenset({"Closed"})), {"a", "c"}),
            (Wanted(classifications=frozenset({"FalsePositive"})), {"c"}),
            (Wanted(techniques=frozenset({"T1566"})), {"a", "b"}),
            (Wanted(techniques=frozenset({"t1566.001"})), {"a"}),
            (Wanted(techniques=frozenset({"T1486", "T1566.001"})), {"a", "c"}),
            (Wanted(tactics=frozenset({"Impact"})), {"c"}),
            (Wanted(since=datetime(2026, 11, 2, tzinfo=UTC)), {"b", "c"}),
            (Wanted(until=datetime(2026, 11, 2, tzinfo=UTC)), {"a", "b"}),
            (Wanted(collections=frozenset({Collection.INCIDENTS})), {"c"}),
            (Wanted(collections=frozenset()), set()),
            (Wanted(severities=frozenset({"High"}), statuses=frozenset({"Closed"})), {"a"}),
            (Wanted(severities=frozenset({"Nothing"})), set()),
        ],
    )
    def test_each_filter_holds_in_both_legs(
        self, store: KnowledgeStore, leg: object, wanted: Wanted, expected: set[str]
    ) -> None:
        def day(number: int) -> datetime:
            return datetime(2026, 11, number, tzinfo=UTC)

        put(
            store,
            document(
                "a", "apple", Facets(("T1566.001",), ("InitialAccess",), "High", "Closed", "TruePositive", day(1))
            ),
            document("b", "apple", Facets(("T1566",), ("InitialAccess",), "High", "New", "", day(2))),
            document(
                "c",
                "apple",
                Facets(("T1486",), ("Impact",), "Low", "Closed", "FalsePositive", day(3)),
                collection=Collection.INCIDENTS,
            ),
            document("d", "apple"),
        )
        assert callable(leg)
        assert set(leg(store, "apple", wanted)) == expected

    @LEGS
    def test_a_new_version_takes_the_old_one_s_place(self, store: KnowledgeStore, leg: object) -> None:
        put(store, document("a", "apple pie"), document("b", "apple stone"))
        old = [found.key for found in store.by_words("pie", EVERYONE, 5)]
        put(store, document("a", "plum cake", readers=frozenset({"hr"})))
        assert callable(leg)
        assert leg(store, "apple") == ["b"]
        assert set(leg(store, "plum cake", Wanted(readers=frozenset({"hr"})))) >= {"a"}
        assert store.load(old, frozenset({"hr"})) == []
        assert store.state().chunks[Collection.PLAYBOOKS] == 2

    @LEGS
    def test_what_was_removed_is_gone(self, store: KnowledgeStore, leg: object) -> None:
        put(store, document("a", "apple"), document("b", "apple"))
        put(store, document("a", "apple", collection=Collection.INCIDENTS))
        assert store.remove(Collection.PLAYBOOKS, ["a", "never there", "a"]) == 1
        assert callable(leg)
        assert sorted(leg(store, "apple")) == ["a", "b"]
        assert store.remove(Collection.INCIDENTS, ["a"]) == 1
        assert leg(store, "apple") == ["b"]
        assert store.remove(Collection.INCIDENTS, []) == 0

    @pytest.mark.requirement("KNOW-5")
    @pytest.mark.parametrize(
        "other", [VectorSpace("another", 64), VectorSpace("words", 32), None], ids=["model", "dimensions", "none"]
    )
    def test_a_mix_of_models_is_refused_with_the_command_that_re_embeds(
        self, store: KnowledgeStore, other: VectorSpace | None
    ) -> None:
        put(store, document("a", "apple"))
        model = None if other is None else WordEmbedder(model=other.model, dimensions=other.dimensions)
        with pytest.raises(EmbeddingMismatchError) as raised:
            put(store, document("b", "apple"), model=model)
        assert "words (64 dimensions)" in str(raised.value)
        assert "sentinel knowledge rebuild" in raised.value.next_step
        if other is not None:
            with pytest.raises(EmbeddingMismatchError):
                store.by_vector(other, np.ones(other.dimensions, dtype=np.float32), EVERYONE, 5)
        assert by_words(store, "apple") == ["a"]
        assert store.state().space == MODEL.space

    def test_a_store_without_vectors_is_searched_by_words_and_asks_for_a_rebuild(self, store: KnowledgeStore) -> None:
        put(store, document("a", "apple"), model=None)
        assert by_words(store, "apple") == ["a"]
        assert by_meaning(store, "apple") == []
        assert store.state().space is None
        with pytest.raises(EmbeddingMismatchError, match="holds no vectors"):
            put(store, document("b", "apple"))
        assert store.re_embed(MODEL.space, MODEL.embed_documents) == 1
        assert by_meaning(store, "apple") == ["a"]

    def test_a_put_without_its_vectors_changes_nothing(self, store: KnowledgeStore) -> None:
        put(store, document("a", "apple"))
        lacking = document("a", "plum")
        with pytest.raises(KeyError):
            store.put([StoreEntry(document("c", "x"), ()), StoreEntry(lacking, chunks_of(lacking))], MODEL.space)
        assert by_words(store, "apple plum") == ["a"]
        assert store.versions(Collection.PLAYBOOKS).keys() == {"a"}

    @pytest.mark.parametrize("vector", [np.ones(63, dtype=np.float32), np.full(64, np.nan, dtype=np.float32)])
    def test_a_vector_that_is_none_is_refused(self, store: KnowledgeStore, vector: np.ndarray) -> None:
        with pytest.raises(ValueError, match="a vector"):
            store.keep_vectors(MODEL.space, {"ab" * 32: vector})

    @pytest.mark.requirement("KNOW-3")
    def test_the_vector_leg_is_exact_filtered_or_not(self, store: KnowledgeStore) -> None:
        """Recall 1.0 against a comparison with every vector, at filters that let much, some and little through."""
        random = np.random.default_rng(6)
        vectors = random.standard_normal((400, 64)).astype(np.float32)
        severities = ["High" if n % 50 == 0 else "Medium" if n % 3 == 0 else "Low" for n in range(400)]
        entries = []
        for number, severity in enumerate(severities):
            chunk = Chunk(0, (), 1, f"text {number}", f"text {number}")
            store.keep_vectors(MODEL.space, {chunk.search_hash: vectors[number]})
            entries.append(StoreEntry(document(f"{number}", "", Facets(severity=severity)), (chunk,)))
        store.put(entries, MODEL.space)
        lengths = np.linalg.norm(vectors, axis=1)
        for query in random.standard_normal((5, 64)).astype(np.float32):
            order = [int(n) for n in np.argsort(-(vectors.astype(np.float64) @ query) / lengths)]
            for chosen in (frozenset[str](), frozenset({"Low"}), frozenset({"Medium"}), frozenset({"High"})):
                expected = [f"{n}" for n in order if not chosen or severities[n] in chosen][:10]
                wanted = Wanted(severities=chosen)
                found = store.load([each.key for each in store.by_vector(MODEL.space, query, wanted, 10)], frozenset())
                assert [chunk.document_id for chunk in found] == expected

    @pytest.mark.parametrize(
        "query",
        [
            '"',
            "apple AND",
            "NEAR(apple",
            "aa* OR ^bb",
            "-apple",
            "title:apple",
            "'; DROP TABLE chunk; --",
            "\\",
            "(((",
            "\0apple",
            "",
        ],
    )
    def test_nothing_in_a_question_is_syntax(self, store: KnowledgeStore, query: str) -> None:
        put(store, document("a", "apple"))
        assert by_words(store, query) == (["a"] if "apple" in query else [])

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("who talked to 203.0.113.7?", ["ip"]),
            ("T1566.001", ["technique"]),
            ("what of a.singh@contoso.example", ["user"]),
            (r"C:\Users\Public\psexesvc.exe", ["path"]),
            ("encrypting files", ["stem"]),
            ("CAFÉ", ["accent"]),
            ("read/purged", ["joined"]),
        ],
    )
    def test_identifiers_are_found_as_they_stand_and_words_by_their_stem(
        self, store: KnowledgeStore, query: str, expected: Sequence[str]
    ) -> None:
        put(
            store,
            document("ip", "Connection to 203.0.113.7 was seen."),
            document("pi", "Connection to 7.113.0.203 was seen."),
            document("technique", "Maps to T1566.001 here."),
            document("parent", "Maps to T1566.002 here."),
            document("user", "Mailbox of a.singh@contoso.example"),
            document("path", r"Started C:\Users\Public\psexesvc.exe as SYSTEM"),
            document("stem", "The encrypted file."),
            document("accent", "cafe"),
            document("joined", "It was purged."),
        )
        assert by_words(store, query)[:1] == expected

    @pytest.mark.requirement("KNOW-5")
    def test_re_embedding_serves_the_old_vectors_until_it_is_whole_and_goes_on_where_it_ended(
        self, store: KnowledgeStore
    ) -> None:
        put(store, *(document(f"{n}", f"apple number {n}") for n in range(10)))
        dying = WordEmbedder(model="new", dimensions=16, failing_after=8)
        with pytest.raises(RuntimeError):
            store.re_embed(dying.space, dying.embed_documents, batch=4)
        assert store.state().space == MODEL.space
        assert "3" in by_meaning(store, "apple number 3", limit=1)
        living = WordEmbedder(model="new", dimensions=16)
        assert store.re_embed(living.space, living.embed_documents, batch=4) == 2
        assert store.state().space == living.space
        (found,) = store.by_vector(living.space, living.embed_query("Title 7\nAbout 7\n\napple number 7"), EVERYONE, 1)
        assert store.load([found.key], frozenset())[0].document_id == "7"
        with pytest.raises(EmbeddingMismatchError):
            store.by_vector(MODEL.space, MODEL.embed_query("apple"), EVERYONE, 1)

    def test_a_kept_vector_is_not_asked_for_again(self, store: KnowledgeStore) -> None:
        vector = MODEL.embed_query("x")
        store.keep_vectors(MODEL.space, {"ab" * 32: vector})
        assert store.missing_vectors(MODEL.space, {"ab" * 32, "cd" * 32}) == {"cd" * 32}
        assert store.missing_vectors(VectorSpace("else", 64), {"ab" * 32}) == {"ab" * 32}

    @pytest.mark.requirement("KNOW-4")
    def test_two_readers_see_nothing_of_each_other_in_any_way(self, store: KnowledgeStore) -> None:
        """Two teams with documents of the same words and facets: no ranking, filter, key or id leads from one to the
        other's."""
        facets = Facets(
            ("T1566.001",), ("InitialAccess",), "High", "Closed", "TruePositive", datetime(2026, 11, 1, tzinfo=UTC)
        )
        teams = ("red", "blue")
        for team in teams:
            put(
                store,
                *(
                    document(f"{team}-{n}", f"apple pie {n}", facets, readers=frozenset({team, f"{team}-lead"}))
                    for n in range(12)
                ),
            )
        filters = (
            Wanted(),
            Wanted(severities=frozenset({"High"}), statuses=frozenset({"Closed"})),
            Wanted(techniques=frozenset({"T1566"}), tactics=frozenset({"InitialAccess"})),
            Wanted(classifications=frozenset({"TruePositive"}), collections=frozenset({Collection.PLAYBOOKS})),
        )
        for team, other in (teams, teams[::-1]):
            for wanted in filters:
                mine = replace(wanted, readers=frozenset({team}))
                expected = {f"{team}-{n}" for n in range(12)}
                assert set(by_words(store, "apple pie", mine)) == set(by_meaning(store, "apple pie", mine)) == expected
                assert by_words(store, "apple", replace(wanted, readers=frozenset({other[:-1], f"{team}-"}))) == []
                theirs = replace(wanted, readers=frozenset({other}))
                keys = [found.key for found in store.by_words("apple", theirs, 50)]
                assert len(keys) == 12
                assert store.load(keys, frozenset({team})) == []
                assert store.load(keys, frozenset({f"{other}-lead"})) != []
            assert store.document_chunks(Collection.PLAYBOOKS, f"{other}-1", frozenset({team})) == []

    @pytest.mark.requirement("KNOW-4")
    def test_a_reader_s_name_is_never_part_of_another_or_syntax(self, store: KnowledgeStore) -> None:
        """Whoever names groups could else name one that opens the documents of others."""
        names = ["hr", "h,r", "{hr}", "hr|legal", "h r", "HR", '"hr"', "' OR 1=1 --", "\\hr", "%", "*hr", "hr*", "é"]
        put(store, *(document(f"{n}", "apple", readers=frozenset({name})) for n, name in enumerate(names)))
        for n, name in enumerate(names):
            wanted = Wanted(readers=frozenset({name}))
            assert by_words(store, "apple", wanted) == by_meaning(store, "apple", wanted) == [f"{n}"]
            assert store.readable(frozenset({name}))[Collection.PLAYBOOKS] == 1
        for name in ("h", "r", "legal", "1=1", "", "e", "NULL", "hr,h"):
            assert by_words(store, "apple", Wanted(readers=frozenset({name}))) == []
        assert len(by_words(store, "apple", Wanted(readers=frozenset(names)))) == len(names)

    @pytest.mark.requirement("KNOW-4")
    def test_a_store_gives_back_what_another_can_take(self, store: KnowledgeStore) -> None:
        """Documents with chunks, readers, facets and hash, vectors to the bit; what came out can be put in again."""
        long = document("long", "An apple a day keeps the SOC away. " * 100, readers=frozenset({"hr", "tier1"}))
        facets = Facets(("T1566.001", "T1078"), ("Impact",), "High", "Closed", "TruePositive", entities=("b", "a"))
        short = document("short", "apple", facets, etag='W/"7"', label=Label(Sensitivity.HIGH, Integrity.TRUSTED))
        put(store, long, short, document("nobody", "apple", readers=frozenset()), document("empty", ""))
        put(store, document("long", "of the other collection", collection=Collection.INCIDENTS))
        entries = store.entries(Collection.PLAYBOOKS, ["short", "never there", "nobody", "long", "short"])
        assert entries == [
            StoreEntry(replace(each, sections=()), chunks_of(each), each.content_hash)
            for each in (short, document("nobody", "apple", readers=frozenset()), long)
        ]
        assert len(entries[2].chunks) > 2
        assert store.entries(Collection.INCIDENTS, ["short"]) == []
        assert store.entries(Collection.INCIDENTS, []) == []
        hashes = [chunk.search_hash for entry in entries for chunk in entry.chunks]
        vectors = store.kept_vectors(MODEL.space, [*hashes, "ab" * 32])
        assert vectors.keys() == set(hashes)
        assert store.kept_vectors(VectorSpace("another", 64), hashes) == {}
        for vector in vectors.values():
            assert abs(float(np.linalg.norm(vector.astype(np.float64))) - 1) < 1e-6
        versions = store.versions(Collection.PLAYBOOKS)
        assert store.remove(Collection.PLAYBOOKS, ["short", "nobody", "long"]) == 3
        store.keep_vectors(MODEL.space, vectors)
        store.put(entries, MODEL.space)
        assert store.versions(Collection.PLAYBOOKS) == versions
        assert store.entries(Collection.PLAYBOOKS, ["short", "nobody", "long"]) == entries
        again = store.kept_vectors(MODEL.space, hashes)
        assert {each: again[each].tobytes() for each in hashes} == {each: vectors[each].tobytes() for each in hashes}
        assert by_meaning(store, "apple")[0] == "short"

    @pytest.mark.requirement("KNOW-4")
    def test_all_of_another_store_moves_in_and_out_again(self, store: KnowledgeStore, tmp_path: Path) -> None:
        facets = Facets(("T1566.001",), ("InitialAccess",), "High", "Closed", time=datetime(2026, 11, 1, 8, tzinfo=UTC))
        with LocalStore(tmp_path / "before.db") as before, LocalStore(tmp_path / "after.db") as after:
            put(before, *(document(f"{n}", f"apple number {n}", readers=frozenset({"hr"})) for n in range(40)))
            put(before, document("7", "An incident. " * 300, facets, collection=Collection.INCIDENTS, etag='"7"'))
            put(before, document("empty", ""), document("all", "apple pie"))
            assert move(before, store).compared == 43
            assert move(store, after).compared == 43
            for collection in Collection:
                names = sorted(before.versions(collection))
                assert store.versions(collection) == after.versions(collection) == before.versions(collection)
                assert after.entries(collection, names) == before.entries(collection, names)
            hashes = [
                chunk.search_hash
                for collection in Collection
                for entry in before.entries(collection, list(before.versions(collection)))
                for chunk in entry.chunks
            ]
            here, there = before.kept_vectors(MODEL.space, hashes), after.kept_vectors(MODEL.space, hashes)
            assert {each: there[each].tobytes() for each in hashes} == {each: here[each].tobytes() for each in hashes}
            for leg in (by_words, by_meaning):
                assert leg(store, "apple pie") == leg(before, "apple pie")
