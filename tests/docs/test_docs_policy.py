"""What docs/policy.md shows loads, its cases pass, and every key that a policy may have stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel_rag.gateway.argument_formats import FORMATS
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.conditions import check
from sentinel_rag.gateway.policy.conditions.checking import CASE_MAPPINGS, FUNCTIONS, PATTERN_TESTS, STRING_TESTS
from sentinel_rag.gateway.policy.conditions.tree import STRING
from sentinel_rag.gateway.policy.loading import PARAMETER_KEYS, ROOT_KEYS, RULE_KEYS, TOOL_KEYS
from sentinel_rag.gateway.policy_tools import load_cases, run_case
from sentinel_rag.gateway.policy_tools.cases import CASE_KEYS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "policy.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
POLICIES = [block for block in BLOCKS if block.startswith("tools:")]
CASES = [block for block in BLOCKS if block.startswith("cases:")]


@pytest.mark.parametrize("block", POLICIES, ids=range(len(POLICIES)))
def test_every_policy_of_the_page_loads(block: str) -> None:
    assert parse_policy(block).tools


def test_the_cases_of_the_page_pass(tmp_path: Path) -> None:
    [block] = CASES
    (tmp_path / "cases.yaml").write_text(block)
    policy = parse_policy(POLICIES[1])
    assert [run_case(policy, case).differences for case in load_cases([tmp_path])] == [{}, {}]


@pytest.mark.parametrize("key", sorted({*ROOT_KEYS, *TOOL_KEYS, *PARAMETER_KEYS, *RULE_KEYS, *CASE_KEYS, *FORMATS}))
def test_every_key_and_format_stands_in_a_table(key: str) -> None:
    assert any(f"`{key}`" in line for line in PAGE.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("name", sorted({*STRING_TESTS, *CASE_MAPPINGS, *PATTERN_TESTS, *FUNCTIONS}))
def test_every_function_of_conditions_is_named(name: str) -> None:
    assert re.search(rf"`{name}\b", PAGE)


def test_the_pattern_with_a_backslash_is_written_as_it_works() -> None:
    assert r"r'^svc-\d+@'" in PAGE
    assert check(r"user.matches(r'^svc-\d+@')", {"user": STRING})
