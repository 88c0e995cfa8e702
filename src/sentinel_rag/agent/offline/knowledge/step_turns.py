"""What to do about an incident, and what was done: the record of it, the playbook that fits, a past incident like it.

The playbook is chosen by the incident's title, tactics and techniques. What was done is told from the incident's own
comments and closing, never from a playbook.
"""

from __future__ import annotations

from dataclasses import replace

from sentinel_rag.agent.knowledge_hits import hits_of
from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions import say_failures
from sentinel_rag.agent.offline.compositions.incident_fields import say_ending
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.asked_incident import (
    detail_of,
    in_knowledge,
    no_such_incident,
    not_kept,
    others_than,
    say_incident,
    told_apart_by,
)
from sentinel_rag.agent.offline.knowledge.closings import with_closings
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import by_fit, fits
from sentinel_rag.agent.offline.knowledge.past_answers import only_fitting, say_closing
from sentinel_rag.agent.offline.knowledge.playbook_turns import say_best, say_no_playbook, with_phase
from sentinel_rag.agent.offline.knowledge.searches import about_incident, past_search, playbook_search, query_for
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.language.frames import Frame


async def answer_steps(turn: Turn, wish: KnowledgeWish, frame: Frame) -> Answer:
    """The section of the playbook that fits an incident, beside the incident and a past one like it."""
    like = in_knowledge(turn, wish.incident)
    detail, past = await turn.run((detail_of(wish.incident), past_search("", {}, like=like)))
    if len(detail.rows) != 1:
        return await no_such_incident(turn, wish, frame, detail)
    status = str(detail.rows[0].get("status") or "")
    phase = wish.phase or ("triage" if status == "New" else "containment")
    about = about_incident(detail.rows[0], phase)
    calls = [playbook_search(f"{query_for(about)} {wish.topic}".strip(), {})]
    exact = told_apart_by(detail, past)
    if exact:
        calls.append(past_search("", {}, like=exact))
    elif not_kept(past):
        calls.append(past_search(query_for(about), {}))
    search, *fallback = await turn.run(calls)
    past = fallback[0] if fallback else past
    runs = [search, past]
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], replace(about, phase=""))
    sure = bool(hits) and fits(hits[0], about, hits)
    found = hits[0] if sure else None
    if sure:
        hits = await with_phase(turn, hits, about, runs)
    fitting, alike = only_fitting(others_than(wish.incident, detail, past), about)
    fitting = await with_closings(turn, fitting, 1 if alike else 0)
    writer = turn.writer()
    say_incident(writer, detail)
    if wish.done:
        _say_done(writer, detail)
    items: tuple[ListItem, ...] = ()
    outcome = Outcome.ANSWERED
    if not search.worked:
        outcome = say_failures(writer, [search], some_worked=True)
    elif not hits:
        outcome = say_no_playbook(writer, search, about.words)
    else:
        items = say_best(writer, hits, about, sure=sure, found=found)
    if alike and say_closing(writer, fitting[0]):
        writer.fixed("That is a past incident like this one.")
    return finished(turn, writer, runs, wish.sought.value, items, outcome, incident=wish.incident, remarks=wish.remarks)


def _say_done(writer: AnswerWriter, detail: ToolRun) -> None:
    """What the incident's own record tells of what people did."""
    told = any(detail.at(f"/rows/0/{name}") for name in ("comments", "classification_comment"))
    say_ending(writer, detail)
    if not told:
        writer.fixed("Nothing is recorded of what was done about it. What a playbook says to do:")
    else:
        writer.fixed("That is all that is recorded of what was done. What a playbook says to do:")
