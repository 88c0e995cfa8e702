"""The search service of the settings, as a store: keys and Entra ID tokens reach the service and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_of_apples import put_apple
from test_knowledge_access import Identity, identity  # noqa: F401  # a fixture

from sentinel_rag.assembly.knowledge_access import knowledge_place, open_knowledge
from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.testing.azure_search import AzureSearchDouble, running_azure_search
