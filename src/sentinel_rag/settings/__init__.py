"""Settings: the only reader of the environment and of `.env`.

`load_settings` validates everything at once and raises one ConfigurationError that lists every problem. Values from the
process environment win over `.env` of the working directory. Secrets are held as `Secret`, which never prints.
"""

from sentinel_rag.settings.environments import (
    agent_gateway,
    azure_environment,
    bare_environment,
    model_environment,
    tool_server_environment,
)
from sentinel_rag.settings.loading import default_home, installed_policy_file, load_settings, misspelt_settings
from sentinel_rag.settings.shapes import (
    DeploymentSettings,
    EmbeddingSettings,
    KnowledgeSettings,
    ModelSettings,
    PostgresSettings,
    Secret,
    Settings,
    TelemetrySettings,
    TlsFiles,
)
from sentinel_rag.settings.upstream_credentials import newest_credential
from sentinel_rag.settings.variables import VARIABLES, Variable
from sentinel_rag.settings.workspace_file import NamedWorkspace, workspace_name

__all__ = [
    "VARIABLES",
    "DeploymentSettings",
    "EmbeddingSettings",
    "KnowledgeSettings",
    "ModelSettings",
    "NamedWorkspace",
    "PostgresSettings",
    "Secret",
    "Settings",
    "TelemetrySettings",
    "TlsFiles",
    "Variable",
    "agent_gateway",
    "azure_environment",
    "bare_environment",
    "default_home",
    "installed_policy_file",
    "load_settings",
    "misspelt_settings",
    "model_environment",
    "newest_credential",
    "tool_server_environment",
    "workspace_name",
]
