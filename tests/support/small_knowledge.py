"""The shipped playbooks and a few made-up past incidents behind `search_knowledge_base`, for the small estate.

The tool is the product's own, over the product's own store, by words alone; only the server and the gateway around it
are left out, so an analyst can be tested on real hits without a process. All names are reserved for documentation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.knowledge_tools import KNOWLEDGE_TOOLS
from sentinel_rag.contracts.query_results import QueryError, parse_time
from sentinel_rag.contracts.tool_calls import DocumentResult
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.documents.incidents import IncidentRecord, incident_document
from sentinel_rag.knowledge.ingestion import ingest, ingest_folder
from sentinel_rag.knowledge.stores import LocalStore
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.knowledge.knowledge_tools import KnowledgeTools

PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"
SearchTool = Callable[[JsonObject], Awaitable[DocumentResult | QueryError]]
AS_OF = datetime(2024, 7, 23, 6, tzinfo=UTC)
"""When the past incidents were brought up to date."""


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


def small_knowledge(
    folder: Path,
    *,
    more: Sequence[Document] = (),
    playbooks: Path | None = PLAYBOOKS,
    workspaces: Sequence[str] = (),
) -> SearchTool:
    """`search_knowledge_base` over a new store in `folder`. `more` are further documents of either collection;
    `playbooks` None for a store without the shipped ones and without past incidents, which holds `more` alone.
    `workspaces` are those whose incidents carry their name."""
    store = LocalStore(folder / "knowledge.db")
    if playbooks is not None:
        ingest_folder(store, None, playbooks)
    past = [] if playbooks is None else [incident_document(record) for record in PAST_INCIDENTS]
    for collection in Collection:
        documents = [each for each in (*past, *more) if each.collection is collection]
        ingest(store, None, collection, documents, complete=False)
    as_of = AS_OF if past else None
    lacking = "The embedding model on this machine is not installed."
    tool = KnowledgeTools(
        KnowledgeBase(
            lambda: OpenedStore(store, None, lacking, "Run: sentinel knowledge install"),
            incidents_as_of=lambda: as_of,
            workspaces=workspaces,
        )
    )

    async def search(arguments: JsonObject) -> DocumentResult | QueryError:
        answer = await tool.call(KNOWLEDGE_TOOLS[0].name, dict(arguments), {})
        return QueryError.from_dict(answer.value) if answer.is_error else DocumentResult(answer.value)

    return search
