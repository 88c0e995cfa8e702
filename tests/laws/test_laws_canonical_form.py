"""Canonical JSON is written by two encoders, the faster where both surely agree: here they do."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from sentinel_rag.contracts.json_values import JsonValue, canonical_json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = (
    st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(min_value=1e-5, max_value=1e-3)
    | st.floats(min_value=1e14, max_value=1e17)
)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@given(values)
@example(
    {"b": [1e-4, 9.9e-5, 1e15, 1e16, -0.0, 0.0, 5e-324], "a": {"\U0001f600": None, "\uffff": True, "\x7f": "\x00"}}
)
@example([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64])
def test_the_form_is_that_of_pythons_own_encoder(value: JsonValue) -> None:
    by_python = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    assert canonical_json(value) == by_python.encode()
