"""The pure parts of a call, alone: a decision at 10 and 1 000 rules, a whole judgement, and the view of a large result.

A decision is measured for a tool of which the last rule matches, with rules all of one kind and of six kinds in turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench.harness import write
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow import CallFacts, judge, view_of
from sentinel_rag.gateway.policy import decide, load_policy, parse_policy
from sentinel_rag.gateway.policy.model import Exposure, FieldExposure, FieldLabel, ResultFields, parse_pointer

CONFIG = Path(__file__).parents[1] / "config" / "sentinel_config.yaml"
ROWS, COLUMNS = 100, 20

KINDS: Mapping[str, tuple[str, ...]] = {
    "one_kind": ("path.startswith('folder{n}/')",),
    "mixed": (
        "path.startswith('folder{n}/')",
        "user == 'user{n}@example.com'",
        "has(host) and host.lower() in ['ws-{n}', 'srv-{n}']",
        "path.contains('/secret{n}/')",
        r"user.matches(r'^svc-{n}-\d+@')",
        "limit > {n}000000 and path.endswith('.x{n}')",
    ),
}
"""Conditions of a policy's rules in turn; `{n}` is the number of the rule."""


def microseconds(work: Callable[[], object], *, times: int = 20) -> float:
    """Median time of `work`."""
    samples = []
    for _ in range(200):
        start = time.perf_counter()
        for _ in range(times):
            work()
        samples.append((time.perf_counter() - start) / times * 1e6)
    return round(statistics.median(samples), 2)


def decision(rules: int, kinds: str) -> float:
    conditions = [KINDS[kinds][n % len(KINDS[kinds])].replace("{n}", str(n)) for n in range(rules - 1)]
    lines = "\n".join(
        f'      - {{rule_id: r{n}, condition: "{condition}", taint_level: LOW}}'
        for n, condition in enumerate(conditions)
    )
    text = f"""
tools:
  - name: t
    parameters:
      - {{name: path, type: string, required: true}}
      - {{name: user, type: string, required: true}}
      - {{name: host, type: string}}
      - {{name: limit, type: integer, required: true}}
    taint_rules:
{lines}
      - {{rule_id: last, condition: "path.startswith('public/')", taint_level: LOW}}
""".replace(r"\d", r"\\d")
    tool = parse_policy(text).tools["t"]
    arguments = {"path": "public/reports/2026/readme.txt", "user": "a.singh@example.com", "limit": 20}
    assert decide(tool, arguments).rule_id == "last"
    return microseconds(lambda: decide(tool, arguments))


def judgement() -> float:
    """Of a call with three arguments under the shipped policy, labels included."""
    policy = load_policy(CONFIG)
    tool = policy.tools["query_incidents"]
    arguments = {"min_severity": "High", "time_window": "last_7d", "limit": 20}
    facts = CallFacts(context=Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED))
    assert judge(policy, tool, arguments, facts).decision.rule_id
    return microseconds(lambda: judge(policy, tool, arguments, facts))


def view() -> float:
    """Of a result of 100 rows with 20 columns: one hidden, two quoted."""
    columns = [f"Column{number}" for number in range(COLUMNS)]
    rows = [{column: f"value {row} of {column}" for column in columns} for row in range(ROWS)]
    value: dict[str, Any] = {"kind": "result", "columns": columns, "rows": rows}
    modes = {
        "/rows": Exposure.REVEAL,
        "/columns": Exposure.REVEAL,
        "/rows/*/Column1": Exposure.HIDE,
        "/rows/*/Column2": Exposure.QUOTE,
        "/rows/*/Column3": Exposure.QUOTE,
    }
    fields = ResultFields(
        labels=(FieldLabel(parse_pointer("/rows/*/Column1"), Label(Sensitivity.HIGH, Integrity.UNTRUSTED)),),
        exposures=tuple(FieldExposure(parse_pointer(path), mode) for path, mode in modes.items()),
    )
    encoded = msgspec.json.encode(value)
    assert len(view_of(value, encoded, fields, BOTTOM, 1).hidden) == ROWS
    return microseconds(lambda: view_of(value, encoded, fields, BOTTOM, 1), times=1)


def main() -> None:
    write(
        "decision",
        {
            "decision_us": {
                f"{rules}_rules_{kinds}": decision(rules, kinds) for rules in (10, 1_000) for kinds in KINDS
            },
            "judgement_of_three_arguments_us": judgement(),
            f"view_of_{ROWS}_rows_{COLUMNS}_columns_5_patterns_us": view(),
        },
        claim="A decision takes at most 25 us with 1 000 rules, of one kind and of six kinds in turn; a judgement of "
        "three arguments less than 10 us; the view of a result of 100 rows and 20 columns less than 2 ms.",
    )


if __name__ == "__main__":
    main()
