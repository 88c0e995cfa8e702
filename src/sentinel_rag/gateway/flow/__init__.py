"""Information flow: what label each argument of a call carries, whether the tool accepts it, and what the agent sees of
a result.

Everything here is a pure function of values that the gate hands in; nothing is stored or sent. The model is that of
`contracts.labels`; the rules come from `gateway.policy`.
"""

from sentinel_rag.gateway.flow.judging import CallFacts as CallFacts
from sentinel_rag.gateway.flow.judging import Judgement as Judgement
from sentinel_rag.gateway.flow.judging import LabelledArgument as LabelledArgument
from sentinel_rag.gateway.flow.judging import LabelSource as LabelSource
from sentinel_rag.gateway.flow.judging import Violation as Violation
from sentinel_rag.gateway.flow.judging import judge as judge
from sentinel_rag.gateway.flow.view import HandleReference as HandleReference
from sentinel_rag.gateway.flow.view import Hidden as Hidden
from sentinel_rag.gateway.flow.view import NoSuchHandle as NoSuchHandle
from sentinel_rag.gateway.flow.view import ResultView as ResultView
from sentinel_rag.gateway.flow.view import find_references as find_references
from sentinel_rag.gateway.flow.view import put_values as put_values
from sentinel_rag.gateway.flow.view import view_of as view_of
