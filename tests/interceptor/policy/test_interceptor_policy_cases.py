"""The shipped policy against its cases, which are data beside it, and against the tools that the executors serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel_rag.contracts.decisions import Allow, Deny
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, WRITING_TOOLS
from sentinel_rag.interceptor.arguments import CanonicalArguments, fit
from sentinel_rag.interceptor.policy import Effect, Policy, decide, load_policy
from sentinel_rag.interceptor.policy.deciding import UNKNOWN_TOOL

CONFIG = Path(__file__).parents[3] / "config"
CASES = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in sorted((CONFIG / "cases").glob("*.yaml"))
    for case in yaml.safe_load(file.read_text())["cases"]
]


@pytest.mark.parametrize("case", CASES)
def test_case(shipped_policy: Policy, case: dict[str, Any]) -> None:
    tool = shipped_policy.tool(case["tool"])
    decision: Allow | Deny = UNKNOWN_TOOL
    if tool is not None:
        arguments = fit(tool, case["args"])
        assert isinstance(arguments, CanonicalArguments)
        decision = decide(tool, arguments.value)
    assert {
        "decision": "allow" if isinstance(decision, Allow) else "deny",
        "rule_id": decision.rule_id,
        "reason": decision.reason.value if isinstance(decision, Deny) else None,
        "label": decision.label.sensitivity.name,
    } == {key: case.get(key) for key in ("decision", "rule_id", "reason", "label")}


def test_every_rule_of_the_shipped_policy_has_a_case(shipped_policy: Policy) -> None:
    rules = {rule.rule_id for tool in shipped_policy.tools.values() for rule in tool.rules}
    assert rules == {case.values[0]["rule_id"] for case in CASES if "rule_id" in case.values[0]}  # type: ignore[index]


def test_the_shipped_policy_names_every_tool_over_sentinel_with_its_parameters(shipped_policy: Policy) -> None:
    assert {tool.name for tool in SENTINEL_TOOLS} <= set(shipped_policy.tools)
    for schema in SENTINEL_TOOLS:
        tool = shipped_policy.tools[schema.name]
        effect = Effect.WRITE if schema.name in WRITING_TOOLS else Effect.READ
        assert (tool.server, tool.effect, tool.aliases) == ("sentinel", effect, schema.aliases)
        assert {name: str(parameter.type) for name, parameter in tool.parameters.items()} == {
            name: declared["type"] for name, declared in schema.parameter_schemas().items()
        }
        assert {name for name, parameter in tool.parameters.items() if parameter.required} == schema.required()


def test_the_version_of_a_policy_is_the_hash_of_its_bytes(tmp_path: Path) -> None:
    text = (CONFIG / "sentinel_config.yaml").read_text()
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(text)
    two.write_text(text + "# a comment\n")
    assert load_policy(one).sha256 == load_policy(CONFIG / "sentinel_config.yaml").sha256 != load_policy(two).sha256
