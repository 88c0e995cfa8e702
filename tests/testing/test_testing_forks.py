"""A process that is forked for a test is told, holds and ends as one that is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.fork_server import POSSIBLE, SENTINEL, Process, run

from waiting import WAIT_S

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this platform starts every process")

SEEN = """
import json, os, signal, sys
found = {
    "arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ), "name": __name__,
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
    "leads": os.getsid(0) == os.getpid(), "interrupt": signal.getsignal(2) is signal.default_int_handler,
    "pipe": signal.getsignal(13) == signal.SIG_IGN, "terminal": sys.stdout.isatty(), "read": sys.stdin.read(),
}
print(json.dumps(found))
"""
ENDS = {
    "well": "print('said')",
    "with a code": "import sys; sys.exit(3)",
    "with a sentence": "import sys; sys.exit('not so')",
    "with a fault": "raise ValueError",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "with what was to be done at the end": "import atexit; atexit.register(print, 'done'); print('said')",
}


def ended(start: type[subprocess.Popen[Any]], program: str, *arguments: str, **options: Any) -> tuple[int, str, str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, *arguments]
    with start(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options) as process:
        output, errors = process.communicate("a line", WAIT_S)
    return process.returncode, output, errors.strip().rpartition("\n")[2]


@pytest.mark.parametrize("leads", [True, False])
def test_it_is_told_and_holds_the_same(tmp_path: Path, leads: bool) -> None:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "LANG", "LC_"))}
    read, write = os.pipe()
    given: dict[str, Any] = {"cwd": tmp_path, "env": {**kept, "CANARY": "ü"}, "pass_fds": (write,)}
    seen = [
        json.loads(ended(start, SEEN, "one", "two words", start_new_session=leads, **given)[1])
        for start in (subprocess.Popen, Process)
    ]
    os.close(read)
    os.close(write)
    assert seen[0] == seen[1]
    assert seen[0]["files"] == [0, 1, 2, write]
    assert (seen[0]["environment"]["CANARY"], seen[0]["read"], seen[0]["leads"]) == ("ü", "a line", leads)


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_it_ends_the_same(program: str) -> None:
    assert ended(Process, program) == ended(subprocess.Popen, program)


def test_it_is_watched_interrupted_and_killed_the_same() -> None:
    waiting = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with Process(waiting, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout.readline() == "up\n"
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
            process.send_signal(number)
            assert process.wait(WAIT_S) == -number


def test_a_command_is_run_in_pipes() -> None:
    done = run([SENTINEL, "no-such-command"], text=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-command" in done.stderr


def test_what_python_reads_at_its_start_is_given_to_a_new_process() -> None:
    other = {**os.environ, "PYTHONHASHSEED": "0"}
    program = "import sys; print(sys.flags.hash_randomization)"
    assert ended(Process, program, env=other) == ended(subprocess.Popen, program, env=other)
