"""Several gateways on one folder: one chain, and the calls of a process are closed only once it has died."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel_rag.audit import Instance, JournalReader, OutcomeStatus
from sentinel_rag.gateway.store import open_state
from sentinel_rag.gateway.store.state import INSTANCES_FOLDER, JOURNAL_FILE

OTHER = """
import asyncio, sys
from pathlib import Path
from sentinel_rag.audit import SessionChanged
from sentinel_rag.gateway.store import open_state
from tests.support.records import call_intent

with open_state(Path(sys.argv[1])) as state:
    asyncio.run(state.journal.append(call_intent("theirs")))
    print(state.instance.instance_id, flush=True)
    for line in sys.stdin:
        for number in range(int(line)):
            asyncio.run(state.journal.append(
                SessionChanged(audit_id=f"theirs-{number}", key_id="k", session_id="s", change="opened")
            ))
        print("done", flush=True)
"""


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def outcome_of(folder: Path, audit_id: str) -> OutcomeStatus | None:
    return JournalReader(folder / JOURNAL_FILE).find(audit_id)[0].outcome


@pytest.mark.requirement("AUD-1")
def test_a_call_of_a_process_that_runs_is_left_alone_and_one_that_died_is_closed(tmp_path: Path) -> None:
    process, name = start(tmp_path)
    try:
        with open_state(tmp_path) as state:
            assert state.journal.interrupted == 0
            assert state.instance.is_live(name)
            assert not state.instance.alone()
            assert len(JournalReader(tmp_path / JOURNAL_FILE).find("theirs")) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open_state(tmp_path) as state:
            assert state.journal.interrupted == 1
            assert not state.instance.is_live(name)
            assert state.instance.alone()
        assert outcome_of(tmp_path, "theirs") is OutcomeStatus.UNKNOWN
        assert len(JournalReader(tmp_path / JOURNAL_FILE).find("theirs")) == 2
        assert list((tmp_path / INSTANCES_FOLDER).iterdir()) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.requirement("AUD-2")
def test_two_processes_that_write_at_once_make_one_sealed_chain(tmp_path: Path) -> None:
    process, _ = start(tmp_path)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with open_state(tmp_path) as state:

            async def append(count: int) -> None:
                for number in range(count):
                    await state.sessions.claim(f"ours-{number}", "key")

            process.stdin.write("400\n")
            process.stdin.flush()
            asyncio.run(append(400))
            assert process.stdout.readline() == "done\n"
            found = JournalReader(tmp_path / JOURNAL_FILE).verify()
            assert found.intact, found.problem
            assert found.records == 801
    finally:
        process.kill()
        process.communicate()


def test_who_died_is_told_to_one_only(tmp_path: Path) -> None:
    source = "import sys; from pathlib import Path; from sentinel_rag.audit import Instance; "
    source += "i = Instance(Path(sys.argv[1])); print(i.instance_id, flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    with Instance(tmp_path) as one, Instance(tmp_path) as two:
        assert one.take_over() == two.take_over() == ()
        assert one.is_live(two.instance_id)
        process.kill()
        process.communicate()
        assert sorted([one.take_over(), two.take_over()]) == [(), (name,)]
        two.close()
        assert one.alone()
        assert not one.is_live(two.instance_id)
