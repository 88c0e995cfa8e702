"""Calls of `search_knowledge_base`, and what an incident of the workspace is searched by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentinel_rag.agent.knowledge_hits import INCIDENTS, PLAYBOOKS, SEARCH_TOOL
from sentinel_rag.agent.offline.knowledge.fitting import About
from sentinel_rag.agent.planner.plan import PlannedCall
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import MAX_HITS, MAX_QUESTION_CHARACTERS

_MOST_OF_A_KIND = 12
_ANY_PLAYBOOK = "triage"
"""What is searched by for an incident that tells nothing of itself."""
_ANY_INCIDENT = "incident closed classification"
"""What is searched by where only filters were said: words that the record of every closed incident has."""


def past_search(query: str, filters: Mapping[str, JsonValue], *, like: str = "") -> PlannedCall:
    """Past incidents by words, or like an incident."""
    sought: dict[str, JsonValue] = {"like_incident": like} if like else {"query": _cut(query or _ANY_INCIDENT)}
    return PlannedCall(SEARCH_TOOL, {**sought, "collection": INCIDENTS, **filters, "limit": MAX_HITS})


def playbook_search(query: str, filters: Mapping[str, JsonValue]) -> PlannedCall:
    """Sections of playbooks by words."""
    return PlannedCall(
        SEARCH_TOOL, {"query": _cut(query) or _ANY_PLAYBOOK, "collection": PLAYBOOKS, **filters, "limit": MAX_HITS}
    )


def document_read(document: str, section: str = "") -> PlannedCall:
    """The parts of one document in their order, from a section on."""
    begin: dict[str, JsonValue] = {"section": section} if section else {}
    return PlannedCall(SEARCH_TOOL, {"document": document, **begin, "limit": MAX_HITS})


def listing() -> PlannedCall:
    """The playbooks that there are, one hit each."""
    return PlannedCall(SEARCH_TOOL, {"collection": PLAYBOOKS})


def about_incident(row: Mapping[str, Any], phase: str = "") -> About:
    """What playbooks and past incidents are held against for an incident of the workspace."""
    alerts = [each for each in row.get("alerts") or () if isinstance(each, Mapping)]

    def all_of(name: str) -> tuple[str, ...]:
        own = row.get(name) or ()
        told = [*(own if isinstance(own, list | tuple) else ()), *(v for each in alerts for v in each.get(name) or ())]
        return tuple(dict.fromkeys(str(each) for each in told))[:_MOST_OF_A_KIND]

    return About(str(row.get("title") or ""), all_of("tactics"), all_of("techniques"), phase, True)


def query_for(about: About) -> str:
    """The words that an incident is searched by."""
    return " ".join((about.words, *about.techniques, *about.tactics))


def _cut(query: str) -> str:
    return query[:MAX_QUESTION_CHARACTERS].strip()
