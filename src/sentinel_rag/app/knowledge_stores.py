"""The knowledge base of these settings: its stores by name, the embedding model, and the zone that serves it.

Stores beyond the two here are plugins: packages with an entry point in the group `STORE_PLUGINS`. What a store needs is
imported when it is opened. Nothing is opened before the first search; a store of this machine without documents then
begins with the shipped playbooks, found by words. Incidents are read in by the zone's process, which holds the
credential for that; surfaces ask it with a token that the gateway and the agent do not have.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import (
    EmbeddingSettings,
    Secret,
    Settings,
    azure_environment,
    bare_environment,
    model_environment,
)
from sentinel_rag.settings.deployment import STORE_PLUGINS

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sentinel_rag.knowledge.embedding import Embedder
    from sentinel_rag.knowledge.embedding.remote import Admission, EmbeddingEndpoint
    from sentinel_rag.knowledge.ingestion import IngestFiles, PlaybookOwner
    from sentinel_rag.knowledge.stores import KnowledgeStore
    from sentinel_rag.tools.knowledge import KnowledgeBase
    from sentinel_rag.tools.knowledge.ingestion import WorkspacesToRead


KNOWN_PLUGINS: Mapping[str, str] = {"chroma": "sentinel-rag-chroma", "azure-search": "sentinel-rag-azure-search"}
"""Store -> the package of ours that brings it."""


@dataclass(frozen=True, slots=True)
class StoreKind:
    """How a store is opened with these settings, and where it lies as a person says it (no secret in it)."""

    open: Callable[[Settings], KnowledgeStore]
    place: Callable[[Settings], str]
    shared: bool = False
    """Whether several homes may use it, each with workspaces and playbooks of its own."""


def open_store(name: str, settings: Settings) -> KnowledgeStore:
    """The store of that name, made where there is none. Raises UnavailableError, also where its packages are not
    installed, and ConfigurationError for a name that no store has or a setting that it lacks."""
    return _kind(name).open(settings)


def place_of(name: str, settings: Settings) -> str:
    """Where the store of that name lies, for a person. Raises what `open_store` raises for its name."""
    return _kind(name).place(settings)


def is_shared(name: str) -> bool:
    """Whether several homes may use the store of that name. Raises what `open_store` raises for its name."""
    return _kind(name).shared


def _kind(name: str) -> StoreKind:
    if name in STORES:
        return STORES[name]
    from importlib.metadata import entry_points

    installed = entry_points(group=STORE_PLUGINS)
    if name in installed.names:
        kind = installed[name].load()
        if not isinstance(kind, StoreKind):
            raise ConfigurationError(
                f"The package that brings the knowledge store {name!r} is not made for this version.",
                next_step=f"Its entry point in {STORE_PLUGINS} must name a StoreKind; take another store.",
            )
        return kind
    if name in KNOWN_PLUGINS:
        raise UnavailableError(
            f"The knowledge store {name} comes with a package that is not installed.",
            next_step=f"Run: pip install {KNOWN_PLUGINS[name]}",
        )
    raise ConfigurationError(
        f"There is no knowledge store {name!r}.",
        next_step=f"Take one of these: {', '.join(sorted({*STORES, *KNOWN_PLUGINS, *installed.names}))}.",
    )


@contextmanager
def needs_packages(store: str, installable: str, *modules: str) -> Iterator[None]:
    """Around the import of a store: if one of its top-level `modules` is not installed, says what `installable` brings
    them."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in modules:
            raise
        raise UnavailableError(
            f"The knowledge store {store} needs the package {missing}, which is not installed.",
            next_step=f"Run: pip install {installable}",
        ) from None


def _local_file(settings: Settings) -> Path:
    return settings.home / "knowledge" / "knowledge.db"


def _open_local(settings: Settings) -> KnowledgeStore:
    from sentinel_rag.knowledge.stores import LocalStore

    return LocalStore(_local_file(settings))


def _open_pgvector(settings: Settings) -> KnowledgeStore:
    postgres = settings.knowledge.postgres
    if postgres.url is None:
        raise ConfigurationError(
            "SENTINEL_KNOWLEDGE_URL is not set; the knowledge store pgvector needs the address of its database.",
            next_step="Set it to postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    with needs_packages("pgvector", "'sentinel-rag[postgres]'", "numpy", "psycopg"):
        from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
    return PgVectorStore(postgres.url.reveal(), postgres.schema)


def _pgvector_place(settings: Settings) -> str:
    """Host and database, without what stands before them (user, password) and behind (options)."""
    postgres = settings.knowledge.postgres
    address = "" if postgres.url is None else postgres.url.reveal().partition("://")[2].partition("?")[0]
    host, _, database = address.rpartition("@")[2].partition("/")
    return f"PostgreSQL, database {database or '(default)'} at {host or 'this machine'}, schema {postgres.schema}"


STORES: Mapping[str, StoreKind] = {
    "local": StoreKind(_open_local, lambda settings: str(_local_file(settings))),
    "pgvector": StoreKind(_open_pgvector, _pgvector_place, shared=True),
}
"""The stores that come with the product."""


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
    from sentinel_rag.app.places import embedded_workspace_id

    if not is_shared(settings.knowledge.store):
        return ""
    azure = settings.azure_workspaces.get(name)
    return embedded_workspace_id(settings.home, name) if azure is None else azure.lower()


def playbook_owner(settings: Settings, folder: Path) -> PlaybookOwner:
    """Whose the playbooks of `folder` are in the store of the settings. Raises UnavailableError."""
    from sentinel_rag.app.places import home_id
    from sentinel_rag.knowledge.ingestion import NOBODY, SHIPPED, home_owner

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
    from sentinel_rag.knowledge.embedding.minilm import MiniLm, local_model_state

    state = local_model_state()
    if state.missing:
        return EmbedderInUse(None, state.missing, state.next_step)
    model = MiniLm()
    return EmbedderInUse(model, rest=model.rest)


def _endpoint(settings: EmbeddingSettings) -> EmbeddingEndpoint:
    from sentinel_rag.knowledge.embedding.remote import EmbeddingEndpoint, azure_embeddings

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


_TOLD = ("home", "embeddings", "knowledge")
"""The fields of `Settings` that the zone is told; its configuration line holds their secrets."""


def knowledge_configuration(settings: Settings) -> dict[str, Any]:
    """The tool server's share of its configuration line."""
    import msgspec

    told = {name: getattr(settings, name) for name in _TOLD}
    return {"settings": msgspec.to_builtins(told, enc_hook=_plain)}


def knowledge_environment(settings: Settings) -> dict[str, str]:
    """What the zone sees of the environment: a sign-in to Azure only where a workspace, the model or the store needs
    one."""
    in_search_service = settings.knowledge.store == "azure-search"
    if (
        settings.uses_azure
        or (settings.embeddings.provider == "azure" and settings.embeddings.key is None)
        or (in_search_service and settings.knowledge.azure_search.key is None)
    ):
        return azure_environment()
    remote = in_search_service or settings.embeddings.provider not in ("local", "none")
    return {**bare_environment(), **(model_environment() if remote else {})}


def knowledge_app(configuration: Mapping[str, Any]) -> ASGIApp:
    """The whole zone: search for the gateway, reading in for surfaces, and the refresh by the clock."""
    from sentinel_rag.tools.knowledge import create_app
    from sentinel_rag.tools.knowledge.ingestion import IncidentIngest, PlaybookIngest, Refreshing, admin_app

    settings = told_settings(configuration)
    base = knowledge_base(configuration)
    files = ingest_files(settings)
    shared = is_shared(settings.knowledge.store)
    ingest = IncidentIngest(base, partial(open_workspaces, configuration["workspaces"]), files, shared=shared)
    base.incidents_as_of = ingest.as_of
    playbooks = PlaybookIngest(base, files, partial(playbook_owner, settings))
    app = create_app(
        base,
        token=configuration["token"],
        admin=admin_app(ingest, playbooks, token=configuration["admin_token"]),
    )
    minutes = settings.knowledge.refresh_minutes
    return Refreshing(app, ingest, every_s=60.0 * minutes) if minutes else app


def ingest_files(settings: Settings) -> IngestFiles:
    """Where the lock of an ingest lies, and the records of what was read into the store of the settings."""
    from sentinel_rag.knowledge.ingestion import IngestFiles

    folder, store = settings.home / "knowledge", settings.knowledge.store
    return IngestFiles(
        lock=folder / "ingest.lock",
        record=folder / f"incidents-{store}.json",
        playbooks=folder / f"playbooks-{store}.txt",
    )


@asynccontextmanager
async def open_workspaces(entries: Sequence[Mapping[str, Any]]) -> AsyncIterator[WorkspacesToRead]:
    """The workspaces of a run, connected until it ends. Half of the request limits stay with the analyst's questions,
    which another process answers."""
    import anyio

    from sentinel_rag.app.azure import connected_workspaces
    from sentinel_rag.tools.knowledge.incident_source import SentinelIncidents
    from sentinel_rag.tools.knowledge.ingestion import WorkspacesToRead

    logs, rest = connected_workspaces(entries, share=0.5)
    try:
        readable = [SentinelIncidents(each, logs[name]) for name, each in rest.items()]
        unreadable = {
            name: f"The workspace {name} has no Resource ID, by which incidents are read."
            for name in logs
            if name not in rest
        }
        yield WorkspacesToRead(readable, unreadable)
    finally:
        # A client that leaves cancels the run, and its connections are closed all the same.
        with anyio.CancelScope(shield=True):
            for manager in {each.connection for each in rest.values()}:
                await manager.close()
            for connection in {each.connection for each in logs.values()}:
                await connection.close()


def knowledge_base(configuration: Mapping[str, Any]) -> KnowledgeBase:
    """The store and the model of a `knowledge_configuration`, to be opened by the first call."""
    from sentinel_rag.tools.knowledge import KnowledgeBase, OpenedStore

    settings = told_settings(configuration)

    def opening() -> OpenedStore:

        with ExitStack() as stack:
            model = stack.enter_context(open_embedder(settings.embeddings))
            store = open_knowledge(settings)
            stack.callback(store.close)
            return OpenedStore(store, model.embedder, model.lacking, model.next_step, stack.pop_all().close, model.rest)

    shared = is_shared(settings.knowledge.store)
    # A store of this machine is this person's; nobody asked to write into one that a team shares.
    begin = _leave_empty if shared else begin_with_shipped_playbooks
    ids = {each["name"]: each["workspace_id"].lower() for each in configuration["workspaces"]}
    return KnowledgeBase(opening, begin=begin, workspaces=tuple(ids), workspace_ids=ids if shared else {})


def told_settings(configuration: Mapping[str, Any]) -> Settings:
    """The settings that the zone was told, every other one as if nothing were set."""
    import msgspec

    told = {**configuration["settings"], "policy_file": ""}
    return msgspec.convert(told, Settings, dec_hook=lambda kind, value: kind(value))


def _leave_empty(_: KnowledgeStore) -> None:
    """It is filled by whoever runs `sentinel knowledge ingest`."""


def begin_with_shipped_playbooks(store: KnowledgeStore) -> None:
    """Put the playbooks of this installation into an empty store, to be found by words."""
    from sentinel_rag.knowledge.ingestion import ingest_folder

    ingest_folder(store, None, shipped_playbooks())


def _plain(value: Any) -> str:
    """A secret or a path as JSON carries it."""
    assert isinstance(value, Secret | Path)
    return value.reveal() if isinstance(value, Secret) else str(value)
