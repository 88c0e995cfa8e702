"""A journal outlives its process: kill -9 at any moment, many records, a start beside old ones."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from bench.endurance.faults import faults
from bench.endurance.kills import kills
from tests.support.crash_trial import crash_executor, crash_trial

from sentinel_rag.audit import JournalReader, SessionChanged
from sentinel_rag.contracts.labels import BOTTOM
from sentinel_rag.gateway.store import new_audit_id, open_state
from sentinel_rag_testing.fake_tool_server import FakeToolServer

MOMENTS = (1, 3, *random.Random(3).sample(range(4, 400), 4))


@pytest.fixture(scope="module")
def tool_server() -> Iterator[FakeToolServer]:
    with crash_executor() as running:
        yield running


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


@pytest.mark.slow
@pytest.mark.requirement("AUD-1")
def test_whatever_fails_each_call_is_answered_and_the_next_one_works() -> None:
    measured = faults(8)
    assert measured["violations"] == []
    meanwhile = {name: set(found["meanwhile"]) for name, found in measured["scenarios"].items() if "meanwhile" in found}
    full = {"disk_full": meanwhile["disk_full"]} if "disk_full" in meanwhile else {}
    assert meanwhile == {
        "tool_server_dead": {"502"},
        "tool_server_silent": {"504"},
        "tool_server_cut_in_its_answer": {"502"},
        "database_held_by_another_program": {"503"},
        "clock_ahead_by_a_year": {"200"},
        "clock_back_by_a_day": {"200"},
        **full,
    }
    assert not full or "503" in full["disk_full"]  # only root may mount a small disk


@pytest.mark.slow
@pytest.mark.requirement("AUD-3")
def test_a_month_passes_between_kills_and_the_clock_goes_back() -> None:
    measured = kills(160, legs=2)
    assert measured["violations"] == []
    assert measured["calls"] >= 160
    assert measured["records_pruned"] > 0


@pytest.mark.requirement("AUD-3")
def test_a_start_reads_no_old_record(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with open_state(folder) as state:

        async def write() -> None:
            for number in range(200):
                await state.journal.append(
                    SessionChanged(
                        audit_id=new_audit_id(), key_id="k", session_id=f"s{number}", change="opened", context=BOTTOM
                    )
                )

        anyio.run(write)
    journal = folder / "journal.sqlite"
    connection = sqlite3.connect(journal)
    connection.execute("UPDATE journal SET record = x'00', hash = x'00' WHERE seq BETWEEN 5 AND 150")
    connection.commit()
    connection.close()
    with open_state(folder) as state:
        anyio.run(state.sessions.open, "another")
    found = JournalReader(journal).verify()
    assert not found.intact
    assert found.broken_at == 5
