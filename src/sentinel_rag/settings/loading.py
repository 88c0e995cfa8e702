"""All settings at once, from the environment and `.env`: every problem is listed, and no secret is part of one.

A field of `Settings`, or of a class that it holds, names the variable that it is read from, how, and what it is where
nothing is set. `docs/settings.md` explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings.deployment import (
    MODELS,
    SEARCH_PROVIDERS,
    UPSTREAM_PREFIX,
    AzureSearchSettings,
    DeploymentSettings,
    EmbeddingSettings,
    KnowledgeSettings,
    ModelSettings,
    PostgresSettings,
    TelemetrySettings,
    credential_places,
    files_root,
    host_names,
    postgres_url,
    protects_keys,
    question_seconds,
    read_deployment,
    read_embeddings,
    read_knowledge,
    read_model,
    read_telemetry,
    read_upstream_credentials,
    reader_names,
    search_address,
    search_problems,
    state_schema_name,
    table_names,
)
from sentinel_rag.settings.values import (
    PUBLIC,
    NamedWorkspace,
    Secret,
    SettingReader,
    between,
    folder,
    http_url,
    key_text,
    logs_audience,
    management_audience,
    on_or_off,
    one_of,
    path,
    read_env_file,
    read_workspace_file,
    same_workspace,
    seconds,
    setting,
    timezone,
    variables_of,
    workspace_guid,
    workspace_name,
    workspace_resource,
    yes_or_no,
)


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


AZURE_VARIABLES = (
    "SENTINEL_WORKSPACE_ID",
    "SENTINEL_WORKSPACE_RESOURCE_ID",
    "SENTINEL_LOGS_ENDPOINT",
    "SENTINEL_ARM_ENDPOINT",
)


def read_workspaces(reader: SettingReader, home: Path) -> tuple[str | None, tuple[NamedWorkspace, ...]]:
    """The name of one embedded workspace, and every workspace of a list, the default one first."""
    none: tuple[str, ...] = ()
    names = reader.read("SENTINEL_WORKSPACE", _embedded_names, none)
    file = home / "workspaces.yaml"
    listed = reader.read("SENTINEL_WORKSPACES", path, None)
    try:
        own = file.is_file()
    except OSError as error:  # a folder that this account may not enter, or whose name no disk takes
        reader.problems.append(f"SENTINEL_HOME: the folder {home} cannot be used: {error.strerror}")
        return None, ()
    if listed is not None or own:
        return None, _listed_workspaces(reader, listed or file, names)
    azure = _azure_workspaces(reader)
    if azure:
        return None, azure
    if len(names) > 1:
        return None, tuple(NamedWorkspace(name=name) for name in names)
    return (names[0] if names else None), ()


def _listed_workspaces(reader: SettingReader, file: Path, names: tuple[str, ...]) -> tuple[NamedWorkspace, ...]:
    found = read_workspace_file(file)
    reader.problems += found.problems
    for variable in AZURE_VARIABLES:
        if reader.is_set(variable):
            reader.problems.append(f"{variable}: {file} lists the workspaces: write it there, or remove the file")
    if not names or found.problems:
        return found.workspaces
    known = [workspace.name for workspace in found.workspaces]
    if len(names) > 1 or names[0] not in known:
        reader.problems.append(f"SENTINEL_WORKSPACE: names the default workspace, one of: {', '.join(known)}")
    return tuple(sorted(found.workspaces, key=lambda workspace: workspace.name != names[0]))


def _azure_workspaces(reader: SettingReader) -> tuple[NamedWorkspace, ...]:
    """The workspaces of SENTINEL_WORKSPACE_ID, all at one endpoint."""
    none: Mapping[str, str] = {}
    ids = reader.read("SENTINEL_WORKSPACE_ID", _azure_ids, none)
    resources = reader.read("SENTINEL_WORKSPACE_RESOURCE_ID", _azure_resources, none)
    logs = reader.read("SENTINEL_LOGS_ENDPOINT", http_url, PUBLIC.logs)
    management = reader.read("SENTINEL_ARM_ENDPOINT", http_url, PUBLIC.management)
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


# How approvals are asked for: how long one waits, and the webhook that is told of it.


def approval_ttl(text: str) -> float:
    """60 to 86,400 whole seconds."""
    if not text.isascii() or not text.isdecimal() or not 60 <= int(text[:9]) <= 86_400:
        raise ValueError(f"{text!r} is not a whole number of seconds from 60 to 86400")
    return float(text)


def webhook_address(text: str) -> str:
    """`http_url`, and unchanged: a receiver may tell `/hook/` from `/hook`."""
    if "@" in text.partition("//")[2].partition("/")[0]:
        raise ValueError("it holds a user name or password, which would stand in logs; sign with the secret instead")
    http_url(text)
    return text


def webhook_signing_secret(text: str) -> Secret:
    """A secret of at least 32 characters."""
    if len(text) < 32:
        raise ValueError("is shorter than 32 characters, so it could be guessed")
    return Secret(text)


def webhook_form_name(text: str) -> str:
    """`json` or `teams`."""
    if text not in ("json", "teams"):
        raise ValueError(f"{text!r} is not one of json, teams")
    return text


# How people reach the web surface and sign in: its public address, and an identity provider of OpenID Connect.


def public_url(text: str) -> str:
    """An address without a path, https unless it is this machine's. Raises ValueError."""
    url = http_url(text)
    parts = urlsplit(url)
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("it is to be no more than https://HOST or https://HOST:PORT")
    return url


def _issuer(text: str) -> str:
    """`http_url`, and unchanged: an ID token names its issuer letter by letter."""
    http_url(text)
    return text


def _one_word(text: str) -> str:
    if len(text) > 500 or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("holds a blank or a character that cannot be sent: copy it again")
    return text


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider: its issuer, this installation's client there, and the claim by which it names people."""

    issuer: str
    client_id: str
    client_secret: Secret | None = None
    claim: str = "email"


DURABILITIES = ("process", "power")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. `docs/settings.md` lists the variables; a test keeps the two equal."""

    home: Path
    policy_file: Path
    workspace: str | None = None
    """The embedded workspace that is named in the environment alone; None where a list says it, or nothing does."""
    workspaces: tuple[NamedWorkspace, ...] = ()
    """Every workspace that is served, the default one first; empty: one embedded workspace, see `serves`."""
    gateway_url: str | None = setting("SENTINEL_URL", http_url, None)
    gateway_key: Secret | None = setting("SENTINEL_API_KEY", key_text, None)
    model: str = setting("SENTINEL_MODEL", one_of(MODELS), "offline")
    model_settings: ModelSettings | None = None
    embeddings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    database: PostgresSettings = field(default_factory=lambda: PostgresSettings(schema="sentinel"))
    """Where the gateway keeps its state; without an address in files of the home."""
    chat_database: Secret | None = setting("SENTINEL_CHAT_DATABASE_URL", postgres_url, None)
    """Address of the database in which the agent keeps conversations; without one in a file of the home."""
    timezone: str = setting("SENTINEL_TIMEZONE", timezone, "UTC")
    audit_durability: str = setting("SENTINEL_AUDIT_DURABILITY", one_of(DURABILITIES), "process")
    audit_anchor: Path | None = setting("SENTINEL_AUDIT_ANCHOR", path, None)
    question_timeout_s: float = 180.0
    chat_keep_days: int = setting("SENTINEL_CHAT_KEEP_DAYS", between(0, 36_500), 90)
    """Days since its last question after which a conversation is deleted; 0: none is kept."""
    chat_keep: int = setting("SENTINEL_CHAT_KEEP", between(1, 100_000), 200)
    chat_turns: int = setting("SENTINEL_CHAT_TURNS", between(1, 1_000), 30)
    """Turns of a conversation that a model is told."""
    log_level: str = setting("SENTINEL_LOG_LEVEL", one_of(LOG_LEVELS), "INFO")
    templates: Path | None = setting("SENTINEL_TEMPLATES", folder, None)
    freeform_kql: bool = setting("SENTINEL_FREEFORM_KQL", on_or_off, False)
    freeform_tables: tuple[str, ...] = setting("SENTINEL_FREEFORM_TABLES", table_names, ())
    files_root: Path | None = None
    search_provider: str = setting("SENTINEL_SEARCH_PROVIDER", one_of(SEARCH_PROVIDERS), "bundled")
    search_url: str | None = setting("SENTINEL_SEARCH_URL", search_address, None)
    search_key: Secret | None = setting("SENTINEL_SEARCH_API_KEY", Secret, None)
    web_allowed_hosts: tuple[str, ...] = setting("SENTINEL_WEB_ALLOWED_HOSTS", host_names, ())
    upstream_credentials: Mapping[str, Secret] = field(default_factory=dict)
    upstream_places: Mapping[str, str] = field(default_factory=dict)
    """Where newer values of those that are not in the process environment are to be had."""
    readers: tuple[str, ...] = setting("SENTINEL_READERS", reader_names, ())
    """Names under which the person of this home reads what is not for everybody."""
    user_key: Secret | None = setting("SENTINEL_USER_KEY", key_text, None)
    approver_key: Secret | None = setting("SENTINEL_APPROVER_KEY", key_text, None)
    approval_ttl_s: float = setting("SENTINEL_APPROVAL_TTL_S", approval_ttl, 900.0)
    approval_webhook_url: str | None = setting("SENTINEL_APPROVAL_WEBHOOK_URL", webhook_address, None, repr=False)
    approval_webhook_secret: Secret | None = setting("SENTINEL_APPROVAL_WEBHOOK_SECRET", webhook_signing_secret, None)
    approval_webhook_arguments: bool = setting("SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS", yes_or_no, False)
    approval_webhook_decides: bool = setting("SENTINEL_APPROVAL_WEBHOOK_DECIDES", yes_or_no, False)
    approval_webhook_form: str = setting("SENTINEL_APPROVAL_WEBHOOK_FORM", webhook_form_name, "json")
    web_url: str | None = setting("SENTINEL_WEB_URL", public_url, None)
    """Where people reach the web surface, if not on loopback: behind a proxy with TLS."""
    oidc: OidcSettings | None = None
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    deployment: DeploymentSettings = field(default_factory=DeploymentSettings)

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


OTHER_VARIABLES = (
    *("SENTINEL_HOME", "SENTINEL_CONFIG", "SENTINEL_FILES_ROOT", "SENTINEL_QUESTION_TIMEOUT_S"),
    *("SENTINEL_WORKSPACES", "SENTINEL_WORKSPACE", *AZURE_VARIABLES),
    *("SENTINEL_MODEL_NAME", "SENTINEL_MODEL_URL", "SENTINEL_MODEL_API_KEY", "OPENROUTER_API_KEY"),
    *("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_API_VERSION", "AZURE_OPENAI_CHAT_DEPLOYMENT"),
    *("SENTINEL_EMBEDDINGS", "SENTINEL_EMBEDDINGS_URL", "SENTINEL_EMBEDDINGS_API_KEY"),
    *("SENTINEL_KNOWLEDGE_URL", "SENTINEL_KNOWLEDGE_SCHEMA", "SENTINEL_DATABASE_URL", "SENTINEL_DATABASE_SCHEMA"),
    *("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SDK_DISABLED", "SENTINEL_TLS_CERTIFICATE", "SENTINEL_TLS_KEY"),
    *("SENTINEL_OIDC_ISSUER", "SENTINEL_OIDC_CLIENT_ID", "SENTINEL_OIDC_CLIENT_SECRET", "SENTINEL_OIDC_CLAIM"),
    "SENTINEL_UPSTREAM_NAME",
)
"""Those that are no field by themselves: what they mean hangs on others, or they are read otherwise."""

VARIABLES = frozenset(
    (
        *variables_of(Settings, ModelSettings, EmbeddingSettings, KnowledgeSettings, AzureSearchSettings),
        *variables_of(DeploymentSettings, TelemetrySettings),
        *OTHER_VARIABLES,
    )
)
"""Every environment variable; `docs/settings.md` explains each."""


_HARDLY_DIFFERS = 0.88
"""A letter or two in names of this length; other products' names are farther off."""


def default_home(environment: Mapping[str, str]) -> Path:
    """`SENTINEL_HOME`, or the platform's folder for user data."""
    text = environment.get("SENTINEL_HOME", "").strip()
    if text:
        return Path(text).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("sentinel-rag", appauthor=False)


def installed_policy_file() -> Path:
    """`config/sentinel_config.yaml` of the checkout, or the copy that a wheel carries."""
    here = Path(__file__).resolve().parents[1]
    checkout = here.parent.parent / "config" / "sentinel_config.yaml"
    return checkout if checkout.is_file() else here / "default_config" / "sentinel_config.yaml"


def load_settings(environment: Mapping[str, str] | None = None, env_file: Path | None = None) -> Settings:
    """Settings from `.env` of the working directory and the environment, which wins.

    Raises ConfigurationError that lists every problem at once; secrets are never part of a message.
    """
    if environment is None:
        import os

        environment = os.environ  # noqa: TID251  # this package is the one reader
    env_file = env_file if env_file is not None else Path(".env")
    from_file = read_env_file(env_file)
    reader = SettingReader({**from_file, **environment})
    settings = replace(_read(reader), upstream_places=credential_places(reader.values, from_file, env_file))
    problems = [*reader.problems, *_contradictions(settings, reader), *_misspelt(from_file, env_file)]
    if problems:
        raise ConfigurationError(
            "One setting is wrong." if len(problems) == 1 else f"{len(problems)} settings are wrong.",
            problems=tuple(problems),
            next_step="Correct them in the environment or in .env; docs/settings.md explains each.",
        )
    return settings


def _read(reader: SettingReader) -> Settings:
    """Each setting by itself; what cannot be read is a problem of the reader, and its default stands there."""
    home = default_home(reader.values)
    model = reader.read("SENTINEL_MODEL", one_of(MODELS), "offline")
    model_settings = read_model(model, reader)
    workspace, workspaces = read_workspaces(reader, home)
    return reader.of(
        Settings,
        home=home,
        policy_file=reader.read("SENTINEL_CONFIG", path, installed_policy_file()),
        workspace=workspace,
        workspaces=workspaces,
        model=model,
        model_settings=model_settings,
        embeddings=read_embeddings(reader),
        knowledge=read_knowledge(reader),
        database=PostgresSettings(
            url=reader.read("SENTINEL_DATABASE_URL", postgres_url, None),
            schema=reader.read("SENTINEL_DATABASE_SCHEMA", state_schema_name, "sentinel"),
        ),
        question_timeout_s=reader.read("SENTINEL_QUESTION_TIMEOUT_S", seconds, question_seconds(model_settings)),
        files_root=reader.read("SENTINEL_FILES_ROOT", files_root(home), None),
        upstream_credentials=read_upstream_credentials(reader),
        oidc=read_oidc(reader),
        telemetry=read_telemetry(reader),
        deployment=read_deployment(reader),
    )


def _contradictions(settings: Settings, reader: SettingReader) -> list[str]:
    """Settings that are right by themselves and do not go together, or that lack another. A text that is set and could
    not be read is told of already, so it is not missing."""

    is_set = reader.is_set
    problems: list[str] = []
    # A web surface that is served by itself speaks with its people's keys.
    is_for_people = settings.approver_key or is_set("SENTINEL_AGENT_URL")
    if settings.gateway_url and not is_set("SENTINEL_API_KEY") and not is_for_people:
        problems.append("SENTINEL_API_KEY: is missing; a gateway that runs elsewhere needs the agent's key")
    if settings.approval_webhook_url and not is_set("SENTINEL_APPROVAL_WEBHOOK_SECRET"):
        problems.append("SENTINEL_APPROVAL_WEBHOOK_SECRET: is missing; without it nobody can tell who sent a notice")
    problems += card_problems(settings.approval_webhook_form, reader.values)
    search_url, has_key = settings.search_url, settings.search_key is not None
    problems += search_problems(settings.search_provider, search_url, has_key=has_key)
    if has_key and search_url is not None and not protects_keys(search_url):
        problems.append("SENTINEL_SEARCH_URL: plain http would send the key unprotected: use https")
    return problems


def _misspelt(from_file: Mapping[str, str], env_file: Path) -> list[str]:
    """Names of the file that no setting has. Only our own file is checked: the environment may hold SENTINEL_ names of
    other products."""
    return [
        f"{name}: there is no such setting{_nearest(name)} (in {env_file})"
        for name in sorted(from_file)
        if name.startswith("SENTINEL_") and not name.startswith(UPSTREAM_PREFIX) and name not in VARIABLES
    ]


def misspelt_settings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables of the environment that hardly differ from a setting and are none, each with the setting that may be
    meant. They are no error: the environment may hold names of other products that begin alike."""
    from difflib import get_close_matches

    if environment is None:
        import os

        environment = os.environ  # noqa: TID251  # this package is the one reader
    strange = (n for n in sorted(environment) if n.startswith("SENTINEL_") and not n.startswith(UPSTREAM_PREFIX))
    near = {name: get_close_matches(name, VARIABLES, 1, _HARDLY_DIFFERS) for name in strange if name not in VARIABLES}
    return {name: close[0] for name, close in near.items() if close}


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, VARIABLES, 1)
    return f"; did you mean {close[0]}?" if close else ""


def card_problems(form: str, values: Mapping[str, str]) -> list[str]:
    """What else is set that a card in a channel must not do."""
    told = {
        "SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS": "a card in a channel holds no arguments; leave it out",
        "SENTINEL_APPROVAL_WEBHOOK_DECIDES": "a channel decides nothing; leave it out",
    }
    return [
        f"{name}: {why}" for name, why in told.items() if form == "teams" and values.get(name, "").strip() == "true"
    ]


def read_oidc(reader: SettingReader) -> OidcSettings | None:
    """The identity provider; None where none is set."""
    read = reader.read
    issuer = read("SENTINEL_OIDC_ISSUER", _issuer, "")
    client_id = read("SENTINEL_OIDC_CLIENT_ID", _one_word, "")
    secret = read("SENTINEL_OIDC_CLIENT_SECRET", lambda text: Secret(_one_word(text)), None)
    claim = read("SENTINEL_OIDC_CLAIM", _one_word, "email")
    if not issuer and not client_id:
        return None
    if not (issuer and client_id):
        missing = "SENTINEL_OIDC_CLIENT_ID" if issuer else "SENTINEL_OIDC_ISSUER"
        reader.problems.append(f"{missing}: is missing; an identity provider needs its address and our client id there")
        return None
    return OidcSettings(issuer, client_id, secret, claim)
