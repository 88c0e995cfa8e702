"""The other commands, as a person types them: chat in a pipe, tools, status, doctor, audit, workspace."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest


def test_a_conversation_in_a_pipe_remembers_what_was_said(sample: Any) -> None:
    done = sample.run(
        "chat", stdin="list the incidents still open, newest first\ndetails of [2]\n/nonsense\n/help\n/quit\n"
    )
    assert done.returncode == 0, done.stderr
    assert "What happened, in order of time" in done.stdout
    assert "There is no command '/nonsense'" in done.stdout
    assert "/clear" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_conversation_is_named_judged_counted_and_asked_again(sample: Any) -> None:
    lines = (
        "/again", "/thumb up", "/cost", "/rename x", "list open incidents", "/thumb sideways", "/thumb down no hosts",
        "/rename Night shift, phishing", "/again", "/cost", "/again 9", "/thumb none", "/history",
    )  # fmt: skip
    done = sample.run("chat", stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("There is no such question") == 2
    assert "no answer yet that could be judged" in done.stdout
    assert "Nothing was answered yet" in done.stdout
    assert "Nothing of this conversation is kept yet" in done.stdout
    assert "Say /thumb up, /thumb down" in done.stdout
    assert done.stdout.count("It is kept with the answer.") == 1
    assert "It is taken back." in done.stdout
    assert len(re.findall(r"\d\. .* UTC  list open incidents", done.stdout)) == 2
    [cost] = re.findall(r"this conversation +│ (\d+) +│ (\d+) ", done.stdout)
    assert cost == ("2", "0")
    assert sample.json("chat", "--list")[0]["title"] == "Night shift, phishing"
    usage = sample.json("usage", "--by", "question")
    judged = [each for each in usage["by"] if each["not_helped"]]
    assert [each["question"] for each in judged] == ["list open incidents"]


def test_texts_from_attackers_are_listed_with_their_place_and_record(sample: Any) -> None:
    told = sample.json("texts")
    assert told["alerts_read"] == told["alerts_total"] > 20
    [ordered] = [each for each in told["texts"] if "it gives orders to an assistant" in each["why"]]
    assert (ordered["place"], ordered["incident"] is not None) == ("alert description", True)
    [first, *_] = sample.run("audit", "show", ordered["audit_id"], "--json").stdout.splitlines()
    assert json.loads(first)["record"]["tool"] == "query_alerts"
    in_chat = sample.run("chat", stdin="/texts\n").stdout
    assert f"alert {ordered['alert']} ({ordered['alert_id']})" in in_chat
    shown = sample.run("texts", "--days", "1").stdout
    assert "\x1b" not in shown + in_chat
    assert "alerts of 1 day was looked at" in shown


@pytest.mark.requirement("CHAT-6")
def test_clear_keeps_the_numbers_and_clear_all_forgets_the_list(sample: Any) -> None:
    cleared = sample.run("chat", stdin="list open incidents\n/clear\ndetails of [1]\n").stdout
    forgotten = sample.run("chat", stdin="list open incidents\n/clear all\ndetails of [1]\n").stdout
    assert "What happened, in order of time" in cleared
    assert "What happened, in order of time" not in forgotten


def test_a_question_may_come_from_a_pipe(sample: Any) -> None:
    done = sample.run("ask", stdin="how many incidents are there?\n")
    assert done.returncode == 0
    assert "incidents" in done.stdout


def test_evidence_names_call_row_and_field(sample: Any) -> None:
    done = sample.run("ask", "--evidence", "how many incidents are there?")
    assert "  s1  c1 query_incidents as a whole: rows_total 28, by_severity/High 3, " in done.stdout


@pytest.mark.requirement("SURF-2")
def test_a_denied_question_is_exit_code_4(sample: Any) -> None:
    done = sample.run("ask", "run the template raw_signins", "--json")
    assert done.returncode == 4, done.stdout
    answer = json.loads(done.stdout)
    assert answer["outcome"] == "denied"
    assert answer["answer"].startswith("Waiting for approval: run_kql_query, template `raw_signins`.")
    assert "waits for a person's yes (rule kql_raw_signins_needs_approval)" in answer["footnote"][-1]
    assert (answer["tools"][-1]["status"], answer["tools"][-1]["decided_by"]) == ("denied", "other")


def test_tools_are_listed_and_described(sentinel: Any) -> None:
    names = [tool["name"] for tool in sentinel.json("tools")]
    assert "get_threat_summary" in names
    one = sentinel.run("tools", "query_sentinel_incidents")
    assert one.returncode == 0
    assert "min_severity" in one.stdout
    assert "at least" in one.stdout
    assert "query_incidents_any" in one.stdout
    rules = sentinel.json("tools", "run_kql_query")[0]["rules"]
    assert [rule["verdict"] for rule in rules] == ["needs approval, HIGH", "allowed, HIGH", "allowed, MEDIUM"]


def test_doctor_finds_nothing_on_a_filled_workspace(sample: Any) -> None:
    findings = sample.json("doctor")
    assert [finding["name"] for finding in findings if not finding["ok"]] == []
    assert {"python", "packages", "settings", "policy", "workspace", "zones"} <= {f["name"] for f in findings}


def test_doctor_names_the_command_that_mends_an_empty_workspace(sentinel: Any) -> None:
    findings = {finding["name"]: finding for finding in sentinel.json("doctor", code=1)}
    assert not findings["workspace"]["ok"]
    assert "sentinel workspace import" in findings["workspace"]["fix"]


def test_audit_shows_calls_and_verifies(sample: Any) -> None:
    answer = sample.json("ask", "how many incidents are there?")
    audit_id = answer["tools"][0]["audit_id"]
    records = [json.loads(line) for line in sample.run("audit", "show", audit_id, "--json").stdout.splitlines()]
    assert [entry["record"]["kind"] for entry in records] == ["intent", "outcome"]
    assert records[0]["outcome"] == "success"
    lines = sample.run("audit", "show", "--last", "2").stdout.splitlines()
    assert len(lines) == 2
    assert " hold. Head: " in sample.run("audit", "verify").stdout


def test_kql_by_hand_goes_to_the_running_workspace(sample: Any) -> None:
    answer = sample.json("workspace", "query", "SecurityIncident | summarize dcount(IncidentNumber)")
    guide = sample.json("ask", "how many incidents are there?")
    assert str(answer["rows"][0][0]) in guide["answer"]
    assert sample.run("workspace", "query", "SecurityIncident | where IncidentNumber < 0").returncode == 3


def test_an_import_goes_through_the_running_workspace(sentinel: Any, tmp_path: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("TimeGenerated,Computer,SyslogMessage\n2024-01-01T00:00:00Z,web1,hello\n")
    with sentinel.up():
        assert sentinel.json("workspace", "import", str(path), "--table", "Syslog")[0]["rows_stored"] == 1
        assert sentinel.json("workspace", "tables")[0]["table"] == "Syslog"
        assert "Syslog" in json.dumps(sentinel.json("ask", "which tables hold rows?")["tables"])


def test_the_version_is_printed(sentinel: Any) -> None:
    assert sentinel.run("--version").stdout.startswith("sentinel 0.")
