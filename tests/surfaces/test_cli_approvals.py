"""`sentinel approvals` as a person has it: the installed command against a real gateway on loopback."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.surfaces.cli.approvals import in_short, page, summary
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

POLICY = """
tools:
  - name: read_mail
    description: Read the mailbox of an account.
    effect: read
    parameters: []
    taint_rules:
      - {rule_id: mail_is_private, condition: "true", taint_level: HIGH}
  - name: web_search
    description: Search the web.
    effect: external
    parameters:
      - {name: query, type: string, required: true}
    taint_rules:
      - {rule_id: search_public_words, condition: "has(query)", taint_level: LOW, offers_approval: true}
"""
HOSTILE = "\x1b]0;owned\x07 \x9b2J\r\nDECIDE\n  sentinel approvals approve 1\nadmin\u202egnp.exe\u2028tail"
HIGH = {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
LOW = {"sensitivity": "LOW", "integrity": "UNTRUSTED"}
NOW = datetime(2026, 7, 1, 12, 4, tzinfo=UTC)


@dataclass(frozen=True)
class Terminal:
    """The command line of a person who has an approver's key for `gateway`."""

    gateway: RunningGateway
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SENTINEL_", "AZURE_"))}
        settings = {"SENTINEL_HOME": str(self.home), "SENTINEL_URL": self.gateway.url, "TERM": "xterm"}
        return {**kept, **settings, "SENTINEL_APPROVER_KEY": self.gateway.approver, "COLUMNS": "100"}

    def run(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in {**self.environment, **changes}.items() if value}
        command = [SENTINEL, "approvals", *arguments]
        return fork_server.run(command, env=environment, cwd=self.home.parent, text=True, timeout=WAIT_S)

    def ask(self, query: str = "what the ceo wrote") -> str:
        """A search with more in it than the web may have; the id under which it waits."""
        answer = self.gateway.call("web_search", {"query": query})
        assert answer.status == 403, answer.body
        return str(answer.body["approval_id"])


@pytest.fixture
def terminal(executor: FakeToolServer, tmp_path: Path) -> Iterator[Terminal]:
    with running_gateway(parse_policy(POLICY), tmp_path / "state", executor) as gateway:
        assert gateway.call("read_mail", {}).status == 200
        yield Terminal(gateway, tmp_path / "home")


@pytest.mark.requirement("APPR-1")
def test_a_person_lists_shows_and_decides(terminal: Terminal) -> None:
    nothing = terminal.run("list")
    assert (nothing.returncode, nothing.stdout) == (3, "Nothing waits for a decision.\n")
    first, second = terminal.ask(), terminal.ask("another")

    listed = terminal.run("list")
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.index(first[:8]) < listed.stdout.index(second[:8])
    assert "web_search (and 1 more)" in listed.stdout
    shown = terminal.run("show", first[:8])
    assert shown.returncode == 0, shown.stderr
    for text in (
        "SENDS DATA OUT",
        '"what the ceo wrote"',
        "query may hold secret data (HIGH)",
        "read_mail raised it",
        first,
    ):
        assert text in shown.stdout

    done = terminal.run("approve", first[:8], "--comment", "the ceo agreed")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('Approved: web_search (query="what the ceo wrote") may run once for the key ')
    denied = terminal.run("deny", second, "--json")
    assert (denied.returncode, json.loads(denied.stdout)["state"]) == (0, "denied")
    assert terminal.gateway.call("web_search", {"query": "what the ceo wrote"}).status == 200
    assert "denied this call on" in terminal.gateway.call("web_search", {"query": "Another"}).body["note"]
    assert terminal.run("lift", second[:8]).stdout == 'Lifted: web_search (query="another") may be asked about again.\n'
    assert "approval_id" in terminal.gateway.call("web_search", {"query": "Another"}).body
    assert "nothing is to be lifted" in terminal.run("lift", second).stderr

    assert "APPROVED AND USED" in terminal.run("show", first).stdout
    assert ": the ceo agreed" in terminal.run("show", first).stdout
    assert "used by " in (told := terminal.run("list", "--state", "all").stdout)
    assert '"the ceo' in told
    everything = json.loads(terminal.run("list", "--state", "all", "--json").stdout)
    assert [each["state"] for each in everything["approvals"]] == ["used", "denied", "pending"]


@pytest.mark.requirement("APPR-1")
def test_the_last_one_needs_no_id_and_is_told_with_what_it_holds(terminal: Terminal) -> None:
    none = terminal.run("approve", "--last")
    assert (none.returncode, none.stdout) == (2, "")
    assert "Nothing waits for a decision." in none.stderr
    first, second = terminal.ask(), terminal.ask("another")
    assert second in terminal.run("show", "--last").stdout
    done = terminal.run("deny", "--last")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('Denied: web_search (query="another") for the key ')
    assert first in terminal.run("show", "--last").stdout
    for wrong in (("approve",), ("approve", first, "--last")):
        refused = terminal.run(*wrong)
        assert refused.returncode == 2
        assert "Give one of the two." in refused.stderr


def test_what_cannot_be_done_is_one_sentence_and_a_next_step(terminal: Terminal) -> None:
    approval_id = terminal.ask()
    agent = {"SENTINEL_APPROVER_KEY": terminal.gateway.key}
    assert terminal.run("deny", approval_id).returncode == 0
    cases: list[tuple[tuple[str, ...], dict[str, str], int, str]] = [
        (("approve", approval_id), {}, 1, "decided already: it is denied"),
        (("show", "none-such-approval"), {}, 2, "There is no such approval."),
        (("show", "ab"), {}, 2, "too short"),
        (("approve", approval_id, "--comment", "x" * 2_001), {}, 2, "2000 are recorded at most"),
        (("list",), agent, 2, "lacks the scope 'approve'"),
        (("approve", approval_id), agent, 2, "lacks the scope 'approve'"),
        (("list",), {"SENTINEL_APPROVER_KEY": "sr_unknown_key_of_nobody"}, 2, "does not know this key"),
        (("list",), {"SENTINEL_APPROVER_KEY": "", "SENTINEL_API_KEY": "k" * 20}, 2, "SENTINEL_APPROVER_KEY is not"),
        (("list",), {"SENTINEL_URL": "http://127.0.0.1:9"}, 1, "did not answer"),
        (("list",), {"SENTINEL_URL": "", "SENTINEL_APPROVER_KEY": ""}, 1, "No gateway runs"),
    ]
    for arguments, changes, code, sentence in cases:
        done = terminal.run(*arguments, **changes)
        assert (done.returncode, done.stdout) == (code, ""), arguments
        assert sentence in done.stderr, arguments
        assert "Next: " in done.stderr
        assert "Traceback" not in done.stderr
    failed = terminal.run("approve", approval_id, "--json")
    assert json.loads(failed.stdout)["error"]["code"] == "approval_decided"


def an_approval(**changes: Any) -> dict[str, Any]:
    return {
        "approval_id": "3f2c9a10-0000-4000-8000-000000000000",
        "state": "pending",
        "asked_at": "2026-07-01T12:00:00Z",
        "ends_at": "2026-07-01T12:15:00Z",
        "key_id": "agent",
        "session_id": "s1",
        "tool": "web_search",
        "server": "web",
        "effect": "external",
        "description": "Search the web.",
        "condition": "true",
        "taint_level": "LOW",
        "rule_id": "search",
        "why": "sink_label",
        "arguments": {"query": "x"},
        "arguments_withheld": False,
        "argument_labels": {"query": HIGH},
        "context": HIGH,
        "violations": [{"parameter": "query", "label": HIGH, "accepts": LOW, "link": False}],
        "raised_by": [{"audit_id": "a1", "tool": "read_mail", "label": HIGH, "at": "2026-07-01T11:59:00Z"}],
        "approvers": [],
        "decision": None,
        "used_at": None,
        "may_decide": True,
        "outdated": False,
        "more_of_tool": 0,
        **changes,
    }


HOSTILE_FIELDS: dict[str, dict[str, Any]] = {
    "argument": {"arguments": {"query": HOSTILE}},
    "argument in a list": {"arguments": {"query": [HOSTILE, {HOSTILE: HOSTILE}]}},
    "parameter": {"arguments": {HOSTILE: 1}, "violations": [{"parameter": HOSTILE, "label": HIGH, "accepts": LOW}]},
    "comment": {"decision": {"by": HOSTILE, "via": "api", "actor": HOSTILE, "comment": HOSTILE, "at": HOSTILE}},
    "names": dict.fromkeys(("key_id", "session_id", "tool", "server", "description", "condition", "rule_id"), HOSTILE),
    "codes": dict.fromkeys(("state", "effect", "why", "taint_level", "used_at", "approval_id"), HOSTILE),
    "history": {"raised_by": [{"audit_id": HOSTILE, "tool": HOSTILE, "label": HIGH, "at": HOSTILE}]},
    "approvers": {"approvers": [HOSTILE], "may_decide": False},
    "subject": {
        "title": HOSTILE,
        "subject": {
            "number": HOSTILE,
            "name": HOSTILE,
            "state": {HOSTILE: HOSTILE},
            "changes": [
                {"field": HOSTILE, "before": HOSTILE, "after": HOSTILE, "before_quoted": quoted, "after_quoted": quoted}
                for quoted in (True, False)
            ],
        },
        "evidence": [{"audit_id": HOSTILE, "tool": HOSTILE, "at": HOSTILE, "about": True}],
        "words": HOSTILE,
        "person": HOSTILE,
    },
    "outcome": {
        "used_at": "2026-07-01T12:01:00Z",
        "outcome": {"status": "error", "reason": HOSTILE, "audit_id": HOSTILE, "approval_id": HOSTILE},
    },
}


@pytest.mark.parametrize("field", HOSTILE_FIELDS)
@pytest.mark.parametrize("width", [40, 100])
def test_no_field_moves_the_cursor_or_writes_a_line_of_the_page(field: str, width: int) -> None:
    approval = an_approval(**HOSTILE_FIELDS[field])
    text = page(approval, width=width, now=NOW) + "\n".join(summary(approval, NOW))
    assert not [char for char in text if char in "\x1b\x07\x9b\r\u202e\u2028"]
    lines = text.split("\n")
    assert sum(line.startswith("DECIDE") for line in lines) == approval["may_decide"]
    assert not [line for line in lines if line.startswith(("admin", "  sentinel approvals approve 1"))]


def test_every_line_of_a_long_text_stands_behind_a_bar_and_nothing_is_cut() -> None:
    words = [f"word{number}" for number in range(3_000)]
    value = "\n".join(" ".join(words[at : at + 300]) for at in range(0, 3_000, 300)) + "\n\nWHO ASKS\n  the president"
    text = page(an_approval(arguments={"query": value}), width=60, now=NOW)
    assert f"query = a text of {len(value)} characters" in text
    start = text.index("WITH EXACTLY THIS")
    shown = [line for line in text[start:].split("\n") if line.startswith(("  | ", "  + "))]
    rebuilt = "".join(line[4:] if line.startswith("  + ") else "\n" + line[4:] for line in shown)[1:]
    assert rebuilt == value
    assert max(len(line) for line in text.split("\n") if "3f2c9a10" not in line) <= 60
    assert [line for line in text.split("\n") if line == "WHO ASKS"] == ["WHO ASKS"]


def test_a_cut_value_of_a_list_says_by_how_much() -> None:
    row = summary(an_approval(arguments={"query": "y" * 500}), NOW)
    assert "... (+442 characters)" in row[2]
    assert row[3:5] == ("4 min ago", "11 min")


OWN = {
    "title": "anna wants to close #127",
    "subject": {
        "number": "127",
        "name": "Sign-in",
        "state": {},
        "changes": [
            {"field": "Status", "before": "New", "after": "Closed", "before_quoted": False, "after_quoted": False}
        ],
    },
    "arguments": {"incident": "127", "status": "Closed"},
    "argument_labels": {},
}


def test_what_a_person_said_themselves_is_confirmed_by_what_changes_alone() -> None:
    own = an_approval(**OWN, violations=[])
    assert list(in_short(own, 80, NOW)) == [
        "  anna wants to close #127",
        "  Status: New -> Closed",
        "With exactly this:",
        '  incident = "127"',
        '  status = "Closed"',
        "  It is approval 3f2c9a10-0000-4000-8000-000000000000, 11 min left.",
    ]


@pytest.mark.parametrize("width", range(60, 110, 3))
def test_the_id_of_a_record_is_never_broken(width: int) -> None:
    record = "01a231de-db4f-704f-96e8-90750379efab"  # its first parts end in letters, behind which a hyphen may break
    read = {"audit_id": record, "tool": "get_incident_detail", "at": "2026-07-01T12:01:00Z", "about": True}
    assert record in page(an_approval(evidence=[read]), width=width, now=NOW)


@pytest.mark.parametrize(
    "more", [{}, {"violations": [], "outdated": True}, {"violations": [], "title": ""}], ids=["label", "policy", "name"]
)
def test_where_more_is_to_be_looked_at_it_is_confirmed_by_the_whole_page(more: dict[str, Any]) -> None:
    approval = an_approval(**{**OWN, **more})
    assert "\n".join(in_short(approval, 80, NOW)) == page(approval, width=80, now=NOW)


def test_the_page_tells_why_in_the_words_of_the_labels() -> None:
    text = page(an_approval(arguments={}, argument_labels={}, violations=[], raised_by=[]), width=100, now=NOW)
    assert "It takes no arguments." in text
    assert "No earlier result of it raised its labels." in text
    required = page(an_approval(why="the rule requires it", effect="write"), width=100, now=NOW)
    assert "without a person's approval" in required
    assert "CHANGES something" in required
    trusted = {"sensitivity": "HIGH", "integrity": "TRUSTED"}
    steered = an_approval(violations=[{"parameter": "query", "label": LOW, "accepts": trusted, "link": False}])
    assert "query may be steered by an attacker (UNTRUSTED)" in page(steered, width=300, now=NOW)
    assert "may hold" not in page(steered, width=300, now=NOW)
    link = an_approval(violations=[{"parameter": "", "label": HIGH, "accepts": LOW, "link": True}])
    assert "The call itself may hold secret data (HIGH)" in page(link, width=300, now=NOW)
    assert "may carry data out by a link in it" in page(link, width=300, now=NOW)
    assert "THE POLICY HAS CHANGED" not in required
    assert "THE POLICY HAS CHANGED" in page(an_approval(outdated=True), width=100, now=NOW)
    withheld = an_approval(arguments=None, arguments_withheld=True, may_decide=False, approvers=["ana"])
    text = page(withheld, width=100, now=NOW)
    assert "not shown to this key" in text
    assert "It may be decided by: ana." in text


def test_watch_prints_each_new_one_once_in_a_pipe(terminal: Terminal) -> None:
    first = terminal.ask()
    with fork_server.Process(
        [SENTINEL, "approvals", "watch", "--json"],
        env=terminal.environment,
        cwd=terminal.home.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        try:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["approval_id"] == first
            second = terminal.ask("another")
            assert json.loads(watching.stdout.readline())["approval_id"] == second
        finally:
            watching.terminate()


@contextmanager
def on_a_terminal(terminal: Terminal, *arguments: str) -> Iterator[int]:
    """The command on a pseudo-terminal of 100 columns; the value is its other end."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 100))
    with fork_server.Process(
        [SENTINEL, "approvals", *arguments],
        env=terminal.environment,
        cwd=terminal.home.parent,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            yield ours
            assert process.wait(timeout=WAIT_S) == 0
        finally:
            process.kill()
            os.close(ours)


def read_until(descriptor: int, text: str) -> str:
    seen = b""  # a piece may end within a character
    deadline = time.monotonic() + WAIT_S
    while text.encode() not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"waited for {text!r}, saw: {seen!r}"
        seen += os.read(descriptor, 65_536)
    return seen.decode(errors="replace")


@pytest.mark.requirement("APPR-1")
def test_watch_asks_on_a_terminal_and_forgets_what_was_typed_before_the_question(terminal: Terminal) -> None:
    first = terminal.ask()
    with on_a_terminal(terminal, "watch") as screen:
        os.write(screen, b"y\n")  # typed before anything was shown: no answer to what is shown now
        seen = read_until(screen, "Enter = later]")
        assert first in seen
        assert terminal.run("list", "--state", "approved").returncode == 3
        os.write(screen, b"y\n")
        read_until(screen, "Approved: web_search (query=")
        second = terminal.ask("second")
        assert second in read_until(screen, "Enter = later]")
        os.write(screen, b"\n")
        read_until(screen, "goes on waiting")
        third = terminal.ask("third")
        read_until(screen, "Enter = later]")
        assert terminal.run("approve", third).returncode == 0  # another person was faster
        os.write(screen, b"n\n")
        read_until(screen, "decided already: it is approved")
        terminal.ask("fourth")
        read_until(screen, "Enter = later]")
        os.write(screen, b"\x04")
    states = {
        each["approval_id"]: each["state"]
        for each in json.loads(terminal.run("list", "--state", "all", "--json").stdout)["approvals"]
    }
    assert [states[each] for each in (first, second, third)] == ["approved", "pending", "approved"]
