"""Attacker controls: the titles of incidents, and with them what the whole product shows, keeps and exports.

Wanted: as in `test_attacks_hostile_rendering`, here through real processes: imported rows, the gateway, the agent, an
answer on a real (pseudo) terminal, the record of the conversation, the report, and the answer as data.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_strings import HOSTILE
from selectolax.lexbor import LexborHTMLParser
from test_attacks_hostile_rendering import assert_harmless, seen_by_a_terminal
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S

ROWS = [each for each in HOSTILE if "\ud800" not in each.text and "\udcff" not in each.text and len(each.text) < 120]
pytestmark = [pytest.mark.requirement("SURF-5"), pytest.mark.slow]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of a home whose workspace holds an incident for each text; its zones run."""
    folder = tmp_path_factory.mktemp("hostile")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
    made = {**kept, "SENTINEL_HOME": str(folder / "home"), "TERM": "xterm", "COLUMNS": "120"}
    rows = [
        {
            "TimeGenerated": "2026-06-30T10:00:00Z",
            "IncidentName": f"00000000-0000-4000-8000-{number:012}",
            "IncidentNumber": number,
            "Title": each.text,
            "Severity": "High",
            "Status": "New",
            "CreatedTime": f"2026-06-{1 + number % 28:02}T10:00:00Z",
            "LastModifiedTime": "2026-06-30T10:00:00Z",
        }
        for number, each in enumerate(ROWS, 1)
    ]
    file = folder / "incidents.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    done = run(made, "workspace", "import", str(file), "--table", "SecurityIncident")
    assert done.returncode == 0, done.stderr
    seen_by_a_terminal(done.stdout, colours=False)
    with fork_server.Process([SENTINEL, "up", "--json"], env=made, stdout=subprocess.PIPE, text=True) as zones:
        try:
            assert zones.stdout is not None
            assert zones.stdout.readline()
            yield made
        finally:
            zones.terminate()
            zones.wait(WAIT_S)


def run(environment: dict[str, str], *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return fork_server.run([SENTINEL, *arguments], env=environment, input=stdin, text=True, timeout=WAIT_S)


def on_a_terminal(environment: dict[str, str], *arguments: str) -> str:
    """What a command writes to a terminal."""
    controller, terminal = pty.openpty()
    written = bytearray()
    with fork_server.Process(
        [SENTINEL, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL
    ) as process:
        os.close(terminal)
        try:
            while chunk := os.read(controller, 65_536):
                written += chunk
        except OSError:
            pass  # Linux's end of a terminal whose last writer is gone
        finally:
            os.close(controller)
        process.wait(WAIT_S)
    return written.decode().replace("\r\n", "\n")


def test_an_answer_about_them_on_a_terminal_as_data_and_in_a_report(
    environment: dict[str, str], tmp_path: Path
) -> None:
    questions = [f"list 100 incidents, {order} first" for order in ("newest", "oldest")]
    for question in questions:
        shown = seen_by_a_terminal(on_a_terminal(environment, "ask", "--evidence", question), colours=True)
        assert "incidents match" in shown
        answer = json.loads(run(environment, "ask", "--json", question).stdout)
        titles = {piece["value"] for piece in answer["evidence"] if piece["pointer"].endswith("/title")}
        rows = answer["tables"][0]["rows"]
        assert len(rows) == 100
        for row in rows:
            hostile = ROWS[int(row[1]) - 1]
            assert hostile.is_legible_in(row[-1])
            assert any(hostile.is_legible_in(title) for title in titles)
    kept = run(environment, "chat", stdin="\n".join((*questions, "/history", f"/export {tmp_path / 'r.html'}")))
    seen_by_a_terminal(kept.stdout, colours=False)
    assert "Written: " in kept.stdout, kept.stderr
    assert_harmless(LexborHTMLParser((tmp_path / "r.html").read_text()))
    seen_by_a_terminal(run(environment, "chat", "--list").stdout, colours=False)
    seen_by_a_terminal(run(environment, "audit", "show", "--last", "50").stdout, colours=False)


def test_playbooks_of_others_in_a_search_of_knowledge(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "playbooks"
    folder.mkdir()
    for family in dict.fromkeys(each.family for each in ROWS):
        texts = [each.text for each in ROWS if each.family == family and "\x00" not in each.text]  # else it is no text
        sections = "\n\n".join(f"## Section {number}\n\nisolate {text}" for number, text in enumerate(texts, 1))
        (folder / f"{family} \u202e\x1b[2J.md").write_text(f"# {family}\n\n{sections}\n")
    done = run(environment, "knowledge", "ingest", str(folder), "--by-words")
    assert done.returncode == 0, done.stderr
    seen_by_a_terminal(done.stdout, colours=False)
    seen_by_a_terminal(done.stderr, colours=False)
    found = run(environment, "knowledge", "search", "isolate words", "--collection", "playbooks", "--limit", "50")
    assert found.returncode == 0, found.stderr
    shown = seen_by_a_terminal(found.stdout, colours=False)
    assert shown.count("isolate") >= 20
    answered = seen_by_a_terminal(
        on_a_terminal(environment, "ask", "--evidence", "what do the playbooks say about isolate words?"), colours=True
    )
    assert "isolate" in answered
