"""Inputs that are nearly right: mutations of valid ones, request bodies above all, for fuzzing whatever reads them.

The same seed gives the same inputs. Some mutate bytes and break the form; others mutate a JSON document and break its
meaning, so that a reader is reached behind its parser too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
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


def mutated_bodies(
    count: int, seed: int, valid: Sequence[bytes] = VALID, tokens: Sequence[bytes] = TOKENS
) -> Iterator[bytes]:
    """`count` inputs of at most `MAX_BYTES`, each from one of `valid` by one to six mutations: of its bytes, with
    `tokens` here and there, or, for every other one that is JSON, of its document only."""
    choose = random.Random(seed)  # the same inputs for the same seed, not secrets
    mutate = _Mutations(choose, valid, tokens or TOKENS)
    for number in range(count):
        body = choose.choice(valid)
        mutations = (mutate.document,) if number % 2 else mutate.all
        for _ in range(choose.randint(1, 6)):
            body = choose.choice(mutations)(body)[:MAX_BYTES]
        yield body


class _Mutations:
    """Each takes an input and gives another, as `choose` has it."""

    def __init__(self, choose: random.Random, valid: Sequence[bytes], tokens: Sequence[bytes]) -> None:
        self._choose = choose
        self._valid = valid
        self._tokens = tokens
        self.all = (
            *(self.flip, self.insert, self.replace, self.cut, self.double, self.splice, self.noise),
            *(self.document, self.document),
        )

    def flip(self, body: bytes) -> bytes:
        if not body:
            return body
        place = self._choose.randrange(len(body))
        return body[:place] + bytes([body[place] ^ (1 << self._choose.randrange(8))]) + body[place + 1 :]

    def insert(self, body: bytes) -> bytes:
        place = self._choose.randint(0, len(body))
        return body[:place] + self._choose.choice(self._tokens) + body[place:]

    def replace(self, body: bytes) -> bytes:
        first, last = sorted((self._choose.randint(0, len(body)), self._choose.randint(0, len(body))))
        return body[:first] + self._choose.choice(self._tokens) + body[min(last, first + 12) :]

    def cut(self, body: bytes) -> bytes:
        first, last = sorted((self._choose.randint(0, len(body)), self._choose.randint(0, len(body))))
        return body[:first] + body[last:]

    def double(self, body: bytes) -> bytes:
        first, last = sorted((self._choose.randint(0, len(body)), self._choose.randint(0, len(body))))
        return body[:last] + body[first:last] * self._choose.choice((1, 1, 2, 50)) + body[last:]

    def splice(self, body: bytes) -> bytes:
        other = self._choose.choice(self._valid)
        return body[: self._choose.randint(0, len(body))] + other[self._choose.randint(0, len(other)) :]

    def noise(self, _: bytes) -> bytes:
        return self._choose.randbytes(self._choose.randint(0, 300))

    def document(self, body: bytes) -> bytes:
        """Change the meaning and keep the form: put another value at some place, or move a key."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return self.insert(body)
        # Mostly within the arguments: the rest of the body is small and soon refused.
        inside = isinstance(document, dict) and isinstance(document.get("args"), dict) and self._choose.random() < 0.9
        place: Any = document["args"] if inside else document
        while isinstance(place, dict | list) and place and self._choose.random() < 0.8:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = self._choose.choice(keys)
            if not isinstance(place[key], dict | list) or self._choose.random() < 0.4:
                place[key] = self._choose.choice(VALUES)
                break
            place = place[key]
        else:
            if isinstance(place, dict):
                place[str(self._choose.choice(VALUES))[:50]] = self._choose.choice(VALUES)
            elif isinstance(place, list):
                place.append(self._choose.choice(VALUES))
        return json.dumps(document, ensure_ascii=self._choose.random() < 0.5).encode("utf-8", "surrogatepass")
