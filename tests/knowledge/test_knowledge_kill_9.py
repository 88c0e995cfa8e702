"""kill -9 of an ingest at four moments while two processes search; `python -m bench knowledge_crash` does fifty."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.ingest_crash import Moment, crash_trial, searching

COUNT = 150


@pytest.mark.requirement("KNOW-2")
@pytest.mark.requirement("KNOW-4")
def test_a_killed_ingest_is_gone_on_with_every_document_is_there_once_and_searches_never_fail(tmp_path: Path) -> None:
    """At first in an empty store (before anything is embedded, and twice in the middle), then over a store in which a
    third changed and a tenth is gone."""
    store = tmp_path / "knowledge.db"
    with searching(store, processes=2) as met:
        first = crash_trial(store, count=COUNT, generation=1, moments=[Moment(1), Moment(2, 0.02), Moment(5)])
        second = crash_trial(store, count=COUNT, generation=2, moments=[Moment(2)])
    assert first.violations == second.violations == ()
    assert first.kills == 3
    assert second.kills == 1
    assert list(first.after_kills) == sorted(first.after_kills)  # no kill takes away what was there
    assert 0 < first.after_kills[-1] < COUNT  # the kills came in the middle
    assert second.after_kills[0] == COUNT  # what was there stays found until its newer version is whole
    assert 0 < first.embedded_at_the_end < first.distinct  # what a killed run embedded is not embedded again
    assert met.failures == []
    assert met.with_hits > 0
