"""Of any result and any declaration of its fields: what is hidden is in no part of the view, what is quoted is marked,
and neither masking nor the search for links ever fails, so that no fault can show a result as it came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.gateway.flow import view_of
from sentinel_rag.gateway.flow.links import linked_hosts
from sentinel_rag.gateway.policy.model import Exposure, FieldExposure, Path, ResultFields

KEYS = st.sampled_from(
    ["rows", "a", "b", "*", "", "a/b", "~1", "0", "$ref", "$quote", "structuredContent", "_mcp_content"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.just("text"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)
PATTERNS = st.lists(st.sampled_from(["rows", "a", "b", "*", "0", "a/b"]), max_size=4).map(tuple)
FIELDS = st.lists(st.tuples(PATTERNS, st.sampled_from(Exposure)), max_size=4, unique_by=lambda entry: entry[0]).map(
    lambda entries: ResultFields((), tuple(FieldExposure(path, mode) for path, mode in entries))
)


def numbered(value: Any) -> Any:
    """The value with every text made unlike any other."""
    texts = iter(range(10_000))

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return f"<text {next(texts)}>"
        if isinstance(part, dict):
            return {key: walk(child) for key, child in part.items()}
        return [walk(child) for child in part] if isinstance(part, list) else part

    return walk(value)


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from leaves(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from leaves(child, (*path, str(index)))


@given(VALUES, FIELDS)
def test_no_hidden_text_is_seen_and_each_quoted_one_is_marked(value: Any, fields: ResultFields) -> None:
    value = numbered(value)
    view = view_of(value, msgspec.json.encode(value), fields, BOTTOM, 1)
    shown = view.encoded.decode()
    put_aside = b"".join(part.encoded for part in view.hidden).decode()
    for path, text in leaves(value):
        mode = fields.exposure_at(path)
        if mode is Exposure.HIDE or (fields.hides and not isinstance(value, dict)):
            assert text not in shown
            assert text in put_aside
        elif mode is Exposure.QUOTE and text in shown:
            assert json.dumps({"$quote": text}, separators=(",", ":")) in shown


@given(
    st.recursive(VALUES | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
)
def test_links_are_looked_for_in_any_value_without_a_fault(value: Any) -> None:
    assert all(host == host.lower() for host in linked_hosts(value))
