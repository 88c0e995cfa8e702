"""The knowledge tool server's zone: what the supervisor tells it of the settings, and the objects that it makes of
that.

Nothing is opened before the first search. A store of this machine that holds no document then begins with the shipped
playbooks, found by words: that takes no model, no network and less than a second. Incidents are read in by the same
process, which holds the credential for that; it is asked by surfaces, with a token that the gateway and the agent do
not have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.app.knowledge_stores import is_shared
from sentinel_rag.settings import Secret, Settings, azure_environment, bare_environment, model_environment

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from sentinel_rag.knowledge.ingest_record import IngestFiles
    from sentinel_rag.knowledge.stores import KnowledgeStore
    from sentinel_rag.tools.knowledge import KnowledgeBase
    from sentinel_rag.tools.knowledge.incident_ingest import WorkspacesToRead

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
    from sentinel_rag.app.knowledge_access import playbook_owner
    from sentinel_rag.tools.knowledge import create_app
    from sentinel_rag.tools.knowledge.admin import admin_app
    from sentinel_rag.tools.knowledge.incident_ingest import IncidentIngest
    from sentinel_rag.tools.knowledge.playbook_ingest import PlaybookIngest
    from sentinel_rag.tools.knowledge.refresh import Refreshing

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
    from sentinel_rag.knowledge.ingest_record import IngestFiles

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

    from sentinel_rag.app.named_connections import connected_workspaces
    from sentinel_rag.tools.knowledge.incident_ingest import WorkspacesToRead
    from sentinel_rag.tools.knowledge.incident_source import SentinelIncidents

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
        from sentinel_rag.app.knowledge_access import open_embedder, open_knowledge

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
    from sentinel_rag.app.knowledge_access import shipped_playbooks
    from sentinel_rag.knowledge.folder_ingestion import ingest_folder

    ingest_folder(store, None, shipped_playbooks())


def _plain(value: Any) -> str:
    """A secret or a path as JSON carries it."""
    assert isinstance(value, Secret | Path)
    return value.reveal() if isinstance(value, Secret) else str(value)
