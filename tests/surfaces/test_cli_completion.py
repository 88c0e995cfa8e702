"""`sentinel completion`: the script is taken by the shell; Tab finds commands, actions, options, choices, files."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.cli._parser import build_parser
from waiting import WAIT_S

pytestmark = pytest.mark.requirement("SURF-1")


TAB = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_shtab_sentinel
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "sentinel.bash"
    with path.open("w") as written, contextlib.redirect_stdout(written):
        assert main(["completion", "bash"]) == 0
    return path


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        (["work"], ["workspace"]),
        (["workspace", "im"], ["import"]),
        (["ask", "--ev"], ["--evidence"]),
        (["export", "--format", "h"], ["html"]),
        (["keys", "create", "--scope", "ap"], ["approve"]),
        (["workspace", "import", "night"], ["night-shift.csv"]),
        (["audit", "verify", "--public-key", "night"], ["night-shift.csv"]),
        (["completion", "f"], ["fish"]),
    ],
    ids=" ".join,
)
def test_tab_in_bash(bash_script: Path, typed: list[str], found: list[str], tmp_path: Path) -> None:
    (tmp_path / "night-shift.csv").write_text("")
    words = ["sentinel", *typed]
    done = subprocess.run(
        ["bash", "--norc", "-c", TAB, "bash", str(bash_script), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (done.stdout.split(), done.stderr) == (found, "")


def names(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield name
                yield from names(child)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_take_it_too(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command stands in it; where the shell is installed it reads the script."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for name in names(build_parser()) if name not in script] == []
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(script)
        read = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=WAIT_S)
        assert (read.returncode, read.stderr) == (0, "")
