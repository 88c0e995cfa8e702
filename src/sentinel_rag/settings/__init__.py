"""Settings: the only reader of the environment and of `.env`.

`load_settings` validates everything at once and raises one ConfigurationError that lists every problem. Values from the
process environment win over `.env` of the working directory. Secrets are held as `Secret`, which never prints.
"""

from sentinel_rag.settings.deployment import DeploymentSettings as DeploymentSettings
from sentinel_rag.settings.deployment import EmbeddingSettings as EmbeddingSettings
from sentinel_rag.settings.deployment import KnowledgeSettings as KnowledgeSettings
from sentinel_rag.settings.deployment import ModelSettings as ModelSettings
from sentinel_rag.settings.deployment import TelemetrySettings as TelemetrySettings
from sentinel_rag.settings.deployment import newest_credential as newest_credential
from sentinel_rag.settings.loading import VARIABLES as VARIABLES
from sentinel_rag.settings.loading import Settings as Settings
from sentinel_rag.settings.loading import installed_policy_file as installed_policy_file
from sentinel_rag.settings.loading import load_settings as load_settings
from sentinel_rag.settings.loading import misspelt_settings as misspelt_settings
from sentinel_rag.settings.values import NamedWorkspace as NamedWorkspace
from sentinel_rag.settings.values import Secret as Secret
from sentinel_rag.settings.values import workspace_name as workspace_name

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
    """`bare_environment` and what azure-identity's sign-in methods read; for the tool server on Azure only."""
    import os

    passed = {n: v for n, v in os.environ.items() if n.startswith(AZURE_SIGN_IN) or n in PROXY}  # noqa: TID251  # one reader
    return {**bare_environment(), **passed}


def agent_gateway() -> tuple[str, Secret]:
    """Where the agent's process finds its gateway, and its key there: all that its environment holds."""
    import os

    return os.environ["SENTINEL_URL"], Secret(os.environ["SENTINEL_API_KEY"])  # noqa: TID251  # one reader
