"""What people and CI do with a policy before and after it judges: cases, explanations, replays, comparisons.

Everything decides through `flow.judge`, as the gate does, and changes nothing. The terminal's `sentinel policy` is one
face of it; another may be built on the same values.
"""

from sentinel_rag.gateway.policy_tools.cases import Case as Case
from sentinel_rag.gateway.policy_tools.cases import CaseResult as CaseResult
from sentinel_rag.gateway.policy_tools.cases import load_cases as load_cases
from sentinel_rag.gateway.policy_tools.cases import run_case as run_case
from sentinel_rag.gateway.policy_tools.cases import uncovered_rules as uncovered_rules
from sentinel_rag.gateway.policy_tools.replay import Replay as Replay
from sentinel_rag.gateway.policy_tools.replay import ReplayReport as ReplayReport
from sentinel_rag.gateway.policy_tools.replay import changed_keys as changed_keys
from sentinel_rag.gateway.policy_tools.story import Story as Story
from sentinel_rag.gateway.policy_tools.story import story_of_call as story_of_call
from sentinel_rag.gateway.policy_tools.story import story_of_record as story_of_record
