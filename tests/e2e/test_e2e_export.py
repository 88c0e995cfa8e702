"""`sentinel export` and `/export` of a real conversation: what the next shift gets, and what it can check."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from sentinel_rag.agent.answers.results_file import read_results

pytestmark = pytest.mark.requirement("SURF-6")

QUESTIONS = (
    "list the high severity incidents of the last 30 days",
    "how many alerts per day in the last 7 days",
    "what do the playbooks say about phishing?",
    "run the template raw_signins",
    "set incident 5 to closed",
)


@pytest.fixture(scope="module")
def conversation(sample: Any) -> str:
    """The id of a conversation with an answer of each kind."""
    done = sample.run("chat", stdin="\n".join(QUESTIONS) + "\n")
    assert done.returncode == 0, done.stderr
    return str(sample.json("chat", "--list")[0]["session_id"])


def page(sample: Any, conversation: str) -> LexborHTMLParser:
    done = sample.run("export", conversation[:12], "--format", "html", "--output", "-")
    assert done.returncode == 0, done.stderr
    return LexborHTMLParser(done.stdout)


def section(tree: LexborHTMLParser, title: str) -> str:
    """The text of a section, without its heading."""
    assert tree.body is not None
    text = tree.body.text(separator="\n")
    behind = re.split(rf"(?m)^{re.escape(title)}$", text, maxsplit=1)[1]
    return re.split(r"(?m)^Annex: ", behind)[0]


def test_the_report_tells_facts_with_evidence_open_ends_actions_and_audit_ids(sample: Any, conversation: str) -> None:
    tree = page(sample, conversation)
    assert [node.text().partition(". ")[2] for node in tree.css("h3") if node.text()[:2] in "1. 2. 3. 4. 5."][
        :5
    ] == list(QUESTIONS)
    assert conversation in tree.css_first("dl:not(.figures)").text()
    numbers = {node.attributes["id"] for node in tree.css("tr[id]")}
    referred = {str(node.attributes["href"])[1:] for node in tree.css("a")}
    assert len(numbers) > 10
    assert referred <= numbers
    opened = section(tree, "Annex: all open points")
    assert re.search(r"Approval [0-9a-f-]{36} waits for a decision", opened)  # the call that was denied, once
    assert "it was denied" not in opened
    assert "set incident 5 to closed): asked back, and not answered" in opened
    denied = section(tree, "Annex: actions and approvals, as recorded")
    assert "run_kql_query" in denied
    assert "denied (" in denied
    assert ".md" in section(tree, "Annex: knowledge cited")
    assert len(tree.css("svg.chart rect")) >= 7  # a bar for each day of the trend
    asked_for = [
        json.loads(line)
        for line in sample.run("audit", "show", "--json", "--session", conversation).stdout.splitlines()
    ]
    audit_ids = {entry["record"]["audit_id"] for entry in asked_for if entry["record"]["kind"] in ("intent", "refusal")}
    assert audit_ids
    calls = tree.body.text() if tree.body is not None else ""
    assert [each for each in audit_ids if each not in calls] == []


def test_a_value_of_the_report_is_the_one_of_the_answer(sample: Any, conversation: str) -> None:
    answer = sample.json("ask", QUESTIONS[0])
    done = sample.run("export", conversation, "--format", "evidence", "--output", "-")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    told = {(row["place"], row["field"], row["value"]) for row in rows if row["question"] == "1"}
    for piece in answer["evidence"]:
        place, _, name = piece["pointer"].rpartition("/")
        if place.startswith("/rows"):
            value = piece["value"] if isinstance(piece["value"], str) else json.dumps(piece["value"])
            assert (place, name, value) in told


def test_a_csv_has_a_row_for_each_row_of_a_table(sample: Any, conversation: str) -> None:
    answer = sample.json("ask", QUESTIONS[0])
    done = sample.run("export", conversation, "--csv", "--output", "-")
    rows = [row for row in csv.DictReader(io.StringIO(done.stdout)) if row["question"] == QUESTIONS[0]]
    [table] = answer["tables"]
    assert [[row[name] for name in table["columns"]] for row in rows] == table["rows"]


def test_a_report_reads_the_incident_itself_and_puts_it_on_record(sample: Any) -> None:
    done = sample.run("report", "124", "--output", "-")
    assert done.returncode == 0, done.stderr
    first, _, annex = done.stdout.partition("## Annex")
    for told in ("Ransomware behavior was blocked (High)", "Incident 124 is Active (High)", "Next steps"):
        assert told in first
    assert first.count("| Ransomware behavior was blocked") <= 1
    [call] = set(re.findall(r"get_incident_detail \|.* \| ([0-9a-f-]{36}) \|", annex))
    record = sample.run("audit", "show", call, "--json").stdout
    assert '"effect": "read"' in record
    none = sample.run("report", "99999", "--output", "-")
    assert (none.returncode, "There is no incident 99999" in none.stderr) == (2, True)


def test_a_hand_over_is_about_the_queue(sample: Any) -> None:
    done = sample.run("report", "--hours", "24", "--team", "--output", "-")
    assert done.returncode == 0, done.stderr
    listed = sample.json("ask", "list the open incidents")
    first = done.stdout.partition("## Annex")[0]
    assert first.startswith("# Shift hand-over of the team\n")
    numbers = re.findall(r"(?m)^\| (\d+) \| .* \| (?:High|Medium|Low|Informational) \| (?:New|Active) \|", first)
    assert numbers == [str(each["value"]) for each in listed["evidence"] if each["pointer"].endswith("/number")]


def test_the_results_of_a_conversation_are_written_for_programs(sample: Any, conversation: str, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    done = sample.run("export", conversation, "--output", str(file))
    assert done.returncode == 0, done.stderr
    document = json.loads(file.read_text())
    assert document["said"] == list(QUESTIONS)
    answer = sample.json("ask", QUESTIONS[0])
    first = document["results"][0]
    assert (first["tool"], first["arguments"]) == (answer["tools"][0]["name"], answer["tools"][0]["arguments"])
    results = read_results(document).results
    assert {each.ref for each in results} == {entry["call_id"] for entry in document["results"]}
    assert all(each.rows for each in results if each.tool == "query_incidents")
    assert [each for each in results if each.problem]  # the template that was denied, with the reason


def test_a_file_that_is_there_is_left_alone(sample: Any, conversation: str, tmp_path: Path) -> None:
    path = tmp_path / "night.md"
    assert sample.run("export", conversation, "--output", str(path)).returncode == 0
    first = path.read_text()
    assert first.startswith("# Shift hand-over\n")
    path.write_text("mine")
    refused = sample.run("export", conversation, "--output", str(path))
    assert refused.returncode == 2
    assert "is there already" in refused.stderr
    assert path.read_text() == "mine"
    assert sample.run("export", conversation, "--output", str(path), "--force").returncode == 0
    assert path.read_text().startswith("# Shift hand-over\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["night.md"]


def test_a_chat_exports_itself(sample: Any, tmp_path: Path) -> None:
    path = tmp_path / "of a chat.html"
    done = sample.run(
        "chat",
        stdin=f"/export\nhow many incidents are there?\n/export html {path}\n/export html {path}\n/export --loud\n",
    )
    assert "Nothing was asked in this conversation yet." in done.stdout
    assert done.stdout.count("Written: ") == 1
    assert "is there already" in done.stderr
    assert "/export knows no --loud" in done.stderr
    assert "how many incidents are there?" in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("zzzz",), "No conversation begins with 'zzzz'"),
        (("--output", "."), "is a folder"),
        (("--output", "no/such/folder/x.md"), "cannot be written"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_sentence(
    arguments: tuple[str, ...], said: str, sample: Any, conversation: str
) -> None:
    done = sample.run("export", *arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Next: " in done.stderr
    assert "Traceback" not in done.stderr


def test_documents_are_really_made_and_an_ending_that_cannot_be_is_refused(
    sample: Any, conversation: str, tmp_path: Path
) -> None:
    begins = {"pdf": b"%PDF-", "docx": b"PK\x03\x04"}
    for ending, start in begins.items():
        path = tmp_path / f"night.{ending}"
        done = sample.run("export", conversation, "--output", str(path))
        assert done.returncode == 0, done.stderr
        assert path.read_bytes().startswith(start)
    for wrong in (("--output", str(tmp_path / "night.xlsx")), ("--format", "md", "--output", str(tmp_path / "a.pdf"))):
        refused = sample.run("export", conversation, *wrong)
        assert refused.returncode == 2
        assert "Next: " in refused.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["night.docx", "night.pdf"]


def test_the_report_of_one_incident_needs_a_question_about_it(sample: Any, conversation: str) -> None:
    refused = sample.run("export", conversation, "--incident", "9999", "--output", "-")
    assert refused.returncode == 2
    assert "No question of this conversation was about incident 9999" in refused.stderr
