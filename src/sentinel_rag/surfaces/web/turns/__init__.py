"""Questions on their way: each runs to its end whoever listens, and tells what happens as numbered events.

Above lie the routes, below the agent and the gateway, each spoken to for one person with that person's key, and the
record, which keeps conversations. It plans nothing and adds no fact.
"""

from sentinel_rag.surfaces.web.turns.events import Event, LiveTurn
from sentinel_rag.surfaces.web.turns.record import ConversationRecord, KeptConversation, KeptTurn, TurnState
from sentinel_rag.surfaces.web.turns.turn_service import PersonQuestion, RunningTurns, TurnService

__all__ = [
    "ConversationRecord",
    "Event",
    "KeptConversation",
    "KeptTurn",
    "LiveTurn",
    "PersonQuestion",
    "RunningTurns",
    "TurnService",
    "TurnState",
]
