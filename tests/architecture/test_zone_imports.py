"""Each zone's process holds only what it needs: a fresh interpreter imports the zone and shows what came with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What must not be there. A zone that cannot import a thing cannot be talked into using it, and starts faster.
FORBIDDEN = {
    "sentinel_rag.surfaces.cli": ("rich", "duckdb", "mcp", "azure", "aiohttp", "starlette", "sentinel_rag.agent"),
    "sentinel_rag.agent.offline": ("duckdb", "mcp", "azure", "sentinel_rag.sentinel", "sentinel_rag.workspace"),
    "sentinel_rag.gateway.app": ("duckdb", "azure", "openai", "sentinel_rag.agent", "sentinel_rag.sentinel"),
    "sentinel_rag.tools.sentinel": ("duckdb", "kql_duckdb", "sentinel_rag.gateway", "sentinel_rag.workspace"),
    "sentinel_rag.tools.knowledge": (
        "numpy",
        "onnxruntime",
        "mcp",
        "sentinel_rag.knowledge.stores",
        "sentinel_rag.gateway",
    ),
    "sentinel_rag.surfaces.web": (
        *("duckdb", "mcp", "azure", "openai", "sentinel_rag.agent", "sentinel_rag.tools"),
        *("sentinel_rag.sentinel", "sentinel_rag.workspace", "sentinel_rag.knowledge"),
    ),
    # Below both adapters: it is imported into processes of others, whose agent must not reach past the gateway.
    "sentinel_rag.integrations.gateway": (
        *("duckdb", "mcp", "azure", "openai", "aiohttp", "starlette", "sentinel_rag.agent", "sentinel_rag.gateway"),
        *("sentinel_rag.settings", "sentinel_rag.telemetry", "sentinel_rag.audit", "sentinel_rag.tools"),
    ),
    "sentinel_rag.workspace.server": ("azure", "mcp", "sentinel_rag.agent", "sentinel_rag.gateway"),
}


@pytest.mark.parametrize("zone", sorted(FORBIDDEN))
def test_a_zone_imports_nothing_of_another(zone: str) -> None:
    script = f"import sys, {zone}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert zone in loaded
    found = {name for name in loaded for wrong in FORBIDDEN[zone] if name == wrong or name.startswith(wrong + ".")}
    assert not found
