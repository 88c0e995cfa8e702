"""Where knowledge is kept: the store in use, and what each store asks for. Secrets are held as `Secret`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sentinel_rag.settings.databases import postgres_url, schema_name
from sentinel_rag.settings.models import copied_key, url_without_name
from sentinel_rag.settings.shapes import AzureSearchSettings, KnowledgeSettings, PostgresSettings
from sentinel_rag.settings.values import SettingReader, between, one_of

KNOWLEDGE_STORES = ("local", "chroma", "pgvector", "azure-search")
"""The stores of ours by their names; others are plugins. `app.knowledge_stores` opens them."""

STORE_PLUGINS = "sentinel_rag.knowledge_stores"
"""The entry point group of stores that packages bring; an entry point names a `StoreKind` by the store's name."""

_INDEX_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|-(?!-)){0,98}[a-z0-9]")

NEEDED: Mapping[str, Mapping[str, str]] = {
    "local": {},
    "chroma": {},
    "pgvector": {"SENTINEL_KNOWLEDGE_URL": "the address of the database"},
    "azure-search": {"SENTINEL_AZURE_SEARCH_ENDPOINT": "the address of the search service"},
}
"""Store -> variable that it cannot do without -> what that holds."""


def read_knowledge(reader: SettingReader) -> KnowledgeSettings:
    """What is set for every store, since `sentinel knowledge migrate` opens two; what the one in use lacks is a
    problem."""
    store = reader.read("SENTINEL_KNOWLEDGE_STORE", _store_name, "local")
    reader.problems += [
        f"{variable}: is missing; SENTINEL_KNOWLEDGE_STORE={store} needs {what}"
        for variable, what in NEEDED.get(store, {}).items()
        if not reader.values.get(variable, "").strip()
    ]
    return KnowledgeSettings(
        store=store,
        refresh_minutes=reader.read("SENTINEL_KNOWLEDGE_REFRESH_MINUTES", between(0, 10_080), 60),
        chroma_folder=reader.read("SENTINEL_CHROMA_PATH", lambda text: Path(text).expanduser().absolute(), None),
        postgres=_postgres(reader),
        azure_search=_azure_search(reader),
    )


def _store_name(text: str) -> str:
    """A store of ours, or one that an installed package brings."""
    from importlib.metadata import entry_points  # 20 ms, which only a store that is set has to pay

    plugins = entry_points(group=STORE_PLUGINS).names
    return one_of((*KNOWLEDGE_STORES, *sorted(plugins - {*KNOWLEDGE_STORES})))(text)


def _postgres(reader: SettingReader) -> PostgresSettings:
    return PostgresSettings(
        url=reader.read("SENTINEL_KNOWLEDGE_URL", postgres_url, None),
        schema=reader.read("SENTINEL_KNOWLEDGE_SCHEMA", schema_name, "sentinel_knowledge"),
    )


def _azure_search(reader: SettingReader) -> AzureSearchSettings:
    return AzureSearchSettings(
        url=reader.read("SENTINEL_AZURE_SEARCH_ENDPOINT", url_without_name, ""),
        key=reader.read("SENTINEL_AZURE_SEARCH_KEY", copied_key, None),
        index=reader.read("SENTINEL_AZURE_SEARCH_INDEX", _index_name, "sentinel-knowledge"),
    )


def _index_name(text: str) -> str:
    if not _INDEX_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not 2 to 100 lower-case letters, digits and single dashes")
    return text
