"""`sentinel policy` as a person and a CI job use it, on files and on the journal of real calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.app.places import gateway_folder, policies_folder
from sentinel_rag.gateway.policy import load_policy
from sentinel_rag.gateway.policy.loading import PolicyArchive, PolicyBook
from sentinel_rag.gateway.store import Scope, State, new_audit_id
from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

POLICY = """
tools:
  - name: query_incidents
    server: sentinel
    effect: read
    parameters:
      - {name: owner, type: string}
      - {name: limit, type: integer}
    exposure: [{path: /arguments/owner, mode: hide}]
    taint_rules:
      - {rule_id: few, condition: "has(limit) and limit < 5", taint_level: LOW}
      - {rule_id: own, condition: "has(owner) and owner.startswith('a.')", taint_level: MEDIUM}
      - {rule_id: rest, condition: "limit < 50 and limit != 13", taint_level: HIGH, requires_approval: true}
  - name: list_tables
    effect: external
    taint_rules:
      - {rule_id: tables, condition: "true", taint_level: LOW}
"""
ROOT = Path(__file__).parents[2]
SHIPPED = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "bench" / "agentdojo" / "policies").glob("*.yaml")]
SHIPPED = [each for each in SHIPPED if "cases" not in each.parts]
STRICTER = POLICY.replace('limit < 5"', 'limit < 2"').replace("taint_level: MEDIUM", "taint_level: HIGH")
CASES = """
cases:
  - {name: few, tool: query_incidents, args: {limit: 3}, decision: allow, rule_id: few, label: LOW}
  - {name: own, tool: query_incidents, args: {owner: a.singh}, decision: allow, rule_id: own}
  - {name: tables, tool: list_tables, decision: allow}
"""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def file(clean_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "all.yaml").write_text(CASES)
    monkeypatch.setenv("SENTINEL_CONFIG", str(path))
    monkeypatch.chdir(tmp_path)
    return path


@pytest.fixture
def run(file: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str]:
        code = main(["policy", *arguments])
        told = capsys.readouterr()
        return code, told.out + told.err

    return command


@pytest.fixture
def journal(file: Path, clean_environment: Path, executor: FakeToolServer) -> Iterator[RunningGateway]:
    """A gateway that has decided calls of every kind, its policy reloaded in between."""
    folder = gateway_folder(clean_environment)

    def book(state: State) -> PolicyBook:
        archive = PolicyArchive(policies_folder(folder))
        return PolicyBook(file, archive=archive, record=state.journal.append, new_id=new_audit_id)

    with running_gateway(load_policy(file), folder, executor, policies=book) as gateway:
        make_calls(gateway, "before")
        file.write_text(STRICTER)
        admin, _ = gateway.state.keys.create([Scope.ADMIN])
        assert gateway.request("POST", "/v1/policy/reload", key=admin, body=b"").status == 200
        make_calls(gateway, "after")
        file.write_text("tools: []")  # what lies there now decided none of them
        yield gateway


def make_calls(gateway: RunningGateway, session: str) -> None:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        return gateway.call(tool, arguments, session_id=session).body

    call("query_incidents", {"limit": 3})
    call("query_incidents", {"owner": "a.singh"})
    asked = call("query_incidents", {"limit": 20})
    approved = gateway.request(
        "POST", f"/v1/approvals/{asked['approval_id']}/approve", key=gateway.approver, body=b"{}"
    )
    assert approved.status == 200
    assert call("query_incidents", {"limit": 20})["status"] == "success"
    call("query_incidents", {})
    call("query_incidents", {"limit": 99})
    call("query_incidents", {"limit": "many"})
    call("list_tables", {})
    call("no_such_tool", {"x": 1})


def test_check_counts_and_warns(run: Run, file: Path) -> None:
    code, told = run("check")
    assert code == 0
    assert "policy.yaml loads: 2 tools, 4 rules" in told
    assert "warning: line 13: no case is decided by rest of query_incidents" in told
    file.write_text(POLICY.replace("limit < 5", "limt < 5"))
    code, told = run("check", str(file))
    assert code == 2
    assert "policy.yaml:11: condition, column 16: unknown parameter 'limt'; did you mean 'limit'?" in told
    code, told = run("check", str(file), "--json")
    assert (code, json.loads(told)["error"]["code"]) == (2, "configuration")


def test_check_warns_of_a_tool_that_forgets_what_the_agent_remembers(run: Run, file: Path) -> None:
    remembered = "list_tables counts what its session has seen and not what its agent remembers of other ones"
    assert remembered not in run("check")[1]
    file.write_text(POLICY.replace("effect: external", "effect: external\n    across_sessions: false"))
    code, told = run("check")
    assert code == 0
    assert f"warning: {remembered}" in told
    for shipped in SHIPPED:
        assert "remembers of other ones" not in run("check", str(shipped))[1], shipped


def test_cases_pass_or_end_with_5_and_what_they_got(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("test") == (0, "3 of 3 cases pass.\n")
    other = tmp_path / "stricter.yaml"
    other.write_text(STRICTER)
    code, told = run("test", "--policy", str(other))
    assert code == 5
    assert "FAILED few" in told
    assert "  decision: expected allow, got deny\n  rule_id: expected few, got rest\n" in told
    code, told = run("test", "cases/all.yaml", "--policy", str(other), "--json")
    assert code == 5
    [failed] = json.loads(told)["failed"]
    assert failed["got"] == {"decision": "deny", "rule_id": "rest", "label": "HIGH"}
    (tmp_path / "cases" / "all.yaml").write_text("cases: []")
    assert run("test") == (3, "There are no cases.\n")


def test_explain_tells_the_story_of_a_call(run: Run) -> None:
    code, told = run("explain", "query_incidents", "owner=b.ng", "limit=20", "--context", "medium/untrusted")
    assert code == 0
    assert told.splitlines()[1:] == [
        "  effect read, server sentinel; its session's context: MEDIUM/UNTRUSTED",
        "Arguments",
        '  owner = "b.ng"',
        "      carries MEDIUM/UNTRUSTED: a literal carries the session's context, MEDIUM/UNTRUSTED",
        "  limit = 20",
        "      carries MEDIUM/UNTRUSTED: a literal carries the session's context, MEDIUM/UNTRUSTED",
        "Rules, the first that holds decides",
        "  no        few (line 11): has(limit) and limit < 5",
        "      because limit < 5 is not true",
        "  no        own (line 12): has(owner) and owner.startswith('a.')",
        "      because owner.startswith('a.') is not true",
        "  holds     rest (line 13): limit < 50 and limit != 13",
        "Sink",
        "  every argument may go there; the tool accepts at most HIGH/UNTRUSTED",
        "Decision: deny by rest (approval_required), HIGH/TRUSTED",
    ]
    _, told = run("explain", "query_incidents", "owner=a.b")
    assert "/arguments/owner stays hidden" in told
    _, told = run("explain", "query_incidents")
    assert "the call does not give limit, so this cannot be decided; write has(limit) and ..." in told
    _, told = run("explain", "list_tables", "--context", "HIGH/TRUSTED")
    assert "the call itself carries HIGH/TRUSTED and at most LOW/UNTRUSTED is accepted there" in told
    assert "Decision: deny by tables (sink_label)" in told
    _, told = run("explain", "query_incidents", "limit=x")
    assert "limit must be integer" in told
    assert "Decision: deny (unknown_tool)" in run("explain", "query_incident")[1]
    _, told = run("explain", "query_incidents", '{"owner": "a.b"}', "--handle", "owner=HIGH/UNTRUSTED", "--json")
    assert json.loads(told)["arguments"][0]["source"] == "handle"
    for wrong in (("limit",), ("{nope",), ("--context", "SECRET")):
        code, told = run("explain", "query_incidents", *wrong)
        assert code == 2
        assert "Traceback" not in told


@pytest.mark.requirement("AUD-4")
def test_every_past_call_is_decided_again_as_it_was(run: Run, journal: RunningGateway) -> None:
    code, told = run("replay")
    assert (code, told.splitlines()[0]) == (0, "16 calls decided again by the policy on its record: 16 as before.")
    assert "2 calls were refused for other reasons" in told
    assert json.loads(run("replay", "--json")[1])["unknown_policies"] == {}
    assert json.loads(run("replay", "--since", "1h", "--json")[1])["decided"] == 16
    assert json.loads(run("replay", "--since", "2999-01-01", "--json")[1])["decided"] == 0
    assert run("replay", "--since", "yesterday")[0] == 2


def test_a_candidate_shows_what_would_change(run: Run, journal: RunningGateway, tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text(POLICY.replace("limit < 5", "limit < 1"))
    code, told = run("replay", "--policy", str(candidate), "--json")
    assert code == 0
    changes = [
        (change["tool"], change["before"]["rule_id"], change["after"]["rule_id"], change["count"])
        for change in json.loads(told)["changes"]
    ]
    assert ("query_incidents", "few", "rest", 1) in changes
    assert (
        "allow by few, LOW/UNTRUSTED -> deny by rest (approval_required), HIGH/TRUSTED: 1 calls, such as "
        in run("replay", "--policy", str(candidate))[1]
    )


def test_the_story_of_a_past_call_names_its_policy_and_its_record(run: Run, journal: RunningGateway) -> None:
    first = next(record for record in journal.records() if record["kind"] == "intent")
    _, told = run("explain", first["audit_id"])
    assert f"as kept, {first['policy_sha256'][:12]}" in told
    assert told.splitlines()[-1] == "On record: allow by few, LOW/UNTRUSTED"
    asked = next(record for record in journal.records() if record.get("reason") == "invalid_argument")
    assert "The arguments do not fit: limit must be integer." in run("explain", asked["audit_id"])[1]
    assert run("explain", "00000000-0000-0000-0000-000000000000")[0] == 3


def test_a_journal_whose_policy_is_gone_says_so(run: Run, journal: RunningGateway, clean_environment: Path) -> None:
    for kept in policies_folder(gateway_folder(clean_environment)).iterdir():
        kept.unlink()
    assert "calls were decided by policy" in run("replay")[1]
    first = next(record for record in journal.records() if record["kind"] == "intent")
    code, told = run("explain", first["audit_id"])
    assert code == 1
    assert "is not kept in this home folder" in told


def test_diff_names_keys_cases_and_calls(run: Run, journal: RunningGateway, file: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(POLICY)
    new.write_text(STRICTER.replace("effect: read", "effect: write").replace("- name: list_tables", "- name: lists"))
    code, told = run("diff", str(old), str(new))
    assert code == 0
    for line in (
        "  list_tables: the tool is gone",
        "  query_incidents.effect: write, was read",
        "  query_incidents.taint_rules[few].condition: has(limit) and limit < 2, was has(limit) and limit < 5",
        "  query_incidents.taint_rules[own].taint_level: HIGH, was MEDIUM",
        "  lists: a new tool with 1 rules",
        "  few: allow by few, LOW/UNTRUSTED -> deny by rest (approval_required), HIGH/TRUSTED",
    ):
        assert line in told.splitlines()
    assert "16 audited calls are decided differently." in told
    assert run("diff", str(old), str(old))[1].startswith("No key differs.\n0 cases")


def test_diff_without_a_journal_compares_the_rest(run: Run, file: Path) -> None:
    code, told = run("diff", str(file), str(file))
    assert code == 0
    assert "No audited calls were compared: There is no audit journal yet" in told


@pytest.mark.requirement("TAINT-6")
def test_explain_says_that_rows_add_to_what_is_foreseen(run: Run) -> None:
    shipped = Path(__file__).parents[2] / "config" / "sentinel_config.yaml"
    code, told = run("explain", "search_knowledge_base", "query=mail", "--policy", str(shipped))
    assert code == 0
    assert "  at least MEDIUM/UNTRUSTED; then the session's context is MEDIUM/UNTRUSTED\n" in told
    assert "  each row of /hits adds its own label, which its server tells\n" in told
