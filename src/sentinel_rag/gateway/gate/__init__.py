"""The gate: what happens to one tool call between the HTTP face, which knows who asks, and the tool servers.

canonicalise → label → decide → record → dispatch → label → record. Each module is one step, and calls the next:
`gate` (may this call come in, and deciding again) → `decision` (arguments, labels, rule, approval) →
`running` (the tool server), with the record before in `call` and the record after in `result`. How a call ends without
a tool stands in `call` too.
"""

from sentinel_rag.gateway.gate.call import Stores as Stores
from sentinel_rag.gateway.gate.gate import AtYes as AtYes
from sentinel_rag.gateway.gate.gate import Gate as Gate
