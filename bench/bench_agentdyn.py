"""AgentDyn against the gateway, without a model: open tasks of which the person says little, under policies that were
written from the descriptions of the tools alone, and changed once after the first run. Needs `make agentdyn`. The
options are those of `bench agentdojo`."""

from __future__ import annotations

import json

from bench.agentdojo.loading import AGENTDYN
from bench.bench_agentdojo import run
from bench.harness import RESULTS

HISTORY = RESULTS / "agentdyn_history.jsonl"
"""What was measured first is its first line, for good."""


def main() -> None:
    first = HISTORY.read_text().splitlines()[0]
    run(AGENTDYN, __doc__ or "", beside={"first_sight": json.loads(first)})


if __name__ == "__main__":
    main()
