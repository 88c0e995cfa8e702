"""What the gateway tells of its calls while they run: spans and counts, both read off the records of its journal.

So what is told is what is on record, however a call came in, and the gate knows nothing of it.
"""

from sentinel_rag.gateway.telemetry.spans import message_span, request_span, tell_status
from sentinel_rag.gateway.telemetry.wiring import tell_records, told_upstreams

__all__ = ["message_span", "request_span", "tell_records", "tell_status", "told_upstreams"]
