"""OpenTelemetry's own variables and the token for metrics: read, refused in one go, and never told."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import ANY

import pytest

from sentinel_rag.app.plan import telemetry_configuration
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings

pytestmark = pytest.mark.requirement("OPS-2")
SECRET = "canary-of-a-header"


def load(folder: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(folder), **environment}, folder / "none.env")


def problem(folder: Path, **environment: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        load(folder, **environment)
    [found] = refused.value.problems
    return found


def test_without_any_of_them_nothing_is_told(tmp_path: Path) -> None:
    assert telemetry_configuration(load(tmp_path).telemetry) is None


def test_all_of_them(tmp_path: Path) -> None:
    certificate = tmp_path / "ca.pem"
    certificate.touch()
    settings = load(
        tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT="https://collector.example.com:4318/",
        OTEL_EXPORTER_OTLP_HEADERS=f"authorization=Basic%20{SECRET}, x-tenant=soc",
        OTEL_EXPORTER_OTLP_TIMEOUT="2500",
        OTEL_BSP_SCHEDULE_DELAY="250",
        OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate),
        OTEL_TRACES_SAMPLER="parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG="0.25",
        OTEL_PROPAGATORS="none",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=production",
        SENTINEL_METRICS_TOKEN="a-long-token-of-the-tests",
    )
    configuration = telemetry_configuration(settings.telemetry)
    assert configuration == {
        "tracing": {
            "collector": {
                "endpoint": "https://collector.example.com:4318",
                "headers": {"authorization": f"Basic {SECRET}", "x-tenant": "soc"},
                "timeout_s": 2.5,
                "certificate": str(certificate),
            },
            "wait_s": 0.25,
            "sampler": "parentbased_traceidratio",
            "ratio": 0.25,
            "trusts_callers": False,
            "session_key": ANY,
            "resource": {"deployment.environment.name": "production"},
        },
        "metrics_token": "a-long-token-of-the-tests",
    }
    key = configuration["tracing"]["session_key"]
    assert len(bytes.fromhex(key)) == 32
    again = telemetry_configuration(settings.telemetry)
    assert again is not None
    assert again["tracing"]["session_key"] == key, "zones that run apart would tell one session by two names"
    assert SECRET not in repr(settings)
    assert "a-long-token" not in repr(settings)


def test_without_a_secret_that_zones_share_each_run_has_a_key_of_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    keys = set()
    for _ in range(2):
        configuration = telemetry_configuration(settings.telemetry)
        assert configuration is not None
        keys.add(configuration["tracing"]["session_key"])
    assert len(keys) == 2


@pytest.mark.parametrize(("text", "trusted"), [("tracecontext", True), ("tracecontext,baggage", True), ("none", False)])
def test_whose_traces_are_gone_on_with(tmp_path: Path, text: str, trusted: bool) -> None:
    settings = load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318", OTEL_PROPAGATORS=text)
    assert settings.telemetry.trusts_callers is trusted


def test_the_standard_switch_turns_spans_off(tmp_path: Path) -> None:
    settings = load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318", OTEL_SDK_DISABLED="true")
    assert telemetry_configuration(settings.telemetry) is None


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "no address"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://127.0.0.1:4317", "no address"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://me:{SECRET}@127.0.0.1:4318", "no address"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:99999", "no address"),
        ("OTEL_EXPORTER_OTLP_HEADERS", SECRET, "name=value"),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"a b={SECRET}", "header's name"),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"a={SECRET}%0d%0ax: y", "no header may"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf on port 4318"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "whole number"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem", "cannot be read"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "not one of"),
        ("OTEL_TRACES_SAMPLER_ARG", "1.5", "share from 0 to 1"),
        ("OTEL_TRACES_SAMPLER_ARG", "nan", "share from 0 to 1"),
        ("OTEL_PROPAGATORS", "b3", "tracecontext or none"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine", "zones themselves"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=" + "x" * 200, "128 characters"),
        ("SENTINEL_METRICS_TOKEN", "short", "16 characters"),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(tmp_path: Path, name: str, text: str, words: str) -> None:
    found = problem(tmp_path, **{name: text})
    assert found.startswith(f"{name}: ")
    assert words in found
    assert SECRET not in found


def test_headers_do_not_cross_a_network_in_the_clear(tmp_path: Path) -> None:
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRET}"}
    found = problem(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://collector.example.com:4318", **headers)
    assert "use https" in found
    load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318", **headers)
    load(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://collector.example.com:4318")
