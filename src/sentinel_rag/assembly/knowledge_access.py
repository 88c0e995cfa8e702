"""The knowledge of this home, as objects: where its store lies, and the model that is in use.

The model is the one on this machine; where it is not installed, knowledge is put in and found by words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.stores import LocalStore


def knowledge_file(settings: Settings) -> Path:
    """The file of the local store."""
    return settings.home / "knowledge" / "knowledge.db"


def open_knowledge(settings: Settings) -> LocalStore:
    """The local store, made where there is none. Raises UnavailableError."""
    from sentinel_rag.knowledge.stores import LocalStore

    return LocalStore(knowledge_file(settings))


def shipped_playbooks() -> Path:
    """The playbooks that come with this installation: of the checkout, else of the package."""
    here = Path(__file__).resolve().parents[1]
    checkout = here.parents[1] / "data" / "playbooks"
    return checkout if checkout.is_dir() else here / "default_playbooks"


def local_embedder() -> tuple[Embedder | None, str]:
    """The model on this machine, or None with what is missing and the step that mends it, as one text."""
    from sentinel_rag.knowledge.embedding.local_installation import local_model_state
    from sentinel_rag.knowledge.embedding.minilm import MiniLm

    state = local_model_state()
    return (None, f"{state.missing} {state.next_step}") if state.missing else (MiniLm(), "")
