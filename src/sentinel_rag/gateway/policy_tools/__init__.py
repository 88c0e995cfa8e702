"""What people and CI do with a policy before and after it judges: cases, explanations, replays, comparisons.

Everything decides through `flow.judge`, as the gate does, and changes nothing. The terminal's `sentinel policy` is one
face of it; another may be built on the same values.
"""

from sentinel_rag.gateway.policy_tools.cases import Case, CaseResult, load_cases, run_case, uncovered_rules
from sentinel_rag.gateway.policy_tools.replay import Replay, ReplayReport, changed_keys
from sentinel_rag.gateway.policy_tools.story import Story, story_of_call, story_of_record

__all__ = [
    "Case",
    "CaseResult",
    "Replay",
    "ReplayReport",
    "Story",
    "changed_keys",
    "load_cases",
    "run_case",
    "story_of_call",
    "story_of_record",
    "uncovered_rules",
]
