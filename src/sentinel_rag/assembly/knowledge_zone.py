"""The knowledge executor's zone: what the supervisor tells it of the settings, and the objects that it makes of that.

Nothing is opened before the first search. A store that holds no document then begins with the shipped playbooks, found
by words: that takes no model, no network and less than a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.settings import Secret, Settings, azure_environment, bare_environment, model_environment

if TYPE_CHECKING:
    from sentinel_rag.executors.knowledge import KnowledgeBase
    from sentinel_rag.knowledge.stores import KnowledgeStore

_TOLD = ("home", "embeddings")
"""The fields of `Settings` that the zone is told; its configuration line holds their secrets."""


def knowledge_configuration(settings: Settings) -> dict[str, Any]:
    """The executor's share of its configuration line."""
    import msgspec

    told = {name: getattr(settings, name) for name in _TOLD}
    return {"settings": msgspec.to_builtins(told, enc_hook=_plain)}


def knowledge_environment(settings: Settings) -> dict[str, str]:
    """What the zone sees of the environment: a sign-in to Azure only where the embedding model needs one."""
    if settings.embeddings.provider == "azure" and settings.embeddings.key is None:
        return azure_environment()
    remote = settings.embeddings.provider not in ("local", "none")
    return {**bare_environment(), **(model_environment() if remote else {})}


def knowledge_base(configuration: Mapping[str, Any]) -> KnowledgeBase:
    """The store and the model of a `knowledge_configuration`, to be opened by the first call."""
    from sentinel_rag.executors.knowledge import KnowledgeBase, Opened

    settings = told_settings(configuration)

    def opening() -> Opened:
        from sentinel_rag.assembly.knowledge_access import open_embedder, open_knowledge

        with ExitStack() as stack:
            model = stack.enter_context(open_embedder(settings.embeddings))
            store = open_knowledge(settings)
            stack.callback(store.close)
            return Opened(store, model.embedder, model.lacking, model.next_step, stack.pop_all().close)

    return KnowledgeBase(opening, begin=begin_with_shipped_playbooks)


def told_settings(configuration: Mapping[str, Any]) -> Settings:
    """The settings that the zone was told, every other one as if nothing were set."""
    import msgspec

    told = {**configuration["settings"], "policy_file": ""}
    return msgspec.convert(told, Settings, dec_hook=lambda kind, value: kind(value))


def begin_with_shipped_playbooks(store: KnowledgeStore) -> None:
    """Put the playbooks of this installation into an empty store, to be found by words."""
    from sentinel_rag.assembly.knowledge_access import shipped_playbooks
    from sentinel_rag.knowledge.folder_ingestion import ingest_folder

    ingest_folder(store, None, shipped_playbooks())


def _plain(value: Any) -> str:
    """A secret or a path as JSON carries it."""
    assert isinstance(value, Secret | Path)
    return value.reveal() if isinstance(value, Secret) else str(value)
