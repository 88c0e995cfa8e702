"""Of any result, any declaration of its fields and any labels of its rows: what the agent sees of a row is counted in
what the view says it shows, a hidden part carries its row's label, and what is told amiss counts as the worst."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.servers import ROW_LABELS, row_labels_in, row_labels_meta
from sentinel_rag.gateway.flow import view_of
from sentinel_rag.gateway.flow.view import row_labels_of
from sentinel_rag.gateway.policy.model import Exposure, FieldExposure, ResultFields

pytestmark = pytest.mark.requirement("TAINT-6")

LABELS = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
AT = ("hits",)
ROW = st.dictionaries(st.sampled_from(["text", "title", "deep"]), st.just("s") | st.just({"x": "s"}), min_size=1)
PATTERN = st.sampled_from(
    [(), ("hits",), ("hits", "*"), ("hits", "0"), ("hits", "*", "text"), ("hits", "1", "deep", "x"), ("total",)]
)
FIELDS = st.lists(st.tuples(PATTERN, st.sampled_from(Exposure)), max_size=4, unique_by=lambda entry: entry[0]).map(
    lambda entries: ResultFields((), tuple(FieldExposure(path, mode) for path, mode in entries))
)


def marked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A result whose every text tells its row."""

    def walk(part: Any, row: int) -> Any:
        return {key: walk(child, row) for key, child in part.items()} if isinstance(part, dict) else f"<row {row}>"

    return {"hits": [walk(row, place) for place, row in enumerate(rows)], "total": "<no row>"}


@given(st.lists(st.tuples(ROW, LABELS), max_size=4), FIELDS, LABELS)
def test_what_is_seen_of_a_row_is_counted_and_what_is_hidden_carries_it(
    entries: list[tuple[dict[str, Any], Label]], fields: ResultFields, base: Label
) -> None:
    value = marked([row for row, _ in entries])
    told = tuple(label for _, label in entries)
    rows = row_labels_of(AT, value, told)
    view = view_of(value, msgspec.json.encode(value), fields, base, 1, rows)
    seen = [label for place, label in enumerate(told) if f"<row {place}>" in view.encoded.decode()]
    assert join_all(seen).flows_to(view.rows)
    assert view.rows.flows_to(join_all(told))
    for part in view.hidden:
        held = [label for place, label in enumerate(told) if f"<row {place}>" in part.encoded.decode()]
        assert base.join(join_all(held)).flows_to(part.label)
    if not fields.exposures:
        assert view.rows == join_all(told)
    elif not seen:
        assert view.rows == BOTTOM or any(not row for row, _ in entries) or not fields.hides


@given(
    st.integers(0, 4),
    st.none() | st.lists(LABELS, max_size=4).map(tuple),
    st.sampled_from(["hits", "others", "both"]),
)
def test_only_one_label_for_each_row_is_believed(count: int, told: tuple[Label, ...] | None, name: str) -> None:
    value: Any = {name: [{"text": "s"}] * count}
    view = view_of(value, b"{}", ResultFields(), BOTTOM, 1, row_labels_of(AT, value, told))
    good = told is not None and name == "hits" and len(told) == count
    assert view.rows == (join_all(told or ()) if good else TOP)


@given(st.lists(LABELS, max_size=5))
def test_labels_come_back_from_the_wire_as_they_went(labels: list[Label]) -> None:
    meta = msgspec.json.decode(msgspec.json.encode(row_labels_meta(labels)))
    assert row_labels_in(meta) == tuple(labels)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["LOW", "TRUSTED", "HIGH", "low", "", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["sensitivity", "integrity", ROW_LABELS, "more"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_nothing_else_is_read_as_labels(value: Any) -> None:
    """Whatever a server sends, it is a tuple of labels that says exactly so, or nothing; never a fault."""
    for meta in (value, {ROW_LABELS: value}):
        found = row_labels_in(meta)
        if found is not None:
            assert row_labels_meta(found)[ROW_LABELS] == meta[ROW_LABELS]
