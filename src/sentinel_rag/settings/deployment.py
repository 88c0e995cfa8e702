"""Zones that run apart, with certificate, token and collector of each, and what the tools may reach.

Plain http stays within a machine, as for every other address in the settings.

The model that questions are asked of, the one that makes vectors, and the databases of state and knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import READER_NAMES, is_reader_name
from sentinel_rag.contracts.servers import LOOPBACK_NAMES, OWN_SERVERS
from sentinel_rag.settings.values import (
    MOST_SECONDS,
    Secret,
    SettingReader,
    between,
    http_url,
    key_text,
    one_of,
    path,
    read_env_file,
    seconds,
    setting,
    yes_or_no,
)

T = TypeVar("T")

LEAST_TOKEN = 32


def _file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise ValueError(f"{text!r} cannot be read: {error.strerror}") from None


def _base_url(text: str) -> str:
    """An address without a path: what is served there is known."""
    url = http_url(text)
    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("an address is to be no more than https://HOST or https://HOST:PORT")
    return url


def _token(text: str) -> Secret:
    """Never quoted in what it raises."""
    if len(text) < LEAST_TOKEN:
        raise ValueError(f"a token is shorter than {LEAST_TOKEN} characters, so it could be guessed")
    if not text.isascii() or not text.isprintable() or " " in text or "," in text:
        raise ValueError(
            "a token holds a blank, a comma or a character that cannot be sent: make it of letters and digits"
        )
    return Secret(text)


def _by_zone(convert: Callable[[str], T]) -> Callable[[str], Mapping[str, T]]:
    """`sentinel=VALUE,files=VALUE` with the names of tool servers."""

    def read(text: str) -> Mapping[str, T]:
        found: dict[str, T] = {}
        for part in text.split(","):
            name, equals, value = part.strip().partition("=")
            if not equals or name not in OWN_SERVERS:
                raise ValueError(f"is not of the form NAME=VALUE,NAME=VALUE with names of {', '.join(OWN_SERVERS)}")
            if name in found:
                raise ValueError(f"{name} stands twice")
            found[name] = convert(value)
        return found

    return read


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A certificate with its chain, and its key, both PEM."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSettings:
    """Where zones are that run apart (`sentinel serve`). `tls` is what this one proves itself with, `tls_ca` what the
    others are checked by (None: the system's authorities), `zone_token` what callers of this one show. `tools` and
    `tools_tokens` are by the name of a tool server."""

    tls: TlsFiles | None = None
    tls_ca: Path | None = setting("SENTINEL_TLS_CA", _file, None)
    zone_token: Secret | None = setting("SENTINEL_ZONE_TOKEN", _token, None)
    tools: Mapping[str, str] = setting("SENTINEL_TOOLS", _by_zone(_base_url), {})
    tools_tokens: Mapping[str, Secret] = setting("SENTINEL_TOOLS_TOKENS", _by_zone(_token), {})
    agent_url: str | None = setting("SENTINEL_AGENT_URL", _base_url, None)
    agent_token: Secret | None = setting("SENTINEL_AGENT_TOKEN", _token, None)


def read_deployment(reader: SettingReader) -> DeploymentSettings:
    """What is set; a certificate without its key, and an address without its token, are problems."""
    certificate = reader.read("SENTINEL_TLS_CERTIFICATE", _file, None)
    key = reader.read("SENTINEL_TLS_KEY", _file, None)
    if reader.is_set("SENTINEL_TLS_CERTIFICATE") != reader.is_set("SENTINEL_TLS_KEY"):
        lacking = "SENTINEL_TLS_KEY" if certificate is not None else "SENTINEL_TLS_CERTIFICATE"
        reader.problems.append(f"{lacking}: is missing; a certificate and its key go together")
    tls = None if certificate is None or key is None else TlsFiles(certificate, key)
    found = reader.of(DeploymentSettings, tls=tls)
    lacking_tokens = sorted(found.tools.keys() - found.tools_tokens.keys())
    if lacking_tokens:
        reader.problems.append(f"SENTINEL_TOOLS_TOKENS: has none for {', '.join(lacking_tokens)} of SENTINEL_TOOLS")
    if found.agent_url is not None and not reader.is_set("SENTINEL_AGENT_TOKEN"):
        reader.problems.append("SENTINEL_AGENT_TOKEN: is missing; the agent at SENTINEL_AGENT_URL asks for it")
    return found


SAMPLERS = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
PROTOCOL = "http/protobuf"
TRACE_CONTEXT = "tracecontext"
MAX_ENTRIES = 32
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_OURS = ("service.name", "service.version", "service.instance.id", "sentinel.", "telemetry.sdk.")


def collector_address(text: str) -> str:
    """The collector's base URL. Raises ValueError."""
    parts = urlsplit(text)
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("is no address such as http://127.0.0.1:4318")
    return text.rstrip("/")


def header_pairs(text: str) -> Mapping[str, Secret]:
    """Headers by name; values may be percent-encoded. Raises ValueError, without a value."""
    pairs = _pairs(text, _TOKEN, "a header's name")
    for name, value in pairs.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the value of {name} holds a character that no header may")
    return {name: Secret(value) for name, value in pairs.items()}


def resource_pairs(text: str) -> Mapping[str, str]:
    """Attributes by name. Raises ValueError."""
    pairs = _pairs(text, _ATTRIBUTE, "the name of an attribute, such as deployment.environment.name")
    for name, value in pairs.items():
        if name.startswith(_OURS):
            raise ValueError(f"{name} is set by the zones themselves")
        if len(value) > 128 or not value.isprintable():
            raise ValueError(f"the value of {name} is longer than 128 characters, or not printable")
    return pairs


def _pairs(text: str, names: re.Pattern[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in text.split(","):
        name, equals, value = entry.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not value:
            raise ValueError("is not of the form name=value,name=value")
        if not names.fullmatch(name):
            raise ValueError(f"what stands before an equals sign is not {what}")
        found[name] = value
    if len(found) > MAX_ENTRIES:
        raise ValueError(f"has more than {MAX_ENTRIES} entries")
    return found


def _protocol(text: str) -> str:
    if text != PROTOCOL:
        raise ValueError(f"{text!r} is not spoken here; collectors take {PROTOCOL} on port 4318")
    return text


def _trace_context(text: str) -> bool:
    """Whether W3C Trace Context is among the propagators; baggage, often named beside it, is none here."""
    names = {name.strip() for name in text.split(",")}
    if names != {"none"} and TRACE_CONTEXT not in names:
        raise ValueError(f"{text!r} is not spoken here; it is {TRACE_CONTEXT} or none")
    return TRACE_CONTEXT in names


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is no share from 0 to 1")
    return value


def milliseconds(least: int) -> Callable[[str], float]:
    """Whole milliseconds from `least` to a minute, as seconds."""
    whole = between(least, 60_000)
    return lambda text: whole(text) / 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What the zones tell, beside their logs. Without `endpoint` no spans are made, without `metrics_token` nothing is
    counted. `headers` are sent to the collector; `ratio` counts for the samplers that take one."""

    endpoint: str | None = setting("OTEL_EXPORTER_OTLP_ENDPOINT", collector_address, None)
    headers: Mapping[str, Secret] = setting("OTEL_EXPORTER_OTLP_HEADERS", header_pairs, {})
    timeout_s: float = setting("OTEL_EXPORTER_OTLP_TIMEOUT", milliseconds(100), 10.0)
    wait_s: float = setting("OTEL_BSP_SCHEDULE_DELAY", milliseconds(50), 5.0)
    """How long spans wait for others before they are sent."""

    certificate: Path | None = setting("OTEL_EXPORTER_OTLP_CERTIFICATE", _file, None)
    sampler: str = setting("OTEL_TRACES_SAMPLER", one_of(SAMPLERS), "parentbased_always_on")
    ratio: float = setting("OTEL_TRACES_SAMPLER_ARG", _share, 1.0)
    trusts_callers: bool = setting("OTEL_PROPAGATORS", _trace_context, True)
    """Whether spans belong to the trace that a caller names."""

    resource: Mapping[str, str] = setting("OTEL_RESOURCE_ATTRIBUTES", resource_pairs, {})
    metrics_token: Secret | None = setting("SENTINEL_METRICS_TOKEN", key_text, None)


def read_telemetry(reader: SettingReader) -> TelemetrySettings:
    """The settings; problems go to the reader."""
    found = reader.of(TelemetrySettings)
    if found.headers and found.endpoint is not None and not protects_keys(found.endpoint):
        reader.problems.append("OTEL_EXPORTER_OTLP_ENDPOINT: plain http would send the headers unprotected: use https")
    reader.read("OTEL_EXPORTER_OTLP_PROTOCOL", _protocol, PROTOCOL)
    return replace(found, endpoint=None) if reader.read("OTEL_SDK_DISABLED", yes_or_no, False) else found


_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
SEARCH_PROVIDERS = ("bundled", "searxng", "brave", "tavily")


def _names(is_name: Callable[[str], object], wrong: str, shown: int | None = None) -> Callable[[str], tuple[str, ...]]:
    """A converter of names by comma, each once. `wrong` says of a text, of which `shown` characters are told, that it
    is none."""

    def convert(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        for name in names:
            if not is_name(name):
                raise ValueError(f"{name[:shown]!r} is {wrong}")
        return names

    return convert


table_names = _names(_TABLE.fullmatch, "not a table name such as SigninLogs or Own_CL")
reader_names = _names(is_reader_name, f"no name of a reader. {READER_NAMES}", 80)
_host_names = _names(_HOST.fullmatch, "not a host name such as learn.microsoft.com (no scheme, port, path or *)")


def host_names(text: str) -> tuple[str, ...]:
    """Host names by comma, in lower case, each once."""
    return _host_names(text.lower())


def files_root(home: Path) -> Callable[[str], Path]:
    """A converter to a folder that neither holds `home` nor lies in one of its private folders."""

    def convert(text: str) -> Path:
        root = Path(text).expanduser().absolute()
        if not root.is_dir():
            raise ValueError(f"{text!r} is not a folder")
        root = root.resolve()
        state = home.resolve()
        private = [state / name for name in ("agent", "gateway", "run", "logs", "workspaces", "knowledge")]
        if state.is_relative_to(root) or any(root.is_relative_to(folder) for folder in private):
            raise ValueError("holds SENTINEL_HOME or lies in it, with its keys and its journal: choose another folder")
        return root

    return convert


def search_problems(provider: str, url: str | None, *, has_key: bool) -> list[str]:
    """What a search provider lacks."""
    if provider == "searxng" and url is None:
        return ["SENTINEL_SEARCH_URL: is missing; searxng needs the address of your instance"]
    if provider in ("brave", "tavily") and not has_key:
        return [f"SENTINEL_SEARCH_API_KEY: is missing; {provider} needs a key"]
    if provider == "bundled" and (url is not None or has_key):
        return ["SENTINEL_SEARCH_PROVIDER: is missing; an address or a key is set, but not whose they are"]
    return []


def search_address(text: str) -> str:
    """An http or https URL; plain http to any host, because a SearXNG instance takes no key."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{text!r} is not an http or https URL")
    return text.rstrip("/")


def protects_keys(url: str) -> bool:
    """True if what is sent there is not readable on the way: https, or this machine itself."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


# `SENTINEL_UPSTREAM_NAME` holds the credential, or `SENTINEL_UPSTREAM_NAME_FILE` the absolute path of a file with
# nothing else in it. A value of the process environment cannot change; one of `.env` or of a file is read anew when
# asked for.
UPSTREAM_PREFIX = "SENTINEL_UPSTREAM_"
"""Variables that begin so are credentials for tool servers of other makers; the policy refers to them by name."""

_IN_A_FILE = "_FILE"


def read_upstream_credentials(reader: SettingReader) -> dict[str, Secret]:
    """By variable; one that a file holds stands under the variable without `_FILE`."""
    given = {name: text.strip() for name, text in reader.values.items() if name.startswith(UPSTREAM_PREFIX)}
    found = {name: Secret(text) for name, text in given.items() if text}
    for name, file in _files(given).items():
        token = _text_of(file)
        if token:
            found[name] = Secret(token)
        else:
            reader.problems.append(f"{name}{_IN_A_FILE}: the file {file} cannot be read, or is empty")
    return found


def credential_places(values: Mapping[str, str], from_file: Mapping[str, str], env_file: Path) -> dict[str, str]:
    """Variable -> where a newer value may appear, as `env:PATH` or `file:PATH`; `values` are all settings, those of
    `.env` included."""
    given = {name: text.strip() for name, text in values.items() if name.startswith(UPSTREAM_PREFIX)}
    places = {name: f"env:{env_file.absolute()}" for name in given if from_file.get(name) == values[name]}
    return places | {name: f"file:{path}" for name, path in _files(given).items()}


def newest_credential(name: str, place: str) -> str | None:
    """What `place` of `credential_places` holds for the variable now; None if nothing can be read there."""
    form, _, path = place.partition(":")
    if form == "file":
        return _text_of(path)
    try:
        return read_env_file(Path(path)).get(name, "").strip() or None
    except ConfigurationError:
        return None  # half written, perhaps: the old value stays


def _files(given: Mapping[str, str]) -> dict[str, str]:
    """Variable -> path, of those given as `..._FILE` with an absolute path and not by themselves."""
    named = {name.removesuffix(_IN_A_FILE): text for name, text in given.items() if name.endswith(_IN_A_FILE)}
    return {name: text for name, text in named.items() if text.startswith("/") and not given.get(name)}


def _text_of(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


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
