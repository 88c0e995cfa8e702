"""From the alerts that a question tells of to the one value it asks for: reading, calls, choice.

A briefing (what happened, then a question) names things of one alert and asks for a thing of another. `walk_plan`
starts at what is named, `next_calls` follows to the incident and reads the alerts that fit the words, `choose` says
whether they single out one value. It proposes nothing where they do not.
"""

from sentinel_rag.agent.offline.alert_walk.asking import asks_for_several
from sentinel_rag.agent.offline.alert_walk.choice import Choice, choose
from sentinel_rag.agent.offline.alert_walk.rounds import MOST_ROUNDS, next_calls
from sentinel_rag.agent.offline.alert_walk.start import walk_plan

__all__ = ["MOST_ROUNDS", "Choice", "asks_for_several", "choose", "next_calls", "walk_plan"]
