"""Laws of what comes from tool servers: a definition's hash, a header's form, and that no part of a result is lost."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value

from sentinel_rag.gateway.pins import definition_of
from sentinel_rag.gateway.upstream import Returned, UpstreamTool
from sentinel_rag.gateway.upstream.mcp_messages import OTHER_CONTENT, header_value, reply_of

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=4)
UNTIMED = settings(deadline=None)
BLOCKS = st.lists(
    st.builds(lambda words: {"type": "text", "text": words}, WORDS)
    | st.builds(lambda words: {"type": "image", "data": words, "mimeType": "image/png"}, WORDS),
    max_size=3,
)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@UNTIMED
@given(WORDS, OBJECTS)
def test_the_order_of_keys_does_not_change_a_definition(words: str, schema: dict[str, Any]) -> None:
    one = definition_of(UpstreamTool("t", words, schema))
    assert definition_of(UpstreamTool("t", words, reversed_keys(schema))) == one


@UNTIMED
@given(WORDS, WORDS, OBJECTS, OBJECTS, st.none() | OBJECTS, st.none() | OBJECTS)
def test_definitions_have_one_hash_exactly_if_they_say_the_same(
    words: str, other_words: str, schema: dict[str, Any], other: dict[str, Any], output: Any, annotations: Any
) -> None:
    one = UpstreamTool("t", words, schema, output, annotations)
    two = UpstreamTool("t", other_words, other, annotations, output)
    same = msgspec.json.encode(one, order="sorted") == msgspec.json.encode(two, order="sorted")
    assert (definition_of(one).sha256 == definition_of(two).sha256) is same


@UNTIMED
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_a_header_as_the_official_sdk_reads_it(words: str) -> None:
    written = header_value(words)
    assert written.isascii()
    assert written.isprintable()
    assert decode_header_value(written) == words


@UNTIMED
@given(OBJECTS, BLOCKS)
def test_no_block_of_a_result_is_lost_unless_the_structured_part_says_it(
    structured: dict[str, Any], blocks: list[dict[str, Any]]
) -> None:
    reply = reply_of({"id": 1, "result": {"content": blocks, "structuredContent": structured}})
    assert isinstance(reply, Returned)
    assert {key: reply.value[key] for key in structured} == structured
    kept = reply.value.get(OTHER_CONTENT, [])
    said = msgspec.json.encode(structured).decode()
    for block in blocks:
        assert block in kept or (block["type"] == "text" and _says(block["text"], structured)), said


def _says(text: str, structured: dict[str, Any]) -> bool:
    """Whether the text is the object, or the value or an item of `{"result": ...}`, in JSON or plain."""
    whole = structured.get("result") if structured.keys() == {"result"} else None
    candidates = [structured, whole, *(whole if isinstance(whole, list) else [])]
    return any(text == value or _decodes_to(text, value) for value in candidates)


def _decodes_to(text: str, value: Any) -> bool:
    try:
        return bool(msgspec.json.decode(text) == value)
    except msgspec.DecodeError:
        return False
