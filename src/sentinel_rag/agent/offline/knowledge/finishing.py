"""The end of every answer from the knowledge base: remarks of the search, a note on steering text, what is kept."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.knowledge_hits import SEARCH_TOOL, hits_of
from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions import Composed
from sentinel_rag.agent.offline.compositions.web_pages import STEERING
from sentinel_rag.agent.offline.conversation import AskedCall, ListItem
from sentinel_rag.agent.offline.turn import MISSHAPEN, Turn
from sentinel_rag.agent.things import INCIDENT, SECTION
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome


def finished(
    turn: Turn,
    writer: AnswerWriter,
    searches: Sequence[ToolRun],
    sought: str,
    items: tuple[ListItem, ...] = (),
    outcome: Outcome = Outcome.ANSWERED,
    *,
    incident: str = "",
    remarks: Sequence[str] = (),
    focus: ListItem | None = None,
) -> Answer:
    """The checked answer. `items` are its numbered lines; `incident` and `focus` are what it was about, the incident
    last, so that "it" is the incident. The first of `searches` is the one that later words may narrow."""
    for remark in remarks:
        writer.fixed(remark)
    _say_remarks(writer, searches)
    try:
        answer = turn.answer(writer, Composed(outcome=outcome, items=items))
    except MISSHAPEN:
        return turn.misshapen_answer(turn.runs)
    references = turn.conversation.references
    if items:
        references.show_list(items)
        _remember_places(turn, searches)
    quoted = bool(items) and (len(items) == 1 or (items[0].kind == SECTION and " > " in items[0].value))
    about = focus or (items[0] if quoted else None)
    if about is not None:
        references.focus_on(about)
    if incident:
        references.focus_on(ListItem(INCIDENT, incident, incident=incident))
    _remember(turn, searches[0], sought)
    return answer


def _remember_places(turn: Turn, searches: Sequence[ToolRun]) -> None:
    """Which workspace a past incident is of; a number that two of them use is no reference to either."""
    found_in = turn.conversation.found_in
    for hit in (hit for run in searches for hit in hits_of(run)):
        if hit.workspace:
            before = found_in.get(hit.number, hit.workspace)
            found_in[hit.number] = hit.workspace if before == hit.workspace else ""


def _remember(turn: Turn, search: ToolRun, sought: str) -> None:
    """No query of the workspace is open any more."""
    conversation = turn.conversation
    conversation.knowledge = AskedCall(SEARCH_TOOL, dict(search.call.arguments), sought)
    conversation.last = None
    conversation.talk.clear()


def _say_remarks(writer: AnswerWriter, searches: Sequence[ToolRun]) -> None:
    """What the searches could not do, each remark once, and a note where a quoted text reads like an instruction."""
    told: set[str] = set()
    for run in searches:
        remarks = run.at("/remarks") if run.worked else ()
        for place, remark in enumerate(remarks if isinstance(remarks, list | tuple) else ()):
            if str(remark) not in told:
                told.add(str(remark))
                writer.say("Note: {}", writer.number(run, f"/remarks/{place}"))
    cells = [cell for table in writer.tables for row in table.rows for cell in row]
    if any(reads_like_instruction(text) for text in (*(line.text for line in writer.lines), *cells)):
        writer.fixed(STEERING)
