"""Records of calls that were never made, for tests of journals: only what a test is about has to be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sentinel_rag.audit import CallIntended
from sentinel_rag.contracts.labels import BOTTOM, TOP

_INTENT = CallIntended(
    audit_id="",
    key_id="key",
    session_id="session",
    tool="query_incidents",
    requested_tool="query_incidents",
    server="sentinel",
    effect="read",
    arguments={"limit": 3},
    arguments_sha256="00",
    rule_id="any",
    label=TOP,
    context_before=BOTTOM,
    context_after=TOP,
    policy_sha256="00",
)


def call_intent(audit_id: str, **over: Any) -> CallIntended:
    """An allowed call that read something secret; `over` are fields of the record that matter. Of a `tool` alone the
    requested name is the same."""
    if "tool" in over:
        over.setdefault("requested_tool", over["tool"])
    return replace(_INTENT, audit_id=audit_id, **over)
