"""Settings: the only reader of the environment and of `.env`.

`load_settings` validates everything at once and raises one ConfigurationError that lists every problem. Values from the
process environment win over `.env` of the working directory. Secrets are held as `Secret`, which never prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.workspace_file import (
    PUBLIC,
    NamedWorkspace,
    logs_audience,
    management_audience,
    read_workspace_file,
    same_workspace,
    workspace_guid,
    workspace_name,
    workspace_resource,
)
from sentinel_rag.workspace_file import http_url as _http_url

__all__ = ["NamedWorkspace", "Secret", "Settings", "Variable", "load_settings", "workspace_name"]

if TYPE_CHECKING:
    from dotenv.parser import Original

T = TypeVar("T")

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


class Secret(str):
    """A string that shows as asterisks wherever it is printed or logged by accident; `reveal` gives the value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'********'"

    def __str__(self) -> str:
        return "********"

    def __format__(self, spec: str) -> str:
        return format("********", spec)

    def reveal(self) -> str:
        return "".join(self)


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
    small_name: str | None = None
    api_version: str | None = None
    prices: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    timeout_s: float = 120.0
    idle_timeout_s: float = 30.0
    tool_rounds: int = 5
    """Rounds of tool calls of one question, before its model is asked to answer without further ones."""
    context_tokens: int = 128_000
    """The model's context, as far as it is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """The model that makes vectors of knowledge. `provider` is local, none, azure or openai-compatible; the rest is for
    the last two. Without a key, Azure is entered with Entra ID. `tokens_per_minute` 0 sets no pace."""

    provider: str = "local"
    url: str = ""
    key: Secret | None = None
    name: str = ""
    api_version: str | None = None
    dimensions: int = 1_024
    tokens_per_minute: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. `docs/settings.md` lists the variables; a test keeps the two equal."""

    home: Path
    policy_file: Path
    workspace: str | None = None
    """The embedded workspace that is named in the environment alone; None where a list says it, or nothing does."""
    workspaces: tuple[NamedWorkspace, ...] = ()
    """Every workspace that is served, the default one first; empty: one embedded workspace, see `serves`."""
    gateway_url: str | None = None
    gateway_key: Secret | None = None
    model: str = "offline"
    model_settings: ModelSettings | None = None
    embeddings: EmbeddingSettings = EmbeddingSettings()
    timezone: str = "UTC"
    audit_durability: str = "process"
    audit_anchor: Path | None = None
    question_timeout_s: float = 120.0
    chat_keep_days: int = 90
    """Days since its last question after which a conversation is deleted; 0: none is kept."""
    chat_keep: int = 200
    chat_turns: int = 30
    """Turns of a conversation that a model is told."""
    log_level: str = "INFO"
    templates: Path | None = None
    freeform_kql: bool = False
    freeform_tables: tuple[str, ...] = ()
    files_root: Path | None = None
    search_provider: str = "bundled"
    search_url: str | None = None
    search_key: Secret | None = None
    web_allowed_hosts: tuple[str, ...] = ()
    upstream_credentials: Mapping[str, Secret] = field(default_factory=dict)
    user_key: Secret | None = None
    approver_key: Secret | None = None
    approval_ttl_s: float = 900.0
    approval_webhook_url: str | None = None
    approval_webhook_secret: Secret | None = None
    approval_webhook_arguments: bool = False
    approval_webhook_decides: bool = False

    @property
    def uses_azure(self) -> bool:
        """True if a workspace of Azure is named; else embedded workspaces alone are served."""
        return bool(self.azure_workspaces)

    @property
    def azure_workspaces(self) -> Mapping[str, str]:
        """Name -> Log Analytics workspace id of those on Azure."""
        return {each.name: each.workspace_id for each in self.workspaces if each.workspace_id is not None}

    @property
    def workspace_resources(self) -> Mapping[str, str]:
        """Name -> Azure Resource ID of those on Azure that can be changed."""
        return {each.name: each.resource_id for each in self.workspaces if each.resource_id is not None}

    def named(self, name: str) -> NamedWorkspace | None:
        """The listed workspace of that name."""
        return next((each for each in self.workspaces if each.name == name), None)

    def serves(self, default: str) -> tuple[NamedWorkspace, ...]:
        """What a run with the default workspace `default` serves: all that are listed, or that embedded one alone."""
        listed = sorted(self.workspaces, key=lambda each: each.name != default)
        return tuple(listed) if self.named(default) is not None else (NamedWorkspace(name=default),)

    def __repr__(self) -> str:
        parts = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
        return f"Settings({parts})"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable, as `docs/settings.md`, `.env.example` and `sentinel doctor` name it."""

    name: str
    meaning: str
    default: str


VARIABLES: tuple[Variable, ...] = (
    Variable("SENTINEL_HOME", "Folder for workspaces, audit, keys and logs.", "the platform's user data folder"),
    Variable("SENTINEL_CONFIG", "Policy file of the Interceptor.", "config/sentinel_config.yaml of the installation"),
    Variable(
        "SENTINEL_WORKSPACES",
        "File that lists several workspaces, on Azure and embedded.",
        "workspaces.yaml in SENTINEL_HOME, if there is one",
    ),
    Variable(
        "SENTINEL_WORKSPACE",
        "Embedded workspace to use, or several by comma; with a list, the default one of it.",
        "default, or sample while default does not exist",
    ),
    Variable(
        "SENTINEL_WORKSPACE_ID",
        "Log Analytics workspace id (a GUID), or several as prod=GUID,dev=GUID. Turns Azure on.",
        "none: the embedded workspace",
    ),
    Variable(
        "SENTINEL_WORKSPACE_RESOURCE_ID",
        "Azure Resource ID of the workspace, or several as prod=ID,dev=ID. Needed to change incidents.",
        "none: Azure workspaces are read only",
    ),
    Variable("SENTINEL_LOGS_ENDPOINT", "Log Analytics endpoint, for other clouds.", "https://api.loganalytics.io"),
    Variable(
        "SENTINEL_ARM_ENDPOINT", "Azure Resource Manager endpoint, for other clouds.", "https://management.azure.com"
    ),
    Variable("SENTINEL_URL", "An Interceptor that runs elsewhere. Needs SENTINEL_API_KEY.", "none: one is started"),
    Variable("SENTINEL_API_KEY", "The agent's key at the Interceptor.", "one is made for each start"),
    Variable(
        "SENTINEL_MODEL",
        "What plans tool calls: offline (no model), azure, openai-compatible or openrouter.",
        "offline",
    ),
    Variable("SENTINEL_MODEL_NAME", "Model, or Azure deployment, that answers (see docs/models.md).", "none"),
    Variable("SENTINEL_MODEL_SMALL_NAME", "Model or deployment for simple questions.", "the same for all"),
    Variable("SENTINEL_MODEL_URL", "Base URL of an openai-compatible server.", "none"),
    Variable("SENTINEL_MODEL_API_KEY", "Key at that server.", "none: it asks for none"),
    Variable("SENTINEL_MODEL_PRICES", "US dollars a million tokens: large=2.50/10,small=0.15/0.60.", "none"),
    Variable("SENTINEL_MODEL_TIMEOUT_S", "Seconds that one answer of the model may take.", "120"),
    Variable("SENTINEL_MODEL_IDLE_TIMEOUT_S", "Seconds that the model may fall silent amid an answer.", "30"),
    Variable("SENTINEL_MAX_TOOL_ROUNDS", "Rounds of tool calls that a model has for a question (1 to 20).", "5"),
    Variable("SENTINEL_MODEL_CONTEXT_TOKENS", "Tokens of the model's context that may be used.", "128000"),
    Variable("AZURE_OPENAI_ENDPOINT", "Address of the Azure OpenAI resource.", "none"),
    Variable("AZURE_OPENAI_API_KEY", "Key of that resource.", "none: Entra ID"),
    Variable("AZURE_OPENAI_API_VERSION", "api-version of Azure's older paths.", "none: the v1 endpoint"),
    Variable("AZURE_OPENAI_CHAT_DEPLOYMENT", "Deployment that answers, if SENTINEL_MODEL_NAME is not set.", "none"),
    Variable("SENTINEL_EMBEDDINGS", "Vectors of knowledge: local, none, azure or openai-compatible.", "local"),
    Variable("SENTINEL_EMBEDDINGS_NAME", "Model, or Azure deployment, that makes them.", "none"),
    Variable("SENTINEL_EMBEDDINGS_URL", "Base URL of an openai-compatible server for them.", "none"),
    Variable("SENTINEL_EMBEDDINGS_API_KEY", "Key at that server.", "none: it asks for none"),
    Variable("SENTINEL_EMBEDDINGS_DIMENSIONS", "Dimensions that it is asked for.", "1024"),
    Variable("SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE", "Pace of a first load; 0: none.", "0"),
    Variable("OPENROUTER_API_KEY", "Key at OpenRouter.", "none"),
    Variable("SENTINEL_TIMEZONE", "Time zone (IANA name) in which words like yesterday are read.", "UTC"),
    Variable("SENTINEL_AUDIT_DURABILITY", "process or power: what an acknowledged record survives.", "process"),
    Variable("SENTINEL_AUDIT_ANCHOR", "File for a second copy of the journal's checkpoints, on another disk.", "none"),
    Variable("SENTINEL_QUESTION_TIMEOUT_S", "Seconds that one question may take.", "120"),
    Variable("SENTINEL_CHAT_KEEP_DAYS", "Days that a conversation is kept after its last question; 0: none.", "90"),
    Variable("SENTINEL_CHAT_KEEP", "How many conversations are kept.", "200"),
    Variable("SENTINEL_CHAT_TURNS", "Turns of a conversation that a model is told (1 to 1000).", "30"),
    Variable("SENTINEL_LOG_LEVEL", "DEBUG, INFO, WARNING or ERROR.", "INFO"),
    Variable("SENTINEL_TEMPLATES", "Folder of KQL templates of your own.", "none: the shipped ones"),
    Variable("SENTINEL_FREEFORM_KQL", "on: the agent may run KQL of its own, guarded.", "off: named templates only"),
    Variable("SENTINEL_FREEFORM_TABLES", "Tables that freeform KQL may read, by comma.", "every table"),
    Variable("SENTINEL_FILES_ROOT", "Folder that file_read and file_list see.", "sample files of the installation"),
    Variable(
        "SENTINEL_SEARCH_PROVIDER", "Who answers web_search: bundled (sample pages), searxng, brave, tavily.", "bundled"
    ),
    Variable("SENTINEL_SEARCH_URL", "Address of the search service; searxng needs it.", "the provider's own"),
    Variable("SENTINEL_SEARCH_API_KEY", "Key at the search service, for brave and tavily.", "none"),
    Variable("SENTINEL_WEB_ALLOWED_HOSTS", "Hosts that web_fetch may read, by comma.", "every public host"),
    Variable("SENTINEL_UPSTREAM_NAME", "A credential of a tool server that the policy names (any NAME).", "none"),
    Variable("SENTINEL_USER_KEY", "Your key with the scope user at SENTINEL_URL.", "one is made for each start"),
    Variable("SENTINEL_APPROVER_KEY", "Your key with the scope approve at SENTINEL_URL.", "one is made for each start"),
    Variable("SENTINEL_APPROVAL_TTL_S", "Seconds that a call waits for a person (60 to 86400).", "900"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_URL", "Told of each call that waits for a person.", "none"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_SECRET", "Signs what the webhook is sent.", "none; needed for a webhook"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS", "true: the webhook is sent the arguments too.", "false"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_DECIDES", "true: the webhook's receiver may decide.", "false"),
)

UPSTREAM_PREFIX = "SENTINEL_UPSTREAM_"
"""Variables that begin so are credentials for tool servers of other makers; the policy refers to them by name."""

SEARCH_PROVIDERS = ("bundled", "searxng", "brave", "tavily")
MODELS = ("offline", "azure", "openai-compatible", "openrouter")
EMBEDDING_PROVIDERS = ("local", "none", "azure", "openai-compatible")
OPENROUTER_URL = "https://openrouter.ai/api/v1"
DURABILITIES = ("process", "power")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class _Reader:
    """Collects problems while values are read, so that a person fixes them in one go."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.problems: list[str] = []

    def read(self, name: str, convert: Callable[[str], T], default: T) -> T:
        text = self.values.get(name, "").strip()
        if not text:
            return default
        try:
            return convert(text)
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return default


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        for value in allowed:
            if value.casefold() == text.casefold():
                return value
        raise ValueError(f"{text!r} is not one of {', '.join(allowed)}")

    return convert


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number of seconds") from None
    if not 1 <= value <= 3600:
        raise ValueError(f"{text} is outside 1 to 3600 seconds")
    return value


def _approval_ttl(text: str) -> float:
    if not text.isascii() or not text.isdecimal() or not 60 <= int(text[:9]) <= 86_400:
        raise ValueError(f"{text!r} is not a whole number of seconds from 60 to 86400")
    return float(text)


def _yes_or_no(text: str) -> bool:
    return _one_of(("true", "false"))(text) == "true"


def _on_or_off(text: str) -> bool:
    return _one_of(("on", "off"))({"true": "on", "false": "off"}.get(text.lower(), text)) == "on"


def _table_names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if not _TABLE.fullmatch(name):
            raise ValueError(f"{name!r} is not a table name such as SigninLogs or Own_CL")
    return names


def _webhook_url(text: str) -> str:
    """`_http_url`, and unchanged: a receiver may tell `/hook/` from `/hook`."""
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password, which would stand in logs; sign with the secret instead")
    _http_url(text)
    return text


def _between(least: int, most: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
            raise ValueError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return convert


def _key(text: str) -> Secret:
    if len(text) < 16:
        raise ValueError("is shorter than 16 characters, so it could be guessed")
    return Secret(text)


def _webhook_secret(text: str) -> Secret:
    if len(text) < 32:
        raise ValueError("is shorter than 32 characters, so it could be guessed")
    return Secret(text)


def _timezone(text: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text!r} is no IANA time zone such as UTC or Europe/Berlin") from None
    return text


def _by_name(text: str, convert: Callable[[str], str], form: str) -> dict[str, str]:
    """`prod=VALUE,dev=VALUE`, or one VALUE under the name azure."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.strip().rpartition("=")
        value = convert(value)
        name = workspace_name(name) if equals else "azure"
        if name in found:
            raise ValueError(f"two workspaces are named {name!r}: write name={form} for each")
        found[name] = value
    return found


def _azure_ids(text: str) -> Mapping[str, str]:
    return _by_name(text, workspace_guid, "GUID")


def _azure_resources(text: str) -> Mapping[str, str]:
    return _by_name(text, workspace_resource, "ID")


def _embedded_names(text: str) -> tuple[str, ...]:
    names = tuple(workspace_name(part.strip()) for part in text.split(","))
    if len(set(names)) < len(names):
        raise ValueError("a workspace is named twice")
    return names


_AZURE_BY_VARIABLES = (
    "SENTINEL_WORKSPACE_ID",
    "SENTINEL_WORKSPACE_RESOURCE_ID",
    "SENTINEL_LOGS_ENDPOINT",
    "SENTINEL_ARM_ENDPOINT",
)


def _workspaces(reader: _Reader, home: Path) -> tuple[str | None, tuple[NamedWorkspace, ...]]:
    """The name of one embedded workspace, and every workspace of a list, the default one first."""
    none: tuple[str, ...] = ()
    names = reader.read("SENTINEL_WORKSPACE", _embedded_names, none)
    file = home / "workspaces.yaml"
    listed = reader.read("SENTINEL_WORKSPACES", lambda text: Path(text).expanduser().absolute(), None)
    if listed is not None or file.is_file():
        return None, _listed_workspaces(reader, listed or file, names)
    azure = _azure_workspaces(reader)
    if azure:
        return None, azure
    if len(names) > 1:
        return None, tuple(NamedWorkspace(name=name) for name in names)
    return (names[0] if names else None), ()


def _listed_workspaces(reader: _Reader, file: Path, names: tuple[str, ...]) -> tuple[NamedWorkspace, ...]:
    found = read_workspace_file(file)
    reader.problems += found.problems
    for variable in _AZURE_BY_VARIABLES:
        if reader.values.get(variable, "").strip():
            reader.problems.append(f"{variable}: {file} lists the workspaces: write it there, or remove the file")
    if not names or found.problems:
        return found.workspaces
    known = [workspace.name for workspace in found.workspaces]
    if len(names) > 1 or names[0] not in known:
        reader.problems.append(f"SENTINEL_WORKSPACE: names the default workspace, one of: {', '.join(known)}")
    return tuple(sorted(found.workspaces, key=lambda workspace: workspace.name != names[0]))


def _azure_workspaces(reader: _Reader) -> tuple[NamedWorkspace, ...]:
    """The workspaces of SENTINEL_WORKSPACE_ID, all at one endpoint."""
    none: Mapping[str, str] = {}
    ids = reader.read("SENTINEL_WORKSPACE_ID", _azure_ids, none)
    resources = reader.read("SENTINEL_WORKSPACE_RESOURCE_ID", _azure_resources, none)
    logs = reader.read("SENTINEL_LOGS_ENDPOINT", _http_url, PUBLIC.logs)
    management = reader.read("SENTINEL_ARM_ENDPOINT", _http_url, PUBLIC.management)
    for name in sorted(resources.keys() - ids.keys()):
        reader.problems.append(f"SENTINEL_WORKSPACE_RESOURCE_ID: SENTINEL_WORKSPACE_ID names no workspace {name!r}")
    named = tuple(
        NamedWorkspace(
            name=name,
            workspace_id=guid,
            resource_id=resources.get(name),
            logs_endpoint=logs,
            logs_audience=logs_audience(logs),
            arm_endpoint=management,
            arm_audience=management_audience(management),
        )
        for name, guid in ids.items()
    )
    for place, workspace in enumerate(named):
        if twin := same_workspace(workspace, named[:place]):
            reader.problems.append(f"SENTINEL_WORKSPACE_ID, SENTINEL_WORKSPACE_RESOURCE_ID: {twin}")
    return named


def _host_names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(f"{name!r} is not a host name such as learn.microsoft.com (no scheme, port, path or *)")
    return names


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().absolute()
    if not folder.is_dir():
        raise ValueError(f"{text!r} is not a folder")
    return folder


def _files_root(home: Path) -> Callable[[str], Path]:
    def convert(text: str) -> Path:
        root = Path(text).expanduser().absolute()
        if not root.is_dir():
            raise ValueError(f"{text!r} is not a folder")
        root = root.resolve()
        state = home.resolve()
        private = [state / name for name in ("agent", "gateway", "run", "logs", "workspaces")]
        if state.is_relative_to(root) or any(root.is_relative_to(folder) for folder in private):
            raise ValueError("holds SENTINEL_HOME or lies in it, with its keys and its journal: choose another folder")
        return root

    return convert


def _search_problems(provider: str, url: str | None, key: str) -> list[str]:
    """What a search provider lacks."""
    if provider == "searxng" and url is None:
        return ["SENTINEL_SEARCH_URL: is missing; searxng needs the address of your instance"]
    if provider in ("brave", "tavily") and not key:
        return [f"SENTINEL_SEARCH_API_KEY: is missing; {provider} needs a key"]
    if provider == "bundled" and (url is not None or key):
        return ["SENTINEL_SEARCH_PROVIDER: is missing; an address or a key is set, but not whose they are"]
    return []


def _search_url(text: str) -> str:
    """An http or https URL; plain http to any host, because a SearXNG instance takes no key."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{text!r} is not an http or https URL")
    return text.rstrip("/")


def _protects_keys(url: str) -> bool:
    """True if what is sent there is not readable on the way: https, or this machine itself."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


_API_VERSION = re.compile(r"\d{4}-\d{2}-\d{2}(?:-preview)?")
_PRICE = re.compile(r"(large|small)=(\d{1,6}(?:\.\d{1,6})?)/(\d{1,6}(?:\.\d{1,6})?)")


def _model_name(text: str) -> str:
    if len(text) > 200 or not text.isprintable():
        raise ValueError("is no name of a model: it is too long or holds control characters")
    return text


def _model_url(text: str) -> str:
    """`_http_url` without user names: they would stand in messages."""
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password; set the key instead")
    return _http_url(text)


def _model_key(text: str) -> Secret:
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


def _model_settings(provider: str, reader: _Reader) -> ModelSettings | None:
    """What `provider` needs, read and checked; None for `offline`, whatever else is set."""
    if provider == "offline":
        return None
    read = reader.read
    name = read("SENTINEL_MODEL_NAME", _model_name, "")
    url, key, api_version = "", None, None
    missing: list[tuple[str, str]] = []
    if provider == "azure":
        name = name or read("AZURE_OPENAI_CHAT_DEPLOYMENT", _model_name, "")
        url = read("AZURE_OPENAI_ENDPOINT", _model_url, "")
        key = read("AZURE_OPENAI_API_KEY", _model_key, None)
        api_version = read("AZURE_OPENAI_API_VERSION", _api_version, None)
        missing.append(("AZURE_OPENAI_ENDPOINT", "the resource's address, https://NAME.openai.azure.com"))
        if not name:
            missing.append(("SENTINEL_MODEL_NAME", "the name of the deployment"))
    elif provider == "openrouter":
        url = OPENROUTER_URL
        key = read("OPENROUTER_API_KEY", _model_key, None)
        missing += [("OPENROUTER_API_KEY", "a key at OpenRouter"), ("SENTINEL_MODEL_NAME", "a model's name there")]
    else:
        url = read("SENTINEL_MODEL_URL", _model_url, "")
        key = read("SENTINEL_MODEL_API_KEY", _model_key, None)
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
        timeout_s=read("SENTINEL_MODEL_TIMEOUT_S", _seconds, 120.0),
        idle_timeout_s=read("SENTINEL_MODEL_IDLE_TIMEOUT_S", _seconds, 30.0),
        tool_rounds=read("SENTINEL_MAX_TOOL_ROUNDS", _between(1, 20), 5),
        context_tokens=read("SENTINEL_MODEL_CONTEXT_TOKENS", _between(2_048, 10_000_000), 128_000),
    )


def _embedding_settings(reader: _Reader) -> EmbeddingSettings:
    """What makes the vectors of knowledge; `local` and `none` need nothing else."""
    read = reader.read
    provider = read("SENTINEL_EMBEDDINGS", _one_of(EMBEDDING_PROVIDERS), "local")
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
        url=read("AZURE_OPENAI_ENDPOINT" if azure else "SENTINEL_EMBEDDINGS_URL", _model_url, ""),
        key=read("AZURE_OPENAI_API_KEY" if azure else "SENTINEL_EMBEDDINGS_API_KEY", _model_key, None),
        name=read("SENTINEL_EMBEDDINGS_NAME", _model_name, ""),
        api_version=read("AZURE_OPENAI_API_VERSION", _api_version, None) if azure else None,
        dimensions=read("SENTINEL_EMBEDDINGS_DIMENSIONS", _between(1, 8_192), 1_024),
        tokens_per_minute=read("SENTINEL_EMBEDDINGS_TOKENS_PER_MINUTE", _between(0, 100_000_000), 0),
    )


def default_home(environment: Mapping[str, str]) -> Path:
    """`SENTINEL_HOME`, or the platform's folder for user data."""
    text = environment.get("SENTINEL_HOME", "").strip()
    if text:
        return Path(text).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("sentinel-rag", appauthor=False)


def installed_policy_file() -> Path:
    """`config/sentinel_config.yaml` of the checkout, or the copy that a wheel carries."""
    here = Path(__file__).resolve().parent
    checkout = here.parent.parent / "config" / "sentinel_config.yaml"
    return checkout if checkout.is_file() else here / "default_config" / "sentinel_config.yaml"


def read_env_file(path: Path) -> dict[str, str]:
    """The assignments of a `.env` file; empty if there is none. Raises ConfigurationError with line numbers."""
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The settings file {path} cannot be read: {error}", next_step="Make it a readable UTF-8 text file."
        ) from None
    wrong = tuple(
        f"{path}:{_first_line(binding.original)}: not of the form NAME=value"
        for binding in bindings
        if binding.error or (binding.key is not None and binding.value is None)
    )
    if wrong:
        raise ConfigurationError(
            f"The settings file {path} has {len(wrong)} line(s) that cannot be read.",
            problems=wrong,
            next_step="Correct the lines above; .env.example shows the form.",
        )
    return {b.key: b.value for b in bindings if b.key is not None and b.value is not None}


def _first_line(original: Original) -> int:
    """The line of the text itself: the parser counts the blank lines before it in."""
    return original.line + len(original.string) - len(original.string.lstrip("\n"))


def load_settings(environment: Mapping[str, str] | None = None, env_file: Path | None = None) -> Settings:
    """Settings from `.env` of the working directory and the environment, which wins.

    Raises ConfigurationError that lists every problem at once; secrets are never part of a message.
    """
    if environment is None:
        import os

        environment = os.environ  # noqa: TID251  # this module is the one reader
    env_file = env_file if env_file is not None else Path(".env")
    from_file = read_env_file(env_file)
    values = {**from_file, **environment}
    reader = _Reader(values)
    gateway_url = reader.read("SENTINEL_URL", _http_url, None)
    gateway_key = values.get("SENTINEL_API_KEY", "").strip()
    approver_key = reader.read("SENTINEL_APPROVER_KEY", _key, None)
    if gateway_url and not gateway_key and not approver_key:
        reader.problems.append("SENTINEL_API_KEY: is missing; an Interceptor that runs elsewhere needs the agent's key")
    webhook_url = reader.read("SENTINEL_APPROVAL_WEBHOOK_URL", _webhook_url, None)
    webhook_secret = reader.read("SENTINEL_APPROVAL_WEBHOOK_SECRET", _webhook_secret, None)
    if webhook_url and not values.get("SENTINEL_APPROVAL_WEBHOOK_SECRET", "").strip():
        reader.problems.append(
            "SENTINEL_APPROVAL_WEBHOOK_SECRET: is missing; without it nobody can tell who sent a notice"
        )
    if gateway_key and len(gateway_key) < 16:
        reader.problems.append("SENTINEL_API_KEY: is shorter than 16 characters, so it could be guessed")
    known = {variable.name for variable in VARIABLES}
    # Only our own file is checked for misspelt names: the environment may hold SENTINEL_ names of other products.
    for name in sorted(from_file):
        if name.startswith("SENTINEL_") and not name.startswith(UPSTREAM_PREFIX) and name not in known:
            reader.problems.append(f"{name}: there is no such setting{_nearest(name, known)} (in {env_file})")
    model = reader.read("SENTINEL_MODEL", _one_of(MODELS), "offline")
    home = default_home(values)
    provider = reader.read("SENTINEL_SEARCH_PROVIDER", _one_of(SEARCH_PROVIDERS), "bundled")
    search_url = reader.read("SENTINEL_SEARCH_URL", _search_url, None)
    search_key = values.get("SENTINEL_SEARCH_API_KEY", "").strip()
    reader.problems += _search_problems(provider, search_url, search_key)
    if search_key and search_url is not None and not _protects_keys(search_url):
        reader.problems.append("SENTINEL_SEARCH_URL: plain http would send the key unprotected: use https")
    workspace, workspaces = _workspaces(reader, home)
    settings = Settings(
        home=home,
        policy_file=reader.read("SENTINEL_CONFIG", lambda t: Path(t).expanduser().absolute(), installed_policy_file()),
        workspace=workspace,
        workspaces=workspaces,
        gateway_url=gateway_url,
        gateway_key=Secret(gateway_key) if gateway_key else None,
        model=model,
        model_settings=_model_settings(model, reader),
        embeddings=_embedding_settings(reader),
        timezone=reader.read("SENTINEL_TIMEZONE", _timezone, "UTC"),
        audit_durability=reader.read("SENTINEL_AUDIT_DURABILITY", _one_of(DURABILITIES), "process"),
        audit_anchor=reader.read("SENTINEL_AUDIT_ANCHOR", lambda t: Path(t).expanduser().absolute(), None),
        question_timeout_s=reader.read("SENTINEL_QUESTION_TIMEOUT_S", _seconds, 120.0),
        chat_keep_days=reader.read("SENTINEL_CHAT_KEEP_DAYS", _between(0, 36_500), 90),
        chat_keep=reader.read("SENTINEL_CHAT_KEEP", _between(1, 100_000), 200),
        chat_turns=reader.read("SENTINEL_CHAT_TURNS", _between(1, 1_000), 30),
        log_level=reader.read("SENTINEL_LOG_LEVEL", _one_of(LOG_LEVELS), "INFO"),
        templates=reader.read("SENTINEL_TEMPLATES", _folder, None),
        freeform_kql=reader.read("SENTINEL_FREEFORM_KQL", _on_or_off, False),
        freeform_tables=reader.read("SENTINEL_FREEFORM_TABLES", _table_names, ()),
        files_root=reader.read("SENTINEL_FILES_ROOT", _files_root(home), None),
        search_provider=provider,
        search_url=search_url,
        search_key=Secret(search_key) if search_key else None,
        web_allowed_hosts=reader.read("SENTINEL_WEB_ALLOWED_HOSTS", _host_names, ()),
        upstream_credentials={
            name: Secret(value.strip())
            for name, value in values.items()
            if name.startswith(UPSTREAM_PREFIX) and value.strip()
        },
        user_key=reader.read("SENTINEL_USER_KEY", _key, None),
        approver_key=approver_key,
        approval_ttl_s=reader.read("SENTINEL_APPROVAL_TTL_S", _approval_ttl, 900.0),
        approval_webhook_url=webhook_url,
        approval_webhook_secret=webhook_secret,
        approval_webhook_arguments=reader.read("SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS", _yes_or_no, False),
        approval_webhook_decides=reader.read("SENTINEL_APPROVAL_WEBHOOK_DECIDES", _yes_or_no, False),
    )
    if reader.problems:
        raise ConfigurationError(
            f"{len(reader.problems)} setting(s) are wrong.",
            problems=tuple(reader.problems),
            next_step="Correct them in the environment or in .env; docs/settings.md explains each.",
        )
    return settings


def _nearest(name: str, known: set[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "SYSTEMROOT", "TZDIR")
AZURE_SIGN_IN = ("AZURE_", "IDENTITY_", "MSI_", "IMDS_", "HOME", "USERPROFILE", "PATH", "APPDATA", "LOCALAPPDATA")
PROXY = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE")


def bare_environment() -> dict[str, str]:
    """What every zone may see of this process's environment: the locale and nothing that names data or keys."""
    import os

    return {name: value for name, value in os.environ.items() if name in PASSED_ON}  # noqa: TID251  # one reader


def tool_server_environment() -> dict[str, str]:
    """What a tool server of another maker starts with, before its own entries: where programs lie, and the locale."""
    import os

    return {**bare_environment(), "PATH": os.environ.get("PATH", os.defpath)}  # noqa: TID251  # one reader


def model_environment() -> dict[str, str]:
    """What a connection to a model elsewhere needs of the environment: the proxy and the trusted certificates."""
    import os

    return {name: value for name, value in os.environ.items() if name in PROXY}  # noqa: TID251  # one reader


def azure_environment() -> dict[str, str]:
    """`bare_environment` and what azure-identity's sign-in methods read; for the executor on Azure only."""
    import os

    passed = {n: v for n, v in os.environ.items() if n.startswith(AZURE_SIGN_IN) or n in PROXY}  # noqa: TID251  # one reader
    return {**bare_environment(), **passed}


def agent_gateway() -> tuple[str, Secret]:
    """Where the agent's process finds its gateway, and its key there: all that its environment holds."""
    import os

    return os.environ["SENTINEL_URL"], Secret(os.environ["SENTINEL_API_KEY"])  # noqa: TID251  # one reader
