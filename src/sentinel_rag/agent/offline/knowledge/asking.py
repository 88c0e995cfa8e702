"""The way in: whether a question wants the knowledge base, and its answer if it does.

Nothing is asked of a gateway that does not offer the search.
"""

from __future__ import annotations

from dataclasses import replace

from sentinel_rag.agent.knowledge_hits import SEARCH_TOOL
from sentinel_rag.agent.offline.knowledge.follow_ups import narrowed_search, read_section_wish
from sentinel_rag.agent.offline.knowledge.section_turns import answer_one_past, answer_section
from sentinel_rag.agent.offline.knowledge.turns import answer_narrowed, answer_wish
from sentinel_rag.agent.offline.knowledge.wishes import Sought, read_wish
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner.plan import View
from sentinel_rag.agent.things import INCIDENT
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.language.frames import Frame

NOT_OFFERED = (
    "Playbooks and past incidents are searched with search_knowledge_base, which the gateway does not offer here. "
    "`sentinel tools` shows what it offers and what the policy says of it."
)
INSTEAD = ("List the incidents still open, newest first", "Closed incidents, newest first")


async def answer_knowledge(turn: Turn, reading: Reading) -> Answer | None:
    """The answer to a question for playbooks or past incidents; None for any other question. Where the gateway does not
    offer the search, it says so."""
    conversation = turn.conversation
    section = read_section_wish(reading, conversation)
    narrowed = None if section else narrowed_search(reading, conversation, turn.now)
    current = conversation.references.current(INCIDENT)
    wish = None if section or narrowed else read_wish(reading, current.value if current else "", turn.now)
    if section is None and narrowed is None and wish is None:
        conversation.knowledge = None
        return None
    if not await _offered(turn):
        conversation.knowledge = None
        # Of an incident that is named, the workspace still tells what it knows.
        about_incident = wish is not None and wish.sought is Sought.STEPS
        return None if about_incident else turn.plain_answer(Outcome.OUT_OF_SCOPE, NOT_OFFERED, INSTEAD)
    if reading.unclear:
        return turn.asked_back(reading.unclear)
    if reading.time_question is not None:
        return turn.asked_back(reading.time_question.sentence)
    if section is not None:
        return await answer_section(turn, section)
    if narrowed is not None:
        return await answer_narrowed(turn, *narrowed)
    assert wish is not None
    return await answer_wish(turn, wish, Frame(reading.text))


async def recall_incident(turn: Turn, answer: Answer) -> Answer:
    """`answer`, or what the knowledge base has of an incident that the workspace does not hold and that a list of past
    incidents showed."""
    asked = [str(run.call.arguments["incident"]) for run in turn.runs if "incident" in run.call.arguments]
    if answer.outcome is not Outcome.NO_DATA or len(set(asked)) != 1:
        return answer
    number = asked[0]
    lists = turn.conversation.references.lists
    shown = {item.value for listed in lists for item in listed.items if item.kind == INCIDENT}
    if number not in shown or not await _offered(turn):
        return answer
    return await answer_one_past(turn, number) or answer


async def offer_steps(turn: Turn, answer: Answer) -> Answer:
    """`answer`; behind one that tells a whole incident stands the question what to do about it."""
    asked = turn.conversation.last
    whole = (
        asked is not None and asked.tool == "get_incident_detail" and asked.view == View.INCIDENT and not asked.aspects
    )
    focus = turn.conversation.references.current(INCIDENT)
    if not whole or focus is None or answer.outcome is not Outcome.ANSWERED or not await _offered(turn):
        return answer
    return replace(answer, suggestions=(*answer.suggestions, f"What should I do about incident {focus.value}?"))


async def _offered(turn: Turn) -> bool:
    return SEARCH_TOOL in await turn.gateway.offered_tools()
