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

from sentinel_rag.gateway.policy.conditions.checking import RESERVED as RESERVED
from sentinel_rag.gateway.policy.conditions.checking import ConditionError as ConditionError
from sentinel_rag.gateway.policy.conditions.checking import check as check
from sentinel_rag.gateway.policy.conditions.checking import closest as closest
from sentinel_rag.gateway.policy.conditions.checking import named_argument as named_argument
from sentinel_rag.gateway.policy.conditions.evaluation import compile_rules as compile_rules
from sentinel_rag.gateway.policy.conditions.evaluation import evaluate as evaluate
from sentinel_rag.gateway.policy.conditions.reachability import Reachability as Reachability
from sentinel_rag.gateway.policy.conditions.reachability import Shadowed as Shadowed
from sentinel_rag.gateway.policy.conditions.reachability import Unsatisfiable as Unsatisfiable
from sentinel_rag.gateway.policy.conditions.tree import Expression as Expression
from sentinel_rag.gateway.policy.conditions.tree import TypeName as TypeName
from sentinel_rag.gateway.policy.conditions.tree import ValueType as ValueType
from sentinel_rag.gateway.policy.conditions.tree import children as children
from sentinel_rag.gateway.policy.conditions.tree import reads as reads
from sentinel_rag.gateway.policy.conditions.tree import text_of as text_of
