"""A policy file loads whole or not at all, and says everything that is wrong with it, with lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.policy import Effect, decide, load_policy, parse_policy
from sentinel_rag.gateway.request_body import ArgumentFault, CanonicalArguments, fit

SOURCE_FORM = """
tools:
  - name: "new_tool"
    description: "Does something new"
    parameters:
      - name: "param1"
        type: "string"
        required: true
    taint_rules:
      - rule_id: "new_tool_default"
        condition: "true"
        taint_level: "LOW"
"""


def problems_of(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(text, source="p")
    assert refused.value.next_step
    return list(refused.value.problems)


def test_the_form_of_the_source_template_loads_with_safe_defaults() -> None:
    policy = parse_policy(SOURCE_FORM)
    tool = policy.tools["new_tool"]
    assert (tool.description, tool.server, tool.effect, tool.aliases, tool.timeout_s) == (
        "Does something new",
        "sentinel",
        Effect.EXTERNAL,
        (),
        None,
    )
    assert tool.parameters["param1"].required
    assert decide(tool, {"param1": "x"}) == Allow("new_tool_default", Label(Sensitivity.LOW))


def test_the_first_rule_that_matches_decides() -> None:
    tool = parse_policy("""
tools:
  - name: t
    parameters: [{name: n, type: integer, required: true}]
    taint_rules:
      - {rule_id: one, condition: "n == 1", taint_level: LOW}
      - {rule_id: small, condition: "n <= 2", taint_level: MEDIUM, deny: true}
      - {rule_id: middle, condition: "n <= 3", taint_level: HIGH, requires_approval: true}
""").tools["t"]
    assert [decide(tool, {"n": n}) for n in (1, 2, 3, 4)] == [
        Allow("one", Label(Sensitivity.LOW)),
        Deny(Reason.RULE_DENIES, Label(Sensitivity.MEDIUM), "small"),
        Deny(Reason.APPROVAL_REQUIRED, Label(Sensitivity.HIGH), "middle"),
        decide(tool, {"n": 5}),
    ]
    assert decide(tool, {"n": 4}).reason is Reason.NO_RULE_MATCHED  # type: ignore[union-attr]  # fails if it allows


def test_every_problem_is_told_at_once_with_its_line_and_a_suggestion() -> None:
    assert problems_of("""\
version: 2
tools:
  - name: one
    efect: read
    effect: raed
    parameters:
      - {name: path, type: strng}
      - {name: path, type: string}
      - {name: limit, type: integer, required: "yes", items: string}
      - {name: len, type: string}
      - {type: string}
    taint_rules:
      - {rule_id: a, condition: "pth == 'x'", taint_level: LOW}
      - {rule_id: a, condition: "limit == 'x'", taint_level: SECRET}
      - {rule_id: b, condition: "true"}
      - {rule_id: c, condition: "path == 'x'", taint_level: LOW}
      - {rule_id: d, condition: 5, taint_level: LOW, deny: true, requires_approval: true}
      - {rule_id: e, taint_level: LOW}
  - name: one
  - name: "bad name"
    timeout_s: 0
    aliases: [one]
    taint_rules: true
  - just a text
""") == [
        "p:1: unknown key 'version' in the file; there are: "
        "agents, declassification, denial_hours, endorsement, kinds, link_hosts, memory_days, servers, tools, volume",
        "p:4: unknown key 'efect' in a tool; did you mean 'effect'?",
        "p:5: unknown effect 'raed'; did you mean 'read'?",
        "p:7: unknown type 'strng'; did you mean 'string'?",
        "p:8: the parameter 'path' stands twice; first on line 7",
        "p:9: items belongs to the type array",
        "p:9: required must be true or false, not a text",
        "p:10: 'len' has its own meaning in conditions",
        "p:11: a parameter has no name",
        "p:13: condition, column 1: unknown parameter 'pth'; did you mean 'path'?",
        "p:14: the rule 'a' stands twice; first on line 13",
        "p:14: unknown taint_level 'SECRET'; there are: HIGH, LOW, MEDIUM",
        "p:14: condition, column 1: an integer == a string can never be decided",
        "p:15: a taint rule has no taint_level",
        "p:16: the rule can never decide: 'b' on line 15 always decides before it",
        'p:17: condition must be a text such as "true", not a number',
        "p:17: a rule that denies cannot ask for approval too",
        "p:18: a taint rule has no condition",
        "p:19: the tool 'one' stands twice; first on line 3",
        "p:20: name 'bad name' may hold letters, digits, '_', '-' and '.' only",
        "p:21: timeout_s must be a number from 0.01 to 600",
        "p:22: the tool 'one' stands twice; first on line 3",
        "p:23: taint_rules must be a list, not true or false",
        "p:24: a tool must be a mapping, not a text",
    ]


def test_a_format_of_an_array_holds_for_each_of_its_texts() -> None:
    text = """
tools:
  - name: t
    parameters: [{name: x, type: array, items: string, format: email}]
    taint_rules: [{rule_id: r, condition: "'a@contoso.com' in x", taint_level: LOW}]
"""
    tool = parse_policy(text).tools["t"]
    fitted = fit(tool, {"x": ["A@Contoso.com", "b@CONTOSO.com"]})
    assert isinstance(fitted, CanonicalArguments)
    assert fitted.value == {"x": ["a@contoso.com", "b@contoso.com"]}
    assert decide(tool, fitted.value) == Allow("r", Label(Sensitivity.LOW))
    assert isinstance(fit(tool, {"x": ["a@contoso.com", "no address"]}), ArgumentFault)
    assert problems_of(text.replace("a@contoso", "A@contoso")) == [
        "p:5: condition: x has the format email and can never hold 'A@contoso.com'; write 'a@contoso.com'"
    ]
    assert problems_of(text.replace("items: string, ", "")) == [
        "p:4: format belongs to the type string, or an array of strings"
    ]


SHADOWED = "p:{}: the rule can never decide: {} before it"
ONE = "'r0' on line 8 always decides"
NEVER = "p:{}: the condition is never true{}; remove the rule"


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (("true", "true"), SHADOWED.format(9, ONE)),
        (("n == 1", "n==1"), SHADOWED.format(9, ONE)),
        (("not false", "n == 1"), SHADOWED.format(9, ONE)),
        (("1 < 2 or n == 1", "n == 1"), SHADOWED.format(9, ONE)),
        (("s.startswith('a')", "s.startswith('ab')"), SHADOWED.format(9, ONE)),
        (("s.startswith('a')", "s == 'abc'"), SHADOWED.format(9, ONE)),
        (("s.startswith('a')", "n == 1 and s.startsWith('abc') and b"), SHADOWED.format(9, ONE)),
        (("s in ['a', 'b']", "s == 'b'"), SHADOWED.format(9, ONE)),
        (
            ("s == 'a'", "s == 'b'", "s in ['b', 'a']"),
            SHADOWED.format(10, f"{ONE[:-15]} and 'r1' on line 9 always decide"),
        ),
        (("s.contains('x')", "s.endswith('.xy')"), SHADOWED.format(9, ONE)),
        (("s != 'a'", "s.startswith('b')"), SHADOWED.format(9, ONE)),
        (("not s.startswith('a')", "s in ['b', 'c']"), SHADOWED.format(9, ONE)),
        (("n < 10", "n <= 3"), SHADOWED.format(9, ONE)),
        (("n > 3 or n < 0", "5 < n < 9"), SHADOWED.format(9, ONE)),
        (("has(s)", "s == 'x'"), SHADOWED.format(9, ONE)),
        (("b", "b == true and n == 1"), SHADOWED.format(9, ONE)),
        (("s.matches('^a')", "s.matches('^a') and n == 3"), SHADOWED.format(9, ONE)),
        (("len(s) > 3", "size(s) >= 5"), SHADOWED.format(9, ONE)),
        (("false",), NEVER.format(8, "")),
        (("2 < 1",), NEVER.format(8, "")),
        (("s == 'a' and s == 'b'",), NEVER.format(8, ", because s == 'a' and s == 'b' exclude each other")),
        (("n < 3 and n > 5",), NEVER.format(8, ", because n < 3 and n > 5 exclude each other")),
        (("5 < n < 5",), NEVER.format(8, ", because n < 5 and n > 5 exclude each other")),
        (("s.startswith('a') and s.startswith('b')",), "exclude each other"),
        (("s == 'x' and not s.startswith('x')",), "exclude each other"),
        (("s.endswith('.exe') and not s.contains('.')",), "exclude each other"),
        (("b and not b",), "exclude each other"),
        (("s == null and s == 'a'",), "exclude each other"),
        (("s == 'ab' and s.matches('^b')",), "exclude each other"),
        (("s == 'ab' and len(s) == 3",), None),  # two subjects: not looked at together
        (("s.lower() == 'Raw'",), NEVER.format(8, ", because s.lower() == 'Raw' never holds")),
        (("s.strip().startswith(' a')",), "never holds"),
        (("n == 1", "n == 2", "true"), None),
        (("s.startswith('ab')", "s.startswith('a')"), None),
        (("s.startswith('a')", "s.lower().startswith('a')"), None),
        (("s == 'a'", "s in ['a', 'b']"), None),
        (("n > 3 and n < 4",), None),
        (("n < 3", "n <= 3"), None),
        (("s == 'a' and n == 1", "s == 'a'"), None),
        (("s == 'a' or s == 'b' and s == 'c'",), None),
        (("not (s == 'a')", "not has(s)"), None),
    ],
)
def test_a_rule_that_can_never_decide_is_a_problem(rules: tuple[str, ...], problem: str | None) -> None:
    lines = [f'    - {{rule_id: r{index}, condition: "{rule}", taint_level: LOW}}' for index, rule in enumerate(rules)]
    head = [
        "tools:",
        "- name: t",
        "  parameters:",
        *(f"  - {{name: {n}, type: {t}}}" for n, t in TYPES),
        "  taint_rules:",
    ]
    text = "\n".join([*head, *lines])
    if problem is None:
        assert parse_policy(text)
    else:
        [found] = problems_of(text)
        assert problem in found


TYPES = (("n", "integer"), ("s", "string"), ("b", "boolean"))


@pytest.mark.parametrize(
    ("form", "condition", "problem"),
    [
        ("path", "x.startswith('/etc')", "x has the format path and can never begin with '/etc'"),
        ("path", "x.startswith(('public/', './a'))", "x has the format path and can never begin with './a'"),
        ("path", "x == 'a//b'", "x has the format path and can never be 'a//b'; write 'a/b'"),
        ("path", "not x.startswith('../')", "x has the format path and can never begin with '../'"),
        ("host", "x == 'Example.com'", "x has the format host and can never be 'Example.com'; write 'example.com'"),
        ("host", "x in ['example.com', 'evil..com']", "x has the format host and can never be 'evil..com'"),
        ("ip", "x != '010.0.0.1'", "x has the format ip and can never be '010.0.0.1'"),
        ("url", "x.startswith('https://EXAMPLE.com/')", "can never begin with 'https://EXAMPLE.com/'"),
        ("kql-template", "'RAW_signins' == x", "can never be 'RAW_signins'; write 'raw_signins'"),
        ("email", "'A@contoso.com' in x", None),  # a part of the text, not the whole
        ("path", "x.startswith('confidential')", None),
        ("path", "x.startswith(('.', 'a.', 'a/.', 'a b'))", None),
        ("url", "x.startswith('https://example.com')", None),
        ("url", "x.startswith('https://example.com:4')", None),
        ("host", "x.endswith('.example.com')", None),
    ],
)
def test_a_text_that_the_format_never_gives_is_a_problem(form: str, condition: str, problem: str | None) -> None:
    text = f"""
tools:
  - name: t
    parameters: [{{name: x, type: string, format: {form}}}]
    taint_rules: [{{rule_id: r, condition: "{condition}", taint_level: LOW}}]
"""
    if problem is None:
        assert parse_policy(text)
    else:
        [found] = problems_of(text)
        assert problem in found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "p:1: the file is empty"),
        ("tools: [", "p:1: not YAML: expected the node content, but found '<stream end>'"),
        ("a: &x [1]\nb: *x", "p:1: anchors and aliases are not allowed: write the value out"),
        (
            "tools: !!python/object/apply:os.system ['id']",
            "p:1: the tag tag:yaml.org,2002:python/object/apply:os.system is not allowed",
        ),
        ("tools: []\ntools: []", "p:2: the key 'tools' stands twice; first on line 1"),
        ("tools: []\n---\ntools: []", "p:2: not YAML: but found another document"),
        ("tools: " + "[" * 50 + "]" * 50, "p:1: more than 20 levels"),
        ("tools: " + "[" * 20_000, "p:1: more than 20 levels"),
        ("a: b: " + "c" * 20_000 + "\x01", "p:1: not YAML: mapping values are not allowed in this context"),
        ("tools: \x01", "p:1: not YAML: unacceptable character #x0001: control characters are not allowed"),
        ("? [a]\n: b\ntools: []", "p:1: a key must be a text"),
        ("- tools", "p:1: the file must be a mapping, not a list"),
        ("tool: []", "p:1: unknown key 'tool' in the file; did you mean 'tools'?"),
        ("x" * 1_000_001, "p:1: the file has more than 1000000 bytes"),
        ("tools: [{name: t, description: no}]", "p:1: 'no' is ambiguous in YAML: write it in quotes"),
        ("tools: [{name: t, description: 2024-07-02}]", "p:1: '2024-07-02' is ambiguous in YAML: write it in quotes"),
        ("tools: [{name: 0x10}]", "p:1: '0x10' is ambiguous in YAML: write it in quotes"),
        ("tools:\n\t- name: t", "p:2: not YAML: found character '\\t' that cannot start any token"),
    ],
    ids=range(18),
)
def test_what_is_not_plain_yaml_is_refused(text: str, problem: str) -> None:
    assert problem in problems_of(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.yaml cannot be read: No such file or directory"):
        load_policy(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"tools: []  # \xe9")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        load_policy(tmp_path / "latin.yaml")


def test_conditions_may_be_written_unquoted() -> None:
    policy = parse_policy(SOURCE_FORM.replace('"true"', "true"))
    assert decide(policy.tools["new_tool"], {"param1": "x"}) == Allow("new_tool_default", Label(Sensitivity.LOW))


def test_a_policy_of_a_thousand_rules_loads_and_decides() -> None:
    rules = "\n".join(
        f"      - {{rule_id: r{n}, condition: \"path.startswith('folder{n}/')\", taint_level: LOW}}"
        for n in range(1_000)
    )
    text = f"tools:\n  - name: t\n    parameters: [{{name: path, type: string}}]\n    taint_rules:\n{rules}\n"
    tool = parse_policy(text).tools["t"]
    assert decide(tool, {"path": "folder999/x"}).rule_id == "r999"
    assert decide(tool, {"path": "elsewhere"}).rule_id is None
    assert decide(tool, {}) == Deny(Reason.CONDITION_UNDECIDED, decide(tool, {}).label, "r0")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=120))
def test_any_text_loads_or_is_refused_with_lines(text: str) -> None:
    try:
        parse_policy(text, source="p")
    except ConfigurationError as error:
        refused = error
    else:
        return
    assert refused.problems
    assert all(problem.startswith("p:") for problem in refused.problems)
