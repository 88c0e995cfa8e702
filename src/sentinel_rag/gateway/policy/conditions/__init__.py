"""The condition language of taint rules: Python's expression syntax, a whitelist of it, typed against a tool's
parameters.

`check` turns an author's text into a tree or raises `ConditionError` with a column; `evaluate` decides a tree in
three-valued logic; `compile_rules` makes one fast function of all the conditions of a tool; `Reachability` finds rules
that can never decide. No text of an author is
ever executed: code is written from the checked tree alone.

Meaning. A condition speaks about the arguments of one call, all of them already of their declared types. A parameter
that the call leaves out is *unknown*. An expression over it is unknown too, unless its value would be the same whatever
the argument were: `x == 'a' or true` is true, `x == 'a' and false` is false, `x == 'a'` is unknown (Kleene's strong
logic; the order of the operands does not matter). `named(x)` asks whether the user's own words name the value, and is
never unknown. `has(x)`, `x == null` and `x is None` ask whether it is there and are
never unknown. A rule whose condition is unknown denies the call on the spot; it is not skipped.
"""

from sentinel_rag.gateway.policy.conditions.checking import RESERVED, ConditionError, check, closest, named_argument
from sentinel_rag.gateway.policy.conditions.evaluation import compile_rules, evaluate
from sentinel_rag.gateway.policy.conditions.reachability import Reachability, Shadowed, Unsatisfiable
from sentinel_rag.gateway.policy.conditions.tree import Expression, TypeName, ValueType, children, reads, text_of

__all__ = [
    "RESERVED",
    "ConditionError",
    "Expression",
    "Reachability",
    "Shadowed",
    "TypeName",
    "Unsatisfiable",
    "ValueType",
    "check",
    "children",
    "closest",
    "compile_rules",
    "evaluate",
    "named_argument",
    "reads",
    "text_of",
]
