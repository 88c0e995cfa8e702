"""Spans as bytes of OTLP: `ExportTraceServiceRequest` of opentelemetry-proto 1, in protobuf's wire format.

Written here because a gateway call costs a third of a millisecond of processor time: through the OpenTelemetry SDK its
two spans would add a third to that. The tests read what is written here with the official messages, and send it to a
receiver of another maker. `attributes` decides what is written at all.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from sentinel_rag.telemetry.attributes import ALLOWED, AttributeForm, allowed_name, allowed_value, error_code
from sentinel_rag.telemetry.spans import SharedAttributes, Span, Value

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
