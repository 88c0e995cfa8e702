"""Times decisions of agent-policy-gateway, run by the Python that has it. Arguments: the number of rules. For each line
on standard input it decides a thousand times and answers with the microseconds of one decision.

The rules speak of one tool and one argument; all but the last ask for another beginning of it.
"""

import sys
import time

import yaml
from agent_policy_gateway import Gateway, ToolCall, load_policy

RULES = int(sys.argv[1])
TIMES = 1_000

patterns = [f"^folder{number}/" for number in range(RULES - 1)] + ["^public/"]
document = {
    "version": 1,
    "name": "bench",
    "rules": [
        {"id": f"r{number}", "when": {"tool": "t", "arg_matches": {"path": pattern}}, "effect": {"action": "allow"}}
        for number, pattern in enumerate(patterns)
    ],
}
with open("policy.yaml", "w") as file:
    yaml.safe_dump(document, file)
gateway = Gateway(policies=[load_policy("policy.yaml")])
call = ToolCall(tool_name="t", args={"path": "public/reports/2026/readme.txt"})
assert gateway.decide(call).rule_id == f"r{RULES - 1}"

for _ in sys.stdin:
    start = time.perf_counter()
    for _ in range(TIMES):
        gateway.decide(call)
    print((time.perf_counter() - start) / TIMES * 1e6, flush=True)
