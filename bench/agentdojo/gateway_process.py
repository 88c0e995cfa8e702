"""The product's gateway in a process of its own, for one policy and one estate, with audit and everything else on.

`python -m bench.agentdojo.gateway_process POLICY URL FOLDER` prints its URL and the keys of one agent, of the two
persons it works for and of the person who approves; it answers each line on standard input with the keys of another
agent, because what one agent reads counts against its own other sessions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sentinel_rag.app.serving import settle_memory
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.app import create_app
from sentinel_rag.gateway.policy import FixedPolicy, load_policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import Scope, State, open_state
from sentinel_rag.gateway.upstream import McpHttpUpstream
from sentinel_rag_testing.loopback import serve


def _pair(state: State) -> dict[str, str]:
    agent, issued = state.keys.create([Scope.EXECUTE])
    person, _ = state.keys.create([Scope.USER], for_key=issued.key_id, clearance=Sensitivity.HIGH)
    second, _ = state.keys.create([Scope.USER], for_key=issued.key_id, clearance=Sensitivity.HIGH)
    return {"agent": agent, "person": person, "second": second}


def main() -> None:
    policy = load_policy(Path(sys.argv[1]))
    with open_state(Path(sys.argv[3])) as state:
        approver, _ = state.keys.create([Scope.APPROVE])
        upstream = McpHttpUpstream(f"{sys.argv[2]}/mcp")
        app = create_app(
            policies=FixedPolicy(policy),
            keys=state.keys,
            state=state,
            upstreams=dict.fromkeys(policy.servers(), upstream),
            limits=GatewayLimits(key_rate=Rate(calls=10**9, seconds=60.0), sessions_per_key=10**9),
        )
        settle_memory()
        with serve(app) as url:
            print(json.dumps({"url": url, "approver": approver, **_pair(state)}), flush=True)
            for _ in sys.stdin:
                print(json.dumps(_pair(state)), flush=True)


if __name__ == "__main__":
    main()
