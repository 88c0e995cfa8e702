"""The telemetry of a run as its zones are handed it: JSON values, None where nothing is to be told.

The collector's headers may hold a credential, so they travel like every other secret: on standard input, to the zones
that make spans, and never in an argument or an environment.
"""

from __future__ import annotations

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
            "resource": dict(settings.resource),
        }
    token = settings.metrics_token
    return {"tracing": tracing, "metrics_token": None if token is None else token.reveal()}
