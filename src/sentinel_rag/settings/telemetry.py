"""What the zones tell a collector and Prometheus: OpenTelemetry's own variables, as far as they mean something here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sentinel_rag.contracts.loopback import LOOPBACK_NAMES
from sentinel_rag.settings.shapes import Secret, TelemetrySettings
from sentinel_rag.settings.values import SettingReader, between, key_text, one_of, yes_or_no

SAMPLERS = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
PROTOCOL = "http/protobuf"
TRACE_CONTEXT = "tracecontext"
MAX_ENTRIES = 32
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9_.]{0,63}")
_OURS = ("service.name", "service.version", "service.instance.id", "sentinel.", "telemetry.sdk.")


def read_telemetry(reader: SettingReader) -> TelemetrySettings:
    """The settings; problems go to the reader."""
    endpoint = reader.read("OTEL_EXPORTER_OTLP_ENDPOINT", collector_address, None)
    none: Mapping[str, Secret] = {}
    headers = reader.read("OTEL_EXPORTER_OTLP_HEADERS", header_pairs, none)
    if headers and endpoint is not None and not _is_safe(endpoint):
        reader.problems.append("OTEL_EXPORTER_OTLP_ENDPOINT: plain http would send the headers unprotected: use https")
    reader.read("OTEL_EXPORTER_OTLP_PROTOCOL", _protocol, PROTOCOL)
    no_attributes: Mapping[str, str] = {}
    disabled = reader.read("OTEL_SDK_DISABLED", yes_or_no, False)
    return TelemetrySettings(
        endpoint=None if disabled else endpoint,
        headers=headers,
        timeout_s=reader.read("OTEL_EXPORTER_OTLP_TIMEOUT", between(100, 60_000), 10_000) / 1e3,
        wait_s=reader.read("OTEL_BSP_SCHEDULE_DELAY", between(50, 60_000), 5_000) / 1e3,
        certificate=reader.read("OTEL_EXPORTER_OTLP_CERTIFICATE", _file, None),
        sampler=reader.read("OTEL_TRACES_SAMPLER", one_of(SAMPLERS), "parentbased_always_on"),
        ratio=reader.read("OTEL_TRACES_SAMPLER_ARG", _share, 1.0),
        trusts_callers=reader.read("OTEL_PROPAGATORS", _trace_context, True),
        resource=reader.read("OTEL_RESOURCE_ATTRIBUTES", resource_pairs, no_attributes),
        metrics_token=reader.read("SENTINEL_METRICS_TOKEN", key_text, None),
    )


def collector_address(text: str) -> str:
    """The collector's base URL. Raises ValueError."""
    parts = urlsplit(text)
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.username is not None or parts.query or parts.fragment:
        raise ValueError("is no address such as http://127.0.0.1:4318")
    return text.rstrip("/")


def header_pairs(text: str) -> Mapping[str, Secret]:
    """Headers by name; values may be percent-encoded. Raises ValueError, without a value."""
    pairs = _pairs(text, _TOKEN, "a header's name")
    for name, value in pairs.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the value of {name} holds a character that no header may")
    return {name: Secret(value) for name, value in pairs.items()}


def resource_pairs(text: str) -> Mapping[str, str]:
    """Attributes by name. Raises ValueError."""
    pairs = _pairs(text, _ATTRIBUTE, "the name of an attribute, such as deployment.environment.name")
    for name, value in pairs.items():
        if name.startswith(_OURS):
            raise ValueError(f"{name} is set by the zones themselves")
        if len(value) > 128 or not value.isprintable():
            raise ValueError(f"the value of {name} is longer than 128 characters, or not printable")
    return pairs


def _pairs(text: str, names: re.Pattern[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in text.split(","):
        name, equals, value = entry.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not equals or not value:
            raise ValueError("is not of the form name=value,name=value")
        if not names.fullmatch(name):
            raise ValueError(f"what stands before an equals sign is not {what}")
        found[name] = value
    if len(found) > MAX_ENTRIES:
        raise ValueError(f"has more than {MAX_ENTRIES} entries")
    return found


def _is_safe(endpoint: str) -> bool:
    parts = urlsplit(endpoint)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


def _protocol(text: str) -> str:
    if text != PROTOCOL:
        raise ValueError(f"{text!r} is not spoken here; collectors take {PROTOCOL} on port 4318")
    return text


def _trace_context(text: str) -> bool:
    """Whether W3C Trace Context is among the propagators; baggage, often named beside it, is none here."""
    names = {name.strip() for name in text.split(",")}
    if names != {"none"} and TRACE_CONTEXT not in names:
        raise ValueError(f"{text!r} is not spoken here; it is {TRACE_CONTEXT} or none")
    return TRACE_CONTEXT in names


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is no share from 0 to 1")
    return value


def _file(text: str) -> Path:
    found = Path(text).expanduser().absolute()
    if not found.is_file():
        raise ValueError(f"{text!r} is not a file")
    return found
