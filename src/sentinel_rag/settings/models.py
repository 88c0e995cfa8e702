"""The model that questions are asked of, and what makes the vectors of knowledge."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from sentinel_rag.settings.shapes import EmbeddingSettings, ModelSettings, Secret
from sentinel_rag.settings.values import MOST_SECONDS, SettingReader, between, one_of, seconds
from sentinel_rag.settings.workspace_file import http_url

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
        if not reader.values.get(variable, "").strip()
    ]
    return ModelSettings(
        provider=provider,
        url=url,
        key=key,
        name=name,
        small_name=read("SENTINEL_MODEL_SMALL_NAME", _model_name, None),
        api_version=api_version,
        prices=read("SENTINEL_MODEL_PRICES", _model_prices, {}),
        timeout_s=read("SENTINEL_MODEL_TIMEOUT_S", seconds, 120.0),
        idle_timeout_s=read("SENTINEL_MODEL_IDLE_TIMEOUT_S", seconds, 30.0),
        tool_rounds=read("SENTINEL_MAX_TOOL_ROUNDS", between(1, 40), 15),
        context_tokens=read("SENTINEL_MODEL_CONTEXT_TOKENS", _context_tokens, 128_000),
        role=read("SENTINEL_MODEL_ROLE", one_of(MODEL_ROLES), "answer"),
    )


def question_seconds(model: ModelSettings | None) -> float:
    """Seconds of a question where nothing else is set: more than one answer of the model may take, so that a model that
    is too slow is what the person reads of."""
    return QUESTION_S if model is None else min(max(QUESTION_S, model.timeout_s + 60), MOST_SECONDS)


def _context_tokens(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text[:9]) < LEAST_CONTEXT_TOKENS:
        raise ValueError(
            f"{text[:9]} is too small for any question: the rules, a few tools, some rows and an answer take "
            f"{LEAST_CONTEXT_TOKENS}; start the model server with 16384 (llama.cpp: --ctx-size 16384)"
        )
    return between(LEAST_CONTEXT_TOKENS, 10_000_000)(text)


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
        if not reader.values.get(variable, "").strip()
    ]
    return EmbeddingSettings(
        provider=provider,
        url=read("AZURE_OPENAI_ENDPOINT" if azure else "SENTINEL_EMBEDDINGS_URL", url_without_name, ""),
        key=read("AZURE_OPENAI_API_KEY" if azure else "SENTINEL_EMBEDDINGS_API_KEY", copied_key, None),
        name=read("SENTINEL_EMBEDDINGS_NAME", _model_name, ""),
        api_version=read("AZURE_OPENAI_API_VERSION", _api_version, None) if azure else None,
        dimensions=read("SENTINEL_EMBEDDINGS_DIMENSIONS", between(1, 8_192), 1_024),
        tokens_per_minute=read("SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE", between(0, 100_000_000), 0),
    )
