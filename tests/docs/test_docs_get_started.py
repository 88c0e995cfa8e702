"""docs/get-started.md is followed word by word: every box is typed into one shell, and what it prints is compared.

The clone is a folder of links to this one, its `.venv` too, so that nothing is installed a second time; the home folder
is of the test's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_boxes import BOX, matches, steps

from sentinel_rag.settings import VARIABLES

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "get-started.md"
DONE = "@@done"


def test_what_a_box_says() -> None:
    assert matches("a b c\nx\ny\nend\n", "a ... c\n...\nend")
    assert matches("a\nend\n", "a\n...\nend")
    assert not matches("a b\nc\n", "a ... c")
    assert not matches("a\nb\n", "a")
    (step,) = steps("```sh\nls   # exit code 4\n```\n\n```text\nx\n```\n")
    assert (step.code, step.printed) == (4, "x\n")


class Shell:
    """One bash; `type` sends lines and gives their exit code and all that they printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def type(self, lines: str) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{lines}\nprintf '{DONE} %s\\n' $?\n")
        self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith(DONE):
                return int(line.split()[1]), "".join(printed)
            printed.append(line)
        raise AssertionError(f"the shell ended: {''.join(printed)}")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    clone = tmp_path / "sentinel-rag"
    clone.mkdir()
    environment = clone / ".venv"
    environment.mkdir()
    for path in (REPOSITORY / ".venv").iterdir():
        (environment / path.name).symlink_to(path)
    for stamp in ("created", "installed"):  # newer than all else, so that make installs nothing of this clone into it
        (environment / stamp).unlink()
        (environment / stamp).touch()
    for name in (
        "Makefile",
        "pyproject.toml",
        "requirements.lock",
        "src",
        "config",
        "data",
        "docs",
        "README.md",
    ):
        (clone / name).symlink_to(REPOSITORY / name)
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("SENTINEL_", "AZURE_", "MAKE", "MFLAGS"))}
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile"],
        cwd=clone,
        env={**kept, "SENTINEL_HOME": str(tmp_path / "home")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Shell(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.requirement("OPS-1")
@pytest.mark.requirement("SURF-1")
def test_the_page_can_be_followed_word_by_word(shell: Shell) -> None:
    for step in steps(PAGE.read_text()):
        code, printed = shell.type(step.typed)
        assert code == step.code, f"{step.typed}\n{printed}"
        if step.printed is not None:
            assert matches(printed, step.printed), f"{step.typed}\n{printed}"


def test_the_readme_shows_what_the_page_proves() -> None:
    """What a hijacked agent gets, and the commands for one's own data."""
    readme, page = (REPOSITORY / "README.md").read_text(), PAGE.read_text()
    (denied,) = (box for kind, box in BOX.findall(readme) if kind == "text" and "update_incident" in box)
    assert denied.strip("\n") in page
    for typed in ("make demo", "sentinel workspace import", "sentinel up --web", "sentinel chat", "sentinel doctor"):
        assert typed in readme
        assert typed in page


def test_each_setting_of_the_page_exists() -> None:
    known = set(VARIABLES)
    named = [line.split("=")[0] for kind, box in BOX.findall(PAGE.read_text()) if kind == "ini" for line in box.split()]
    assert named
    assert [name for name in named if name not in known] == []
