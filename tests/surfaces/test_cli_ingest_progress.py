"""How far an ingest is: a bar with rate and time left on a terminal, few plain lines in a pipe."""

from __future__ import annotations

import io

import pytest

from sentinel_rag.surfaces.cli.knowledge import EVERY_S, WorkspaceOutcome, print_outcomes, progress_line, shown

pytestmark = pytest.mark.requirement("KNOW-2")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_says_how_many_of_how_many_how_fast_and_how_long_yet() -> None:
    assert progress_line("incidents of soc", 0, None, 0.0, None) == (
        "incidents of soc: looking for what is new or changed"
    )
    assert progress_line("x", 120, 2_400, 10.0, 190.0) == (
        "x: [#-----------------------] 120 of 2,400, 12 a second, 3 min 10 s left"
    )
    assert progress_line("x", 5, 5, 1.0, 0.0).endswith("] 5 of 5, 5 a second, 0 s left")
    assert progress_line("x", 1, 10_000, 2.0, 19_998.0).endswith("5 h 33 min left")
    assert progress_line("x", 0, 0, 0.0, None) == f"x: [{'#' * 24}] 0 of 0"
    assert "\x1b" not in progress_line("\x1b[2J", 1, 2, 1.0, 1.0)


def test_a_terminal_is_left_clean_and_a_pipe_gets_a_line_now_and_then() -> None:
    terminal = Terminal()
    with shown(quiet=False, stream=terminal) as show:
        show("one")
        show("two")
    assert terminal.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"
    moments = iter([0.0, 1.0, EVERY_S, EVERY_S + 1, 2 * EVERY_S])
    pipe = io.StringIO()
    with shown(quiet=False, stream=pipe, clock=lambda: next(moments)) as show:
        for line in "abcde":
            show(line)
    assert pipe.getvalue() == "a\nc\ne\n"
    for stream in (Terminal(), io.StringIO()):
        with shown(quiet=True, stream=stream) as show:
            show("nothing")
        assert stream.getvalue() == ""


def outcome(**over: object) -> WorkspaceOutcome:
    figures = dict.fromkeys(("added", "changed", "unchanged", "removed", "embedded", "partial"), 0)
    return WorkspaceOutcome(  # type: ignore[arg-type]
        **{"workspace": "soc", **figures, "seconds": 1.0, "days": 90, "fault": "", "next_step": "", **over}
    )


def test_what_became_of_each_workspace_is_a_line_with_what_helps(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        outcome(added=1_200, partial=3),
        outcome(),
        outcome(fault="It has no Resource ID.", next_step="Set it."),
        outcome(workspace="emea", removed=28, served=False),
        outcome(workspace="evil\x1b[2J", changed=2, fault="The service ended.", next_step="Try again."),
    ]
    print_outcomes(outcomes)
    assert capsys.readouterr().out.splitlines() == [
        "Incidents of soc: 1,200 new, 0 changed, 0 as before, 0 removed; 0 texts embedded, 1.0 s.",
        "  3 of them lack alerts, entities or comments for now; the next ingest reads them.",
        "Incidents of soc: 0 new, 0 changed, 0 as before, 0 removed; 0 texts embedded, 1.0 s.",
        "  None was created in the last 90 days. Further back: sentinel knowledge ingest --days N",
        "Incidents of soc: not read. It has no Resource ID.",
        "  Next: Set it.",
        "Incidents of emea, which this home serves no more: 28 removed.",
        "Incidents of evil\\x1b[2J: 0 new, 2 changed, 0 as before, 0 removed; 0 texts embedded, 1.0 s.",
        "  It ended early: The service ended.",
        "  Next: Try again.",
    ]
