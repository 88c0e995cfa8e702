"""kill -9 of a whole gateway under load, at twelve moments; `python -m bench crash` does it two hundred times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.crash_trial import crash_executor, crash_trial

from sentinel_rag_testing.fake_tool_server import FakeToolServer

MOMENTS = (*range(1, 4), *random.Random(3).sample(range(4, 400), 7))


@pytest.fixture(scope="module")
def tool_server() -> Iterator[FakeToolServer]:
    with crash_executor() as running:
        yield running


@pytest.mark.slow
@pytest.mark.requirement("AUD-3")
@pytest.mark.requirement("AUD-1")
@pytest.mark.parametrize("kill_after", MOMENTS)
def test_kill_9_loses_nothing_that_was_acknowledged(
    tool_server: FakeToolServer, tmp_path: Path, kill_after: int
) -> None:
    trial = crash_trial(tool_server, tmp_path / "gateway", kill_after=kill_after)
    assert trial.violations == ()
    assert trial.acknowledged >= kill_after
    assert trial.records > trial.acknowledged
    assert min(trial.handles, trial.used) > 0 or kill_after < 200


@pytest.mark.requirement("AUD-3")
@pytest.mark.requirement("APPR-3")
@pytest.mark.parametrize("kill_after", [40, 300])
def test_kill_9_of_two_interceptors_on_one_folder(tool_server: FakeToolServer, tmp_path: Path, kill_after: int) -> None:
    trial = crash_trial(tool_server, tmp_path / "gateway", kill_after=kill_after, processes=2)
    assert trial.violations == ()
    assert trial.acknowledged >= kill_after
