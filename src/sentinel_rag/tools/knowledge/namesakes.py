"""Incidents of a store that are another workspace's, and would be taken for those of the workspaces that are served.

Each workspace counts from 1. In a store that homes share, another's may bear the name of this home's; in a store of one
home, what was read in of the sample estate stays until the person's own workspace is read in. Neither is shown: whoever
ingests is told what helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.incident_owners import held_versions
from sentinel_rag.knowledge.incident_versions import IncidentVersion, version_from_text
from sentinel_rag.knowledge.stores.port import KnowledgeStore


class Namesakes:
    """Knows the workspaces that are served: by name in a store of one home, by `workspace_ids` (their ids by name) in a
    shared one. Without either, nothing is another's."""

    def __init__(self, served: Sequence[str], workspace_ids: Mapping[str, str]) -> None:
        self._served = frozenset(served)
        self._ids = workspace_ids
        self._ours: set[str] = set()

    def among(self, store: KnowledgeStore, document_ids: Iterable[str]) -> dict[str, str]:
        """Those of the documents that are another workspace's incidents, each with that workspace's name. One of an
        earlier version, or of another origin, tells no workspace and is none of them."""
        asked = [document for document in dict.fromkeys(document_ids) if self._is_open(document)]
        found = {}
        for entry in store.entries(Collection.INCIDENTS, asked):
            document, version = entry.document.id, version_from_text(entry.document.etag)
            if version is None:
                continue
            if self._is_other(_name_in(document), version):
                found[document] = version.workspace
            elif version.workspace_id:
                self._ours.add(_name_in(document))
        return found

    def own(self, store: KnowledgeStore) -> int:
        """How many incidents of the served workspaces a store of one home holds."""
        return sum(version.workspace in self._served for version in held_versions(store).values())

    def of(self, store: KnowledgeStore, document_id: str, workspace: str) -> bool:
        """Whether a store of one home holds this incident of `workspace` under an id that does not name it, as it does
        where that one alone was read in."""
        held = () if self._ids else store.entries(Collection.INCIDENTS, [document_id])
        versions = [version_from_text(entry.document.etag) for entry in held]
        return any(version is not None and version.workspace == workspace for version in versions)

    def remark(self, names: Iterable[str]) -> str:
        """What is said where hits of workspaces of these names were left out."""
        told = ", ".join(sorted(set(names)))
        if self._ids:
            return (
                f"Left out: incidents of another workspace that is named {told} too in the shared knowledge store. "
                "sentinel knowledge ingest says what helps."
            )
        return (
            f"Left out: incidents of the workspace {told}, which is not asked here. To read in those of this one: "
            "sentinel knowledge ingest"
        )

    def _is_open(self, document_id: str) -> bool:
        """All of a name are of one workspace in a shared store, so it is asked once for each name."""
        if not document_id.startswith("incident-"):
            return False
        name = _name_in(document_id)
        return name in self._ids and name not in self._ours if self._ids else bool(self._served)

    def _is_other(self, name: str, version: IncidentVersion) -> bool:
        if self._ids:
            return version.workspace_id not in ("", self._ids[name])
        return version.workspace not in self._served


def _name_in(document_id: str) -> str:
    return document_id.partition("@")[2]
