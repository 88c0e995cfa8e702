"""Two gateways with one state in PostgreSQL, real processes under load: what is promised holds when one is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.crash_trial import crash_executor, crash_trial
from tests.support.postgres_state import EmptyStates


@pytest.mark.requirement("AUD-3")
@pytest.mark.requirement("APPR-3")
@pytest.mark.requirement("OPS-5")
def test_one_of_two_is_killed_amid_the_load_and_the_other_serves_on(
    postgres_states: EmptyStates, tmp_path: Path
) -> None:
    """No label is lost, no call decided by less than what was revealed before it, no approval used twice, and every
    call has its records in one chain."""
    folder = tmp_path / "gateway"
    place = postgres_states.place(folder)
    with crash_executor() as executor:
        trial = crash_trial(executor, folder, kill_after=60, processes=2, survivors=1, postgres=place)
    assert trial.violations == ()
    assert trial.acknowledged >= 120
    assert min(trial.handles, trial.used, trial.records - trial.acknowledged) > 0
