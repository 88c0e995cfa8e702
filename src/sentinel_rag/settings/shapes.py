"""The settings as values: what `load_settings` returns, and secrets that never print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path

from sentinel_rag.settings.workspace_file import NamedWorkspace


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
    tool_rounds: int = 15
    """Rounds of tool calls of one question, before its model is asked to answer without further ones."""
    context_tokens: int = 128_000
    """The model's context, as far as it is used."""
    role: str = "answer"
    """`answer`: the model plans and writes. `assist`: rules do, and it chooses a call where they ask back."""


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


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider: its issuer, this installation's client there, and the claim by which it names people."""

    issuer: str
    client_id: str
    client_secret: Secret | None = None
    claim: str = "email"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings:
    """A database, and the schema in it. The address holds a password, so all of it is secret; without one no database
    is used."""

    url: Secret | None = None
    schema: str = "sentinel_knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureSearchSettings:
    """A service of Azure AI Search; without a key it is entered with Entra ID. `index` is what its indexes are named
    by."""

    url: str = ""
    key: Secret | None = None
    index: str = "sentinel-knowledge"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSettings:
    """Where knowledge is kept. `store` is the name of the store in use. `refresh_minutes`: how often past incidents are
    brought up to date while zones run; 0: not by itself. `chroma_folder` is None for the one in the home."""

    store: str = "local"
    refresh_minutes: int = 60
    chroma_folder: Path | None = None
    postgres: PostgresSettings = PostgresSettings()
    azure_search: AzureSearchSettings = AzureSearchSettings()


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
    tls_ca: Path | None = None
    zone_token: Secret | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    tools_tokens: Mapping[str, Secret] = field(default_factory=dict)
    agent_url: str | None = None
    agent_token: Secret | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """What the zones tell, beside their logs. Without `endpoint` no spans are made, without `metrics_token` nothing is
    counted. `headers` are sent to the collector; `ratio` counts for the samplers that take one."""

    endpoint: str | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)
    timeout_s: float = 10.0
    wait_s: float = 5.0
    """How long spans wait for others before they are sent."""

    certificate: Path | None = None
    sampler: str = "parentbased_always_on"
    ratio: float = 1.0
    trusts_callers: bool = True
    """Whether spans belong to the trace that a caller names."""

    resource: Mapping[str, str] = field(default_factory=dict)
    metrics_token: Secret | None = None


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
    knowledge: KnowledgeSettings = KnowledgeSettings()
    database: PostgresSettings = PostgresSettings(schema="sentinel")
    """Where the gateway keeps its state; without an address in files of the home."""
    chat_database: Secret | None = None
    """Address of the database in which the agent keeps conversations; without one in a file of the home."""
    timezone: str = "UTC"
    audit_durability: str = "process"
    audit_anchor: Path | None = None
    question_timeout_s: float = 180.0
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
    upstream_places: Mapping[str, str] = field(default_factory=dict)
    """Where newer values of those that are not in the process environment are to be had."""
    readers: tuple[str, ...] = ()
    """Names under which the person of this home reads what is not for everybody."""
    user_key: Secret | None = None
    approver_key: Secret | None = None
    approval_ttl_s: float = 900.0
    approval_webhook_url: str | None = field(default=None, repr=False)
    approval_webhook_secret: Secret | None = None
    approval_webhook_arguments: bool = False
    approval_webhook_decides: bool = False
    approval_webhook_form: str = "json"
    web_url: str | None = None
    """Where people reach the web surface, if not on loopback: behind a proxy with TLS."""
    oidc: OidcSettings | None = None
    telemetry: TelemetrySettings = TelemetrySettings()
    deployment: DeploymentSettings = DeploymentSettings()

    @property
    def uses_azure(self) -> bool:
        """True if a workspace of Azure is named; else embedded workspaces alone are served."""
        return bool(self.azure_workspaces)

    @property
    def azure_workspaces(self) -> Mapping[str, str]:
        """Name -> Log Analytics workspace id of those on Azure."""
        return {each.name: each.workspace_id for each in self.workspaces if each.workspace_id is not None}

    def named(self, name: str) -> NamedWorkspace | None:
        """The listed workspace of that name."""
        return next((each for each in self.workspaces if each.name == name), None)

    def serves(self, default: str) -> tuple[NamedWorkspace, ...]:
        """What a run with the default workspace `default` serves: all that are listed, or that embedded one alone."""
        listed = sorted(self.workspaces, key=lambda each: each.name != default)
        return tuple(listed) if self.named(default) is not None else (NamedWorkspace(name=default),)

    def __repr__(self) -> str:
        parts = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
        return f"Settings({parts})"
