"""Results whose columns a query names. The attacker is a hijacked agent that writes the query (or a log row that holds
one, for get_alert_events) and knows the policy: `project Total = CommandLine` takes a value out of the field that the
policy hides or labels, `evaluate pivot(CommandLine)` makes it the name of a column, and `print owner = "..."` makes up
a record that an endorsement would believe. A policy that relies on any of it is not loaded, so it never holds nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.gateway.policy import parse_policy
from waiting import WAIT_S

POLICY = """
tools:
  - name: {tool}
    server: {server}
    effect: read
    parameters: [{{name: kql, type: string, required: true, attest: words}}]
    output_labels: {labels}
    exposure: {exposure}
    taint_rules: [{{rule_id: any, condition: "true", taint_level: LOW}}]
endorsement: {endorsement}
"""
SHAPED = ["run_freeform_kql", "get_alert_events"]
HIGH = "sensitivity: HIGH, integrity: UNTRUSTED"
OWNER = "[{name: owners, tool: %s, rows: /rows, match: /title, match_kind: words, path: /owner, kind: email}]"
OWNER_OF_CALL = "[{name: owners, tool: %s, parameter: kql, path: /rows/*/owner, kind: email}]"


def written(
    tool: str, *, labels: str = "[]", exposure: str = "[]", endorsement: str = "[]", server: str = "sentinel"
) -> str:
    return POLICY.format(tool=tool, server=server, labels=labels, exposure=exposure, endorsement=endorsement)


@pytest.mark.requirement("TAINT-3")
@pytest.mark.parametrize("tool", SHAPED)
@pytest.mark.parametrize(
    "parts",
    [
        {"exposure": "[{path: /rows/*/CommandLine, mode: hide}]"},
        {"exposure": "[{path: /rows/0, mode: hide}]"},
        {"exposure": "[{path: '/rows/*/*', mode: hide}]"},
        {"exposure": "[{path: '/*/*/CommandLine', mode: hide}]"},
        {"exposure": "[{path: '', mode: hide}, {path: /rows/*/Count, mode: reveal}]"},
        {"exposure": "[{path: /rows, mode: hide}]"},
        {"exposure": "[{path: '', mode: hide}, {path: /columns, mode: reveal}]"},
        {"labels": f"[{{path: /rows/*/CommandLine, {HIGH}}}]"},
        {"labels": f"[{{path: /rows, {HIGH}}}]"},
        {"labels": "[{path: /rows/*/number, sensitivity: LOW, integrity: TRUSTED}]"},
    ],
    ids=str,
)
def test_a_field_of_a_query_s_own_naming_holds_nothing_back(tool: str, parts: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(written(tool, **parts), source="p.yaml")
    assert "quer" in " ".join(refused.value.problems) or "names of columns" in " ".join(refused.value.problems)


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize("tool", SHAPED)
@pytest.mark.parametrize("rule", [OWNER, OWNER_OF_CALL])
def test_rows_that_a_query_makes_up_endorse_nothing(tool: str, rule: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(written(tool, endorsement=rule % tool), source="p.yaml")
    assert any("endorse nothing" in problem for problem in refused.value.problems)


@pytest.mark.parametrize("tool", SHAPED)
def test_what_holds_for_rows_and_columns_alike_loads_and_holds(tool: str) -> None:
    exposure = "[{path: /rows, mode: hide}, {path: /columns, mode: hide}]"
    labels = f"[{{path: /rows, {HIGH}}}, {{path: /columns, {HIGH}}}]"
    loaded = parse_policy(written(tool, labels=labels, exposure=exposure), source="p.yaml").tool(tool)
    assert loaded is not None
    for path in (("rows", "0", "Total"), ("columns", "0", "name")):
        assert loaded.fields.label_at(path) == TOP
        assert loaded.fields.exposure_at(path).value == "hide"


def test_another_maker_s_tool_of_this_name_is_its_own_matter() -> None:
    exposure = "[{path: /rows/*/CommandLine, mode: hide}]"
    policy = written("run_freeform_kql", exposure=exposure, server="theirs")
    policy += 'servers: [{name: theirs, url: "https://kql.example/mcp"}]\n'
    assert parse_policy(policy, source="p.yaml").tool("run_freeform_kql") is not None


def test_the_command_line_tells_it_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(written("run_freeform_kql", exposure="[{path: /rows/*/CommandLine, mode: hide}]"))
    checked = subprocess.run(
        [Path(sys.executable).parent / "sentinel", "policy", "check", str(file)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert checked.returncode == 2
    assert "/rows/*/CommandLine holds nothing back" in checked.stdout + checked.stderr
    assert ":8" in checked.stdout + checked.stderr
