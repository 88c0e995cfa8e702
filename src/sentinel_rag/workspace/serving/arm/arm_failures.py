"""Refusals that the routes of this folder share. Pure."""

from __future__ import annotations

from sentinel_rag.workspace.serving.arm.answers import ArmError


def no_incident(name: str) -> ArmError:
    """404 for an incident that there is not."""
    return ArmError(404, "NotFound", f"The incident '{name}' could not be found.")


def stale(what: str, name: str, if_match: str | None) -> ArmError:
    """412 for the header's condition, 409 for the body's etag."""
    if if_match is not None:
        return ArmError(412, "PreconditionFailed", f"The {what} '{name}' has another etag than If-Match names.")
    return ArmError(409, "Conflict", f"The {what} '{name}' was changed since it was read: newer data exists.")
