"""One decision alone, ours beside agent-policy-gateway, which is a library: an allow rule on the beginning of one
argument, with all rules before it asking for another one. Rounds alternate between two processes.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.gateway_processes import line
from bench.peers.environments import NotInstalled, environment, pinned_version
from bench.peers.rounds import spread
from sentinel_rag.gateway.policy import decide, parse_policy

DECISION_PEER = "agent-policy-gateway"
PROGRAM = Path(__file__).parent / "programs" / "policy_gateway_decision.py"
RULES = (1, 10, 100)
ROUNDS, TIMES = 15, 1_000


def decisions(environments: Path) -> dict[str, Any]:
    """Microseconds of a decision by the number of rules, or why there are none."""
    told: dict[str, Any] = {"peer": DECISION_PEER, "version": pinned_version(DECISION_PEER)}
    try:
        python = environment(DECISION_PEER, environments) / "python"
    except NotInstalled as reason:
        return {**told, "not_installed": str(reason)}
    return {**told, **{f"{rules}_rules": beside(python, rules) for rules in RULES}}


def beside(python: Path, rules: int) -> dict[str, Any]:
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(PROGRAM), str(rules)]
        with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            for _ in range(ROUNDS):
                process.stdin.write("\n")
                process.stdin.flush()
                theirs.append(float(line(process)))
                ours.append(our_decision_us(rules))
            process.stdin.close()
    ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
    return {"ours_us": spread(ours), "peer_us": spread(theirs), "ours_over_peer": spread(ratios, 3)}


def our_decision_us(rules: int) -> float:
    beginnings = [f"folder{number}/" for number in range(rules - 1)] + ["public/"]
    tool = parse_policy(
        "tools:\n  - name: t\n    parameters: [{name: path, type: string, required: true}]\n    taint_rules:\n"
        + "".join(
            f"      - {{rule_id: r{number}, condition: \"path.startswith('{beginning}')\", taint_level: LOW}}\n"
            for number, beginning in enumerate(beginnings)
        )
    ).tools["t"]
    arguments = {"path": "public/reports/2026/readme.txt"}
    assert decide(tool, arguments).rule_id == f"r{rules - 1}"
    start = time.perf_counter()
    for _ in range(TIMES):
        decide(tool, arguments)
    return (time.perf_counter() - start) / TIMES * 1e6
