"""Rough use of the command line: closed streams, full disks, names that are paths, Ctrl-C, readers that leave."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S


def answered_in_sentences(done: Any, code: int, *words: str) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "fault of Sentinel RAG" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("name", ["../../elsewhere", "/tmp/elsewhere", "A B", ""])
@pytest.mark.parametrize("command", [("ask",), ("workspace", "import"), ("workspace", "generate")], ids=" ".join)
def test_a_workspace_name_cannot_be_a_path(sentinel: Any, command: tuple[str, ...], name: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    words = [] if command[-1] == "generate" else ["x.csv"]
    answered_in_sentences(sentinel.run(*command, *words, "--workspace", name), 2, "is not a workspace name")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "closed"),
    [("ask", "<&-"), ("chat", ">&-"), *((each, "<&- >&-") for each in ("ask", "chat", "workspace query", "status"))],
)
def test_closed_streams_are_no_fault(sample: Any, arguments: str, closed: str, tmp_path: Path) -> None:
    run_with_closed_streams(
        sample, arguments, closed, tmp_path, code=2 if arguments in ("ask", "workspace query") else 0
    )


def test_closed_streams_are_no_fault_for_zones_that_a_question_starts(generated: Any, tmp_path: Path) -> None:
    home = generated.copy(tmp_path / "home")
    run_with_closed_streams(home, "ask 'how many incidents?'", "<&- >&-", tmp_path, code=0)


def run_with_closed_streams(home: Any, arguments: str, closed: str, tmp_path: Path, *, code: int) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"'{SENTINEL}' {arguments} {closed}"],
        env=home.environment,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    answered_in_sentences(done, code)


def test_a_full_disk_is_told(sample: Any) -> None:
    with open("/dev/full", "w") as full:
        for arguments in (("ask", "list open incidents"), ("status", "--json")):
            with fork_server.Process(
                [SENTINEL, *arguments],
                env=sample.environment,
                stdin=subprocess.DEVNULL,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            ) as process:
                done = fork_server.completed(process, None, WAIT_S)
            assert done.returncode in (1, 120)  # 120: Python itself could not flush at exit
            assert "Traceback" not in done.stderr
            assert "fault of Sentinel RAG" not in done.stderr
            assert "No space left" in done.stderr or "no space left" in done.stderr


def test_bytes_that_are_no_text_are_told(sentinel: Any) -> None:
    for arguments, stdin in ((["ask", b"caf\xe9 incidents"], b""), (["ask"], b"caf\xe9 incidents")):
        done = subprocess.run(
            [SENTINEL, *arguments],
            input=stdin,
            env=sentinel.environment,
            capture_output=True,
            timeout=WAIT_S,
        )
        assert done.returncode == 2
        assert b"not UTF-8" in done.stderr


@pytest.mark.parametrize(("errors", "code"), [("surrogateescape", 0), ("strict", 2)])
def test_bytes_that_are_no_text_are_told_in_a_piped_conversation(sample: Any, errors: str, code: int) -> None:
    done = subprocess.run(
        [SENTINEL, "chat"],
        input=b"caf\xe9 incidents\n",
        env={**sample.environment, "PYTHONIOENCODING": f"utf-8:{errors}"},
        capture_output=True,
        timeout=WAIT_S,
    )
    assert done.returncode == code
    assert b"not UTF-8" in done.stderr


def test_a_question_that_is_too_long_does_not_end_the_conversation(sample: Any) -> None:
    done = sample.run("chat", stdin="x" * 9000 + "\nhow many incidents are there?\n")
    assert done.returncode == 0
    assert "at most 8000 are read" in done.stderr
    assert "incidents" in done.stdout


def test_a_reader_that_leaves_early_is_no_failure(sample: Any) -> None:
    line = f"'{SENTINEL}' ask 'list the incidents, newest first'"
    done = subprocess.run(
        ["/bin/bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"],
        env=sample.environment,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_invented_incidents_do_not_come_to_lie_among_imported_ones(imported: Any, tmp_path: Path) -> None:
    home = imported.copy(tmp_path / "home")
    before = home.json("workspace", "tables")
    answered_in_sentences(home.run("workspace", "generate"), 2, "would mix", "--workspace practice")
    assert home.json("workspace", "tables") == before
    assert home.run("workspace", "generate", "--workspace", "practice", "--events", "10").returncode == 0
    assert home.json("workspace", "tables") == before


def test_generating_again_replaces_what_was_generated(generated: Any, tmp_path: Path) -> None:
    home = generated.copy(tmp_path / "home")
    assert home.run("workspace", "generate", "--events", "10").returncode == 0


def test_the_demo_refuses_a_foreign_interceptor_before_it_writes(sentinel: Any) -> None:
    remote = type(sentinel)(sentinel.home, {"SENTINEL_URL": "http://127.0.0.1:9"})
    answered_in_sentences(remote.run("demo"), 1, "SENTINEL_URL")
    assert not sentinel.home.exists()


def test_no_zones_of_a_workspace_are_started_for_a_foreign_interceptor(sentinel: Any) -> None:
    foreign = type(sentinel)(sentinel.home, {"SENTINEL_URL": "http://127.0.0.1:9"})
    done = foreign.run("up", "--workspace", "default")
    assert done.returncode == 2
    assert "Leave --workspace out" in done.stderr


def test_the_doctor_does_not_ask_for_a_workspace_behind_a_foreign_interceptor(sentinel: Any) -> None:
    remote = type(sentinel)(sentinel.home, {"SENTINEL_URL": "http://127.0.0.1:9"})
    found = {finding["name"]: finding for finding in remote.json("doctor", code=1)}
    assert [name for name, finding in found.items() if not finding["ok"]] == ["gateway"]
    assert "http://127.0.0.1:9" in found["workspace"]["detail"]


def test_ctrl_c_ends_the_question_and_not_the_conversation(sample: Any) -> None:
    controller, terminal = pty.openpty()
    with fork_server.Process(
        [SENTINEL, "chat"],
        env={**sample.environment, "TERM": "xterm"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    ) as chat:
        os.close(terminal)
        try:
            agent = sample.json("status")["agent"]["pid"]
            os.kill(agent, signal.SIGSTOP)  # so that the question is certainly unanswered
            read_until(controller, b"Ask about incidents")
            os.write(controller, b"list open incidents\r")
            read_until(controller, b"Thinking...")
            os.kill(chat.pid, signal.SIGINT)
            read_until(controller, b"the conversation goes on")
            os.kill(agent, signal.SIGCONT)
            os.write(controller, b"/quit\r")
            assert chat.wait(WAIT_S) == 0
        finally:
            os.kill(agent, signal.SIGCONT)
            chat.kill()
            os.close(controller)


@pytest.mark.parametrize("arguments", [("workspace", "generate", "--events", "3000000")], ids=" ".join)
def test_ctrl_c_in_a_long_statement_is_no_fault(sentinel: Any, arguments: tuple[str, ...]) -> None:
    with sentinel.start(*arguments) as process:
        database = sentinel.home / "workspaces" / "default" / "workspace.duckdb"
        while process.poll() is None and not (database.exists() and busy(process.pid)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT_S)
    assert (process.returncode, said) == (130, "Stopped.\n")


def busy(pid: int) -> bool:
    """True once a process has used a second of processor time: it is past its imports, in its work."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) > os.sysconf("SC_CLK_TCK")


def read_until(descriptor: int, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        assert select.select([descriptor], [], [], WAIT_S)[0], seen
        seen += os.read(descriptor, 4096)
    return seen
