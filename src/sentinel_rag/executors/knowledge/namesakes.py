"""Incidents of a shared store that are cited by the name of this home's workspace and are another's.

Their numbers would be taken for this home's, so they are not shown here: whoever ingests is told to rename one of the
two, and nothing is read in under the name until then.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.incident_versions import version_from_text
from sentinel_rag.knowledge.stores.port import KnowledgeStore


class Namesakes:
    """Knows the ids of this home's workspaces by name; without any, nothing is a namesake's."""

    def __init__(self, workspace_ids: Mapping[str, str]) -> None:
        self._ids = workspace_ids
        self._ours: set[str] = set()

    def has(self, store: KnowledgeStore, document_id: str) -> bool:
        """Whether the document is an incident of a namesake. One of an earlier version tells no id and is none. All of
        a name are of one workspace, so the store is asked once for each."""
        name = document_id.partition("@")[2]
        if name not in self._ids or name in self._ours or not document_id.startswith("incident-"):
            return False
        for entry in store.entries(Collection.INCIDENTS, [document_id]):
            version = version_from_text(entry.document.etag)
            if version is not None and version.workspace_id not in ("", self._ids[name]):
                return True
            if version is not None and version.workspace_id:
                self._ours.add(name)
        return False


def remark_on(names: frozenset[str]) -> str:
    """What is said where hits were left out because of these names."""
    told = ", ".join(sorted(names))
    return (
        f"Left out: incidents of another workspace that is named {told} too in the shared knowledge store. "
        "sentinel knowledge ingest says what helps."
    )
