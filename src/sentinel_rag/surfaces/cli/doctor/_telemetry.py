"""Where spans go and who may read metrics: whether the collector is there and takes what is sent to it."""

from __future__ import annotations

import http.client
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

from sentinel_rag.app.telemetry import telemetry_configuration
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli.doctor._finding import Finding, fault, fine, warning

NAME = "telemetry"
LONGEST_WAIT_S = 5.0


def telemetry(settings: Settings) -> Finding:
    """One line: an export without spans is sent, which every collector answers."""
    wanted = settings.telemetry
    metrics = "metrics off" if wanted.metrics_token is None else "metrics served"
    configuration = telemetry_configuration(wanted)
    if configuration is None or configuration["tracing"] is None:
        return fine(NAME, f"spans off (OTEL_EXPORTER_OTLP_ENDPOINT turns them on), {metrics}")
    from sentinel_rag.telemetry.exporter import Collector, CollectorConnection, ExportRefused

    collector = Collector(**configuration["tracing"]["collector"])
    at = urlsplit(collector.endpoint).netloc
    bounded = replace(collector, timeout_s=min(collector.timeout_s, LONGEST_WAIT_S))
    try:
        with closing(CollectorConnection(bounded)) as connection:
            connection.post(b"")
    except ExportRefused as refused:
        return fault(NAME, f"{at}: {refused}; spans are lost", _what_mends(refused.status))
    except (OSError, http.client.HTTPException) as error:
        # Every question is answered all the same.
        return warning(NAME, f"{at} does not answer ({error}); spans are lost", "start it, or correct the address")
    return fine(NAME, f"{at} takes spans ({wanted.sampler}), {metrics}")


def _what_mends(status: int) -> str:
    if status in (401, 403):
        return "correct OTEL_EXPORTER_OTLP_HEADERS"
    if status in (404, 405):
        return "correct OTEL_EXPORTER_OTLP_ENDPOINT: the address without /v1/traces, of OTLP over HTTP (port 4318)"
    return "look at the collector's log"
