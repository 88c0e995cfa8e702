"""Spans and counts as OTLP: the attributes that may leave the process, and the bytes of a request."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from sentinel_rag.telemetry.logs import looks_secret, told_session_id
from sentinel_rag.telemetry.spans import SharedAttributes, Span, Value


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


def error_code(text: str) -> str:
    """`text` if it is a code; what is none is told as `other`, OpenTelemetry's word for it being `_OTHER`."""
    return _code(text) or "_OTHER"


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


_OTHER_THAN_TEXT = {
    AttributeForm.FLAG: _flag,
    AttributeForm.COUNT: _count,
    AttributeForm.CODES: _codes,
    AttributeForm.SESSION: _session,
}
_ALLOWED_VALUES: Mapping[str, Callable[[object], Value | None]] = {
    name: _OTHER_THAN_TEXT.get(form) or _text_of(form) for name, form in ALLOWED.items()
}


# Written here because a gateway call costs a third of a millisecond of processor time: through the OpenTelemetry SDK
# its two spans would add a third to that. The tests read what is written here with the official messages, and send it
# to a receiver of another maker. `ALLOWED` decides what is written at all.
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
MAX_REMEMBERED = 4_096
MAX_SESSIONS = 512
_ERROR = 2
_SMALL = 1_024
_SHORT = 100
_REMEMBERED = frozenset({str, int})
_IDS = struct.Struct(">BBQQBBQ")
_IDS_BELOW = struct.Struct(">BBQQBBQBBQ")
_KIND_AND_TIMES = struct.Struct("<BBBQBQ")
_SAMPLED_FLAG = b"\x85\x01\x01\x00\x00\x00"


def varint(number: int) -> bytes:
    """A whole number from 0 to 2**64 - 1 in base 128, the lowest part first."""
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def field(number: int, content: bytes) -> bytes:
    """A field whose content has a length: text, bytes or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def key_value(name: str, value: Value) -> bytes:
    """A KeyValue message."""
    return field(1, name.encode()) + field(2, _any_value(value))


def resource(attributes: Mapping[str, Value]) -> bytes:
    """A Resource message."""
    return b"".join(field(1, key_value(name, value)) for name, value in attributes.items())


class SpanEncoder:
    """Writes spans of one process. It remembers the bytes of values that come again and again."""

    def __init__(self, resource: bytes, scope_version: str) -> None:
        self._head = field(1, resource)
        self._scope = field(1, field(1, b"sentinel_rag") + field(2, scope_version.encode()))
        self._remembered: dict[tuple[str, Value], bytes] = {}
        self._sessions: list[tuple[str, Value]] = []
        self._names: dict[str, bytes] = {}
        self._keys: dict[str, bytes] = {}

    @property
    def remembered(self) -> int:
        """How many attributes it knows the bytes of."""
        return len(self._remembered)

    def request(self, spans: Iterable[bytes]) -> bytes:
        """The body of one export of spans that `span` has written."""
        parts: list[bytes] = []
        for span in spans:
            size = len(span)
            parts.append(
                b"\x12%c%c" % (size & 0x7F | 0x80, size >> 7) if 0x7F < size < 0x4000 else b"\x12" + varint(size)
            )
            parts.append(span)
        written = b"".join(parts)
        schema = field(3, SCHEMA_URL.encode())
        return field(1, self._head + field(2, self._scope + written + schema) + schema)

    def span(self, span: Span) -> bytes:
        """One Span message: with the attributes that may be told, and how many there were beside them."""
        span.tell_deferred()
        attributes = span.attributes
        whole, low = divmod(span.trace_id, 1 << 64)
        if span.parent_id:
            parts = [_IDS_BELOW.pack(0x0A, 16, whole, low, 0x12, 8, span.span_id, 0x22, 8, span.parent_id)]
        else:
            parts = [_IDS.pack(0x0A, 16, whole, low, 0x12, 8, span.span_id)]
        parts.append(self._names.get(span.name) or self._name(span.name))
        parts.append(_KIND_AND_TIMES.pack(0x30, span.kind, 0x39, span.started_ns, 0x41, span.ended_ns))
        withheld = 0
        for group in span.shared:
            if attributes.keys().isdisjoint(group.attributes):
                if group.written is None:
                    self._write(group)
                assert group.written is not None
                parts.append(group.written)
                withheld += group.withheld
            else:
                attributes = {**group.attributes, **attributes}
        remembered = self._remembered
        for told in attributes.items():
            # The type is part of the question: 1 and True are one key of a dictionary, and a list is none.
            written = remembered.get(told) if type(told[1]) in _REMEMBERED else None
            if written is None:
                written = self._attribute(*told)
                withheld += not written
            parts.append(written)
        if span.error:
            parts.append(field(9, key_value("error.type", error_code(span.error))))
        if withheld:
            parts.append(b"\x50" + varint(withheld))
        if span.error:
            parts.append(field(15, b"\x18" + varint(_ERROR)))
        parts.append(_SAMPLED_FLAG)
        return b"".join(parts)

    def _write(self, group: SharedAttributes) -> None:
        written = [self._attribute(name, value) for name, value in group.attributes.items()]
        group.withheld = written.count(b"")
        group.written = b"".join(written)

    def _name(self, name: str) -> bytes:
        written = self._names.get(name)
        if written is None:
            written = field(5, allowed_name(name).encode())
            if len(self._names) < MAX_REMEMBERED:
                self._names[name] = written
        return written

    def _attribute(self, name: str, value: Value) -> bytes:
        """The field of an attribute; empty for one that may not be told."""
        told = allowed_value(name, value)
        if told is None:
            return b""
        written = self._field(name, told)
        form = ALLOWED[name]
        if form is AttributeForm.SESSION:  # a few go on for long, and each takes a hash; then they are others
            if len(self._sessions) >= MAX_SESSIONS:
                for stale in self._sessions:
                    self._remembered.pop(stale, None)
                self._sessions.clear()
            self._sessions.append((name, value))
            self._remembered[name, value] = written
        elif _comes_again(form, value) and len(self._remembered) < MAX_REMEMBERED:
            self._remembered[name, value] = written
        return written

    def _field(self, name: str, value: Value) -> bytes:
        """`field(9, key_value(name, value))`, with the short way for what is told all day: a text or a number whose
        lengths are one byte each."""
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = field(1, name.encode())
        if isinstance(value, str) and len(key) + len(value) < _SHORT:
            text = value.encode()  # ASCII, as every form is
            size = len(text)
            return b"\x4a%c%b\x12%c\x0a%c%b" % (len(key) + size + 4, key, size + 2, size, text)
        return field(9, key + field(2, _any_value(value)))


def _comes_again(form: AttributeForm, value: Value) -> bool:
    few = form is not AttributeForm.RECORD and (not isinstance(value, int) or value < _SMALL)
    return few and type(value) in _REMEMBERED


def rejected_spans(answer: bytes) -> int:
    """How many spans the receiver says it did not take: `partial_success.rejected_spans` of its answer. 0 where it says
    nothing, or nothing that can be read."""
    try:
        partial = _fields(answer).get(1, b"")
        count = _fields(partial).get(1, 0) if isinstance(partial, bytes) else 0
    except (IndexError, ValueError):
        return 0
    return count if isinstance(count, int) and count < 1 << 63 else 0


def _any_value(value: Value) -> bytes:
    if isinstance(value, str):
        return field(1, value.encode())
    if isinstance(value, bool):
        return b"\x10" + varint(value)
    if isinstance(value, int):
        return b"\x18" + varint(value)
    if isinstance(value, float):
        return b"\x21" + struct.pack("<d", value)
    return field(5, b"".join(field(1, _any_value(each)) for each in value))


def _fields(message: bytes) -> dict[int, int | bytes]:
    """The last value of each field of a message. Raises IndexError or ValueError for what is none."""
    found: dict[int, int | bytes] = {}
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        match key & 7:
            case 0:
                found[key >> 3], place = _read_varint(message, place)
            case 2:
                length, place = _read_varint(message, place)
                if place + length > len(message):
                    raise ValueError("a field that is not whole")
                found[key >> 3] = message[place : place + length]
                place += length
            case 1 | 5 as kind:
                place += 8 if kind == 1 else 4
            case _:
                raise ValueError("a wire type that is not used")
    return found


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7
        if shift > 63:
            raise ValueError("a number that does not end")
