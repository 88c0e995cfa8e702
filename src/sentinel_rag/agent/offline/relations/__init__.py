"""From the alerts that a text tells of to the one value that it asks for: calls, the alerts meant, the choice.

`story_plan` starts at what is named, `next_calls` reads the alerts that fit the words, `choose` says whether they
single out one value. Nothing that an attacker wrote into a row becomes an argument of a call.
"""

from sentinel_rag.agent.offline.relations.choice import Choice, Reason, choose
from sentinel_rag.agent.offline.relations.focus import MOST_ROUNDS, next_calls, story_plan

__all__ = ["MOST_ROUNDS", "Choice", "Reason", "choose", "next_calls", "story_plan"]
