"""The knowledge of this home, as objects: the store and the embedding model of the settings.

`knowledge_stores` knows the stores. The default model is the one on this machine; where it is not installed, knowledge
is put in and found by words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_stores import is_shared, open_store, place_of
from sentinel_rag.settings import EmbeddingSettings, Settings

if TYPE_CHECKING:
    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.embedding.wire import Admission, EmbeddingEndpoint
    from sentinel_rag.knowledge.playbook_owners import PlaybookOwner
    from sentinel_rag.knowledge.stores import KnowledgeStore


@dataclass(frozen=True, slots=True)
class EmbedderInUse:
    """The model, or None: then `lacking` says what is missing and `next_step` what mends it; both are empty where
    none is wanted. `rest` gives back the memory that embedding documents took."""

    embedder: Embedder | None
    lacking: str = ""
    next_step: str = ""
    rest: Callable[[], None] = lambda: None


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


def workspace_id_in_store(settings: Settings, name: str) -> str:
    """The id by which the store of the settings knows this home's workspace `name`; empty in a store of one home, where
    the name is enough. Raises UnavailableError."""
    from sentinel_rag.app.home_identity import embedded_workspace_id

    if not is_shared(settings.knowledge.store):
        return ""
    azure = settings.azure_workspaces.get(name)
    return embedded_workspace_id(settings.home, name) if azure is None else azure.lower()


def playbook_owner(settings: Settings, folder: Path) -> PlaybookOwner:
    """Whose the playbooks of `folder` are in the store of the settings. Raises UnavailableError."""
    from sentinel_rag.app.home_identity import home_id
    from sentinel_rag.knowledge.playbook_owners import NOBODY, SHIPPED, home_owner

    if not is_shared(settings.knowledge.store):
        return NOBODY
    return SHIPPED if folder.resolve() == shipped_playbooks().resolve() else home_owner(str(home_id(settings.home)))


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
    if state.missing:
        return EmbedderInUse(None, state.missing, state.next_step)
    model = MiniLm()
    return EmbedderInUse(model, rest=model.rest)


def _endpoint(settings: EmbeddingSettings) -> EmbeddingEndpoint:
    from sentinel_rag.knowledge.embedding.wire import EmbeddingEndpoint, azure_embeddings

    key = None if settings.key is None else settings.key.reveal()
    if settings.provider == "azure":
        from sentinel_rag.app.model_access import model_resource

        sign_in = "Sign in (`az login`) or set AZURE_OPENAI_API_KEY."
        admission: Admission = (
            EntraToken(model_resource(settings.url), "the embedding model", next_step=sign_in)
            if key is None
            else KeyHeaders({"api-key": key})
        )
        return azure_embeddings(
            settings.url,
            settings.name,
            admission,
            dimensions=settings.dimensions,
            api_version=settings.api_version,
        )
    admission = KeyHeaders({} if key is None else {"Authorization": f"Bearer {key}"})
    return EmbeddingEndpoint(settings.url.rstrip("/"), settings.name, settings.dimensions, admission)


# What lets a request into a service of Azure: a key that stays the same, or an Entra ID token that is renewed.
#
# The embedding model and the search service both ask for headers; where those come from is settled here.


_EARLY_S = 300
"""A token is renewed so long before it ends."""


class KeyHeaders:
    """Headers that stay the same."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    async def headers(self) -> Mapping[str, str]:
        return self._headers


class EntraToken:
    """Tokens of this machine's Azure sign-in for one resource, each used until it is about to end. `service` names what
    they are for in the error; `next_step` says what helps where none can be had."""

    def __init__(self, resource: str, service: str, *, next_step: str) -> None:
        self._resource = resource
        self._service = service
        self._next_step = next_step
        self._token = ""
        self._ends = 0.0

    async def headers(self) -> Mapping[str, str]:
        from sentinel_rag.contracts.errors import UnavailableError
        from sentinel_rag.sentinel.credentials import azure_credential

        if time.time() > self._ends - _EARLY_S:
            try:
                async with azure_credential() as credential:
                    token = await credential.get_token(f"{self._resource}/.default")
            except Exception:  # whatever a library of credentials raises; its text can hold tenant and client ids
                raise UnavailableError(
                    f"No Entra ID token for {self._service} could be had.", next_step=self._next_step
                ) from None
            self._token, self._ends = str(token.token), float(token.expires_on)
        return {"Authorization": f"Bearer {self._token}"}
