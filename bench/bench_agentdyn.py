"""AgentDyn against the gateway, without a model: open tasks of which the person says little, under policies that were
written from the descriptions of the tools alone. Needs `make agentdyn`. The options are those of `bench agentdojo`."""

from __future__ import annotations

from bench.agentdojo.loading import AGENTDYN
from bench.bench_agentdojo import run


def main() -> None:
    run(AGENTDYN, __doc__ or "")


if __name__ == "__main__":
    main()
