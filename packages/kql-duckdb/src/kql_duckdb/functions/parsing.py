"""Texts that have a form (URLs, paths, CSV, XML, versions, command lines, user agents), encodings, hashes, compression.

Source: the Kusto pages named like the functions, and for URLs what was measured on Kusto. What is not well-formed in an
encoding gives the empty text, as Kusto says.
"""

from __future__ import annotations

import base64
import binascii
import csv
import gzip
import io
import re
import struct
import zlib
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, unquote_plus
from uuid import UUID
from xml.parsers import expat

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal, microseconds
from kql_duckdb.functions.conversion import json_value, to_string
from kql_duckdb.functions.definitions import BoundCall, fill, python, pythons, scalar
from kql_duckdb.types import DYNAMIC

# Userinfo is such only with a colon: the `user` of `https://user@h.io/p` stands in the host.
_URL = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]*)://(?:([^:@/?#]*):([^@/?#]*)@)?(\[[^\]]*\]|[^:/?#]*)(?::([0-9]*))?([^?#]*)"
    r"(?:\?([^#]*))?(?:#(.*))?",
    re.DOTALL,
)


def _query(text: str) -> dict[str, Any]:
    """The parameters by name; a name seen twice holds an array, and one without a value is left out."""
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        key, _, value = pair.partition("=")
        if key and value:
            found.setdefault(key, []).append(value)
    return {key: found[key][0] if len(found[key]) == 1 else found[key] for key in sorted(found)}


@python("parse_url|parseurl(url: string): dynamic")
def _parse_url(text: str) -> dict[str, Any]:
    """Every part empty for what is no URL."""
    found = _URL.fullmatch(text)
    scheme, user, password, host, port, path, query, fragment = found.groups(default="") if found else ("",) * 8
    path = "" if path == "/" and "?" not in text and "#" not in text else path
    place = {"Scheme": scheme, "Host": host, "Port": port, "Path": path, "Username": user, "Password": password}
    return place | {"Query Parameters": _query(query), "Fragment": fragment}


@python("parse_csv(csv_text: string): dynamic")
def _parse_csv(text: str) -> list[str]:
    """The fields of the first record."""
    csv.field_size_limit(max(len(text), csv.field_size_limit()))
    return next(csv.reader(io.StringIO(text, newline="")), None) or [""]


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_ROOT = re.compile(r"(?:\\\\[?.]\\)?([A-Za-z]:)(?:[\\/]|$)")


@python("parse_path(path: string): dynamic")
def _parse_path(text: str) -> dict[str, str]:
    """The parts of a Windows or Unix path; one that is not there is the empty text."""
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    root = _ROOT.match(rest)
    parts = re.fullmatch(r"(.*?)([\\/]?)([^\\/]*)", rest, re.DOTALL)
    assert parts is not None  # each part may be empty
    directory, _, last = parts.groups()
    name, _, stream = last.partition(":") if not (root and last == root[1]) else ("", "", "")
    extension = name.rpartition(".")[2] if "." in name else ""
    root_path, last_directory = root[1] if root else "", re.split(r"[\\/]", directory)[-1]
    place = {"Scheme": scheme[1] if scheme else "", "RootPath": root_path, "DirectoryPath": directory}
    named = {"DirectoryName": last_directory, "Filename": name, "Extension": extension}
    return place | named | {"AlternateDataStreamName": stream}


_PROGRAM = re.compile(r'"([^"]*)"?|([^ \t]*)')
_PIECE = re.compile(r'(\\*)"|\\+|[^\\" \t]+|[ \t]+')


@python("kql_parse_command_line(command: string): dynamic")
def _command_line(text: str) -> list[str] | None:
    """As CommandLineToArgvW of Windows splits it.

    A backslash means nothing in the first word. In the others those before a quote count in pairs, and a doubled quote
    inside quotes is one.
    """
    program = _PROGRAM.match(text := text.strip())
    if not text or program is None:
        return None
    words: list[list[str]] = [[program[1] or program[2] or ""], []]
    quoted = doubled = False
    for piece in _PIECE.finditer(text, program.end()):
        slashes = piece[1]
        if doubled:
            doubled = False
        elif slashes is None and piece[0].isspace() and not quoted:
            words.append([])
        elif slashes is None:
            words[-1].append(piece[0])
        else:
            doubled = quoted and len(slashes) % 2 == 0 and text[piece.end() : piece.end() + 1] == '"'
            words[-1].append("\\" * (len(slashes) // 2) + '"' * (doubled or len(slashes) % 2))
            quoted ^= not doubled and len(slashes) % 2 == 0
    return ["".join(word) for word in words if word]


@scalar("parse_command_line(command: string, parser: string)")
def _parse_command_line(call: BoundCall) -> Typed:
    if (call.constant_text(1) or "").lower() != "windows":
        raise call.invalid("argument #2 must be 'windows'.", "SEM0207")
    return fill("kql_parse_command_line({0})", DYNAMIC, call.arguments[0])


@python("parse_xml(xml_text: string): dynamic")
def _parse_xml(text: str) -> dict[str, Any] | None:
    """Null for what is no XML."""
    root: dict[str, Any] = {}
    opened: list[tuple[dict[str, Any], list[str]]] = [(root, [])]

    def start(name: str, attributes: dict[str, str]) -> None:
        opened.append(({f"@{key}": value for key, value in attributes.items()}, []))

    def end(name: str) -> None:
        members, pieces = opened.pop()
        value: Any = members or None
        if (held := "".join(pieces)).strip():
            value = members | {"#text": held} if members else held
        parent = opened[-1][0]
        before = parent.get(name)
        parent[name] = value if name not in parent else [*(before if isinstance(before, list) else [before]), value]

    def doctype(*_: Any) -> None:
        # Entities can blow a few bytes up to gigabytes.
        raise expat.ExpatError("a document type is not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda content: opened[-1][1].append(content)
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return None
    return root


@python("kql_parse_user_agent(text: string, look_for: json): dynamic")
def _parse_user_agent(text: str, looked_for: Any) -> dict[str, Any]:
    from ua_parser import parse  # type: ignore[import-not-found, unused-ignore] # an extra of this package

    found = parse(text)
    wanted = [str(one).lower() for one in (looked_for if isinstance(looked_for, list) else [looked_for])]

    def parts(held: Any, names: dict[str, str]) -> dict[str, str]:
        shown = {name: getattr(held, field, None) or "" for name, field in names.items()}
        return shown | {"Family": shown["Family"] or "Other"}

    versions = {"Family": "family", "MajorVersion": "major", "MinorVersion": "minor", "Patch": "patch"}
    answers = {
        "browser": ("Browser", found.user_agent, versions),
        "os": ("OperatingSystem", found.os, versions | {"PatchMinor": "patch_minor"}),
        "device": ("Device", found.device, {"Family": "family", "Brand": "brand", "Model": "model"}),
    }
    return {name: parts(held, names) for key, (name, held, names) in answers.items() if key in wanted}


@scalar(
    "parse_user_agent(user_agent: string, look_for?: any)",
    note="with the extra `user-agents`, which brings the tables of uap-core; refused without it",
)
def _user_agent(call: BoundCall) -> Typed:
    try:
        import ua_parser  # type: ignore[import-not-found, unused-ignore] # noqa: F401  # an extra; only whether it is there
    except ImportError:
        raise not_supported(
            "parse_user_agent", "it needs the tables of uap-core: install kql-duckdb[user-agents]"
        ) from None
    wanted = call.arguments[1] if len(call.arguments) > 1 else literal(["browser"], DYNAMIC)
    return fill("kql_parse_user_agent({0}, {1})", DYNAMIC, to_string(call.arguments[0]), json_value(wanted))


@python("kql_url_encode(url: string, component: bool): string")
def _url_encode(text: str, component: bool) -> str:
    """Kusto writes small hexadecimal digits, and a plus for a space unless it is a component."""
    encoded = re.sub("%..", lambda found: found[0].lower(), quote(text, safe="" if component else " "))
    return encoded if component else encoded.replace(" ", "+")


def _bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


@python("base64_encode_fromarray(array: dynamic): string")
def _base64_from_array(values: Any) -> str:
    try:
        return base64.b64encode(bytes(values)).decode()
    except (TypeError, ValueError):
        return ""


_MOST_BYTES = 64 * 2**20
"""More than this a text is not unpacked to: a few bytes can hold gigabytes."""


@python("kql_unpack(text: string, gzipped: bool): string")
def _unpack(text: str, gzipped: bool) -> str:
    content = _bytes(text)
    if not content:
        return ""
    try:
        return zlib.decompressobj(31 if gzipped else 15).decompress(content, _MOST_BYTES).decode()
    except (zlib.error, UnicodeDecodeError):
        return ""


_DOTS = re.compile("[.\u3002\uff0e\uff61]")


@python("kql_punycode(text: string, encode: bool, domain: bool): string")
def _punycode(text: str, encode: bool, domain: bool) -> str:
    """A domain label by label, with the mark `xn--` before one that is not plain."""

    def label(one: str) -> str:
        if encode:
            return one if one.isascii() else "xn--" + one.encode("punycode").decode()
        return one[4:].encode().decode("punycode") if one.lower().startswith("xn--") else one

    try:
        if domain:
            return ".".join(map(label, _DOTS.split(text)))
        return text.encode("punycode").decode().rstrip("-") if encode else text.encode().decode("punycode")
    except (UnicodeError, ValueError):
        return ""


pythons({
    "parse_urlquery|parseurlquery(query: string): dynamic": lambda text: {"Query Parameters": _query(text)},
    "url_decode(encoded_url: string): string": lambda text: unquote_plus(text),
    "base64_decode_toarray(base64_string: string): dynamic": lambda text: (
        None if (content := _bytes(text)) is None else list(content)
    ),
    "base64_decode_toguid(base64_string: string): guid": lambda text: (
        UUID(bytes_le=content) if (content := _bytes(text)) is not None and len(content) == 16 else None
    ),
    "kql_base64_fromguid(guid?: guid): string": lambda value: (
        base64.b64encode(value.bytes_le).decode() if value is not None else ""
    ),
    "kql_pack(text: string, gzipped: bool): string": lambda text, gzipped: base64.b64encode(
        gzip.compress(text.encode(), mtime=0) if gzipped else zlib.compress(text.encode(), 1)
    ).decode(),
    "unicode_codepoints_from_string|to_utf8(value: text): dynamic": lambda text: list(map(ord, text)),
    "unicode_codepoints_to_string|make_string(value: json...): string": lambda values: "".join(
        chr(one)
        for value in values
        for one in (value if isinstance(value, list) else [value])
        if isinstance(one, int) and 0 <= one < 0x110000
    ),
})  # fmt: skip


_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
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
    if isinstance(value, (datetime, timedelta)):
        value = microseconds(value - _YEAR_ONE if isinstance(value, datetime) else value) * 10
    if isinstance(value, (int, float)):
        return struct.pack("<q" if isinstance(value, int) else "<d", value)
    return value.bytes_le if isinstance(value, UUID) else str(value).encode()


@python("kql_hash(value?: any, mod?: long): long")
def _hash(value: Any, modulus: int | None) -> int | None:
    found = xxhash64(_content("" if value is None else value))
    if modulus is None:
        return found - 2**64 if found >= 2**63 else found
    return found % modulus if modulus > 0 else None
