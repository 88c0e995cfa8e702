"""The knowledge of this home, as objects: the store and the embedding model of the settings.

`knowledge_stores` knows the stores. The default model is the one on this machine; where it is not installed, knowledge
is put in and found by words.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.assembly.knowledge_stores import open_store, place_of
from sentinel_rag.settings import EmbeddingSettings, Settings

if TYPE_CHECKING:
    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.embedding.wire import Admission, EmbeddingEndpoint
    from sentinel_rag.knowledge.stores import KnowledgeStore

_EARLY_S = 300
"""A token is renewed so long before it ends."""


@dataclass(frozen=True, slots=True)
class EmbedderInUse:
    """The model, or None: then `lacking` says what is missing and `next_step` what mends it; both are empty where
    none is wanted."""

    embedder: Embedder | None
    lacking: str = ""
    next_step: str = ""


def open_knowledge(settings: Settings) -> KnowledgeStore:
    """The store of the settings, made where there is none. Raises UnavailableError, and ConfigurationError for one that
    lacks a setting."""
    return open_store(settings.knowledge.store, settings)


def knowledge_place(settings: Settings) -> str:
    """Where the store of the settings lies, for a person; without secrets."""
    return place_of(settings.knowledge.store, settings)


def shipped_playbooks() -> Path:
    """The playbooks that come with this installation: of the checkout, else of the package."""
    here = Path(__file__).resolve().parents[1]
    checkout = here.parents[1] / "data" / "playbooks"
    return checkout if checkout.is_dir() else here / "default_playbooks"


@contextmanager
def open_embedder(settings: EmbeddingSettings) -> Iterator[EmbedderInUse]:
    """The model of the settings; nothing is loaded or connected before its first use. Raises ConfigurationError for an
    address that cannot be one."""
    if settings.provider == "none":
        yield EmbedderInUse(None)
    elif settings.provider == "local":
        yield _local()
    else:
        from sentinel_rag.knowledge.embedding.remote import RemoteEmbedder

        with RemoteEmbedder(_endpoint(settings), tokens_per_minute=settings.tokens_per_minute) as remote:
            yield EmbedderInUse(remote)


def _local() -> EmbedderInUse:
    from sentinel_rag.knowledge.embedding.local_installation import local_model_state
    from sentinel_rag.knowledge.embedding.minilm import MiniLm

    state = local_model_state()
    return EmbedderInUse(None, state.missing, state.next_step) if state.missing else EmbedderInUse(MiniLm())


def _endpoint(settings: EmbeddingSettings) -> EmbeddingEndpoint:
    from sentinel_rag.knowledge.embedding.wire import EmbeddingEndpoint, azure_embeddings

    key = None if settings.key is None else settings.key.reveal()
    if settings.provider == "azure":
        admission: Admission = _EntraId(settings.url) if key is None else _Key({"api-key": key})
        return azure_embeddings(
            settings.url,
            settings.name,
            admission,
            dimensions=settings.dimensions,
            api_version=settings.api_version,
        )
    admission = _Key({} if key is None else {"Authorization": f"Bearer {key}"})
    return EmbeddingEndpoint(settings.url.rstrip("/"), settings.name, settings.dimensions, admission)


class _Key:
    """Headers that stay the same."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    async def headers(self) -> Mapping[str, str]:
        return self._headers


class _EntraId:
    """Tokens of this machine's Azure sign-in, each used until it is about to end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._token = ""
        self._ends = 0.0

    async def headers(self) -> Mapping[str, str]:
        from sentinel_rag.assembly.model_access import model_resource
        from sentinel_rag.contracts.errors import UnavailableError
        from sentinel_rag.sentinel.credentials import azure_credential

        if time.time() > self._ends - _EARLY_S:
            try:
                async with azure_credential() as credential:
                    token = await credential.get_token(f"{model_resource(self._url)}/.default")
            except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
                raise UnavailableError(
                    "No Entra ID token for the embedding model could be had.",
                    next_step="Sign in (`az login`) or set AZURE_OPENAI_API_KEY.",
                ) from None
            self._token, self._ends = str(token.token), float(token.expires_on)
        return {"Authorization": f"Bearer {self._token}"}
