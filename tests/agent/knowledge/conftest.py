"""The small estate with the shipped playbooks and a few past incidents, searched by words."""

from __future__ import annotations

import pytest
from tests.support.small_knowledge import SearchTool, small_knowledge


@pytest.fixture(scope="session")
def search_tool(tmp_path_factory: pytest.TempPathFactory) -> SearchTool:
    return small_knowledge(tmp_path_factory.mktemp("knowledge"))
