"""Encodings, hashes and compressions: Base64, URLs, hexadecimal, Punycode, gzip, and Kusto's `hash`.

Source: the Kusto pages named like the functions. What is not well-formed gives the empty text, as Kusto says.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import struct
import zlib
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote_plus
from uuid import UUID

from kql_duckdb.expressions import Typed, literal, microseconds
from kql_duckdb.functions.conversion import DYNAMIC, GUID, INT, LONG, STRING, convert, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function, python_function


@python_function("kql_url_encode", ("VARCHAR", "BOOLEAN"), "VARCHAR")
def _url_encode(text: str, component: bool) -> str:
    """Kusto writes small hexadecimal digits, and a plus for a space unless it is a component."""
    encoded = quote(text, safe="" if component else " ")
    pieces = encoded.split("%")
    lowered = pieces[0] + "".join(f"%{piece[:2].lower()}{piece[2:]}" for piece in pieces[1:])
    return lowered if component else lowered.replace(" ", "+")


@python_function("kql_url_decode", ("VARCHAR",), "VARCHAR")
def _url_decode(text: str) -> str:
    return unquote_plus(text)


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _text(content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError:
        return ""


@dynamic_function("kql_base64_toarray", ("VARCHAR",))
def _base64_to_array(text: str) -> list[int] | None:
    content = _bytes(text)
    return None if content is None else list(content)


@dynamic_function("kql_base64_fromarray", ("JSON",), "VARCHAR")
def _base64_from_array(values: Any) -> str:
    try:
        return base64.b64encode(bytes(values)).decode()
    except (TypeError, ValueError):
        return ""


@python_function("kql_base64_toguid", ("VARCHAR",), "UUID")
def _base64_to_guid(text: str) -> UUID | None:
    content = _bytes(text)
    return UUID(bytes_le=content) if content is not None and len(content) == 16 else None


@python_function("kql_base64_fromguid", ("UUID",), "VARCHAR")
def _base64_from_guid(value: UUID | None) -> str:
    return base64.b64encode(value.bytes_le).decode() if value is not None else ""


_MOST_BYTES = 64 * 2**20
"""More than this a text is not unpacked to: a few bytes can hold gigabytes."""


@python_function("kql_unpack", ("VARCHAR", "BOOLEAN"), "VARCHAR")
def _unpack(text: str, gzipped: bool) -> str:
    content = _bytes(text)
    if not content:
        return ""
    try:
        unpacked = zlib.decompressobj(31 if gzipped else 15).decompress(content, _MOST_BYTES)
    except zlib.error:
        return ""
    return _text(unpacked)


@python_function("kql_pack", ("VARCHAR", "BOOLEAN"), "VARCHAR")
def _pack(text: str, gzipped: bool) -> str:
    packed = gzip.compress(text.encode(), mtime=0) if gzipped else zlib.compress(text.encode(), 1)
    return base64.b64encode(packed).decode()


@python_function("kql_punycode", ("VARCHAR", "BOOLEAN"), "VARCHAR")
def _punycode(text: str, encode: bool) -> str:
    try:
        return text.encode("punycode").decode().rstrip("-") if encode else text.encode().decode("punycode")
    except (UnicodeError, ValueError):
        return ""


_DOTS = re.compile("[.\u3002\uff0e\uff61]")


@python_function("kql_punycode_domain", ("VARCHAR", "BOOLEAN"), "VARCHAR")
def _punycode_domain(text: str, encode: bool) -> str:
    """Label by label, with the mark `xn--` before one that is not plain."""
    try:
        return ".".join((_encoded_label if encode else _decoded_label)(label) for label in _DOTS.split(text))
    except (UnicodeError, ValueError):
        return ""


def _encoded_label(label: str) -> str:
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def _decoded_label(label: str) -> str:
    return label[4:].encode().decode("punycode") if label.lower().startswith("xn--") else label


@dynamic_function("kql_codepoints", ("VARCHAR",))
def _codepoints(text: str) -> list[int]:
    return [ord(character) for character in text]


@dynamic_function("kql_from_codepoints", ("JSON[]",), "VARCHAR")
def _from_codepoints(values: list[Any]) -> str:
    numbers = (one for value in values for one in (value if isinstance(value, list) else [value]))
    return "".join(chr(one) for one in numbers if isinstance(one, int) and 0 <= one < 0x110000)


_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = 2**64 - 1


def _turned(value: int, count: int) -> int:
    return ((value << count) | (value >> (64 - count))) & _MASK


def _round(state: int, lane: int) -> int:
    return _turned((state + lane * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def xxhash64(content: bytes, seed: int = 0) -> int:
    """Return the XXH64 hash of bytes, as an unsigned number."""
    first, second, third, fourth, fifth = _PRIMES
    place, size = 0, len(content)
    if size >= 32:
        lanes = [(seed + first + second) & _MASK, (seed + second) & _MASK, seed, (seed - first) & _MASK]
        while place + 32 <= size:
            words = struct.unpack_from("<4Q", content, place)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            place += 32
        state = sum(_turned(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane)) * first + fourth) & _MASK
    else:
        state = (seed + fifth) & _MASK
    state = (state + size) & _MASK
    while place + 8 <= size:
        (word,) = struct.unpack_from("<Q", content, place)
        state = (_turned(state ^ _round(0, word), 27) * first + fourth) & _MASK
        place += 8
    if place + 4 <= size:
        (word,) = struct.unpack_from("<I", content, place)
        state = (_turned(state ^ (word * first & _MASK), 23) * second + third) & _MASK
        place += 4
    for byte in content[place:]:
        state = _turned(state ^ (byte * fifth & _MASK), 11) * first & _MASK
    state = (state ^ (state >> 33)) * second & _MASK
    state = (state ^ (state >> 29)) * third & _MASK
    return state ^ (state >> 32)


_YEAR_ONE = datetime(1, 1, 1)  # noqa: DTZ001 - times are UTC without a zone


def _content(value: Any) -> bytes:
    """The bytes that Kusto hashes: of a text its UTF-8, of numbers, times and spans eight bytes."""
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return struct.pack("<q", value)
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, datetime):
        return struct.pack("<q", microseconds(value - _YEAR_ONE) * 10)
    if isinstance(value, timedelta):
        return struct.pack("<q", microseconds(value) * 10)
    if isinstance(value, UUID):
        return value.bytes_le
    return str(value).encode()


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


@python_function("kql_hash", None, "BIGINT")
def _hash(value: Any, modulus: int | None) -> int | None:
    if modulus is None:
        return _signed(xxhash64(_content("" if value is None else value)))
    found = xxhash64(_content("" if value is None else value))
    return found % modulus if modulus > 0 else None


def _hashed(call: BoundCall) -> Typed:
    value, *modulus = call.arguments
    if value.type is DYNAMIC:
        value = to_string(value)
    limit = convert(modulus[0], LONG) if modulus else literal(None, LONG)
    return fill("kql_hash({0}, {1})", LONG, value, limit)


_DIGESTS = {"hash_md5": "md5", "hash_sha1": "sha1", "hash_sha256": "sha256"}


def _hexadecimal(call: BoundCall) -> Typed:
    value, *length = call.arguments
    value = value if value.type is INT else convert(value, LONG)
    digits = "lower(hex({0}))" if value.type is not INT else "lower(right(hex({0}), 8))"
    if not length:
        return fill(digits, STRING, value)
    width = "least(greatest({1}, 0), 16)::INTEGER"
    padded = f"CASE WHEN length({digits}) >= {{1}} THEN {digits} ELSE lpad({digits}, {width}, '0') END"
    return fill(padded, STRING, value, convert(length[0], LONG))


def _of_codepoints(call: BoundCall) -> Typed:
    listed = ", ".join(f"{{{place}}}" for place in range(len(call.arguments)))
    return fill(f"kql_from_codepoints([{listed}])", STRING, *call.arguments)


_BYTES_MAY_DIFFER = "unpacks to the same text; the packed bytes may differ from Azure's"

FUNCTIONS: tuple[ScalarFunction, ...] = (
    function("url_encode(url: string): string", "kql_url_encode({0}, FALSE)"),
    function("url_encode_component(url: string): string", "kql_url_encode({0}, TRUE)"),
    function("url_decode(encoded_url: string): string", "kql_url_decode({0})"),
    *(
        function(f"{name}(string: string): string", "to_base64(encode({0}))")
        for name in ("base64_encode_tostring", "base64_encodestring")
    ),
    *(
        function(f"{name}(base64_string: string): string", "coalesce(TRY(decode(from_base64({0}))), '')")
        for name in ("base64_decode_tostring", "base64_decodestring")
    ),
    function("base64_decode_toarray(base64_string: string): dynamic", "kql_base64_toarray({0})"),
    function("base64_encode_fromarray(array: dynamic): string", "coalesce(kql_base64_fromarray({0}), '')"),
    function("base64_decode_toguid(base64_string: string): guid", "kql_base64_toguid({0})"),
    function(
        "base64_encode_fromguid(guid: any)",
        lambda call: fill("kql_base64_fromguid({0})", STRING, convert(call.arguments[0], GUID)),
    ),
    function("zlib_decompress_from_base64_string(string: string): string", "kql_unpack({0}, FALSE)"),
    function("gzip_decompress_from_base64_string(string: string): string", "kql_unpack({0}, TRUE)"),
    function(
        "zlib_compress_to_base64_string(string: string): string",
        "kql_pack({0}, FALSE)",
        status="partly",
        note=_BYTES_MAY_DIFFER,
    ),
    function(
        "gzip_compress_to_base64_string(string: string): string",
        "kql_pack({0}, TRUE)",
        status="partly",
        note=_BYTES_MAY_DIFFER,
    ),
    function("punycode_from_string(string: string): string", "kql_punycode({0}, TRUE)"),
    function("punycode_to_string(string: string): string", "kql_punycode({0}, FALSE)"),
    # A domain "from a string" is decoded, the other way round than the two before.
    function("punycode_domain_from_string(string: string): string", "kql_punycode_domain({0}, FALSE)"),
    function("punycode_domain_to_string(string: string): string", "kql_punycode_domain({0}, TRUE)"),
    *(
        function(f"{name}(value: text): dynamic", "kql_codepoints({0})")
        for name in ("unicode_codepoints_from_string", "to_utf8")
    ),
    *(function(f"{name}(value: json...)", _of_codepoints) for name in ("unicode_codepoints_to_string", "make_string")),
    function("tohex(value: number, minLength?: long)", _hexadecimal),
    *(
        function(f"{name}(source: text): string", f"coalesce({digest}(nullif({{0}}, '')), '')")
        for name, digest in _DIGESTS.items()
    ),
    *(function(f"{name}(source: any, mod?: long)", _hashed) for name in ("hash", "hash_xxhash64")),
)
