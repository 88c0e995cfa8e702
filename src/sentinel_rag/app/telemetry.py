"""The telemetry of a run as its zones are handed it: JSON values, None where nothing is to be told.

The collector's headers may hold a credential, so they travel like every other secret: on standard input, to the zones
that make spans, and never in an argument or an environment.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from sentinel_rag.settings import TelemetrySettings


def telemetry_configuration(settings: TelemetrySettings) -> dict[str, Any] | None:
    """What `telemetry.process` reads."""
    if settings.endpoint is None and settings.metrics_token is None:
        return None
    tracing = None
    if settings.endpoint is not None:
        tracing = {
            "collector": {
                "endpoint": settings.endpoint,
                "headers": {name: value.reveal() for name, value in settings.headers.items()},
                "timeout_s": settings.timeout_s,
                "certificate": None if settings.certificate is None else str(settings.certificate),
            },
            "wait_s": settings.wait_s,
            "sampler": settings.sampler,
            "ratio": settings.ratio,
            "trusts_callers": settings.trusts_callers,
            "session_key": _session_key(settings),
            "resource": dict(settings.resource),
        }
    token = settings.metrics_token
    return {"tracing": tracing, "metrics_token": None if token is None else token.reveal()}


def _session_key(settings: TelemetrySettings) -> str:
    """What ids of sessions are marked and hashed with, in hex. It follows from the secrets that every zone is told
    alike, so that zones which run apart agree, and a session is called the same after a restart; without any it is new
    for each run."""
    told = [f"{name}={value.reveal()}" for name, value in sorted(settings.headers.items())]
    if settings.metrics_token is not None:
        told.append(settings.metrics_token.reveal())
    secret = "\n".join(told).encode() if told else secrets.token_bytes(32)
    return hashlib.blake2b(secret, digest_size=32, person=b"session ids").hexdigest()
