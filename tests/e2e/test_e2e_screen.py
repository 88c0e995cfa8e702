"""What an analyst sees: the chat on a real terminal device, read back from an emulated screen.

The emulator obeys what a terminal obeys, so that a cursor that was moved, or a title that was set, is seen here.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyte
import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S

ROWS = 120
LIST = "list the incidents still open, newest first"


class _Emulator(pyte.Screen):
    """A terminal that answers where its cursor is, as the prompt asks it."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        self._answer = answer
        super().__init__(columns, lines)

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class Terminal:
    """One command on a terminal of its own."""

    def __init__(self, controller: int, process: subprocess.Popen[bytes], width: int) -> None:
        self._controller = controller
        self.process = process
        self.screen = _Emulator(width, ROWS, self.type)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(width)

    def type(self, keys: str) -> None:
        os.write(self._controller, keys.encode())

    def resize(self, width: int) -> None:
        self.screen.resize(ROWS, width)
        fcntl.ioctl(self._controller, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, width, 0, 0))

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.screen.display]

    def until(self, seen: Callable[[list[str]], bool]) -> list[str]:
        """The lines of the screen once `seen` is true of them."""
        deadline = time.monotonic() + WAIT_S  # for a screen that never rests
        while not seen(self.lines):
            assert time.monotonic() < deadline, "\n".join(self.lines)
            assert select.select([self._controller], [], [], WAIT_S)[0], "\n".join(self.lines)
            try:
                self._stream.feed(os.read(self._controller, 4096))
            except OSError:  # the command has ended
                assert seen(self.lines), "\n".join(self.lines)
        return self.lines

    def prompted(self) -> list[str]:
        """The lines above an empty prompt."""
        return self.until(lambda lines: bool(shown(lines)) and shown(lines)[-1] == ">")

    def ask(self, question: str, told: str) -> list[str]:
        """The lines below the question, once `told` and then the prompt are there. The screen is cleared before."""
        self.prompted()
        self.type("\x0c")
        self.until(lambda lines: shown(lines) == [">"])
        self.type(f"{question}\r")

        def answered(lines: list[str]) -> bool:
            return shown(lines)[-1:] == [">"] and any(told in line for line in shown(lines)[1:-1])

        return shown(self.until(answered))[1:]

    def ended(self) -> int:
        """The exit code of a command that is about to leave."""
        try:
            while select.select([self._controller], [], [], WAIT_S)[0] and os.read(self._controller, 4096):
                pass
        except OSError:  # the device is closed
            pass
        return self.process.wait(WAIT_S)


def shown(lines: list[str]) -> list[str]:
    return [line for line in lines if line]


@contextmanager
def terminal(product: Any, *arguments: str, width: int = 100, **settings: str) -> Iterator[Terminal]:
    controller, device = pty.openpty()
    environment = {"COLORTERM": "", "NO_COLOR": "", **product.environment, "TERM": "xterm-256color", **settings}
    environment = {name: value for name, value in environment.items() if value}
    for size in ("COLUMNS", "LINES"):  # a runner's own would stand for the window's
        environment.pop(size, None)
    with fork_server.Process(
        [SENTINEL, *arguments],
        env=environment,
        cwd=product.home.parent,
        stdin=device,
        stdout=device,
        stderr=device,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as process:
        os.close(device)
        try:
            yield Terminal(controller, process, width)
        finally:
            process.kill()
            os.close(controller)


@pytest.fixture(scope="module")
def sample(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A home of its own: nobody else's calls wait for a decision in it."""
    own = generated.afresh(tmp_path_factory.mktemp("screen") / "home")
    with own.up():
        yield own


@pytest.fixture(scope="module")
def chat(sample: Any) -> Iterator[Terminal]:
    """One chat, which the tests of this file share: each looks below its own question only."""
    with terminal(sample, "chat") as opened:
        opened.prompted()
        yield opened


@pytest.fixture(scope="module")
def open_incidents(sample: Any) -> dict[str, Any]:
    answer: dict[str, Any] = sample.json("ask", LIST)
    return answer


@pytest.mark.requirement("SURF-1")
@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_list_has_one_line_each_and_nothing_is_lost(
    chat: Terminal, open_incidents: dict[str, Any], width: int
) -> None:
    chat.resize(width)
    chat.ask("/clear all", "new session")
    lines = chat.ask(LIST, "Source:")
    assert max(map(len, lines)) <= width
    rows = [
        dict(zip(open_incidents["tables"][0]["columns"], row, strict=True))
        for row in open_incidents["tables"][0]["rows"]
    ]
    shown_rows = [line for line in lines if re.match(r" \[\d+\]", line)]
    assert len(shown_rows) == len(rows)
    for line, row in zip(shown_rows, rows, strict=True):
        mark = {"High": "! High", "Medium": "+ Medium", "Low": "- Low"}.get(row["Severity"], ". Informational")
        assert {row["Incident"], row["Status"]} <= set(line.replace("│", " ").split()), line
        assert mark in line
        assert row["Title"][:12] in line
    # What is cut or left out is said, and stands whole in the details.
    cut = any(line.rstrip().endswith("…") for line in shown_rows)
    assert cut == any(line.startswith("(cells that end in … are cut") for line in lines)
    whole = " ".join(" ".join([*lines, *chat.ask("/more", "audit")]).replace("│", " ").split())
    for row in rows:
        for told in ("Created", "Owner", "Alerts"):
            assert row[told].removesuffix(" UTC") in whole
        assert set(row["Title"].split()) <= set(whole.split())


@pytest.mark.requirement("SURF-1")
def test_severities_have_their_colours_and_bars(chat: Terminal) -> None:
    chat.resize(100)
    chat.ask("how many incidents by severity", "Source:")
    bars = [(place, line) for place, line in enumerate(chat.lines) if line.startswith(" ! High")]
    place, line = bars[-1]
    cells = chat.screen.buffer[place]
    assert "█" in line
    assert cells[line.index("█")].fg == "red"
    assert cells[line.index("█")].bold


@pytest.mark.requirement("CHAT-8")
def test_evidence_opens_the_fact_its_row_its_call_and_its_record(
    chat: Terminal, open_incidents: dict[str, Any]
) -> None:
    chat.resize(100)
    chat.ask("/clear all", "new session")
    chat.ask(LIST, "Source:")
    title = open_incidents["tables"][0]["rows"][1][7]
    number = next(
        place for place, piece in enumerate(open_incidents["evidence"], 1) if piece["pointer"] == "/rows/1/title"
    )
    for wanted in (str(number), "[2]"):
        told = "\n".join(chat.ask(f"/evidence {wanted}", "record"))
        assert f"title: {title}" in told
        assert "severity: Low" in told
        assert 'query_incidents(status="Open", order="newest")' in told
        assert re.search(r"record   sentinel audit show [0-9a-f-]{36}", told)
    assert "has the facts 1 to" in "\n".join(chat.ask("/evidence 99999", "Next:"))
    assert "has a line [77]" in "\n".join(chat.ask("/evidence [77]", "Next:"))
    assert "did you mean /evidence?" in "\n".join(chat.ask("/evidnce", "no command"))
    assert "Nothing waits for a decision." in "\n".join(chat.ask("/approvals", "decision"))


@pytest.mark.requirement("SURF-5")
def test_a_pasted_text_is_cleaned_and_waits_for_enter(chat: Terminal) -> None:
    chat.resize(100)
    chat.ask("/clear all", "new session")
    hostile = "how many incidents\nwere closed\x1b]0;owned\x07\x1b[2J\u202e in the last 7 days?\r\n"
    chat.type(f"\x1b[200~{hostile}\x1b[201~")
    lines = shown(chat.until(lambda lines: any("Enter sends them" in line for line in lines)))
    assert any("were closed in the last 7 days?" in line for line in lines)
    assert any("invisible or control characters of the pasted text were left out" in line for line in lines)
    assert "owned" not in "\n".join(lines)
    assert chat.screen.title != "owned"
    chat.type("\r")
    told = chat.until(lambda lines: shown(lines)[-1] == ">" and any("Source:" in line for line in lines))
    assert any("query_incidents" in line for line in told)


@pytest.mark.requirement("SURF-1")
def test_tab_completes_and_ctrl_c_hints_and_the_history_outlives_the_chat(sample: Any) -> None:
    with terminal(sample, "chat") as first:
        first.prompted()
        first.type("/evi\t")
        first.until(lambda lines: any(line.startswith("> /evidence") for line in lines))
        first.type("\x03")
        first.prompted()
        first.type("\x03")
        first.until(lambda lines: any("Ctrl-D or /quit leaves the chat" in line for line in lines))
        first.prompted()
        first.type("/history\r")
        first.until(lambda lines: any("Nothing was asked" in line for line in lines) and shown(lines)[-1] == ">")
        first.type("\x04")
        assert first.ended() == 0
    with terminal(sample, "chat") as second:
        second.prompted()
        second.type("\x1b[A")
        second.until(lambda lines: any(line == "> /history" for line in lines))
        second.type("\x15" + "x" * 9000 + "\r")
        second.until(lambda lines: "at most" in "".join(lines[-4:] + shown(lines)) and shown(lines)[-1] == ">")


@pytest.mark.requirement("CHAT-14")
def test_while_it_works_the_question_s_state_stands_below_and_ctrl_c_stops_it_alone(sample: Any) -> None:
    agent = sample.json("status")["agent"]["pid"]
    with terminal(sample, "chat") as opened:
        opened.prompted()
        os.kill(agent, signal.SIGSTOP)
        try:
            opened.type("list open incidents\r")
            opened.until(lambda lines: any(re.search(r"Thinking\.\.\. [0-9.]+ s", line) for line in lines))
            opened.resize(60)
            opened.type("typed ahead\r")
            opened.type("\x03")
            opened.until(lambda lines: any("the conversation goes on" in line for line in lines))
        finally:
            os.kill(agent, signal.SIGCONT)
        assert "typed ahead" not in "".join(opened.prompted())
        assert any("incidents" in line for line in opened.ask("how many incidents are there?", "Source:"))


@pytest.mark.requirement("SURF-1")
def test_without_colour_or_unicode_the_marks_and_ascii_bars_remain(sample: Any) -> None:
    question = "how many incidents by severity"
    with terminal(sample, "ask", question, NO_COLOR="1", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii") as plain:
        lines = plain.until(lambda lines: any("Source:" in line for line in lines))
        row = next(place for place, line in enumerate(lines) if line.startswith(" ! High"))
        assert "#" in lines[row]
        assert {plain.screen.buffer[row][column].fg for column in range(40)} == {"default"}


@pytest.mark.requirement("SURF-1")
def test_a_terminal_that_cannot_draw_gets_each_step_as_a_line(sample: Any) -> None:
    with terminal(sample, "ask", "how many incidents by severity", TERM="dumb") as dumb:
        lines = dumb.until(lambda lines: any("Source:" in line for line in lines))
        assert "Querying incidents..." in lines
        assert any(re.search(r"! High +[|] \d+ +[|] #", line) for line in lines)
