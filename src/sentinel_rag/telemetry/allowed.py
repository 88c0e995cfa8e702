"""The names, attributes and values of spans that may leave a process."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum

from sentinel_rag.telemetry.logs import looks_secret, told_session_id
from sentinel_rag.telemetry.spans import Value


# What may leave a process in a span: these attributes, each within its bounds, and nothing else. It is the net below
# the rule that spans tell names, ids, sizes, statuses, label levels and reason codes only. A value of another type, a
# longer one, one with other characters or one that looks like a credential is left out whole: a part of it could still
# tell something. What a caller or a model may choose is one of a closed set, made by the gateway, or told as a hash.
class AttributeForm(Enum):
    """What values of an attribute look like."""

    CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
    NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/+-]{0,127}")
    RECORD = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    """An id of a record or an approval, which the gateway makes."""

    SESSION = re.compile(r"[0-9a-f]{48}|hashed-[0-9a-f]{16}")
    """What `told_session_id` makes of the id of a session, whoever chose it."""

    DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
    ROUTE = re.compile(r"(?:/[a-z0-9_.-]{0,40}|/\{[a-z_]{1,20}\}){1,6}")
    COUNT = 1 << 53
    FLAG = None
    CODES = 8
    """So many codes at most."""


ALLOWED: Mapping[str, AttributeForm] = {
    # The names that the blind courier's document gives.
    "tool.name": AttributeForm.NAME,
    "session.id": AttributeForm.SESSION,
    "http.status_code": AttributeForm.COUNT,
    # OpenTelemetry's general and HTTP conventions.
    "error.type": AttributeForm.CODE,
    "http.request.method": AttributeForm.CODE,
    "http.response.status_code": AttributeForm.COUNT,
    "http.route": AttributeForm.ROUTE,
    "server.address": AttributeForm.NAME,
    # Its conventions for generative AI.
    "gen_ai.agent.name": AttributeForm.NAME,
    "gen_ai.conversation.id": AttributeForm.SESSION,
    "gen_ai.operation.name": AttributeForm.CODE,
    "gen_ai.provider.name": AttributeForm.CODE,
    "gen_ai.request.max_tokens": AttributeForm.COUNT,
    "gen_ai.request.model": AttributeForm.NAME,
    "gen_ai.response.finish_reasons": AttributeForm.CODES,
    "gen_ai.tool.call.id": AttributeForm.RECORD,
    "gen_ai.tool.name": AttributeForm.NAME,
    "gen_ai.tool.type": AttributeForm.CODE,
    "gen_ai.usage.input_tokens": AttributeForm.COUNT,
    "gen_ai.usage.output_tokens": AttributeForm.COUNT,
    # For MCP.
    "mcp.method.name": AttributeForm.NAME,
    "mcp.protocol.version": AttributeForm.DATE,
    # For databases.
    "db.namespace": AttributeForm.NAME,
    "db.operation.name": AttributeForm.CODE,
    "db.response.returned_rows": AttributeForm.COUNT,
    "db.system.name": AttributeForm.CODE,
    # Our own.
    "sentinel.approval.id": AttributeForm.RECORD,
    "sentinel.audit.id": AttributeForm.RECORD,
    "sentinel.context.integrity": AttributeForm.CODE,
    "sentinel.context.sensitivity": AttributeForm.CODE,
    "sentinel.label.integrity": AttributeForm.CODE,
    "sentinel.label.sensitivity": AttributeForm.CODE,
    "sentinel.outcome": AttributeForm.CODE,
    "sentinel.partial": AttributeForm.FLAG,
    "sentinel.reason": AttributeForm.CODE,
    "sentinel.result.bytes": AttributeForm.COUNT,
    "sentinel.result.rows": AttributeForm.COUNT,
    "sentinel.rule.id": AttributeForm.NAME,
    "sentinel.server": AttributeForm.NAME,
    "sentinel.tool.calls": AttributeForm.COUNT,
    "sentinel.upstream.ms": AttributeForm.COUNT,
}
"""Every attribute that a span may carry."""

NAMES = re.compile(
    r"agent\.invoke|llm\.invoke|kql\.query|tool\.[A-Za-z0-9_.-]{1,64}|tools/call(?: [A-Za-z0-9_.-]{1,64})?"
    r"|(?:GET|POST) (?:/[a-z0-9_.{}-]{0,40}){1,6}"
)
"""Every form that a span's name may have."""

OTHER_NAME = "other"


def allowed_value(name: str, value: object) -> Value | None:
    """`value` if the attribute may be told with it, a hash of it for a session that its caller named, else None."""
    allowed = _ALLOWED_VALUES.get(name)
    return None if allowed is None else allowed(value)


def allowed_name(name: str) -> str:
    """`name` if a span may be called so."""
    return name if NAMES.fullmatch(name) and not looks_secret(name) else OTHER_NAME


def _text_of(form: AttributeForm) -> Callable[[object], str | None]:
    fits = form.value.fullmatch
    # No credential that is known by its form consists of the characters of such an id.
    harmless = form is AttributeForm.RECORD

    def allowed(value: object) -> str | None:
        if not isinstance(value, str) or fits(value) is None:
            return None
        return value if harmless or not looks_secret(value) else None

    return allowed


_code = _text_of(AttributeForm.CODE)
_TOO_MANY: int = AttributeForm.COUNT.value
_MOST_CODES: int = AttributeForm.CODES.value


def _flag(value: object) -> Value | None:
    return value if isinstance(value, bool) else None


def _count(value: object) -> Value | None:
    return value if type(value) is int and 0 <= value < _TOO_MANY else None


def _codes(value: object) -> Value | None:
    if not isinstance(value, tuple) or len(value) > _MOST_CODES:
        return None
    return value if all(_code(each) for each in value) else None


def _session(value: object) -> Value | None:
    return told_session_id(value) if isinstance(value, str) else None


def _error_type(value: object) -> Value:
    """Told whatever it is: what is no code by OpenTelemetry's word for it."""
    return _code(value) or "_OTHER"


_OTHER_THAN_TEXT = {
    AttributeForm.FLAG: _flag,
    AttributeForm.COUNT: _count,
    AttributeForm.CODES: _codes,
    AttributeForm.SESSION: _session,
}
_ALLOWED_VALUES: Mapping[str, Callable[[object], Value | None]] = {
    **{name: _OTHER_THAN_TEXT.get(form) or _text_of(form) for name, form in ALLOWED.items()},
    "error.type": _error_type,
}
