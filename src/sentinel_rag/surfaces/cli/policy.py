"""`sentinel policy`: check a policy, run its cases, explain a call, decide past calls again, compare two policies.

Works on files: the policy, the cases beside it and the journal; nothing needs to run. What is said is made by
`gateway.policy_tools`; this module chooses the files and prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentinel_rag.app.zones import journal_reader, policy_texts
from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.flow import CallFacts
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy import Effect, Policy, load_policy
from sentinel_rag.gateway.policy.conditions import TypeName
from sentinel_rag.gateway.policy.loading import parse_policy_bytes
from sentinel_rag.gateway.policy_tools import (
    CaseResult,
    Replay,
    ReplayReport,
    Story,
    changed_keys,
    load_cases,
    run_case,
    story_of_call,
    story_of_record,
    uncovered_rules,
)
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._moments import moment
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

FAILED = 5
NOT_THE_SAME = 1
PAGE = 1_000
MOST_LINES = 40
"""Changes that are printed; `--json` prints all."""


def check(file: str | None, *, as_json: bool) -> int:
    """Load a policy; every problem is told with its line (exit 2). Warnings do not change the exit code."""
    path = _policy_file(file)
    policy = load_policy(path)
    warnings = _warnings(policy, path)
    rules = sum(len(tool.rules) for tool in policy.tools.values())
    if as_json:
        found = {"policy": policy.sha256, "file": str(path), "tools": len(policy.tools), "rules": rules}
        print_json({**found, "warnings": warnings})
        return 0
    print(safe(f"{path} loads: {len(policy.tools)} tools, {rules} rules, version {policy.sha256[:12]}."))
    for warning in warnings:
        print(safe(f"  warning: {warning}"))
    return 0


def test(cases: Sequence[str], *, policy_file: str | None, as_json: bool) -> int:
    """Run cases, by default those beside the policy; 5 if one fails, 3 if there are none."""
    path = _policy_file(policy_file)
    policy = load_policy(path)
    results = _results(policy, [Path(case) for case in cases] or [_cases_folder(path)])
    failed = [result for result in results if not result.passed]
    if as_json:
        print_json({"cases": len(results), "failed": [_result_dict(result) for result in failed]})
    else:
        for result in failed:
            print(safe(f"FAILED {result.case.name} ({result.case.place})"))
            for key, got in result.differences.items():
                print(safe(f"  {key}: expected {_text(result.case.expected[key])}, got {_text(got)}"))
            if result.decided.fault is not None:
                print(safe(f"  {result.decided.fault.message}"))
        print(f"{len(results) - len(failed)} of {len(results)} cases pass." if results else "There are no cases.")
    return FAILED if failed else 0 if results else 3


def explain(
    call: str,
    arguments: Sequence[str],
    *,
    context: str | None,
    handle: Sequence[str],
    words: str | None,
    policy_file: str | None,
    as_json: bool,
) -> int:
    """Tell why a call would be decided as it would, or why an audited one was; 3 if the journal has no such id."""
    if call.count("-") == 4 and len(call) == 36:
        story = _story_of_audit_id(call, policy_file)
        if story is None:
            print(json.dumps({"records": []}) if as_json else "There is no call with this id in the journal.")
            return 3
    else:
        policy = load_policy(_policy_file(policy_file))
        facts = CallFacts(
            context=_label(context) if context else Label(),
            handles={name: _label(text) for name, text in map(_pair, handle)},
            named=dict.fromkeys(named_in(words or "", policy), "user"),
        )
        story = story_of_call(policy, call, _arguments(policy, call, arguments), facts)
    if as_json:
        print_json(story.to_dict())
    else:
        for line in story.lines():
            print(safe(line))
    return 0


def replay(*, policy_file: str | None = None, since: str | None, as_json: bool) -> int:
    """Decide every audited call again; without a candidate, 1 if one comes out differently than it is on record."""
    settings = load_settings()
    candidate = None if policy_file is None else load_policy(_policy_file(policy_file))
    run = Replay(policy_texts(settings), candidate)
    run.add_all(_records(journal_reader(settings), since))
    report = run.report()
    if as_json:
        print_json(report.to_dict())
    else:
        _print_replay(report, candidate)
    return NOT_THE_SAME if candidate is None and report.changes else 0


def diff(old: str, new: str, *, since: str | None, as_json: bool) -> int:
    """Compare two policies: keys, and the decisions of cases and audited calls that differ."""
    first, second = load_policy(Path(old)), load_policy(Path(new))
    folders = dict.fromkeys(_cases_folder(Path(file)) for file in (old, new))
    paths = [folder for folder in folders if folder.is_dir()]
    keys = changed_keys(first, second)
    cases = [
        (before, after)
        for before, after in zip(_results(first, paths), _results(second, paths), strict=True)
        if before.decided.verdict != after.decided.verdict
    ]
    report, no_journal = _replay_both(first, second, since)
    if as_json:
        found = {
            "keys": keys,
            "cases": [
                {
                    "name": before.case.name,
                    "place": before.case.place,
                    "before": before.decided.verdict.to_dict(),
                    "after": after.decided.verdict.to_dict(),
                }
                for before, after in cases
            ],
            "audited_calls": None if report is None else report.to_dict(),
        }
        print_json(found)
        return 0
    print(f"{len(keys)} keys differ." if keys else "No key differs.")
    for key in keys:
        print(safe_cell(f"  {key}"))
    print(f"{len(cases)} cases are decided differently.")
    for before, after in cases:
        print(safe_cell(f"  {before.case.name}: {before.decided.verdict} -> {after.decided.verdict}"))
    if report is None:
        print(f"No audited calls were compared: {safe(no_journal)}")
    else:
        print(f"{report.decided - report.same} of {report.decided} audited calls are decided differently.")
        _print_changes(report)
    return 0


def _replay_both(old: Policy, new: Policy, since: str | None) -> tuple[ReplayReport | None, str]:
    """What of the audited calls the two decide differently, whatever the record says."""
    from sentinel_rag.gateway.policy_tools.replay import Compared

    compared = Compared(old, new)
    try:
        for record in _records(journal_reader(load_settings()), since):
            compared.add(record)
    except UnavailableError as error:
        return None, str(error)
    return compared.report(), ""


def _policy_file(text: str | None) -> Path:
    return load_settings().policy_file if text is None else Path(text)


def _cases_folder(policy_file: Path) -> Path:
    return policy_file.parent / "cases"


def _results(policy: Policy, paths: Sequence[Path]) -> list[CaseResult]:
    return [run_case(policy, case) for case in load_cases(paths)]


def _warnings(policy: Policy, path: Path) -> list[str]:
    found = [
        f"{tool.name} has no rules, so every call of it is denied" for tool in policy.tools.values() if not tool.rules
    ]
    found += [
        f"{tool.name} counts what its session has seen and not what its agent remembers of other ones, so what was "
        "read for one question may leave with the next; leave across_sessions out, or attest the agent under agents"
        for tool in policy.tools.values()
        if tool.effect is not Effect.READ and not tool.across_sessions
    ]
    folder = _cases_folder(path)
    if not folder.is_dir():
        return [*found, f"there are no cases beside it ({folder}), so no rule is tested"]
    results = _results(policy, [folder])
    found += [f"case {result.case.name!r} fails: run sentinel policy test" for result in results if not result.passed]
    return [
        *found,
        *(
            f"line {line}: no case is decided by {rule} of {tool}"
            for tool, rule, line in uncovered_rules(policy, results)
        ),
    ]


def _result_dict(result: CaseResult) -> dict[str, JsonValue]:
    return {
        "name": result.case.name,
        "place": result.case.place,
        "expected": {key: result.case.expected[key] for key in result.differences},
        "got": dict(result.differences),
    }


def _story_of_audit_id(audit_id: str, policy_file: str | None) -> Story | None:
    settings = load_settings()
    records = [entry.record for entry in journal_reader(settings).find(audit_id)]
    record = next((record for record in records if record["kind"] in ("intent", "refusal")), None)
    if record is None:
        return None
    if record["arguments"] is None or record["requested_tool"] is None:
        raise UsageError(
            f"The record of this call ({record['reason']}) does not hold the arguments that a decision needs.",
            next_step=f"See what is on record: sentinel audit show {audit_id}",
        )
    if policy_file is not None:
        return story_of_record(load_policy(Path(policy_file)), record)
    sha256 = record["policy_sha256"]
    content = policy_texts(settings)(sha256)
    if content is None:
        raise UnavailableError(
            f"The policy that decided this call ({sha256[:12]}) is not kept in this home folder.",
            next_step="Name another one to explain it by: --policy FILE.",
        )
    return story_of_record(parse_policy_bytes(content, source=f"as kept, {sha256[:12]}"), record)


AS_PAIRS = "Write them as NAME=VALUE: sentinel policy explain query_incidents severity=High"


def _arguments(policy: Policy, tool_name: str, texts: Sequence[str]) -> dict[str, JsonValue]:
    """`NAME=VALUE` by the declared types of the tool, or one JSON object."""
    if len(texts) == 1 and texts[0].lstrip().startswith("{"):
        try:
            value = json.loads(texts[0])
        except ValueError as error:
            raise UsageError(f"The arguments are not JSON: {error}.", next_step=AS_PAIRS) from None
        if not isinstance(value, dict):
            raise UsageError("The arguments must be one JSON object.", next_step=AS_PAIRS)
        return value
    tool = policy.tool(tool_name)
    found: dict[str, JsonValue] = {}
    for name, text in map(_pair, texts):
        parameter = None if tool is None else tool.parameters.get(name)
        if parameter is None or parameter.type.kind is TypeName.STRING:
            found[name] = text
        else:
            try:
                found[name] = json.loads(text)
            except ValueError:
                found[name] = text  # whatever it is, the policy says that it does not fit
    return found


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text!r} is not NAME=VALUE.", next_step="Write for example limit=20, or one JSON object.")
    return name, value


def _label(text: str) -> Label:
    level, _, integrity = text.upper().replace(",", "/").partition("/")
    if level not in Sensitivity.__members__ or (integrity or "TRUSTED") not in Integrity.__members__:
        raise UsageError(
            f"{text!r} is not a label.", next_step="Write for example HIGH/UNTRUSTED, MEDIUM/TRUSTED or LOW."
        )
    return Label(Sensitivity[level], Integrity[integrity or "TRUSTED"])


def _records(reader: JournalReader, since: str | None) -> Iterator[Mapping[str, Any]]:
    """The records of the journal from that time on, oldest first, a page at a time."""
    start = "" if since is None else format_time(moment("--since", since))
    after = 0
    while entries := reader.read(after, PAGE):
        after = entries[-1].seq
        yield from (entry.record for entry in entries if entry.record["at"] >= start)


def _print_replay(report: ReplayReport, candidate: Policy | None) -> None:
    by = "the policy on its record" if candidate is None else f"{candidate.source} ({candidate.sha256[:12]})"
    print(safe(f"{report.decided} calls decided again by {by}: {report.same} as before."))
    _print_changes(report)
    if report.not_policy:
        print(f"{report.not_policy} calls were refused for other reasons than the policy (keys, limits, form).")
    if report.incomplete:
        print(f"{report.incomplete} records do not hold what a decision needs.")
    for sha256, count in report.unknown_policies.items():
        print(safe(f"{count} calls were decided by policy {sha256[:12]}, which is not kept in this home folder."))


def _print_changes(report: ReplayReport) -> None:
    for change in report.changes[:MOST_LINES]:
        examples = ", ".join(change.examples)
        print(
            safe_cell(f"  {change.tool}: {change.before} -> {change.after}: {change.count} calls, such as {examples}")
        )
    left = len(report.changes) - MOST_LINES
    if left > 0:
        print(f"  and {left} more kinds of change: --json prints all")


def _text(value: JsonValue) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
