"""`sentinel doctor` on telemetry: off, a collector that takes spans, one that refuses, one that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.otlp_receiver import running_receiver

from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli.doctor import Level, telemetry

pytestmark = [pytest.mark.requirement("OPS-4"), pytest.mark.requirement("OBS-1")]
SECRET = "canary-of-a-header"


def settings(folder: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(folder), **environment}, folder / "none.env")


def test_off_is_fine_and_says_what_turns_it_on(tmp_path: Path) -> None:
    found = telemetry(settings(tmp_path))
    assert (found.level, found.fix) == (Level.OK, "")
    assert found.detail == "spans off (OTEL_EXPORTER_OTLP_ENDPOINT turns them on), metrics off"
    assert "metrics served" in telemetry(settings(tmp_path, SENTINEL_METRICS_TOKEN="a-token-of-the-tests")).detail


def test_a_collector_is_asked_with_the_headers_and_without_a_span(tmp_path: Path) -> None:
    with running_receiver() as receiver:
        sent = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SECRET}", "OTEL_TRACES_SAMPLER": "always_on"}
        found = telemetry(settings(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **sent))
        assert found.level is Level.OK
        assert "takes spans (always_on)" in found.detail
        assert receiver.headers[0]["x-key"] == SECRET
        assert receiver.spans() == []


@pytest.mark.parametrize(
    ("status", "level", "fix"),
    [
        (401, Level.FAIL, "OTEL_EXPORTER_OTLP_HEADERS"),
        (404, Level.FAIL, "without /v1/traces"),
        (500, Level.FAIL, "collector's log"),
    ],
)
def test_a_collector_that_refuses_is_a_fault_with_what_mends_it(
    tmp_path: Path, status: int, level: Level, fix: str
) -> None:
    with running_receiver() as receiver:
        receiver.status = status
        sent = {"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={SECRET}"}
        found = telemetry(settings(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, **sent))
    assert found.level is level
    assert fix in found.fix
    assert SECRET not in found.detail + found.fix


def test_a_collector_that_is_away_is_a_warning_since_questions_are_answered_all_the_same(tmp_path: Path) -> None:
    with running_receiver() as receiver:
        url = receiver.url
    found = telemetry(settings(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=url))
    assert found.level is Level.WARN
    assert "spans are lost" in found.detail
