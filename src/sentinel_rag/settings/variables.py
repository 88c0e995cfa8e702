"""Every environment variable by name, as `docs/settings.md`, `.env.example` and `sentinel doctor` tell them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable, as `docs/settings.md`, `.env.example` and `sentinel doctor` name it."""

    name: str
    meaning: str
    default: str


VARIABLES: tuple[Variable, ...] = (
    Variable("SENTINEL_HOME", "Folder for workspaces, audit, keys and logs.", "the platform's user data folder"),
    Variable("SENTINEL_CONFIG", "Policy file of the gateway.", "config/sentinel_config.yaml of the installation"),
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
    Variable("SENTINEL_URL", "A gateway that runs elsewhere. Needs SENTINEL_API_KEY.", "none: one is started"),
    Variable("SENTINEL_API_KEY", "The agent's key at the gateway.", "one is made for each start"),
    Variable(
        "SENTINEL_MODEL",
        "What plans tool calls: offline (no model), azure, openai-compatible or openrouter.",
        "offline",
    ),
    Variable("SENTINEL_MODEL_NAME", "Model, or Azure deployment, that answers (see docs/models.md).", "none"),
    Variable("SENTINEL_MODEL_SMALL_NAME", "Model or deployment for simple questions.", "the same for all"),
    Variable("SENTINEL_MODEL_URL", "Base URL of an openai-compatible server.", "none"),
    Variable("SENTINEL_MODEL_API_KEY", "Key at that server.", "none: it asks for none"),
    Variable("SENTINEL_MODEL_ROLE", "answer, or assist: it chooses a call only where the rules ask back.", "answer"),
    Variable("SENTINEL_MODEL_PRICES", "US dollars a million tokens: large=2.50/10,small=0.15/0.60.", "none"),
    Variable("SENTINEL_MODEL_TIMEOUT_S", "Seconds that one answer of the model may take.", "120"),
    Variable("SENTINEL_MODEL_IDLE_TIMEOUT_S", "Seconds that the model may fall silent amid an answer.", "30"),
    Variable("SENTINEL_MAX_TOOL_ROUNDS", "Rounds of tool calls that a model has for a question (1 to 40).", "15"),
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
    Variable("SENTINEL_KNOWLEDGE_STORE", "Where knowledge is kept: local, chroma, pgvector or azure-search.", "local"),
    Variable("SENTINEL_KNOWLEDGE_REFRESH_MINUTES", "How often past incidents are refreshed; 0: not by itself.", "60"),
    Variable("SENTINEL_CHROMA_PATH", "Folder of the store chroma.", "in the home folder"),
    Variable("SENTINEL_KNOWLEDGE_URL", "Database of pgvector: postgresql://USER:PASSWORD@HOST/DATABASE.", "none"),
    Variable("SENTINEL_KNOWLEDGE_SCHEMA", "Schema in it.", "sentinel_knowledge"),
    Variable("SENTINEL_AZURE_SEARCH_ENDPOINT", "Address of the Azure AI Search service.", "none"),
    Variable("SENTINEL_AZURE_SEARCH_KEY", "Admin key of that service.", "none: Entra ID"),
    Variable("SENTINEL_AZURE_SEARCH_INDEX", "What its indexes are named by.", "sentinel-knowledge"),
    Variable("OPENROUTER_API_KEY", "Key at OpenRouter.", "none"),
    Variable("SENTINEL_TIMEZONE", "Time zone (IANA name) in which words like yesterday are read.", "UTC"),
    Variable(
        "SENTINEL_DATABASE_URL",
        "PostgreSQL for the gateway's state: postgresql://USER:PASSWORD@HOST/DB.",
        "none: SQLite",
    ),
    Variable("SENTINEL_DATABASE_SCHEMA", "Schema in it; gateways with one schema share their state.", "sentinel"),
    Variable(
        "SENTINEL_CHAT_DATABASE_URL",
        "PostgreSQL for the agent's conversations, as a role of its own.",
        "none: SQLite",
    ),
    Variable("SENTINEL_AUDIT_DURABILITY", "process or power: what an acknowledged record survives.", "process"),
    Variable("SENTINEL_AUDIT_ANCHOR", "File for a second copy of the journal's checkpoints, on another disk.", "none"),
    Variable(
        "SENTINEL_QUESTION_TIMEOUT_S",
        "Seconds that one question may take.",
        "180, or 60 more than SENTINEL_MODEL_TIMEOUT_S",
    ),
    Variable("SENTINEL_CHAT_KEEP_DAYS", "Days that a conversation is kept after its last question; 0: none.", "90"),
    Variable("SENTINEL_CHAT_KEEP", "How many conversations are kept.", "200"),
    Variable("SENTINEL_CHAT_TURNS", "Turns of a conversation that a model is told (1 to 1000).", "30"),
    Variable("SENTINEL_LOG_LEVEL", "DEBUG, INFO, WARNING or ERROR.", "INFO"),
    Variable("OTEL_EXPORTER_OTLP_ENDPOINT", "OpenTelemetry collector that spans go to (OTLP over HTTP).", "none: off"),
    Variable("OTEL_EXPORTER_OTLP_HEADERS", "Headers of each request to it: name=value by comma.", "none"),
    Variable("OTEL_EXPORTER_OTLP_TIMEOUT", "Milliseconds that one request may take.", "10000"),
    Variable("OTEL_BSP_SCHEDULE_DELAY", "Milliseconds that spans wait for others before they are sent.", "5000"),
    Variable("OTEL_EXPORTER_OTLP_CERTIFICATE", "File of certificates to trust beside the system's.", "none"),
    Variable("OTEL_EXPORTER_OTLP_PROTOCOL", "How spans are sent: http/protobuf, and no other.", "http/protobuf"),
    Variable("OTEL_TRACES_SAMPLER", "Which traces are recorded, by OpenTelemetry's names.", "parentbased_always_on"),
    Variable("OTEL_TRACES_SAMPLER_ARG", "The share of traces for a sampler by ratio, 0 to 1.", "1"),
    Variable("OTEL_PROPAGATORS", "none: spans never belong to a trace that a caller names.", "tracecontext"),
    Variable("OTEL_RESOURCE_ATTRIBUTES", "What every span says of this installation: name=value by comma.", "none"),
    Variable("OTEL_SDK_DISABLED", "true: no spans, whatever else is set.", "false"),
    Variable("SENTINEL_METRICS_TOKEN", "What Prometheus shows to read GET /metrics of the zones.", "none: not served"),
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
    Variable("SENTINEL_READERS", "Names under which you read knowledge that is not for everybody.", "none"),
    Variable("SENTINEL_USER_KEY", "Your key with the scope user at SENTINEL_URL.", "one is made for each start"),
    Variable("SENTINEL_APPROVER_KEY", "Your key with the scope approve at SENTINEL_URL.", "one is made for each start"),
    Variable("SENTINEL_APPROVAL_TTL_S", "Seconds that a call waits for a person (60 to 86400).", "900"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_URL", "Told of each call that waits for a person.", "none"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_SECRET", "Signs what the webhook is sent.", "none; needed for a webhook"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS", "true: the webhook is sent the arguments too.", "false"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_DECIDES", "true: the webhook's receiver may decide.", "false"),
    Variable("SENTINEL_APPROVAL_WEBHOOK_FORM", "json, or teams: a card for a channel of Microsoft Teams.", "json"),
    Variable("SENTINEL_WEB_URL", "Where people reach sentinel up --web through a proxy with TLS.", "loopback only"),
    Variable("SENTINEL_OIDC_ISSUER", "Identity provider (OpenID Connect) that people sign in with.", "none"),
    Variable("SENTINEL_OIDC_CLIENT_ID", "This installation's client id there.", "none"),
    Variable("SENTINEL_OIDC_CLIENT_SECRET", "Its secret, if the provider gave one.", "none: PKCE alone"),
    Variable("SENTINEL_OIDC_CLAIM", "Claim of the ID token that names a person.", "email, which must be verified"),
    Variable("SENTINEL_TLS_CERTIFICATE", "Certificate (PEM) of a zone served by itself.", "none: loopback only"),
    Variable("SENTINEL_TLS_KEY", "Its private key (PEM).", "none"),
    Variable("SENTINEL_TLS_CA", "Authorities (PEM) that zones elsewhere are checked by.", "the system's"),
    Variable("SENTINEL_ZONE_TOKEN", "What callers of a served agent or tool zone must show.", "none; needed for those"),
    Variable("SENTINEL_TOOLS", "Tool zones elsewhere: sentinel=URL,knowledge=URL,files=URL,web=URL.", "none"),
    Variable("SENTINEL_TOOLS_TOKENS", "Their tokens in the same form.", "none"),
    Variable("SENTINEL_AGENT_URL", "The agent, for a web surface served by itself.", "none"),
    Variable("SENTINEL_AGENT_TOKEN", "Its token.", "none"),
)
UPSTREAM_PREFIX = "SENTINEL_UPSTREAM_"
"""Variables that begin so are credentials for tool servers of other makers; the policy refers to them by name."""
