"""The policy: which tools there are, which calls may run, and how secret their results are.

`load_policy` reads the operator's YAML, all or nothing; `decide` applies it to one call and is a pure function.
"""

from sentinel_rag.gateway.policy.loading import load_policy as load_policy
from sentinel_rag.gateway.policy.loading import parse_policy as parse_policy
from sentinel_rag.gateway.policy.model import AgentMemory as AgentMemory
from sentinel_rag.gateway.policy.model import Effect as Effect
from sentinel_rag.gateway.policy.model import FixedPolicy as FixedPolicy
from sentinel_rag.gateway.policy.model import Parameter as Parameter
from sentinel_rag.gateway.policy.model import Policies as Policies
from sentinel_rag.gateway.policy.model import Policy as Policy
from sentinel_rag.gateway.policy.model import Preview as Preview
from sentinel_rag.gateway.policy.model import Remembers as Remembers
from sentinel_rag.gateway.policy.model import ServerSpec as ServerSpec
from sentinel_rag.gateway.policy.model import TaintRule as TaintRule
from sentinel_rag.gateway.policy.model import ToolPolicy as ToolPolicy
from sentinel_rag.gateway.policy.model import Volume as Volume
from sentinel_rag.gateway.policy.model import decide as decide
