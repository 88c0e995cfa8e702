"""AgentDyn against the gateway, without a model: open tasks of which the person says little, under policies that were
written from the descriptions of the tools alone, and changed once after the first run. Needs `make agentdyn`. The
options are those of `bench agentdojo`."""

from __future__ import annotations

import json

from bench.agentdojo.loading import AGENTDYN
from bench.bench_agentdojo import run
from bench.harness import RESULTS

HISTORY = RESULTS / "agentdyn_history.jsonl"
"""What was measured first is its first line, for good; the others have attacks under the same first policies."""


def main() -> None:
    run(AGENTDYN, __doc__ or "", beside=first_sight())


def first_sight() -> dict[str, object]:
    lines = [json.loads(line) for line in HISTORY.read_text().splitlines()]
    attacks = {
        "pairs": sum(line["pairs"] for line in lines),
        "succeeded": sum(line["attacks_that_succeeded"] for line in lines),
    }
    return {"first_sight": lines[0], "first_sight_attacks": attacks}


if __name__ == "__main__":
    main()
