"""Request bodies that are nearly right: mutations of valid ones, for fuzzing whatever reads a body.

The same seed gives the same bodies. Some mutate bytes and break the JSON; others mutate the document and break its
meaning, so that a reader is reached behind its parser too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MAX_BYTES = 20_000

VALID: tuple[bytes, ...] = tuple(
    json.dumps({"session_id": session, "tool_name": tool, "args": arguments}).encode()
    for session, tool, arguments in (
        ("session-1", "query_incidents", {"time_window": "last_24h", "min_severity": "High", "limit": 20}),
        ("a.b_c:d-e", "get_incident_detail", {"incident_number": 713, "with_entities": True}),
        ("s", "web_search", {"query": "panda \u00e9\U0001f43c \u202e\u200b", "n": 1.5e-7}),
        ("s" * 128, "file_read", {"path": "public/../confidential/a%2fb\\c", "deep": {"x": [1, [2, {"y": None}]]}}),
        ("s", "add_incident_comment", {"text": {"$ref": "r12#/rows/0/CommandLine"}, "tags": ["a", "", " "]}),
        ("s", "t", {}),
    )
)

TOKENS: tuple[bytes, ...] = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"'", b"/*", b"//", b"\n", b"\x00", b"\x7f", b"\xef\xbb\xbf"),
    *(b"\\u0000", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\x41", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"0x10", b"007", b"9" * 400, b"9007199254740993", b"1E-400"),
    *(b"null", b"true", b"True", b"[" * 70, b'{"a":' * 70, b'"a":1,"a":2', b"__proto__", b"$ref", b'{"$ref":1}'),
    *(b'"session_id":"x",', b'"tool_name":null,', b'"args":[],', b'"approved":true,', b"\xe2\x80\xa8", b"a" * 2_000),
)

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        2**53,
        2**63,
        -(2**64),
        1e300,
        "",
        " ",
        "a" * 3_000,
        "\x00",
        "\ud7ff",
        "\U0010ffff",
    ),
    *([], {}, [[]], {"": ""}, {"$ref": "r1#/x"}, {"$ref": "r1#"}, {"$ref": 3}, {"$ref": "r1#/x", "y": 1}, [None] * 200),
    *("'; DROP TABLE session; --", "../../etc/passwd", "{{7*7}}", "\x1b[2J", "%00", "\u202egnp", "javascript:alert(1)"),
)


def mutated_bodies(count: int, seed: int, valid: Sequence[bytes] = VALID) -> Iterator[bytes]:
    """`count` bodies of at most `MAX_BYTES`, each from one of `valid` by one to six mutations: of its bytes, or, for
    every other body, of its document only."""
    choose = random.Random(seed)  # noqa: S311  # the same bodies for the same seed, not secrets
    for number in range(count):
        body = choose.choice(valid)
        mutations = (_document,) if number % 2 else _MUTATIONS
        for _ in range(choose.randint(1, 6)):
            body = choose.choice(mutations)(body, choose)[:MAX_BYTES]
        yield body


def _flip(body: bytes, choose: random.Random) -> bytes:
    if not body:
        return body
    place = choose.randrange(len(body))
    return body[:place] + bytes([body[place] ^ (1 << choose.randrange(8))]) + body[place + 1 :]


def _insert(body: bytes, choose: random.Random) -> bytes:
    place = choose.randint(0, len(body))
    return body[:place] + choose.choice(TOKENS) + body[place:]


def _replace(body: bytes, choose: random.Random) -> bytes:
    first, last = sorted((choose.randint(0, len(body)), choose.randint(0, len(body))))
    return body[:first] + choose.choice(TOKENS) + body[min(last, first + 12) :]


def _cut(body: bytes, choose: random.Random) -> bytes:
    first, last = sorted((choose.randint(0, len(body)), choose.randint(0, len(body))))
    return body[:first] + body[last:]


def _double(body: bytes, choose: random.Random) -> bytes:
    first, last = sorted((choose.randint(0, len(body)), choose.randint(0, len(body))))
    return body[:last] + body[first:last] * choose.choice((1, 1, 2, 50)) + body[last:]


def _splice(body: bytes, choose: random.Random) -> bytes:
    other = choose.choice(VALID)
    return body[: choose.randint(0, len(body))] + other[choose.randint(0, len(other)) :]


def _bytes(_: bytes, choose: random.Random) -> bytes:
    return choose.randbytes(choose.randint(0, 300))


def _document(body: bytes, choose: random.Random) -> bytes:
    """Change the meaning and keep the form: put another value at some place, or move a key."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return _insert(body, choose)
    # Mostly within the arguments: the rest of the body is small and soon refused.
    inside = isinstance(document, dict) and isinstance(document.get("args"), dict) and choose.random() < 0.9
    place: Any = document["args"] if inside else document
    while isinstance(place, dict | list) and place and choose.random() < 0.8:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = choose.choice(keys)
        if not isinstance(place[key], dict | list) or choose.random() < 0.4:
            place[key] = choose.choice(VALUES)
            break
        place = place[key]
    else:
        if isinstance(place, dict):
            place[str(choose.choice(VALUES))[:50]] = choose.choice(VALUES)
        elif isinstance(place, list):
            place.append(choose.choice(VALUES))
    return json.dumps(document, ensure_ascii=choose.random() < 0.5).encode("utf-8", "surrogatepass")


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _insert, _replace, _cut, _double, _splice, _bytes),
    *(_document, _document),
)
