"""A full disk is told as one, whoever met it first, and what helps is room and not rights."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from sentinel_rag.app.processes import RunningZones
from sentinel_rag.app.run_state import RunState
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.cli._errors import report

pytestmark = pytest.mark.requirement("SURF-2")
ROOM = "Free some disk space, or set SENTINEL_HOME to a folder on another disk, and repeat the command."


def full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_a_home_on_a_full_disk_is_told_to_make_room(
    clean_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    json: tuple[str, ...],
) -> None:
    monkeypatch.chdir(clean_environment.parent)
    monkeypatch.setattr(tempfile, "mkstemp", full)
    assert main(["ask", "how many alerts?", *json]) == 1
    said = "".join(capsys.readouterr())
    assert "The id of this home cannot be read or made" in said
    assert "No space left on device" in said
    assert ROOM in said
    assert "Let this user write" not in said


def test_a_zone_that_ended_for_want_of_room_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its log, which is named otherwise, is empty then."""
    (tmp_path / "workspace.log").write_text("")
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(120)"]) as ended:
        ended.wait()
        zones = RunningZones({"workspace": ended}, tmp_path, {"workspace": 0}, RunState(0, False, "lab", ()))
        with pytest.raises(UnavailableError, match=r"ended unexpectedly \(exit code 120\)"):
            zones.check()
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4_096))
        with pytest.raises(UnavailableError, match="No space left on device") as told:
            zones.check()
    report(told.value, as_json=False, command="sentinel ask")
    assert ROOM in capsys.readouterr().err
