"""A file that a forked worker runs is reported as pytest reports it, and a worker that dies fails one test alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from tests.support.fork_server import REPOSITORY

from waiting import WAIT_S

FILES = {
    "conftest.py": """
        import os, pytest
        @pytest.fixture(scope="session")
        def kept():
            print("made in", os.getpid())
            yield os.getpid()
            print("gone")
    """,
    "test_many.py": """
        import os, pytest
        @pytest.mark.parametrize("n", range(40))
        def test_passes(n, kept, tmp_path): assert kept == os.getpid()
        def test_skipped(): pytest.skip("not here")
        @pytest.mark.xfail(strict=True)
        def test_expected(): assert False
        def test_some(subtests):
            with subtests.test("good"): pass
    """,
    "test_parts.py": """
        def test_some(subtests):
            with subtests.test("bad"): assert 1 == 2
    """,
    "test_wrong.py": """
        import pytest
        @pytest.fixture
        def broken():
            yield
            raise ValueError("at the end")
        def test_says(capsys): print("what it said"); assert "a" == "b"
        def test_leaves(broken): pass
    """,
    "test_deadly.py": """
        import os
        def test_before(): pass
        def test_dies(): os.kill(os.getpid(), 9)
        def test_after(): pass
    """,
    "test_leaving.py": """
        import os
        def test_leaves(): os._exit(0)
    """,
    "test_unreadable.py": "import nothing_of_this_name",
    "test_session.py": """
        import pytest
        @pytest.fixture(scope="session")
        def never_ends():
            yield
            raise OSError("left open")
        def test_uses(never_ends): pass
    """,
}


def pytest_in(folder: Path, *arguments: str) -> tuple[int, str]:
    plugin = ["-p", "no:xdist", "-p", "no:randomly", "-p", "tests.support.forked_workers"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), str(folder), *plugin]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [*command, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=WAIT_S
    )
    return done.returncode, done.stdout + done.stderr


def counted(output: str) -> dict[str, int]:
    line = output.strip().splitlines()[-1]
    return {kind: int(number) for number, kind in re.findall(r"(\d+) ([a-z ]+?)(?=,| in )", line)}


def written(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text(dedent(FILES[name]))
    return folder


def test_what_files_hold_is_reported_as_by_one_process(tmp_path: Path) -> None:
    folder = written(tmp_path, "conftest.py", "test_many.py", "test_wrong.py")
    told = {number: pytest_in(folder, "-n", number, "-rA") for number in ("0", "2")}
    assert {code for code, _ in told.values()} == {1}
    alone, forked = (counted(output) for _, output in told.values())
    assert forked == alone
    for _, output in told.values():
        for said in ("what it said", "assert 'a' == 'b'", "ValueError: at the end", "not here"):
            assert said in output


def test_a_worker_that_dies_fails_the_test_that_it_was_at(tmp_path: Path) -> None:
    folder = written(tmp_path, "conftest.py", "test_deadly.py", "test_leaving.py", "test_many.py")
    code, output = pytest_in(folder, "-n", "1")
    assert code == 1
    assert (counted(output)["failed"], counted(output)["passed"]) == (2, 42)
    assert "test_dies" in output
    assert "ended with -9" in output
    assert "test_leaves" in output
    assert "ended with 0" in output


def test_what_fails_outside_of_a_test_fails_the_run(tmp_path: Path) -> None:
    code, output = pytest_in(written(tmp_path, "test_unreadable.py", "test_session.py", "test_parts.py"), "-n", "2")
    assert code == 1
    for said in ("nothing_of_this_name", "left open", "assert 1 == 2"):
        assert said in output
    assert counted(output) == {"failed": 2, "passed": 2, "error": 1}


def test_one_failure_is_enough_if_asked(tmp_path: Path) -> None:
    code, output = pytest_in(written(tmp_path, "conftest.py", "test_wrong.py", "test_many.py"), "-n", "1", "-x")
    assert code == 1
    assert "stopping after 1 failures" in output
