"""Reading JSON that others wrote changes nothing but halves of surrogate pairs, and leaves nothing unfit for UTF-8."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.sentinel.response_bodies import load_json

CHARACTERS = st.characters(exclude_categories=()) | st.sampled_from('\\"ud8\ud800\udbff\udc00\udfff\n')
TEXTS = st.text(CHARACTERS, max_size=12)


def halves_replaced(text: str) -> str:
    """Pairs joined, what is left of surrogates replaced."""
    joined = re.sub(
        "[\ud800-\udbff][\udc00-\udfff]",
        lambda pair: pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"),
        text,
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", joined)


@given(text=TEXTS)
def test_a_text_comes_back_with_halves_of_pairs_replaced(text: str) -> None:
    assert load_json(json.dumps(text)) == halves_replaced(text)


@given(value=st.recursive(TEXTS | st.integers() | st.none(), lambda inner: st.dictionaries(TEXTS, inner), max_leaves=6))
def test_whatever_was_read_can_be_sent(value: Any) -> None:
    assert json.dumps(load_json(json.dumps(value)), ensure_ascii=False).encode()


@given(raw=st.binary(max_size=40))
def test_bytes_that_are_no_text_are_read_or_refused_with_a_value_error(raw: bytes) -> None:
    try:
        assert isinstance(load_json(b'"' + raw + b'"'), str)
    except ValueError:
        assert b'"' in raw or b"\\" in raw
