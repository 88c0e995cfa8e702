"""The gate: what happens to one tool call between the HTTP face, which knows who asks, and the tool servers.

canonicalise → label → decide → record → dispatch → label → record. Each module is one step, and calls the next:
`gate` (the two doors, and deciding again) → `entrance` (may this call come in) → `decision` (arguments, labels, rule,
approval) → `running` (the tool server) with `intent` (the record before) and `result` (the record after). Wherever a
call ends without a tool, it ends in `endings`.
"""

from sentinel_rag.gateway.gate.at_yes import AtYes
from sentinel_rag.gateway.gate.gate import Gate
from sentinel_rag.gateway.gate.stores import Stores

__all__ = ["AtYes", "Gate", "Stores"]
