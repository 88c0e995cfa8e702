"""Canonical JSON: one byte form for one value, so that a hash names what was judged."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.json_values import JsonValue, canonical_json

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_what_is_read_back_is_what_was_written(value: JsonValue) -> None:
    assert json.loads(canonical_json(value)) == value


@given(json_values)
def test_canonical_form_is_a_fixed_point(value: JsonValue) -> None:
    encoded = canonical_json(value)
    assert canonical_json(json.loads(encoded)) == encoded


@given(st.dictionaries(texts, json_values, min_size=2, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, JsonValue], random: object) -> None:
    keys = list(value)
    random.shuffle(keys)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert canonical_json({key: value[key] for key in keys}) == canonical_json(value)


@given(json_values, json_values)
def test_different_values_have_different_forms(a: JsonValue, b: JsonValue) -> None:
    if canonical_json(a) == canonical_json(b):
        assert a == b


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, ["\ud800"], {"\udfff": 1}])
def test_what_json_cannot_hold_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json(value)
