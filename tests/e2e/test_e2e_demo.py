"""`sentinel demo`, the first five minutes: three answers, one denied call and its audit line, then what to try."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S


@pytest.fixture(scope="module")
def demo(new_product: Any) -> Any:
    """The product in a new home where the demo has run once, and what that showed as JSON."""
    made = new_product("demo")
    return made, made.json("demo")


@pytest.mark.requirement("OPS-1")
def test_the_demo_answers_denies_and_records(demo: Any) -> None:
    product, shown = demo
    assert [turn["outcome"] for turn in shown["answers"]] == ["answered"] * 3
    assert all(turn["evidence"] for turn in shown["answers"])
    denied = shown["denied_calls"]
    assert [(call["tool_name"], call["http_status"], call["reason"]) for call in denied] == [
        ("run_kql_query", 403, "approval_required"),
        ("update_incident", 403, "approval_required"),
        ("web_search", 403, "sink_label"),
    ]
    assert denied[0]["detail"] == "Access denied by security policy. Taint level: HIGH"
    for call in denied:
        record = call["audit_record"]["record"]
        assert record["audit_id"] == call["audit_id"]
        assert (record["kind"], record["decision"], record["tool"]) == ("refusal", "deny", call["tool_name"])
    assert product.json("audit", "verify")["intact"] is True


@pytest.mark.requirement("OPS-1")
def test_the_hijacking_text_changed_nothing(demo: Any) -> None:
    """The third incident's log tells its reader to run raw_signins, to post it somewhere and to close the incident."""
    _, shown = demo
    hijacked = shown["answers"][2]
    assert [tool["name"] for tool in hijacked["tools"]] == ["get_incident_detail"]
    assert "raw_signins" not in str([tool["arguments"] for turn in shown["answers"] for tool in turn["tools"]])


def test_a_second_demo_reads_well_in_a_pipe_and_takes_no_place_of_what_was_read_in_of_ones_own(
    demo: Any, tmp_path: Path
) -> None:
    """The knowledge base of a home keeps one workspace's past incidents; a second demo leaves a person's own there."""
    product = demo[0].copy(tmp_path / "home")
    record = product.home / "knowledge" / "incidents-local.json"
    of_the_demo = record.read_text()
    assert '"workspace": "sample"' in of_the_demo
    own = of_the_demo.replace('"workspace": "sample"', '"workspace": "default"')
    record.write_text(own)
    done = product.run("demo")
    assert record.read_text() == own
    assert "past incidents and the shipped playbooks" not in done.stdout  # it read none in
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    told = "the demo has denied it in your name"  # nothing of the attacker waits for the person whose home it is
    beats = ("1. Who needs you?", "4. The AI obeys, and nothing happens", "5. One change, confirmed by a person")
    for words in ("> What happened in the last 7 days?", "403  Access denied", "audit_id=", "Try next:", told, *beats):
        assert words in done.stdout


def test_questions_after_the_demo_go_to_the_sample_until_there_is_data_of_ones_own(demo: Any, tmp_path: Path) -> None:
    product = demo[0].copy(tmp_path / "home")
    assert product.json("ask", "how many incidents?")["coverage"][0]["workspace"] == "sample"
    path = tmp_path / "rows.csv"
    path.write_text("TimeGenerated,Computer,SyslogMessage\n2024-01-01T00:00:00Z,web1,hello\n")
    product.json("workspace", "import", str(path), "--table", "Syslog")
    with product.up():
        assert product.json("ask", "what data do you have?")["coverage"][0]["workspace"] == "default"
        own = product.run("ask", "have we seen phishing before?")
        assert own.returncode == 3
        assert "holds no past incident" in own.stdout
        assert "incident-1" not in own.stdout
    assert "or ask the sample estate: --workspace sample" in product.run("ask", "how many alerts?").stderr
    refused = product.run("workspace", "import", str(path), "--workspace", "sample")
    assert refused.returncode == 2


@pytest.mark.requirement("OPS-1")
def test_a_person_confirms_one_change_and_it_is_made(demo: Any) -> None:
    product, shown = demo
    change = shown["change"]
    assert change["outcome"] == "answered"
    assert change["tools"][0]["name"] == "add_incident_comment"
    assert product.json("approvals", "list", code=1)["error"]["code"] == "unavailable"  # no zones stay behind


@pytest.mark.requirement("OPS-1")
def test_on_a_terminal_enter_leads_from_beat_to_beat_and_q_leaves(demo: Any) -> None:
    product, _ = demo
    controller, terminal = pty.openpty()
    fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with fork_server.Process(
        [SENTINEL, "demo"], env={**product.environment, "TERM": "xterm"}, cwd=product.home.parent,
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(terminal)
        try:
            seen = read_until(controller, "Enter goes on, q leaves.")
            assert "1. Who needs you?" in seen
            assert "2. The story" not in seen
            os.write(controller, b"\n")
            seen = read_until(controller, "Enter shows them, q leaves.")
            _, title, below = seen.partition("2. The story of one incident")
            assert title
            assert below.count("\n") < 24  # more would push the title out of sight
            os.write(controller, b"q\n")
            assert process.wait(WAIT_S) == 0
        finally:
            os.close(controller)  # whatever was seen, nobody is waited for


def read_until(controller: int, words: str) -> str:
    """What a terminal shows up to and with `words`."""
    seen = ""
    deadline = time.monotonic() + WAIT_S
    while words not in seen:
        ready, _, _ = select.select([controller], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, seen
        seen += os.read(controller, 65_536).decode(errors="replace")
    return seen
