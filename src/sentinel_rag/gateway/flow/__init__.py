"""Information flow: what label each argument of a call carries, whether the tool accepts it, and what the agent sees of
a result.

Everything here is a pure function of values that the gate hands in; nothing is stored or sent. The model is that of
`contracts.labels`; the rules come from `gateway.policy`.
"""

from sentinel_rag.gateway.flow.judging import Facts, Judgement, LabelledArgument, Source, Violation, judge
from sentinel_rag.gateway.flow.references import NoSuchHandle, Reference, find_references, put_values
from sentinel_rag.gateway.flow.view import Hidden, View, view_of

__all__ = [
    "Facts",
    "Hidden",
    "Judgement",
    "LabelledArgument",
    "NoSuchHandle",
    "Reference",
    "Source",
    "View",
    "Violation",
    "find_references",
    "judge",
    "put_values",
    "view_of",
]
