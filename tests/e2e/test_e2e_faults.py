"""A bad day of the service, made by `sentinel workspace faults` while the product runs: what a person sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from sentinel_rag.surfaces.cli._commands import FAULT_KINDS
from sentinel_rag.workspace.serving.faults import FaultKind

pytestmark = pytest.mark.requirement("DATA-6")


@pytest.fixture(scope="module")
def running(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = generated.copy(tmp_path_factory.mktemp("faults") / "home")
    with made.up():
        yield made


def faults(running: Any, *words: str, code: int = 0) -> Any:
    return running.json("workspace", "faults", *words, code=code)


def test_faults_are_set_added_shown_and_cleared(running: Any) -> None:
    faults(running, "set", "throttled", "--retry-after", "none", "--times", "all", "--every", "2", "--wire", "logs")
    state = faults(running, "add", "slow", "--delay", "0.5", "--probability", "0.25", "--seed", "7", "--path", "/query")
    first, second = state["faults"]
    assert (first["kind"], first["retry_after_s"], first["times"], first["every"]) == ("throttled", None, None, 2)
    assert (second["kind"], second["delay_s"], second["probability"], second["seed"]) == ("slow", 0.5, 0.25, 7)
    shown = running.run("workspace", "faults").stdout
    assert "throttled" in shown
    assert "slow" in shown
    cleared = running.run("workspace", "faults", "clear")
    assert cleared.stdout.startswith("No fault is to come.")


def test_what_a_person_sees_of_a_fault(running: Any) -> None:
    faults(running, "set", "forbidden", "--wire", "logs", "--times", "all")
    refused = running.json("ask", "how many incidents are there?", code=5)
    assert "refused the credential" in refused["answer"]
    assert "Log Analytics Reader" in refused["answer"]
    faults(running, "set", "too_large", "--times", "all")
    too_large = running.json("ask", "how many incidents are there?", code=5)
    assert "E_QUERY_RESULT_SET_TOO_LARGE" in too_large["answer"]
    assert "shorter window" in too_large["answer"]
    faults(running, "set", "partial", "--times", "all")
    partial = running.json("ask", "list the incidents")
    assert partial["coverage"][0]["partial"] is True
    assert "Warning: the result is partial." in partial["answer"]
    assert any("PARTIAL: " in line for line in partial["footnote"])
    faults(running, "clear")
    assert running.json("ask", "how many incidents are there?")["outcome"] == "answered"


@pytest.mark.parametrize(
    "words",
    [
        ("set",),
        ("set", "meteor"),
        ("set", "timeout", "--times", "some"),
        ("set", "timeout", "--every", "0"),
        ("set", "timeout", "--start", "soon"),
        ("set", "partial", "--wire", "rest"),
        ("clear", "timeout"),
        ("show", "--times", "2"),
    ],
    ids=" ".join,
)
def test_a_fault_that_there_is_not_is_told(running: Any, words: tuple[str, ...]) -> None:
    done = running.run("workspace", "faults", *words)
    assert done.returncode == 2, done.stdout
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr


def test_a_query_that_asks_to_be_cut_says_so_in_json_and_on_the_terminal(running: Any) -> None:
    """Field report C2."""
    kql = "set truncationmaxrecords=5; SecurityIncident"
    answer = running.json("workspace", "query", kql)
    assert len(answer["rows"]) == 5
    assert "record count limit 5" in answer["partial"]
    assert "Partial: Query result set has exceeded" in running.run("workspace", "query", kql).stdout
    assert "Partial" not in running.run("workspace", "query", "SecurityIncident").stdout


def test_without_a_server_there_is_none_to_make_them(sentinel: Any, tmp_path: Path) -> None:
    done = sentinel.run("workspace", "faults", "set", "timeout")
    assert done.returncode == 2
    assert "sentinel up" in done.stderr


def test_the_command_line_knows_every_fault() -> None:
    assert set(FAULT_KINDS) == set(get_args(FaultKind))
