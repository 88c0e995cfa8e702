"""Telemetry that is off costs nothing: no zone loads any of it but what decides that it is off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src" / "sentinel_rag"
ZONES = "sentinel_rag.gateway.app, sentinel_rag.surfaces.http, sentinel_rag.tools.sentinel"
NEVER = ("process", "exporter", "allowed", "metrics", "tracer")


@pytest.mark.requirement("OBS-1")
def test_a_zone_that_tells_nothing_loads_nothing_of_telemetry() -> None:
    script = (
        f"import sys, sentinel_rag.app.zones, sentinel_rag.app.serving, {ZONES}, sentinel_rag.agent.offline; "
        "from sentinel_rag.agent.gateway_client import HttpToolGateway; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "sentinel_rag.telemetry" in loaded
    assert {f"sentinel_rag.telemetry.{name}" for name in NEVER} & loaded == set()
    assert {name for name in loaded if name.startswith(("opentelemetry", "prometheus_client", "requests"))} == set()


@pytest.mark.requirement("OBS-1")
def test_every_attribute_that_may_leave_is_one_that_some_zone_tells() -> None:
    from sentinel_rag.telemetry.tracer import ALLOWED

    told = "".join(path.read_text() for path in SOURCES.rglob("*.py"))
    made_of_parts = {f"sentinel.{of}.{side}" for of in ("label", "context") for side in ("sensitivity", "integrity")}
    # Once is the list itself.
    assert {name for name in ALLOWED if told.count(f'"{name}"') == 1} == made_of_parts
