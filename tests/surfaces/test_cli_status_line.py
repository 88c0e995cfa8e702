"""The status line of a question: its time runs on while nothing new is told, as rich draws it on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.status import Status

from sentinel_rag.contracts.evidence import Progress
from sentinel_rag.surfaces.cli._status_line import StatusLine

pytestmark = pytest.mark.requirement("CHAT-14")


class _Terminal:
    """What rich draws of a status line; the test moves `seconds`."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.line = StatusLine("Thinking...", clock=lambda: self.seconds)
        self._console = Console(file=io.StringIO(), force_terminal=True, width=80, markup=False)
        self._status = Status(self.line, console=self._console)

    def frame(self) -> str:
        with self._console.capture() as captured:
            self._console.print(self._status)
        return captured.get()


@pytest.fixture
def terminal() -> _Terminal:
    return _Terminal()


def test_the_time_runs_on_in_each_frame_although_nothing_new_is_told(terminal: _Terminal) -> None:
    terminal.line.show(Progress("Reading the results...", 2.6))
    assert "Reading the results... 2.6 s" in terminal.frame()
    terminal.seconds += 15.0
    assert "Reading the results... 17.6 s" in terminal.frame()


def test_the_time_runs_before_the_first_line_is_told(terminal: _Terminal) -> None:
    terminal.seconds += 3.5
    assert "Thinking... 3.5 s" in terminal.frame()


def test_a_new_line_takes_the_agent_s_time_and_never_goes_back(terminal: _Terminal) -> None:
    terminal.seconds += 4.0
    terminal.line.show(Progress("Querying incidents...", 9.0))
    assert "Querying incidents... 9.0 s" in terminal.frame()
    terminal.line.show(Progress("Reading the results...", 1.0))
    assert "Reading the results... 9.0 s" in terminal.frame()


def test_words_of_a_progress_line_are_no_markup_and_no_control_sequence(terminal: _Terminal) -> None:
    terminal.line.show(Progress("Querying [bold]x[/bold]\x1b]0;t\x07\r\n...", 1.0))
    drawn = terminal.frame()
    assert "[bold]x[/bold]" in drawn
    assert "\x1b]0;" not in drawn
    assert drawn.count("\n") == 1
