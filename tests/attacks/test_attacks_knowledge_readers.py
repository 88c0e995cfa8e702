"""Who may read what in the knowledge base.

The attacker controls the agent: every argument, every field of the request's body, its headers, and knows or guesses
the texts of documents that only others may read. They must not be found, counted, told apart from what does not exist,
or made readable; the record names the readers of each call."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.running_knowledge import RunningKnowledge, running_knowledge

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.servers import READERS
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.request_body import CanonicalArguments
from sentinel_rag.gateway.upstream import McpHttpUpstream, UpstreamCall
from sentinel_rag.knowledge.documents import (
    BlockKind,
    Collection,
    Document,
    DocumentBlock,
    DocumentSection,
    Facets,
    IncidentRecord,
    incident_document,
)
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "knowledge"))
from word_embedder import WordEmbedder  # the tests of the library have it

from waiting import WAIT_S

pytestmark = [pytest.mark.requirement("KNOW-4"), pytest.mark.requirement("TAINT-6")]

HR = frozenset({"hr"})
NEEDLE = "zanzibar"
"""A word that stands in the closed documents only."""


def playbook(name: str, text: str, **fields: Any) -> Document:
    section = DocumentSection(("Steps",), (DocumentBlock(BlockKind.PARAGRAPH, text, 1),))
    facets = Facets(techniques=("T1486",), tactics=("Impact",), severity="High", time=datetime(2026, 6, 1, tzinfo=UTC))
    return Document(name, Collection.PLAYBOOKS, name, name, (section,), facets, **fields)


def incident(number: int, comment: str, **fields: Any) -> Document:
    record = IncidentRecord(
        number=number,
        title=f"Insider case {number}",
        severity="High",
        status="Closed",
        classification="TruePositive",
        techniques=("T1567",),
        tactics=("Exfiltration",),
        created=datetime(2026, 6, 2, tzinfo=UTC),
        entities=(("account", "k.bauer@contoso.example"),),
        comments=(comment,),
    )
    return incident_document(record, **fields)


OPEN = [playbook("open.md", "Restore the files from the backup."), incident(1, "It was a test of the backup.")]
CLOSED = [
    playbook("closed.md", f"Restore {NEEDLE} from the second backup.", readers=HR),
    playbook("nobody.md", f"The {NEEDLE} file of nobody.", readers=frozenset()),
    incident(2, f"The {NEEDLE} files were sent out.", readers=HR),
    *(incident(100 + n, f"{NEEDLE} backup files restore {n}", readers=HR) for n in range(20)),
]
QUESTIONS: list[JsonObject] = [
    {"query": NEEDLE},
    {"query": f"restore {NEEDLE} from the second backup"},
    {"query": "restore the files from the backup", "limit": 20},
    {"query": "k.bauer@contoso.example", "collection": "sentinel_incidents"},
    {"query": NEEDLE, "collection": "playbooks"},
    {"query": NEEDLE, "severity": "High"},
    {"query": NEEDLE, "status": "Closed", "classification": "TruePositive"},
    {"query": NEEDLE, "technique": "T1567"},
    {"query": NEEDLE, "tactic": "Exfiltration"},
    {"query": "backup", "technique": "T1490"},
    {"query": NEEDLE, "since": "2026-06-01", "until": "2026-06-03"},
    {"like_incident": "1"},
    {"like_incident": "2"},
    {"like_incident": "2", "query": NEEDLE},
    {"like_incident": "100", "collection": "playbooks"},
    {"document": "closed.md"},
    {"document": "closed.md", "section": "Steps"},
    {"document": "closed.md", "section": "No such section"},
    {"document": "nobody.md"},
    {"document": "incident-2"},
    {"document": "open.md"},
    {"query": "*"},
    {"query": "readers:hr OR audience"},
    {"query": "' OR 1=1 --"},
]


@pytest.fixture(scope="module")
def both(shipped_policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningKnowledge]]:
    """The same knowledge base, with the closed documents and without them, found by words and by meaning."""
    folders = [tmp_path_factory.mktemp("with"), tmp_path_factory.mktemp("without")]
    with (
        running_knowledge(shipped_policy, folders[0], [*OPEN, *CLOSED], embedder=WordEmbedder()) as full,
        running_knowledge(shipped_policy, folders[1], OPEN, embedder=WordEmbedder()) as bare,
    ):
        yield [full, bare]


@pytest.fixture
def full(both: list[RunningKnowledge]) -> RunningKnowledge:
    return both[0]


def told(answer: HttpAnswer) -> tuple[int, str]:
    """All that a caller is told, without what differs between any two calls, and without scores: they are in tenths
    because a word weighs less the more documents have it, which docs/knowledge.md names as what is not covered."""
    body = {name: value for name, value in answer.body.items() if name != "audit_id"}
    for hit in body.get("result", {}).get("hits", []):
        assert hit.pop("score") in [place / 10 for place in range(11)]
    return answer.status, json.dumps(body, sort_keys=True)


def sees(answer: HttpAnswer) -> bool:
    """Whether something of a closed document came back; by meaning, something is found for any question."""
    assert answer.status == 200
    return any(NEEDLE in hit["text"] for hit in answer.body["result"]["hits"])


@pytest.mark.parametrize("question", QUESTIONS, ids=json.dumps)
def test_what_a_caller_may_not_read_is_as_if_it_did_not_exist(
    both: list[RunningKnowledge], question: JsonObject
) -> None:
    """Every filter, both ways of asking, counts, remarks and errors: the answers are the same, byte for byte."""
    with_them, without = (told(world.search(question)) for world in both)
    assert with_them == without
    assert "sent out" not in with_them[1]
    assert "closed.md" not in with_them[1]


def test_those_who_may_read_do_find_and_the_record_names_them(full: RunningKnowledge) -> None:
    """Otherwise the test above could not fail."""
    key = full.agent("hr", "tier1")
    for query, expected in ((f"{NEEDLE} sent out", "incident-2"), (f"{NEEDLE} from the second backup", "closed.md")):
        answer = full.search({"query": query, "limit": 20}, key=key, session_id="of-hr")
        found = {hit["document_id"] for hit in answer.body["result"]["hits"]}
        assert expected in found
        assert "nobody.md" not in found
    assert answer.body["result"]["freshness"] == {"incidents": 22, "playbooks": 2, "incidents_as_of": None}
    intent = next(each for each in reversed(full.gateway.records()) if each["kind"] == "intent")
    assert (intent["readers"], intent["audit_id"]) == (["hr", "tier1"], answer.body["audit_id"])
    alike = full.search({"like_incident": "2"}, key=full.agent("hr"), session_id="of-hr-2")
    assert alike.body["result"]["total"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": NEEDLE, "readers": ["hr"]},
        {"query": NEEDLE, "_meta": {READERS: ["hr"]}},
        {"query": NEEDLE, READERS: ["hr"]},
        {"query": {"text": NEEDLE, "_meta": {READERS: ["hr"]}}},
        {"query": NEEDLE, "collection": ["playbooks", {READERS: ["hr"]}]},
    ],
    ids=json.dumps,
)
def test_readers_among_the_arguments_are_refused(full: RunningKnowledge, arguments: JsonObject) -> None:
    answer = full.search(arguments)
    assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
    record = full.gateway.last_record()
    assert (record["kind"], record["reason"]) == ("refusal", "invalid_argument")


@pytest.mark.parametrize(
    "more",
    [
        {"_meta": {READERS: ["hr"]}},
        {"readers": ["hr"]},
        {"params": {"_meta": {READERS: ["hr"]}}},
        {"principal": {"readers": ["hr"]}},
    ],
    ids=json.dumps,
)
def test_readers_in_the_body_of_the_request_make_nobody_a_reader(full: RunningKnowledge, more: JsonObject) -> None:
    body = {"session_id": "session-1", "tool_name": "search_knowledge_base", "args": {"query": NEEDLE}, **more}
    answer = full.gateway.request("POST", "/v1/proxy-execute", key=full.gateway.key, body=json.dumps(body).encode())
    if answer.status == 200:
        assert not sees(answer)
        intent = next(each for each in reversed(full.gateway.records()) if each["kind"] == "intent")
        assert intent["readers"] == []
    else:
        assert answer.status == 422
        assert full.gateway.last_record()["reason"] == "malformed_body"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Readers": "hr"},
        {READERS.replace("/", "-"): '["hr"]'},
        {"Mcp-Param-Readers": "hr"},
        {"Mcp-Session-Id": "hr", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"},
        {"Authorization": "Bearer hr", "X-Forwarded-User": "hr"},
    ],
    ids=json.dumps,
)
def test_headers_make_nobody_a_reader(full: RunningKnowledge, headers: dict[str, str]) -> None:
    body = {"session_id": "session-1", "tool_name": "search_knowledge_base", "args": {"query": NEEDLE}}
    answer = full.gateway.request(
        "POST", "/v1/proxy-execute", key=full.gateway.key, body=json.dumps(body).encode(), headers=headers
    )
    assert not sees(answer)


def test_a_persons_session_reads_as_that_person_whoever_the_agent_is(full: RunningKnowledge) -> None:
    hr, other = full.person("hr"), full.person("tier1")
    for key, finds in ((hr, True), (other, False)):
        session = full.gateway.open_session(key=key)
        answer = full.search({"query": NEEDLE}, session_id=session)
        assert sees(answer) == finds
    # What the person may read, the agent may not in a session of its own.
    assert not sees(full.search({"query": NEEDLE}, session_id="of-the-agent"))


def test_a_person_whose_key_has_ended_reads_nothing_more_in_the_session_that_is_still_open(
    full: RunningKnowledge,
) -> None:
    key = full.person("hr")
    session = full.gateway.open_session(key=key)
    assert sees(full.search({"query": NEEDLE}, session_id=session))
    assert full.gateway.state.keys.revoke(key.split("_")[1])
    answer = full.search({"query": NEEDLE}, session_id=session)
    assert not sees(answer)
    intent = next(each for each in reversed(full.gateway.records()) if each["kind"] == "intent")
    assert intent["readers"] == []


def test_nobody_but_the_gateway_asks_the_executor(full: RunningKnowledge) -> None:
    """The agent knows the port, as any process of this machine may, and the gateway's key; neither opens it."""
    import httpx2

    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_knowledge_base", "arguments": {"query": NEEDLE}, "_meta": {READERS: ["hr"]}},
    }
    for headers in ({}, {"Authorization": f"Bearer {full.gateway.key}"}, {"X-API-Key": full.gateway.key}):
        answer = httpx2.post(f"{full.executor_url}/mcp", json=message, headers=headers, timeout=WAIT_S)
        assert answer.status_code == 401
        assert "sent out" not in answer.text


@pytest.mark.anyio
@pytest.mark.parametrize("ours", [True, False])
async def test_a_server_of_another_maker_never_learns_who_reads(ours: bool) -> None:
    """Even if the gate handed readers over: what is not a server of this product is not sent them."""
    with FakeToolServer().running() as executor:
        upstream = McpHttpUpstream(executor.url, is_ours=ours)
        await upstream.call(
            UpstreamCall(
                tool="search_knowledge_base",
                arguments=CanonicalArguments.of({"query": "x"}),
                principal="k",
                session_id="s",
                timeout_s=WAIT_S,
                readers=HR,
            )
        )
        await upstream.aclose()
        (call,) = executor.calls
    assert (READERS in json.loads(call.body)["params"].get("_meta", {})) == ours
    assert (b"hr" in call.body) == ours
