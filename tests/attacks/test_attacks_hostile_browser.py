"""Attacker controls: every text of a report that somebody opens in a browser.

Wanted: a request to the attacker's host, or an element of the attacker's. A real Chromium opens a report that holds all
hostile texts; its own parse of the page is looked at, and the attacker's host is a port of this test that counts.
"""

from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hostile_strings import HOSTILE
from selectolax.lexbor import LexborHTMLParser
from test_attacks_hostile_rendering import NOW, assert_harmless, full_answer
from tests.support.chromium import program

from sentinel_rag.surfaces.reports import Head, ReportTurn, as_html, hand_over
from waiting import WAIT_S

CHROMIUM = program()
pytestmark = [
    pytest.mark.requirement("SURF-5"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]


@contextmanager
def attackers_host() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and what came in there."""
    came: list[bytes] = []

    class Note(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            came.append(self.request.recv(200))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Note) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], came
        finally:
            server.shutdown()


def opened(page: Path, profile: Path, port: int) -> str:
    """The page as Chromium has it after it was loaded; every host of the attacker is our port."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            f"--user-data-dir={profile}",
            f"--host-resolver-rules=MAP evil.example 127.0.0.1:{port}, MAP *.evil.example 127.0.0.1:{port}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == 0, done.stderr[-500:]
    return done.stdout


def test_a_report_asks_nothing_of_anybody(tmp_path: Path) -> None:
    turns = [
        ReportTurn(number, "2026-07-01T12:00:00Z", each.text, "answered", each.text, full_answer(each.text).to_dict())
        for number, each in enumerate(HOSTILE, 1)
    ]
    head = Head(conversation_id="session-of-tests", exported_by="dana", exported_at=NOW, timezone="Europe/Berlin")
    report, careless = tmp_path / "report.html", tmp_path / "careless.html"
    report.write_bytes(as_html(hand_over(head, turns, ())).encode())
    careless.write_text("<!DOCTYPE html><p>A page that shows a text as it is: <img src=http://evil.example/p.png>")
    with attackers_host() as (port, came):
        page = opened(report, tmp_path / "profile", port)
        assert came == []
        tree = LexborHTMLParser(page)
        assert_harmless(tree)
        assert len(tree.css("h3")) >= len(HOSTILE)
        opened(careless, tmp_path / "profile", port)
        assert came != []  # so the port would have been told
