"""Policy files: refused with their lines, or read in one way, and then every call is decided as the conditions say."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.crash_load import POLICY
from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.gateway.policy import Policy, ToolPolicy
from sentinel_rag.gateway.policy.conditions import TypeName, evaluate
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.request_body import CanonicalArguments, fit
from sentinel_rag_testing.random_policies import random_policy

_PROBLEM = re.compile(r"file:[1-9][0-9]*: \S.*", re.DOTALL)
_WIDE = b"""
servers:
  other: {url: "http://127.0.0.1:9/mcp", timeout_s: 2}
link_hosts: [intranet.example]
declassification:
  - {name: hashes, tool: search, parameter: q, form: hash, to: {sensitivity: LOW, integrity: TRUSTED}}
tools:
  - name: search
    aliases: [find]
    effect: external
    timeout_s: 5
    rate: {calls: 10, seconds: 60}
    approvers: [lead]
    accepts: {sensitivity: LOW, integrity: TRUSTED}
    output_labels: [{path: /rows/*/text, sensitivity: HIGH, integrity: UNTRUSTED}]
    exposure: [{path: /rows/*/text, mode: hide}]
    parameters:
      - {name: q, type: string, required: true, attest: host}
      - {name: where, type: string, format: path}
      - {name: tags, type: array, items: string}
      - {name: n, type: integer}
      - {name: deep, type: boolean}
    taint_rules:
      - {rule_id: a, condition: "has(where) and where.startswith('confidential/')", taint_level: HIGH, deny: true}
      - {rule_id: b, condition: "q.lower().matches('^(a|b)+$') or n in [1, 2, 3]", taint_level: MEDIUM}
      - {rule_id: c, condition: "'x' in tags and not deep", taint_level: LOW, requires_approval: true}
      - {rule_id: d, condition: "true", taint_level: LOW}
"""
_TEXTS = ("a", "confidential/a", "10.0.0.1", "https://a.example/", "a@a.example", "2026-01-01T00:00:00Z")
_VALUES: Mapping[TypeName, Sequence[Any]] = {
    TypeName.STRING: _TEXTS,
    TypeName.INTEGER: (0, 3, -7),
    TypeName.NUMBER: (0.5, 3, -7.25),
    TypeName.BOOLEAN: (True, False),
    TypeName.ARRAY: ([], ["x", "y"], [1, 2]),
    TypeName.OBJECT: ({}, {"a": 1}),
}


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    policy = _read(content)
    if policy is None:
        return
    again = _read(content)
    expect(again is not None and again.sha256 == policy.sha256, "the same file was read in two ways")
    for tool in policy.tools.values():
        for arguments in _arguments(tool):
            _expect_as_conditions_say(tool, arguments)


def _read(content: bytes) -> Policy | None:
    try:
        return parse_policy_bytes(content, source="file")
    except ConfigurationError as refused:
        expect(bool(refused.problems), "a refusal names no problem")
        expect(bool(refused.next_step), "a refusal says no next step")
        for problem in refused.problems:
            expect(_PROBLEM.fullmatch(problem) is not None, "a problem has no line")
        return None


def _arguments(tool: ToolPolicy) -> Iterator[Mapping[str, Any]]:
    """A few calls that fit the tool: nothing, everything, and each parameter by itself, in turn with each value."""
    for turn in range(3):
        given = {}
        for parameter in tool.parameters.values():
            values = _VALUES[parameter.type.kind]
            if parameter.format is not None and parameter.type.kind is TypeName.STRING:
                values = _TEXTS
            given[parameter.name] = values[turn % len(values)]
        for chosen in ({}, given, *({name: value} for name, value in given.items())):
            fitted = fit(tool, chosen)
            if isinstance(fitted, CanonicalArguments):
                yield dict(fitted.value)


def _expect_as_conditions_say(tool: ToolPolicy, arguments: Mapping[str, Any]) -> None:
    """The compiled rules and the definition agree, on every call that leaves nothing out that they ask for."""
    verdicts = [evaluate(rule.expression, arguments) for rule in tool.rules]
    try:
        index = tool.first_match(arguments)
    except KeyError:
        expect(None in verdicts, "the compiled rules miss a parameter that the conditions do not")
        return
    decided = next((number for number, verdict in enumerate(verdicts) if verdict is not False), -1)
    if decided >= 0 and verdicts[decided] is None:
        expect(index == -1 or verdicts[index] is not False, "the compiled rules skip one that nobody can decide")
        return
    expect(index == decided, "the compiled rules match another rule than the conditions")


def _seeds() -> Sequence[bytes]:
    chosen = random.Random(8)  # the same seeds each time, not secrets
    made = [random_policy(chosen, sinks_accept_all=False, across_sessions=True).text.encode() for _ in range(3)]
    return [_WIDE, POLICY.encode(), b"tools: []\n", *made]


POLICY_FILE = Target(
    name="policy-file",
    promise="A policy file is refused with a sentence for each faulty line, or read in one way; then its compiled "
    "rules decide each call as the definition of the conditions does, and no condition fails.",
    opened=_opened,
    seeds=_seeds,
    tokens=(
        *(b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ", b"!!binary ", b"? ", b"- ", b": ", b"|\n  "),
        *(b">-\n  ",),
        *(b"{{{{{{{{{{{{{{{{{{{{{{", b"[[[[[[[[[[[[[[[[[[[[[[", b"%YAML 1.1\n---\n", b"...\n", b"\xef\xbb\xbf"),
        *(b"\x00",),
        *(b"0x1F", b"0o17", b"1_000", b"1:30:00", b".inf", b".nan", b"1e999", b"9" * 400, b"2026-01-01", b"~", b"yes"),
        *(b"taint_rules:", b"condition: ", b"format: path", b"type: array", b"items: integer", b"required: true"),
        *(b"endorsement:", b"mode: hide", b"/rows/*/x", b"reads: [a/*]", b"writes: ['a/{q}']", b"row_labels: /rows"),
    ),
    calls=(4_000, 400),
)
