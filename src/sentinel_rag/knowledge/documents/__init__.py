"""Documents of knowledge: playbooks of a folder and incidents, as sections of blocks with label and readers.

Chunking and ingestion import from here. Nothing here knows a store, a model or a client of Sentinel.
"""

from sentinel_rag.knowledge.documents.incidents import (
    IncidentRecord,
    incident_document,
    incident_from_rest,
    incident_id,
)
from sentinel_rag.knowledge.documents.model import (
    EVERYONE,
    UNTRUSTED_KNOWLEDGE,
    BlockKind,
    Collection,
    Document,
    DocumentBlock,
    DocumentSection,
    Facets,
)
from sentinel_rag.knowledge.documents.playbook_files import (
    LARGEST_FILE,
    FileLimits,
    FileOutcome,
    FileReading,
    read_folder,
)

__all__ = [
    "EVERYONE",
    "LARGEST_FILE",
    "UNTRUSTED_KNOWLEDGE",
    "BlockKind",
    "Collection",
    "Document",
    "DocumentBlock",
    "DocumentSection",
    "Facets",
    "FileLimits",
    "FileOutcome",
    "FileReading",
    "IncidentRecord",
    "incident_document",
    "incident_from_rest",
    "incident_id",
    "read_folder",
]
