"""Questions on their way: each runs to its end whoever listens, and tells what happens as numbered events.

Above lie the routes, below the agent and the gateway, each spoken to for one person with that person's key, and the
record, which keeps conversations. It plans nothing and adds no fact.
"""

from sentinel_rag.surfaces.web.turns.events import Event
from sentinel_rag.surfaces.web.turns.kept import Conversation, Turn, TurnState
from sentinel_rag.surfaces.web.turns.live import LiveTurn
from sentinel_rag.surfaces.web.turns.record import ConversationRecord
from sentinel_rag.surfaces.web.turns.turn_service import Asked, TurnLimits, TurnService

__all__ = [
    "Asked",
    "Conversation",
    "ConversationRecord",
    "Event",
    "LiveTurn",
    "Turn",
    "TurnLimits",
    "TurnService",
    "TurnState",
]
