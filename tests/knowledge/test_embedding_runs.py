"""How the local model parts texts into runs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.knowledge.embedding.minilm import PIECES_AT_ONCE, runs


@given(st.lists(st.integers(min_value=2, max_value=PIECES_AT_ONCE), max_size=80))
def test_each_text_is_in_one_run_of_bounded_size_and_none_could_join_the_next(lengths: list[int]) -> None:
    found = list(runs(lengths))
    assert sorted(place for run in found for place in run) == list(range(len(lengths)))
    for run in found:
        assert len(run) * max(lengths[place] for place in run) <= PIECES_AT_ONCE
    for run, after in pairwise(found):
        assert max(lengths[place] for place in run) <= min(lengths[place] for place in after)
        assert (len(run) + 1) * lengths[after[0]] > PIECES_AT_ONCE


def test_a_text_longer_than_a_run_is_a_run_by_itself() -> None:
    assert list(runs([3, PIECES_AT_ONCE + 1, 3])) == [[0, 2], [1]]
    assert list(runs([])) == []
