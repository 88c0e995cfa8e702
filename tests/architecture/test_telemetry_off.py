"""Telemetry that is off costs nothing: no zone loads any of it but what decides that it is off."""

from __future__ import annotations

import subprocess
import sys

import pytest

ZONES = "sentinel_rag.interceptor.app, sentinel_rag.surfaces.http, sentinel_rag.executors.sentinel"
NEVER = ("process", "exporter", "otlp", "attributes", "metrics", "requests", "began")


@pytest.mark.requirement("OBS-1")
def test_a_zone_that_tells_nothing_loads_nothing_of_telemetry() -> None:
    script = (
        f"import sys, sentinel_rag.assembly.zones, sentinel_rag.assembly.serving, {ZONES}, sentinel_rag.agent.offline; "
        "from sentinel_rag.agent.gateway_client import HttpToolGateway; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sentinel_rag.telemetry.spans" in loaded
    assert {f"sentinel_rag.telemetry.{name}" for name in NEVER} & loaded == set()
    assert {name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))} == set()
