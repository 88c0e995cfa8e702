"""The model that questions are asked of, the one that makes vectors, and the databases of state and knowledge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from sentinel_rag.settings.values import MOST_SECONDS, Secret, SettingReader, between, one_of, path, seconds, setting
from sentinel_rag.settings.workspace_file import http_url

_AUTHORITY = re.compile(r"(?:[^@/?#]*@)?[^@/?#]*(?:[/?#][^@]*)?\Z")
_SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_BESIDE = ("_web", "_chat")
"""What stands behind the name of the state's schema in those of people and of the agent's memory."""
LONGEST_STATE_SCHEMA = 58
"""PostgreSQL cuts a name at 63 characters and says nothing: three schemas would become one."""


def postgres_url(text: str) -> Secret:
    """The address, never quoted: it holds a password."""
    if not text.isprintable() or " " in text:
        raise ValueError("holds a blank or a control character: copy it again")
    scheme, _, rest = text.partition("://")
    if scheme not in ("postgresql", "postgres") or not rest:
        raise ValueError("is no address like postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full")
    # Else a part of the password could be taken for the host, and be shown as such.
    if _AUTHORITY.match(rest) is None:
        raise ValueError("has an @, / or ? that is part of no address: percent-encode special characters in it")
    return Secret(text)


def schema_name(text: str) -> str:
    """A name that PostgreSQL takes as it is."""
    if not _SCHEMA_NAME.fullmatch(text) or text.startswith("pg_"):
        raise ValueError(f"{text!r} is not 1 to 63 lower-case letters, digits and underscores, a letter first")
    return text


def state_schema_name(text: str) -> str:
    """A name behind which those of the schemas beside it fit, and that is none of those itself."""
    name = schema_name(text)
    if len(name) > LONGEST_STATE_SCHEMA:
        raise ValueError(f"{name!r} is longer than {LONGEST_STATE_SCHEMA} characters: _web and _chat stand behind it")
    if name.endswith(_BESIDE):
        raise ValueError(f"{name!r} ends as a schema beside another one does: choose a name without _web or _chat")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """A database, and the schema in it. The address holds a password, so all of it is secret; without one no database
    is used."""

    url: Secret | None = None
    schema: str = "sentinel_knowledge"


MODELS = ("offline", "azure", "openai-compatible", "openrouter")
MODEL_ROLES = ("answer", "assist")
EMBEDDING_PROVIDERS = ("local", "none", "azure", "openai-compatible")
QUESTION_S = 180.0
LEAST_CONTEXT_TOKENS = 4_096
"""Below it no question is answered, whatever is left out: rules and tools of the small profile, rows and an answer."""
OPENROUTER_URL = "https://openrouter.ai/api/v1"
_API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-preview)?")
_PRICE = re.compile(r"(large|small)=(\d{1,6}(?:\.\d{1,6})?)/(\d{1,6}(?:\.\d{1,6})?)")


def _model_name(text: str) -> str:
    if len(text) > 200 or not text.isprintable():
        raise ValueError("is no name of a model: it is too long or holds control characters")
    return text


def url_without_name(text: str) -> str:
    """`http_url` without user names: they would stand in messages."""
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password; set the key instead")
    return http_url(text)


def copied_key(text: str) -> Secret:
    if not text.isascii() or not text.isprintable():
        raise ValueError("holds a character that no key has: copy it again")
    return Secret(text)


def _api_version(text: str) -> str:
    if not _API_VERSION.fullmatch(text):
        raise ValueError(f"{text!r} is no api-version such as 2024-10-21; leave it out to use the v1 endpoint")
    return text


def _model_prices(text: str) -> Mapping[str, tuple[Decimal, Decimal]]:
    found: dict[str, tuple[Decimal, Decimal]] = {}
    for part in text.split(","):
        match = _PRICE.fullmatch(part.strip())
        if match is None or match[1] in found:
            raise ValueError(f"{part.strip()!r} is not of the form large=INPUT/OUTPUT or small=INPUT/OUTPUT, once each")
        found[match[1]] = (Decimal(match[2]), Decimal(match[3]))
    return found


def _context_tokens(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:9]) < LEAST_CONTEXT_TOKENS:
        raise ValueError(
            f"{text[:9]} is too small for any question: the rules, a few tools, some rows and an answer take "
            f"{LEAST_CONTEXT_TOKENS}; start the model server with 16384 (llama.cpp: --ctx-size 16384)"
        )
    return between(LEAST_CONTEXT_TOKENS, 10_000_000)(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The model that answers, unless it is `offline`. `provider` is azure, openai-compatible or openrouter.

    `prices` are US dollars for a million tokens, (input, output), by tier: `large` and `small`. Without a key, Azure is
    entered with Entra ID and another server with nothing.
    """

    provider: str
    url: str
    key: Secret | None
    name: str
    small_name: str | None = setting("SENTINEL_MODEL_SMALL_NAME", _model_name, None)
    api_version: str | None = None
    prices: Mapping[str, tuple[Decimal, Decimal]] = setting("SENTINEL_MODEL_PRICES", _model_prices, {})
    timeout_s: float = setting("SENTINEL_MODEL_TIMEOUT_S", seconds, 120.0)
    idle_timeout_s: float = setting("SENTINEL_MODEL_IDLE_TIMEOUT_S", seconds, 30.0)
    tool_rounds: int = setting("SENTINEL_MAX_TOOL_ROUNDS", between(1, 40), 15)
    """Rounds of tool calls of one question, before its model is asked to answer without further ones."""
    context_tokens: int = setting("SENTINEL_MODEL_CONTEXT_TOKENS", _context_tokens, 128_000)
    """The model's context, as far as it is used."""
    role: str = setting("SENTINEL_MODEL_ROLE", one_of(MODEL_ROLES), "answer")
    """`answer`: the model plans and writes. `assist`: rules do, and it chooses a call where they ask back."""


def read_model(provider: str, reader: SettingReader) -> ModelSettings | None:
    """What `provider` needs, read and checked; None for `offline`, whatever else is set."""
    if provider == "offline":
        return None
    read = reader.read
    name = read("SENTINEL_MODEL_NAME", _model_name, "")
    url, key, api_version = "", None, None
    missing: list[tuple[str, str]] = []
    if provider == "azure":
        name = name or read("AZURE_OPENAI_CHAT_DEPLOYMENT", _model_name, "")
        url = read("AZURE_OPENAI_ENDPOINT", url_without_name, "")
        key = read("AZURE_OPENAI_API_KEY", copied_key, None)
        api_version = read("AZURE_OPENAI_API_VERSION", _api_version, None)
        missing.append(("AZURE_OPENAI_ENDPOINT", "the resource's address, https://NAME.openai.azure.com"))
        if not name:
            missing.append(("SENTINEL_MODEL_NAME", "the name of the deployment"))
    elif provider == "openrouter":
        url = OPENROUTER_URL
        key = read("OPENROUTER_API_KEY", copied_key, None)
        missing += [("OPENROUTER_API_KEY", "a key at OpenRouter"), ("SENTINEL_MODEL_NAME", "a model's name there")]
    else:
        url = read("SENTINEL_MODEL_URL", url_without_name, "")
        key = read("SENTINEL_MODEL_API_KEY", copied_key, None)
        missing.append(("SENTINEL_MODEL_URL", "the server's base URL, such as http://127.0.0.1:11434/v1"))
        missing.append(("SENTINEL_MODEL_NAME", "the name of the model"))
    reader.problems += [
        f"{variable}: is missing; SENTINEL_MODEL={provider} needs {what}"
        for variable, what in missing
        if not reader.is_set(variable)
    ]
    return reader.of(ModelSettings, provider=provider, url=url, key=key, name=name, api_version=api_version)


def question_seconds(model: ModelSettings | None) -> float:
    """Seconds of a question where nothing else is set: more than one answer of the model may take, so that a model that
    is too slow is what the person reads of."""
    return QUESTION_S if model is None else min(max(QUESTION_S, model.timeout_s + 60), MOST_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """The model that makes vectors of knowledge. `provider` is local, none, azure or openai-compatible; the rest is for
    the last two. Without a key, Azure is entered with Entra ID. `tokens_per_minute` 0 sets no pace."""

    provider: str = "local"
    url: str = ""
    key: Secret | None = None
    name: str = setting("SENTINEL_EMBEDDINGS_NAME", _model_name, "")
    api_version: str | None = None
    dimensions: int = setting("SENTINEL_EMBEDDINGS_DIMENSIONS", between(1, 8_192), 1_024)
    tokens_per_minute: int = setting("SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE", between(0, 100_000_000), 0)


def read_embeddings(reader: SettingReader) -> EmbeddingSettings:
    """What makes the vectors of knowledge; `local` and `none` need nothing else."""
    read = reader.read
    provider = read("SENTINEL_EMBEDDINGS", one_of(EMBEDDING_PROVIDERS), "local")
    if provider in ("local", "none"):
        return EmbeddingSettings(provider=provider)
    azure = provider == "azure"
    needed = {
        "SENTINEL_EMBEDDINGS_NAME": "the name of the deployment" if azure else "the name of the model",
        "AZURE_OPENAI_ENDPOINT" if azure else "SENTINEL_EMBEDDINGS_URL": "the address of the service",
    }
    reader.problems += [
        f"{variable}: is missing; SENTINEL_EMBEDDINGS={provider} needs {what}"
        for variable, what in needed.items()
        if not reader.is_set(variable)
    ]
    return reader.of(
        EmbeddingSettings,
        provider=provider,
        url=read("AZURE_OPENAI_ENDPOINT" if azure else "SENTINEL_EMBEDDINGS_URL", url_without_name, ""),
        key=read("AZURE_OPENAI_API_KEY" if azure else "SENTINEL_EMBEDDINGS_API_KEY", copied_key, None),
        api_version=read("AZURE_OPENAI_API_VERSION", _api_version, None) if azure else None,
    )


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


def _store_name(text: str) -> str:
    """A store of ours, or one that an installed package brings."""
    from importlib.metadata import entry_points  # 20 ms, which only a store that is set has to pay

    plugins = entry_points(group=STORE_PLUGINS).names
    return one_of((*KNOWLEDGE_STORES, *sorted(plugins - {*KNOWLEDGE_STORES})))(text)


def _index_name(text: str) -> str:
    if not _INDEX_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not 2 to 100 lower-case letters, digits and single dashes")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSearchSettings:
    """A service of Azure AI Search; without a key it is entered with Entra ID. `index` is what its indexes are named
    by."""

    url: str = setting("SENTINEL_AZURE_SEARCH_ENDPOINT", url_without_name, "")
    key: Secret | None = setting("SENTINEL_AZURE_SEARCH_KEY", copied_key, None)
    index: str = setting("SENTINEL_AZURE_SEARCH_INDEX", _index_name, "sentinel-knowledge")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSettings:
    """Where knowledge is kept. `store` is the name of the store in use. `refresh_minutes`: how often past incidents are
    brought up to date while zones run; 0: not by itself. `chroma_folder` is None for the one in the home."""

    store: str = setting("SENTINEL_KNOWLEDGE_STORE", _store_name, "local")
    refresh_minutes: int = setting("SENTINEL_KNOWLEDGE_REFRESH_MINUTES", between(0, 10_080), 60)
    chroma_folder: Path | None = setting("SENTINEL_CHROMA_PATH", path, None)
    postgres: PostgresSettings = PostgresSettings()
    azure_search: AzureSearchSettings = AzureSearchSettings()


def read_knowledge(reader: SettingReader) -> KnowledgeSettings:
    """What is set for every store, since `sentinel knowledge migrate` opens two; what the one in use lacks is a
    problem."""
    found = reader.of(
        KnowledgeSettings,
        postgres=PostgresSettings(
            url=reader.read("SENTINEL_KNOWLEDGE_URL", postgres_url, None),
            schema=reader.read("SENTINEL_KNOWLEDGE_SCHEMA", schema_name, "sentinel_knowledge"),
        ),
        azure_search=reader.of(AzureSearchSettings),
    )
    reader.problems += [
        f"{variable}: is missing; SENTINEL_KNOWLEDGE_STORE={found.store} needs {what}"
        for variable, what in NEEDED.get(found.store, {}).items()
        if not reader.is_set(variable)
    ]
    return found
