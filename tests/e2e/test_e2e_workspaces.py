"""Several embedded workspaces at once, as a person has them: two that are filled, one whose file is damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.settings import installed_policy_file
from waiting import WAIT_S

pytestmark = [pytest.mark.requirement("DATA-3"), pytest.mark.requirement("DATA-4")]

FILE = """
default: prod
workspaces:
  - {name: prod, embedded: true}
  - {name: emea, embedded: true}
  - {name: broken, embedded: true}
"""


def incidents(count: int, first: int, prefix: str) -> str:
    return "".join(
        json.dumps(
            {
                "TimeGenerated": f"2024-07-{1 + number:02d}T00:00:00Z",
                "CreatedTime": f"2024-07-{1 + number:02d}T00:00:00Z",
                "IncidentName": f"00000000-0000-4000-8000-{first + number:012d}",
                "IncidentNumber": number + 1,
                "Title": f"{prefix} {number + 1}",
                "Severity": "High",
                "Status": "New",
                "Type": "SecurityIncident",
            }
        )
        + "\n"
        for number in range(count)
    )


@pytest.fixture(scope="module")
def several(new_product: Any) -> Iterator[Any]:
    made = new_product("several")
    made.home.mkdir()
    (made.home / "workspaces.yaml").write_text(FILE)
    for name, count in (("prod", 3), ("emea", 2)):
        export = made.home.parent / f"SecurityIncident-{name}.jsonl"
        export.write_text(incidents(count, 100 * count, name))
        done = made.run("workspace", "import", str(export), "--table", "SecurityIncident", "--workspace", name)
        assert done.returncode == 0, done.stderr
        assert f"Workspace: {name}" in done.stdout
    damaged = made.home / "workspaces" / "broken"
    damaged.mkdir(parents=True)
    (damaged / "workspace.duckdb").write_bytes(b"no database" * 1000)
    with made.up() as parts:
        assert list(parts["workspaces"]) == ["prod", "emea", "broken"]
        assert [part["state"] for part in parts["workspaces"].values()] == ["running", "running", "unreachable"]
        yield made


def test_the_default_one_is_asked_and_others_by_name(several: Any) -> None:
    answer = several.json("ask", "list the incidents")
    assert {row["workspace"] for row in answer["coverage"]} == {"prod"}
    assert "3 incidents match" in answer["answer"]
    for words in (("--workspace", "emea"), ()):
        question = "list the incidents" if words else "list the incidents in workspace emea"
        other = several.json("ask", question, *words)
        assert [row["workspace"] for row in other["coverage"]] == ["emea"]
        assert "2 incidents match" in other["answer"]
        assert any("workspace emea" in line for line in other["footnote"])
    detail = several.json("ask", "what is incident 1 about?", "--workspace", "emea")
    assert "emea 1" in detail["answer"]


def test_all_of_them_and_the_one_that_is_down_is_told(several: Any) -> None:
    answer = several.json("ask", "list the incidents in all workspaces")
    (coverage,) = answer["coverage"]
    assert (coverage["workspace"], coverage["rows_returned"], coverage["partial"]) == ("prod, emea", 5, True)
    assert "broken: " in coverage["partial_reason"]
    assert "By workspace: prod 3, emea 2, broken unknown." in answer["answer"]
    down = several.json("ask", "list the incidents in workspace broken", code=5)
    assert "Workspace broken: " in down["answer"]


def test_a_name_that_is_none_is_refused_with_the_known_ones(several: Any) -> None:
    done = several.run("ask", "list the incidents", "--workspace", "apac")
    assert done.returncode == 2
    assert "'prod', 'emea', 'broken'" in done.stderr
    unknown = several.json("ask", "list the incidents in workspace apac", code=5)
    assert "prod, emea, broken" in unknown["answer"]
    assert several.run("ask", "list the incidents", "--workspace", "EMEA").returncode == 2


def test_a_conversation_changes_the_workspace(several: Any) -> None:
    lines = ["/workspace", "/workspace apac", "/workspace emea", "how many incidents are there?", "/quit"]
    said = several.run("chat", stdin="\n".join(lines)).stdout
    assert "Questions go to prod. There are: prod, emea, broken." in said
    assert "There is no workspace 'apac'" in said
    assert "Questions go to emea from here on." in said
    assert "2 incidents" in said


def test_commands_of_a_person_go_to_the_workspace_that_they_name(several: Any) -> None:
    kql = "SecurityIncident | summarize dcount(IncidentNumber)"
    assert several.json("workspace", "query", kql, "--workspace", "emea")["rows"] == [[2]]
    run = several.json("kql", "run", "incidents_by_owner", "--workspace", "emea")
    assert run["workspace"] == "emea"
    findings = {finding["name"]: finding for finding in several.json("doctor", code=1)}
    assert findings["workspace prod"]["detail"] == "prod: 3 rows in 1 tables, the newest of 2024-07-03 00:00:00 UTC"
    assert findings["workspace emea"]["ok"]
    assert not findings["workspace broken"]["ok"]


def test_one_that_does_not_start_is_told_and_the_others_serve(new_product: Any) -> None:
    made = new_product("damaged")
    damaged = made.home / "workspaces" / "spare"
    damaged.mkdir(parents=True)
    (damaged / "workspace.duckdb").write_bytes(b"no database" * 1000)
    named = type(made)(made.home, {"SENTINEL_WORKSPACE": "default,spare"})
    with named.start("up") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = iter(process.stdout.readline, "")
        served = next(line for line in lines if line.startswith("Serving"))
        process.terminate()
        told = process.communicate(timeout=WAIT_S)[1]
    assert "the embedded workspace 'default', and by name 'spare'" in served
    assert "The workspace-spare is not served: The workspace in " in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("given", "rule"),
    [("emea", "no_emea"), (" EMEA ", "no_emea"), ("all", "no_emea"), ("prod", "query_incidents_any")],
)
def test_the_policy_judges_the_name_in_whatever_spelling(several: Any, tmp_path: Path, given: str, rule: str) -> None:
    text = installed_policy_file().read_text()
    added = (
        "      - rule_id: no_emea\n"
        "        condition: \"has(workspace) and workspace in ('emea', 'all')\"\n"
        "        taint_level: HIGH\n"
        "        deny: true\n"
    )
    place = text.index("      - rule_id: query_incidents_any")
    policy = tmp_path / "policy.yaml"
    policy.write_text(text[:place] + added + text[place:])
    done = several.run("policy", "explain", "query_incidents", f"workspace={given}", "--policy", str(policy), "--json")
    told = json.loads(done.stdout)
    assert [each["rule_id"] for each in told["rules"] if each["holds"]] == [rule]
    assert told["arguments"][0]["value"] == given.strip().lower()


@pytest.mark.parametrize("named", ["sample", "default,spare"])
@pytest.mark.parametrize("command", [["ask", "how many incidents are open?"], ["up"], ["serve", "tools"]])
def test_a_name_that_no_folder_has_is_refused_and_not_served_empty(
    new_product: Any, named: str, command: list[str]
) -> None:
    """Served empty it would answer every question with no rows, as if that were the truth."""
    made = new_product(f"nowhere-{named[:3]}-{command[0]}")
    done = type(made)(made.home, {"SENTINEL_WORKSPACE": named}).run(*command)
    assert done.returncode == 2, done.stdout
    assert f"There is no workspace '{named.rpartition(',')[2]}' on this machine." in done.stderr
    assert "No rows" not in done.stdout
    assert not list(made.home.glob("workspaces/*"))
