"""Hits of `search_knowledge_base` as things that an answer can cite: a section of a playbook, or a past incident.

References and the offline analyst read hits through this module. A hit that does not have the agreed shape is no
hit. The texts are words of others; nothing here reads them for meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

SEARCH_TOOL = "search_knowledge_base"
PLAYBOOKS, INCIDENTS = "playbooks", "sentinel_incidents"
_INCIDENT_ID = re.compile(r"incident-(\d{1,10})(?:@([\w.-]{1,40}))?")
"""A past incident as the knowledge base names it, with its workspace where there are several."""


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """One hit of one search. `pointer` is its place in the result of `run`; `path` are the headings down to its
    section; `number` is the past incident's, empty for a playbook, `workspace` its own where there are several. The
    `shared_*` are what it has in common with what was asked, as the search told it."""

    run: ToolRun
    pointer: str
    citation: str
    document: str
    title: str
    path: tuple[str, ...]
    text: str
    number: str
    workspace: str
    severity: str
    status: str
    classification: str
    time: str
    tactics: tuple[str, ...]
    techniques: tuple[str, ...]
    entities: tuple[str, ...]
    shared_words: tuple[str, ...]
    shared_tactics: tuple[str, ...]
    shared_techniques: tuple[str, ...]
    shared_entities: tuple[str, ...]

    @property
    def is_playbook(self) -> bool:
        return not self.number

    @property
    def source(self) -> str:
        """The file, or the incident, as the citation names it."""
        return self.citation.split(" > ")[0]

    @property
    def heading(self) -> str:
        """The section's own heading; empty for an incident."""
        return self.path[-1] if self.path else ""


def hits_of(run: ToolRun) -> list[KnowledgeHit]:
    """The hits of a search in their order; none for any other call and for one that did not work."""
    if run.call.tool_name != SEARCH_TOOL or not run.worked:
        return []
    found = run.at("/hits")
    rows = found if isinstance(found, list | tuple) else ()
    hits = (_hit(run, f"/hits/{place}", row) for place, row in enumerate(rows) if isinstance(row, Mapping))
    return [hit for hit in hits if hit is not None]


def incident_number(row: Mapping[str, JsonValue]) -> str:
    """The number of the incident that a hit is of; empty for a hit of a playbook and for any other object."""
    if row.get("collection") != INCIDENTS:
        return ""
    match = _INCIDENT_ID.fullmatch(str(row.get("document_id") or ""))
    return match[1] if match else ""


def _hit(run: ToolRun, pointer: str, row: Mapping[str, Any]) -> KnowledgeHit | None:
    citation, document, text = row.get("citation"), row.get("document_id"), row.get("text")
    number = incident_number(row)
    if not all(isinstance(each, str) and each for each in (citation, document, text)):
        return None
    if row.get("collection") != PLAYBOOKS and not number:
        return None
    why = row.get("why")
    why = why if isinstance(why, Mapping) else {}
    section = _text(row.get("section"))
    return KnowledgeHit(
        run=run,
        pointer=pointer,
        citation=str(citation),
        document=str(document),
        title=_text(row.get("title")),
        path=tuple(section.split(" > ")) if section and not number else (),
        text=str(text),
        number=number,
        workspace=(match[2] or "") if (match := _INCIDENT_ID.fullmatch(str(document))) else "",
        severity=_text(row.get("severity")),
        status=_text(row.get("status")),
        classification=_text(row.get("classification")),
        time=_text(row.get("time")),
        tactics=_texts(row.get("tactics")),
        techniques=_texts(row.get("techniques")),
        entities=_texts(row.get("entities")),
        shared_words=_texts(why.get("words")),
        shared_tactics=_texts(why.get("tactics")),
        shared_techniques=_texts(why.get("techniques")),
        shared_entities=_texts(why.get("entities")),
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: JsonValue) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()
