"""References as objects: what was listed and talked about has a number and an id, and questions are resolved to ids
before an analyst sees them.

`References` is one conversation's memory of things, `resolve` reads a question with it, `remember` keeps what came of
it. `learn` and `show_answer` fill it from tool results and from a model's answer. It calls no tool and knows no
analyst.
"""

from sentinel_rag.agent.references.answer_lists import numbered_lists, show_answer
from sentinel_rag.agent.references.resolution import Resolution, Resolved
from sentinel_rag.agent.references.resolving import remember, resolve
from sentinel_rag.agent.references.state import References, ShownList
from sentinel_rag.agent.references.tool_things import learn, rows_as_items, shown_text, things_of
from sentinel_rag.agent.things import ListItem, alert_item, entity_item, incident_item

__all__ = [
    "ListItem",
    "References",
    "Resolution",
    "Resolved",
    "ShownList",
    "alert_item",
    "entity_item",
    "incident_item",
    "learn",
    "numbered_lists",
    "remember",
    "resolve",
    "rows_as_items",
    "show_answer",
    "shown_text",
    "things_of",
]
