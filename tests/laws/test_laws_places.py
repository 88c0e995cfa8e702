"""A remembered place says what the patterns say about every path that leads to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.policy.model import Exposure, FieldExposure, FieldLabel, ResultFields, root

SEGMENTS = st.sampled_from(["rows", "a", "b", "0", "-", "ab-", ""])
PATTERNS = st.lists(SEGMENTS | st.just("*"), max_size=4).map(tuple)
LABELS = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
FIELDS = st.builds(
    ResultFields,
    labels=st.lists(st.builds(FieldLabel, PATTERNS, LABELS), max_size=4).map(tuple),
    exposures=st.lists(st.builds(FieldExposure, PATTERNS, st.sampled_from(Exposure)), max_size=5).map(tuple),
)
PATHS = st.lists(SEGMENTS | st.text(max_size=3).filter(lambda text: text != "*"), max_size=6).map(tuple)


@pytest.mark.requirement("TAINT-3")
@given(FIELDS, st.lists(PATHS, min_size=1, max_size=12))
def test_a_place_says_what_the_patterns_say(fields: ResultFields, paths: list[tuple[str, ...]]) -> None:
    for path in paths:
        place = root(fields)
        for segment in path:
            place = place.at(segment)
        assert (place.mode, place.label) == (fields.exposure_at(path), fields.label_below(path))
        assert place.whole == fields.is_uniform(path)


@pytest.mark.requirement("TAINT-3")
@given(FIELDS, PATHS, PATHS)
def test_a_uniform_place_has_one_mode_all_the_way_down(
    fields: ResultFields, path: tuple[str, ...], below: tuple[str, ...]
) -> None:
    if fields.is_uniform(path):
        assert fields.exposure_at((*path, *below)) is fields.exposure_at(path)
