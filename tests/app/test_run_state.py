"""One supervisor for each home; what it published is believed only while it lives."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel_rag.app.run_state import AlreadyRunningError, RunFolder, RunState, ZoneEntry
from sentinel_rag.contracts.errors import UnavailableError

STATE = RunState(
    supervisor_pid=1,
    private=False,
    workspace="default",
    workspaces=("default",),
    zones=(ZoneEntry("agent", "http://127.0.0.1:1", 2),),
    agent_token="surface-token",
)
HOLDER = """
import sys
from pathlib import Path
from sentinel_rag.app.run_state import RunFolder
with RunFolder(Path(sys.argv[1])).hold():
    (Path(sys.argv[1]) / "run" / "zones.json").write_text("half a fi")
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_state_is_read_back_while_the_lock_is_held(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.hold():
        folder.write(STATE)
        assert RunFolder(tmp_path).read() == STATE
        assert (folder.path / "zones.json").stat().st_mode & 0o077 == 0, "others could read the surface's token"
    assert RunFolder(tmp_path).read() is None


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "deep" / "home").hold():
        assert (tmp_path / "deep" / "home").stat().st_mode & 0o077 == 0


def test_a_second_supervisor_is_refused_with_a_next_step(tmp_path: Path) -> None:
    with RunFolder(tmp_path).hold(), pytest.raises(AlreadyRunningError) as caught, RunFolder(tmp_path).hold():
        pass
    assert caught.value.next_step


def test_a_killed_supervisor_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    with holder, holder.stdout, holder.stdin:
        assert holder.stdout.readline() == "held\n"
        assert RunFolder(tmp_path).is_held()
        assert RunFolder(tmp_path).read() is None, "half a file was believed"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not RunFolder(tmp_path).is_held()
    with RunFolder(tmp_path).hold():
        assert RunFolder(tmp_path).read() is None


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnavailableError) as caught, RunFolder(tmp_path / "file").hold():
        pass
    assert "SENTINEL_HOME" in caught.value.next_step


def test_secrets_are_not_in_the_representation() -> None:
    assert "surface-token" not in repr(STATE)
