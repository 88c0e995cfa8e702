"""Information flow: what label each argument of a call carries, whether the tool accepts it, and what the agent sees of
a result.

Everything here is a pure function of values that the gate hands in; nothing is stored or sent. The model is that of
`contracts.labels`; the rules come from `gateway.policy`.
"""

from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, LabelledArgument, LabelSource, Violation, judge
from sentinel_rag.gateway.flow.view import (
    HandleReference,
    Hidden,
    NoSuchHandle,
    ResultView,
    find_references,
    put_values,
    view_of,
)

__all__ = [
    "CallFacts",
    "HandleReference",
    "Hidden",
    "Judgement",
    "LabelSource",
    "LabelledArgument",
    "NoSuchHandle",
    "ResultView",
    "Violation",
    "find_references",
    "judge",
    "put_values",
    "view_of",
]
