"""The policy: which tools there are, which calls may run, and how secret their results are.

`load_policy` reads the operator's YAML, all or nothing; `decide` applies it to one call and is a pure function.
"""

from sentinel_rag.gateway.policy.loading import load_policy, parse_policy
from sentinel_rag.gateway.policy.model import (
    AgentMemory,
    Effect,
    FixedPolicy,
    Parameter,
    Policies,
    Policy,
    Preview,
    Remembers,
    ServerSpec,
    TaintRule,
    ToolPolicy,
    Volume,
    decide,
)

__all__ = [
    "AgentMemory",
    "Effect",
    "FixedPolicy",
    "Parameter",
    "Policies",
    "Policy",
    "Preview",
    "Remembers",
    "ServerSpec",
    "TaintRule",
    "ToolPolicy",
    "Volume",
    "decide",
    "load_policy",
    "parse_policy",
]
