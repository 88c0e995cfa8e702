"""Attacker controls: the text of a condition (a policy taken from a stranger, a pull request nobody read closely).

Wanted: code that runs, a value that grows, a rule that looks right and never fires. Every one is refused at load with
the line of the file; nothing of the file is in force.
"""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.conditions import ConditionError, TypeName, ValueType, check, compile_rules, evaluate

PARAMETERS = {
    "path": ValueType(TypeName.STRING),
    "limit": ValueType(TypeName.INTEGER),
    "flag": ValueType(TypeName.BOOLEAN),
    "tags": ValueType(TypeName.ARRAY, TypeName.STRING),
    "extra": ValueType(TypeName.OBJECT),
}

CODE = [
    "__import__('os').system('id')",
    "().__class__.__bases__[0].__subclasses__()",
    "path.__class__ == 'x'",
    "path.format(path) == 'x'",
    "eval('1') == 1",
    "open('/etc/passwd').read() == ''",
    "(lambda: true)()",
    "[x for x in path] == []",
    "f'{path}' == 'x'",
    "path if true else false",
    "(path := 'x') == 'x'",
    "print(path)",
    "path.startswith(*['a'])",
    "path.startswith(prefix='a')",
    "getattr(path, 'lower')() == 'x'",
    "path[0] == 'x'",
    "tags[0:1] == []",
    "yield path",
    "await path",
    "path.encode() == b'x'",
    "globals() == {}",
    "extra.path == 'x'",
    "path.lower.__globals__",
    "true; import os",
    "path == 'a'\nimport os",
]
GROWTH = [
    "path * 1000000 == 'x'",
    "'a' * 10 ** 9 == path",
    "path + path == 'x'",
    "10 ** 10 ** 10 > limit",
    "limit << 1000000 > 1",
    "path.replace('a', 'aaaa') == 'x'",
    "path.ljust(1000000000) == 'x'",
    "path.zfill(1000000000) == 'x'",
    "'%1000000000d' % limit == 'x'",
    "path.join(tags) == 'x'",
    "[path] * 100 == tags",
    "limit == 99999999999999999999999999",
    "limit == 1e999",
    "path == '" + "a" * 513 + "'",
    " or ".join(["flag"] * 300),
    "(" * 60 + "flag" + ")" * 60 + " and " + "not " * 40 + "flag",
    "not " * 490 + "flag",
    "(" * 900 + "flag" + ")" * 900,
    "flag and" + " " * 3_000 + "flag",
    " < ".join(["limit"] * 250),
]
NEVER_FIRES = [
    "pathh == 'x'",
    "path == 1",
    "path == true",
    "limit == '1'",
    "flag == 1",
    "path in 5",
    "5 in path",
    "limit in path",
    "path in tags in tags",
    "limit in ['1', '2']",
    "path in []",
    "path in ['a', 1]",
    "path in [limit]",
    "path",
    "'confidential'",
    "limit",
    "none",
    "path == nul",
    "path is 'x'",
    "path < 1",
    "flag < true",
    "tags == ['a']",
    "extra == {}",
    "len(limit) > 1",
    "len(flag) == 1",
    "path.startswith('a', 'b')",
    "path.startswith(limit)",
    "path.startsWith == true",
    "limit.startswith('1')",
    "path.contains(('a', 'b'))",
    "null == null",
    "'a' == null",
    "true == null",
    "1 < null",
    "path == null == true",
    "has('path')",
    "has(path, limit)",
    "has()",
    "path == 'a' & flag",
    "~limit == 1",
    "+limit == 1",
    "-limit == 1",
    "limit % 2 == 0",
    "path == u'a'",
    "path == b'a'",
    "path == '\\ud800'",
    "path == 'a\\x00b'",
    "path == 'a\u202eb'",
    "path == ...",
    "limit == 1j",
]
PATTERNS = [
    r"path.matches('(a)\\1')",
    "path.matches('(?=a)b')",
    "path.matches('(?<!a)b')",
    "path.matches('a{1000}{1000}')",
    "path.matches('(((a{30}){30}){30}){30}')",
    "path.matches('(')",
    "path.matches('')",
    "path.matches(path)",
    "path.matches(['a', 'b'])",
    "path.matches(1)",
    "limit.matches('1')",
    "path.matches()",
    "path.matches('a', 'b')",
    "path.match('a')",
    "matches(path, 'a')",
]
LOOK_ALIKES = [
    "ｐａｔｈ == 'x'",
    "рath == 'x'",
    "path == 'x' and ﬂag",
    "path\u00a0== 'x'",
    "path == “x”",
    "path.ｌower() == 'x'",
    "tru\u200be",
    "ｔrue",
]


@pytest.mark.parametrize("text", [*CODE, *GROWTH, *NEVER_FIRES, *PATTERNS, *LOOK_ALIKES], ids=lambda text: text[:40])
@pytest.mark.requirement("GATE-3")
def test_the_condition_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ConditionError, match=r"\w"):
        check(text, PARAMETERS)


def test_a_pattern_that_takes_others_forever_is_searched_in_linear_time() -> None:
    tree = check("path.matches('^(a+)+$') or path.matches('(a|aa)+$') or path.matches('(x+x+)+y')", PARAMETERS)
    assert evaluate(tree, {"path": "a" * 200_000 + "b" + "x" * 200_000}) is False  # a backtracking engine never ends


def test_a_string_may_hold_any_printable_letter() -> None:
    assert check("path == 'Straße ｐａｔｈ 日本'", PARAMETERS)
    assert check("'é' == path or flag and path == 'ü'", PARAMETERS)


def test_the_longest_chain_and_the_deepest_nesting_still_compile_and_run() -> None:
    chain = check("1 < limit " + "< 9 != limit " * 60, PARAMETERS)
    nested = check("not " * 20 + "flag", PARAMETERS)
    first_match = compile_rules([chain, nested])
    assert first_match({"limit": 5, "flag": True}) == 0
    assert first_match({"limit": 9, "flag": True}) == 1
    assert first_match({"limit": 9, "flag": False}) == -1
    assert evaluate(chain, {"limit": 9}) is False


def test_a_policy_with_one_bad_condition_is_refused_whole_and_names_the_line() -> None:
    policy = """\
tools:
  - name: good
    parameters: []
    taint_rules: [{rule_id: one, condition: "true", taint_level: LOW}]
  - name: bad
    parameters: [{name: file_path, type: string}]
    taint_rules:
      - rule_id: two
        condition: "file_pat.startswith('confidential/')"
        taint_level: HIGH
"""
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(policy, source="p.yaml")
    assert refused.value.problems == (
        "p.yaml:9: condition, column 1: unknown parameter 'file_pat'; did you mean 'file_path'?",
    )
