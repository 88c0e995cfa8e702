"""search_knowledge_base over a real store, through a real gateway: what is found, how it is told, what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.running_knowledge import RunningKnowledge, running_knowledge

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.knowledge_tools import CUT_MARK, MAX_HIT_CHARACTERS, MAX_HIT_ENTITIES
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.servers import row_labels_in
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.knowledge.documents import (
    BlockKind,
    Collection,
    Document,
    DocumentBlock,
    DocumentSection,
    Facets,
    IncidentRecord,
    incident_document,
    read_folder,
)
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools
from sentinel_rag.tools.mcp_frame import ToolAnswer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "knowledge"))
from word_embedder import WordEmbedder  # the tests of the library have it

MODEL = WordEmbedder()


def playbook(name: str, text: str, kind: BlockKind = BlockKind.PARAGRAPH, **facets: Any) -> Document:
    section = DocumentSection((name.removesuffix(".md").title(), "Containment"), (DocumentBlock(kind, text, 7),))
    return Document(name, Collection.PLAYBOOKS, f"About {name}", name, (section,), Facets(**facets))


def incident(number: int, title: str, **fields: Any) -> Document:
    return incident_document(
        IncidentRecord(
            number=number,
            title=title,
            **{"severity": "High", "status": "Closed", "created": datetime(2026, 11, number, 9, tzinfo=UTC), **fields},
        )
    )


DOCUMENTS = [
    playbook(
        "mail.md",
        "Purge the mail from all mailboxes.",
        techniques=("T1566.002",),
        tactics=("InitialAccess",),
        severity="Medium",
        time=datetime(2026, 9, 1, tzinfo=UTC),
    ),
    playbook("shell.md", "Isolate the web server, keep its disk.", techniques=("T1505.003",)),
    playbook("long.md", "```\n" + "backup " * 1_000 + "\n```", BlockKind.CODE),
    incident(
        3,
        "Phishing mail with a stolen session",
        techniques=("T1566.002",),
        tactics=("InitialAccess",),
        entities=(("account", "a.singh@contoso.example"), ("host", "ws-07")),
        classification="TruePositive",
        classification_comment="Token was revoked.",
    ),
    incident(
        5,
        "Stolen session used from a new country",
        tactics=("InitialAccess", "CredentialAccess"),
        entities=(("account", "a.singh@contoso.example"),),
        classification="FalsePositive",
        severity="Low",
    ),
    incident(8, "Many entities", entities=tuple(("host", f"srv-{n:03}") for n in range(200))),
]


@pytest.fixture(scope="module")
def knowledge(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKnowledge]:
    with running_knowledge(shipped_policy, tmp_path_factory.mktemp("known"), DOCUMENTS, embedder=MODEL) as running:
        yield running


def found(knowledge: RunningKnowledge, **arguments: Any) -> dict[str, Any]:
    answer = knowledge.search(arguments)
    assert answer.status == 200, answer.body
    result: dict[str, Any] = answer.body["result"]
    assert result["total"] == len(result["hits"])
    return result


def ids(result: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(hit["document_id"] for hit in result["hits"]))


@pytest.mark.requirement("KNOW-3")
def test_a_playbooks_hit_cites_file_and_section_and_says_why(knowledge: RunningKnowledge) -> None:
    result = found(knowledge, query="purge the mail, T1566", collection="playbooks", limit=1)
    assert result["query"] == "purge the mail, T1566"
    hit = result["hits"][0]
    assert {name: hit[name] for name in hit if name not in ("score", "why")} == {
        "citation": "mail.md > Mail > Containment",
        "collection": "playbooks",
        "document_id": "mail.md",
        "title": "About mail.md",
        "section": "Mail > Containment",
        "text": "Purge the mail from all mailboxes.",
        "severity": "Medium",
        "status": "",
        "classification": "",
        "techniques": ["T1566.002"],
        "tactics": ["InitialAccess"],
        "time": "2026-09-01T00:00:00Z",
        "entities": [],
    }
    assert hit["score"] > 0
    why = hit["why"]
    assert (why["by_words"], why["by_meaning"]) == (1, 1)
    assert set(why["words"]) >= {"purge", "mail"}
    assert (why["techniques"], why["entities"], why["tactics"]) == (["T1566.002"], [], [])
    assert result["freshness"] == {"incidents": 3, "playbooks": 3, "incidents_as_of": None}
    assert result["remarks"] == []


@pytest.mark.requirement("KNOW-3")
def test_an_incidents_hit_cites_the_incident_and_how_it_was_closed(knowledge: RunningKnowledge) -> None:
    result = found(knowledge, query="stolen session of a.singh@contoso.example", collection="sentinel_incidents")
    hit = next(hit for hit in result["hits"] if "Token was revoked." in hit["text"])
    assert (hit["citation"], hit["section"], hit["classification"]) == ("incident-3", "", "TruePositive")
    assert hit["why"]["entities"] == ["a.singh@contoso.example"]


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"severity": "High"}, {"incident-3", "incident-8"}),
        ({"severity": " low "}, {"incident-5"}),
        ({"status": "closed", "classification": "falsepositive"}, {"incident-5"}),
        ({"technique": "t1566"}, {"mail.md", "incident-3"}),
        ({"tactic": "Credential Access"}, {"incident-5"}),
        ({"since": "2026-11-05", "until": "2026-11-05"}, {"incident-5"}),
        ({"since": "2026-11-05T09:00:00+02:00", "until": "2026-11-05T09:00:00Z"}, {"incident-5"}),
        ({"until": "2026-11-03T08:59:59Z"}, {"mail.md"}),
    ],
)
def test_filters_hold_and_are_taken_in_any_case(
    knowledge: RunningKnowledge, filters: JsonObject, expected: set[str]
) -> None:
    query = "purge mail stolen session many entities backup"
    assert set(ids(found(knowledge, query=query, limit=20, **filters))) == expected


@pytest.mark.parametrize(
    ("arguments", "field", "said", "allowed"),
    [
        ({}, "query", "query is missing", []),
        ({"query": " \n"}, "query", "query is blank", []),
        ({"query": "x", "severity": "hihg"}, "severity", "Did you mean High?", None),
        ({"query": "x", "status": "open"}, "status", "cannot be 'open'", ["New", "Active", "Closed"]),
        ({"query": "x", "collection": "incidents"}, "collection", "Did you mean sentinel_incidents?", None),
        ({"query": "x", "technique": "web shell"}, "technique", "T1566 or T1566.001", ["T1505.003"]),
        ({"query": "x", "tactic": "Inital Access"}, "tactic", "Did you mean InitialAccess?", None),
        ({"query": "x", "since": "yesterday"}, "since", "cannot be 'yesterday'", []),
        ({"query": "x", "since": "2026-11-05T09:00:00"}, "since", "cannot be '2026-11-05T09:00:00'", []),
        ({"query": "x", "since": "2026-11-06", "until": "2026-11-05"}, "until", "until lies before since", []),
        ({"like_incident": "the phishing one"}, "like_incident", "the number of a Sentinel incident", []),
        ({"like_incident": "77"}, "like_incident", "Incident 77 is not in the knowledge base.", []),
        ({"query": "x", "limit": 0}, "limit", "search_knowledge_base cannot take limit", []),
        ({"query": "x" * 2_001}, "query", "search_knowledge_base cannot take query", []),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_close_to_it(
    knowledge: RunningKnowledge, arguments: JsonObject, field: str, said: str, allowed: list[str] | None
) -> None:
    answer = knowledge.search(arguments)
    assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
    error = answer.body["error"]
    assert (error["field"], said in error["message"]) == (field, True), error
    assert error["next_step"]
    if allowed is not None:
        assert error["allowed"] == allowed


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize("spelling", ["3", "#3", "incident-3", "Incident 3"])
def test_what_is_like_an_incident_is_found_and_the_incident_itself_is_not(
    knowledge: RunningKnowledge, spelling: str
) -> None:
    result = found(knowledge, like_incident=spelling)
    assert (result["query"], result["like_incident"]) == (None, "3")
    assert "incident-3" not in ids(result)
    assert {"incident-5", "mail.md"} <= set(ids(result)[:3])
    why = next(hit for hit in result["hits"] if hit["document_id"] == "incident-5")["why"]
    assert (why["entities"], why["tactics"]) == (["a.singh@contoso.example"], ["InitialAccess"])
    assert next(hit for hit in result["hits"] if hit["document_id"] == "mail.md")["why"]["techniques"] == ["T1566.002"]
    both = found(knowledge, like_incident=spelling, query="web server disk", collection="playbooks")
    shell = next(hit for hit in both["hits"] if hit["document_id"] == "shell.md")
    assert {"web", "server", "disk"} <= set(shell["why"]["words"])


PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"
NAMES = sorted(path.name for path in PLAYBOOKS.glob("*.md"))


@pytest.fixture(scope="module")
def by_words(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKnowledge]:
    """The shipped playbooks and three incidents, as `make demo` installs them: without an embedding model."""
    shipped = [reading.document for reading in read_folder(PLAYBOOKS) if reading.document is not None]
    incidents = [
        incident(1, "Credential theft", description="C:\\tools\\mimikatz.exe ran"),
        incident(2, "Backup finished", description="Log written to C:\\ProgramData, disk C: has room"),
        incident(4, "Credential dumping", description="A dump of lsass"),
        incident(
            20,
            "Mail reported by a user, session stolen, mail sent on",
            techniques=("T1566", "T1078", "T1486", "T1490"),
        ),
        *(
            incident(number, f"Mail reported by a user, wave {number}", techniques=("T1566",))
            for number in range(21, 29)
        ),
    ]
    with running_knowledge(shipped_policy, tmp_path_factory.mktemp("words"), [*shipped, *incidents]) as running:
        yield running


@pytest.mark.requirement("KNOW-3")
@pytest.mark.parametrize("file", NAMES)
def test_a_playbook_is_the_first_that_the_words_of_its_name_find(by_words: RunningKnowledge, file: str) -> None:
    """Report on small models, finding 10: "phishing" found the playbook for business e-mail compromise."""
    name = file.removesuffix(".md").replace("-", " ")
    for question in (name, name.upper(), f"which playbook do we have for {name}?"):
        assert found(by_words, query=question, limit=1)["hits"][0]["document_id"] == file


def test_an_incident_is_not_like_another_by_a_single_letter(by_words: RunningKnowledge) -> None:
    """Model report, finding 27: the c of C:\\ stood among the words that two incidents share."""
    result = found(by_words, like_incident="1", collection="sentinel_incidents")
    assert ids(result)[0] == "incident-4"
    assert all("c" not in hit["why"]["words"] for hit in result["hits"])


@pytest.mark.requirement("KNOW-3")
def test_what_is_like_an_incident_is_both_its_kind_and_the_playbook_of_each_stage(by_words: RunningKnowledge) -> None:
    """The words of its first stage took all places: of what to do against encryption nothing was found."""
    result = found(by_words, like_incident="20")
    assert any(name.startswith("incident-2") for name in ids(result)[:4])
    assert {"phishing.md", "ransomware.md"} <= set(ids(result)[4:])


def test_a_hit_is_bounded_whatever_its_document_holds(knowledge: RunningKnowledge) -> None:
    result = found(knowledge, query="many entities srv-199 host", collection="sentinel_incidents", limit=1)
    assert len(result["hits"][0]["entities"]) == MAX_HIT_ENTITIES
    assert result["hits"][0]["entities"][0] == "srv-199"
    result = found(knowledge, query="backup", collection="playbooks")
    long = next(hit for hit in result["hits"] if hit["document_id"] == "long.md")
    assert len(long["text"]) == MAX_HIT_CHARACTERS
    assert long["text"].endswith(CUT_MARK)
    assert result["remarks"] == ["1 of the hits is longer and cut to 4,000 characters."]
    assert len(found(knowledge, query="mail session", limit=2)["hits"]) == 2


def test_nothing_that_fits_is_said(knowledge: RunningKnowledge) -> None:
    result = found(knowledge, query="zzz", technique="T1489")
    assert (result["hits"], result["remarks"]) == ([], ["Nothing fits; try other words, or fewer filters."])


@pytest.mark.requirement("KNOW-3")
def test_a_new_document_is_found_without_a_restart(knowledge: RunningKnowledge) -> None:
    """Another process writes while the tool server serves."""
    fresh = playbook("fresh.md", "Unplug the coffee machine.")
    assert "fresh.md" not in ids(found(knowledge, query="coffee machine", collection="playbooks"))
    ingest(knowledge.store, MODEL, Collection.PLAYBOOKS, [fresh], complete=False)
    assert ids(found(knowledge, query="coffee machine", collection="playbooks"))[0] == "fresh.md"
    knowledge.store.remove(Collection.PLAYBOOKS, ["fresh.md"])
    assert "fresh.md" not in ids(found(knowledge, query="coffee machine", collection="playbooks"))


@pytest.mark.anyio
@pytest.mark.requirement("DATA-3")
async def test_a_number_that_several_workspaces_have_is_asked_back(tmp_path: Path) -> None:
    with LocalStore(tmp_path / "k.db") as store:
        twins = [incident(7, f"Mailbox rule of {name}", workspace=name) for name in ("prod", "emea")]
        lone = incident(9, "Mailbox rule elsewhere", workspace="emea")
        ingest(store, None, Collection.INCIDENTS, [*twins, lone], complete=True)
        base = KnowledgeBase(lambda: OpenedStore(store, None), workspaces=("prod", "emea"))
        several = await ask(base, like_incident="7")
        assert several.value["message"] == "Incident 7 may be one of several: 7@prod, 7@emea."
        assert several.value["allowed"] == ["7@prod", "7@emea"]
        one = await ask(base, like_incident="7@EMEA")
        assert {hit["document_id"] for hit in one.value["hits"]} == {"incident-7@prod", "incident-9@emea"}  # type: ignore[union-attr, index, call-overload]
        assert one.value["like_incident"] == "7@emea"
        lone_answer = await ask(base, like_incident="9")
        assert lone_answer.value["total"] == 2
        missing = await ask(base, like_incident="8@prod")
        assert missing.value["message"] == "Incident 8@prod is not in the knowledge base."


@pytest.mark.anyio
@pytest.mark.requirement("TAINT-6")
async def test_a_hit_that_stands_for_others_is_as_secret_as_they_are(tmp_path: Path) -> None:
    """Of incidents that recur one is told, and that there are more: which says something of them too."""
    with LocalStore(tmp_path / "k.db") as store:
        records = [
            IncidentRecord(number=n, title="Beacon seen", status="Closed", entities=(("host", "ws-1"),)) for n in (1, 2)
        ]
        documents = [incident_document(records[0]), incident_document(records[1], sensitivity=Sensitivity.HIGH)]
        ingest(store, None, Collection.INCIDENTS, documents, complete=True)
        answer = await ask(KnowledgeBase(lambda: OpenedStore(store, None)), query="beacon", limit=1)
        assert "1 more like it" in str(answer.value["remarks"])
        assert row_labels_in(answer.meta) == (Label(Sensitivity.HIGH, Integrity.UNTRUSTED),)


async def ask(base: KnowledgeBase, **arguments: Any) -> ToolAnswer:
    return await KnowledgeTools(base).call("search_knowledge_base", arguments, {})


@pytest.mark.anyio
async def test_an_empty_store_begins_with_what_assembly_says_and_once(tmp_path: Path) -> None:
    begun: list[int] = []
    with LocalStore(tmp_path / "k.db") as store:

        def begin(empty: LocalStore) -> None:
            begun.append(1)
            ingest(empty, None, Collection.PLAYBOOKS, DOCUMENTS[:2], complete=True)

        base = KnowledgeBase(lambda: OpenedStore(store, None, "There is no model.", "Install it."), begin=begin)  # type: ignore[arg-type]
        first = await ask(base, query="purge the mail")
        await ask(base, query="purge the mail")
        assert begun == [1]
        assert [hit["document_id"] for hit in first.value["hits"]] == ["mail.md"]  # type: ignore[union-attr, index, call-overload]
        assert first.value["remarks"] == [
            "Searched by words only. There is no model. Install it.",
            "There are no past incidents to search yet; bring them in with: sentinel knowledge ingest",
        ]


@pytest.mark.anyio
async def test_a_store_without_vectors_loads_no_model_and_names_the_command(tmp_path: Path) -> None:
    model = WordEmbedder()
    with LocalStore(tmp_path / "k.db") as store:
        beacons = [
            incident_document(IncidentRecord(number=n, title="Beacon seen", entities=(("host", "ws-1"),)))
            for n in (1, 2)
        ]
        ingest(store, None, Collection.INCIDENTS, beacons, complete=True)
        base = KnowledgeBase(lambda: OpenedStore(store, model))
        answer = await ask(base, query="beacon", collection="sentinel_incidents")
        assert answer.value["remarks"] == [
            "Searched by words only. The store holds no vectors yet; make them with: sentinel knowledge ingest",
            "incident-1: 1 more like it were found (same title and entities, closed the same way), such as incident-2.",
        ]
        assert model.embedded == []
        ingest(store, model, Collection.INCIDENTS, beacons, complete=True)
        answer = await ask(base, query="beacon", collection="sentinel_incidents")
        assert not any("words only" in str(remark) for remark in answer.value["remarks"])  # type: ignore[union-attr]
        assert answer.value["hits"][0]["why"]["by_meaning"] == 1  # type: ignore[index, call-overload]


@pytest.mark.anyio
async def test_a_store_of_another_model_is_searched_by_words_and_names_the_command(tmp_path: Path) -> None:
    with LocalStore(tmp_path / "k.db") as store:
        ingest(store, MODEL, Collection.PLAYBOOKS, DOCUMENTS[:2], complete=True)
        base = KnowledgeBase(lambda: OpenedStore(store, WordEmbedder(model="other")))
        answer = await ask(base, query="purge the mail", collection="playbooks")
        assert answer.value["total"] == 1
        (remark,) = answer.value["remarks"]  # type: ignore[misc, union-attr]
        assert str(remark).startswith(
            "Searched by words only. The knowledge store holds vectors of words (64 dimensions)"
        )
        assert "sentinel knowledge rebuild" in str(remark)


@pytest.mark.anyio
async def test_a_store_that_cannot_be_opened_is_told_and_tried_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "k.db")
    ingest(store, None, Collection.PLAYBOOKS, DOCUMENTS[:1], complete=True)
    refusals = [UnavailableError("Another process holds the store.", next_step="Wait for it.")]
    closed: list[int] = []

    def opening() -> OpenedStore:
        if refusals:
            raise refusals.pop()
        return OpenedStore(store, None, close=lambda: closed.append(1) or store.close())  # type: ignore[func-returns-value]

    base = KnowledgeBase(opening)
    answer = await ask(base, query="mail")
    assert (answer.is_error, answer.value["code"]) == (True, "unavailable")
    assert (answer.value["message"], answer.value["next_step"]) == ("Another process holds the store.", "Wait for it.")
    assert (await ask(base, query="mail")).value["total"] == 1
    base.close()
    base.close()
    assert closed == [1]


@pytest.mark.anyio
async def test_a_damaged_store_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "k.db").write_bytes(b"no database at all, " * 500)

    def opening() -> OpenedStore:
        return OpenedStore(LocalStore(tmp_path / "k.db"), None)

    answer = await ask(KnowledgeBase(opening), query="mail")
    assert (answer.is_error, answer.value["code"]) == (True, "unavailable")
    assert "is no knowledge store, or is damaged" in str(answer.value["message"])
    assert "ingest again" in str(answer.value["next_step"])


@pytest.mark.anyio
async def test_a_fault_of_ours_is_told_by_an_id_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def opening() -> OpenedStore:
        raise RuntimeError("s3cret of the inside")

    answer = await ask(KnowledgeBase(opening), query="mail")
    assert (answer.is_error, answer.value["code"]) == (True, "internal")
    assert "s3cret" not in str(answer.value)
    assert "s3cret" in caplog.text
