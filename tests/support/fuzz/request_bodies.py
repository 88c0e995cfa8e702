"""Bodies of `POST /v1/proxy-execute`: refused, or read just as two other parsers of JSON read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.support.body_mutations import TOKENS, VALID
from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.gateway.request_body import MAX_DEPTH, CanonicalArguments, MalformedBody, parse_execute


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    try:
        wish = parse_execute(content)
    except MalformedBody as refused:
        expect(str(refused) != "", "a refusal says nothing")
        return
    read: dict[str, JsonValue] = {"session_id": wish.session_id, "tool_name": wish.tool_name, "args": dict(wish.args)}
    expect(_same(json.loads(content), read), "Python's parser reads something else")
    expect(_same(msgspec.json.decode(content), read), "msgspec reads something else")
    expect(_depth(read) <= MAX_DEPTH, "it is nested more deeply than is let in")
    expect(parse_execute(canonical_json(read)) == wish, "its canonical form reads as something else")
    encoded = CanonicalArguments.of(wish.args).encoded
    expect(_same(json.loads(encoded), dict(wish.args)), "the arguments that are sent are not those that are judged")


def _same(one: Any, other: Any) -> bool:
    """Equal in types too: 1, 1.0 and true are three values of JSON, and one of Python."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _depth(value: Any) -> int:
    deepest, left = 0, [(value, 1)]
    while left:
        part, depth = left.pop()
        if isinstance(part, dict | list):
            deepest = max(deepest, depth)
            left += [(inner, depth + 1) for inner in (part.values() if isinstance(part, dict) else part)]
    return deepest


def _seeds() -> Sequence[bytes]:
    return VALID


REQUEST_BODY = Target(
    name="request-body",
    promise="A body is refused with a sentence, or it is read as Python's and msgspec's parsers read it, is as shallow "
    "as promised, and what is sent on is what was judged, byte for byte in its canonical form.",
    opened=_opened,
    seeds=_seeds,
    tokens=TOKENS,
    calls=(400, 40),
)
