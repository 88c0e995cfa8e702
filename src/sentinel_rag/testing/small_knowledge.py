"""The shipped playbooks and a few made-up past incidents behind `search_knowledge_base`, for the small estate.

The search is the product's own, over the product's own store, by words alone; only the tool server around it is left
out, so an analyst can be tested on real hits without a process. All names are reserved for documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.knowledge_tools import CUT_MARK, DEFAULT_HITS, MAX_HIT_CHARACTERS
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, format_time, parse_time
from sentinel_rag.contracts.tool_calls import DocumentResult
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.documents.incidents import IncidentRecord, incident_document
from sentinel_rag.knowledge.folder_ingestion import ingest_folder
from sentinel_rag.knowledge.ingestion import ingest
from sentinel_rag.knowledge.search import Hit, KnowledgeSearch
from sentinel_rag.knowledge.stores import KnowledgeStore, LocalStore
from sentinel_rag.knowledge.stores.port import Wanted

PLAYBOOKS = Path(__file__).resolve().parents[3] / "data" / "playbooks"
SearchTool = Callable[[JsonObject], DocumentResult | QueryError]


def _past(
    number: int, title: str, severity: str, created: str, closed: str, verdict: str, **more: Any
) -> IncidentRecord:
    classification, _, reason = verdict.partition("/")
    return IncidentRecord(
        number=number,
        title=title,
        severity=severity,
        status="Closed",
        created=parse_time(created),
        closed=parse_time(closed),
        classification=classification,
        classification_reason=reason,
        **more,
    )


PAST_INCIDENTS: tuple[IncidentRecord, ...] = (
    _past(
        23, "Phishing mail delivered and removed", "Low", "2024-07-12T09:00:00Z", "2024-07-12T14:00:00Z",
        "BenignPositive/SuspiciousButExpected",
        tactics=("InitialAccess",), techniques=("T1566.002",),
        entities=(("account", "m.keller"), ("url", "https://login.invoices.example/")),
        classification_comment="Awareness exercise of the second quarter; the sender is ours.",
        comments=("Two of forty clicked, nobody typed a password.",),
    ),
    _past(
        7, "Unfamiliar sign-in properties", "Informational", "2024-06-25T07:15:00Z", "2024-06-25T12:15:00Z",
        "BenignPositive/SuspiciousButExpected",
        tactics=("InitialAccess",), techniques=("T1078",),
        entities=(("account", "svc-backup"), ("ip", "203.0.113.9")),
        classification_comment="Backup service moved to the new data centre that day.",
    ),
    _past(
        5, "Lateral movement with remote services from a workstation", "High", "2024-05-14T08:20:00Z",
        "2024-05-15T17:00:00Z", "TruePositive/SuspiciousActivity",
        tactics=("LateralMovement", "Execution"), techniques=("T1021.002", "T1569.002"),
        entities=(("host", "fin-ws-009"), ("account", "svc-backup")),
        classification_comment="Workstation rebuilt, svc-backup rotated. The way in was a macro of a supplier's mail.",
    ),
    _past(
        4, "Password spray against the VPN", "Medium", "2024-05-02T21:00:00Z", "2024-05-03T09:30:00Z",
        "TruePositive/SuspiciousActivity",
        tactics=("CredentialAccess",), techniques=("T1110.003",),
        entities=(("ip", "203.0.113.77"), ("account", "m.keller")),
        classification_comment="One account had a hit; sessions revoked, password reset. Legacy VPN login is off now.",
    ),
    _past(
        3, "Inbox rule forwards mail to an outside address", "High", "2024-04-18T10:05:00Z", "2024-04-19T16:45:00Z",
        "TruePositive/SuspiciousActivity",
        tactics=("Collection",), techniques=("T1114.003",),
        entities=(("mailbox", "ana.ruiz@contoso.example"),),
        classification_comment="Rule removed, consent of a mail application withdrawn, two invoices stopped.",
    ),
    _past(
        2, "Mimikatz on a jump host", "High", "2024-03-11T11:00:00Z", "2024-03-11T15:00:00Z",
        "FalsePositive/InaccurateData",
        tactics=("CredentialAccess",), techniques=("T1003.001",),
        entities=(("host", "jump-02"), ("file", "mimidrv.sys")),
        classification_comment="The driver of a monitoring agent carries a similar name; hash checked with the vendor.",
    ),
)  # fmt: skip


def small_knowledge(folder: Path, *, more: Sequence[Document] = (), playbooks: Path | None = PLAYBOOKS) -> SearchTool:
    """`search_knowledge_base` over a new store in `folder`. `more` are further documents of either collection;
    `playbooks` None for a store without the shipped ones, which is then empty but for `more`."""
    store = LocalStore(folder / "knowledge.db")
    if playbooks is not None:
        ingest_folder(store, None, playbooks)
    past = [] if playbooks is None else [incident_document(record) for record in PAST_INCIDENTS]
    for collection in Collection:
        documents = [each for each in (*past, *more) if each.collection is collection]
        ingest(store, None, collection, documents, complete=False)
    return lambda arguments: _searched(store, past, arguments)


def _searched(store: KnowledgeStore, past: Sequence[Document], arguments: JsonObject) -> DocumentResult | QueryError:
    given: dict[str, Any] = dict(arguments)
    liked = str(given.get("like_incident") or "").removeprefix("#")
    query = str(given.get("query") or "")
    known = next((each for each in past if each.id == f"incident-{liked}"), None)
    if liked and known is None:
        return QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT,
            message=f"Incident {liked} is not in the knowledge base.",
            field="like_incident",
            next_step="Search by words instead.",
        )
    if known is not None:
        texts = [block.text for section in known.sections[:1] for block in section.blocks]
        query = " ".join((query, known.title, *texts, *known.facets.tactics, *known.facets.entities)).strip()
    found = KnowledgeSearch(store, None).search(query, _wanted(given), limit=given.get("limit", DEFAULT_HITS) + 3)
    hits = [hit for hit in found.hits if hit.chunk.document_id != (known.id if known else "")]
    hits = hits[: given.get("limit", DEFAULT_HITS)]
    counts = store.state().documents
    return DocumentResult(
        {
            "query": given.get("query"),
            **({"like_incident": liked} if liked else {}),
            "total": len(hits),
            "hits": [_hit(hit, known) for hit in hits],
            "remarks": list(found.remarks),
            "freshness": {
                "incidents": counts[Collection.INCIDENTS],
                "playbooks": counts[Collection.PLAYBOOKS],
                "incidents_as_of": "2024-07-23T06:00:00Z" if counts[Collection.INCIDENTS] else None,
            },
        }
    )


def _wanted(given: dict[str, Any]) -> Wanted:
    def some(name: str) -> frozenset[str]:
        return frozenset({given[name]}) if given.get(name) else frozenset()

    def moment(name: str) -> datetime | None:
        return parse_time(given[name]) if given.get(name) else None

    return Wanted(
        collections=frozenset({Collection(given["collection"])}) if given.get("collection") else frozenset(Collection),
        severities=some("severity"),
        statuses=some("status"),
        classifications=some("classification"),
        techniques=some("technique"),
        tactics=some("tactic"),
        since=moment("since"),
        until=moment("until"),
    )


def _hit(hit: Hit, like: Document | None) -> dict[str, Any]:
    chunk, facets, why = hit.chunk, hit.chunk.facets, hit.why
    past = chunk.collection is Collection.INCIDENTS
    text = chunk.text
    if len(text) > MAX_HIT_CHARACTERS:
        text = text[: MAX_HIT_CHARACTERS - len(CUT_MARK)] + CUT_MARK

    def shared(own: Sequence[str], others: Sequence[str]) -> list[str]:
        return [name for name in own if name in others]

    return {
        "citation": hit.citation,
        "collection": chunk.collection.value,
        "document_id": chunk.document_id,
        "title": chunk.title,
        "section": "" if past else " > ".join(chunk.path),
        "text": text,
        "score": hit.score,
        "severity": facets.severity,
        "status": facets.status,
        "classification": facets.classification,
        "techniques": list(facets.techniques),
        "tactics": list(facets.tactics),
        "time": None if facets.time is None else format_time(facets.time),
        "entities": list(facets.entities),
        "why": {
            "by_words": why.by_words,
            "by_meaning": why.by_meaning,
            "words": list(why.words),
            "techniques": list(why.techniques) or shared(facets.techniques, like.facets.techniques if like else ()),
            "entities": list(why.entities) or shared(facets.entities, like.facets.entities if like else ()),
            "tactics": shared(facets.tactics, like.facets.tactics if like else ()),
        },
    }
