"""A question to the knowledge base carried out: asked back where it lacks what it is about, else to what it wants.

Above is the analyst, which asks whether there is a wish; below `turn`, which makes the calls. What a row or a document
says may become words that are searched by, and nothing else: it chooses no tool and no filter.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.conversation import AskedCall
from sentinel_rag.agent.offline.knowledge.past_turns import answer_past
from sentinel_rag.agent.offline.knowledge.playbook_turns import answer_catalogue, answer_playbook
from sentinel_rag.agent.offline.knowledge.step_turns import answer_steps
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish, Sought
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.frames import Frame

_WHICH = "Which incident do you mean? Give its number, or say in words what it is about."
_ABOUT_WHAT = "What is it about? Name the kind of attack, a technique such as T1566, or an incident by its number."


async def answer_wish(turn: Turn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The answer to a wish; a wish that lacks what it is about is asked back."""
    if wish.sought is Sought.CATALOGUE:
        return await answer_catalogue(turn)
    if not wish.incident and not wish.topic and not wish.filters:
        back = _WHICH if wish.sought in (Sought.PAST, Sought.CLOSED) else _ABOUT_WHAT
        return turn.asked_back(back, ("List the incidents still open, newest first", "Which playbooks are there?"))
    if wish.sought is Sought.STEPS:
        return await answer_steps(turn, wish, frame)
    if wish.sought is Sought.PLAYBOOK:
        return await answer_playbook(turn, wish)
    return await answer_past(turn, wish, frame)


async def answer_narrowed(turn: Turn, asked: AskedCall, filters: Mapping[str, JsonValue]) -> Answer:
    """The search of the last answer once more, with further filters."""
    kept = {name: value for name, value in asked.arguments.items() if isinstance(value, str) and name != "collection"}
    topic = str(kept.pop("query", ""))
    liked = str(kept.pop("like_incident", "")).partition("@")[0]
    wish = KnowledgeWish(sought=Sought.PAST, topic=topic, incident=liked, filters={**kept, **filters})
    return await answer_past(turn, wish, None)
