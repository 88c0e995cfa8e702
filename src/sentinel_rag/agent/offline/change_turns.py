"""A turn in which the person asks for a change: one call of a writing tool, made once for each time they say so.

Only the person's own words are read for a wish. What the conversation has shown comes in at one place, as the number of
the incident that their words point at. The call goes to the gateway as it was read; whether it runs, waits for a person
or is refused is the gateway's to say. What was asked is kept, so that "do it now" after an approval asks for the same
call and no other.
"""

from __future__ import annotations

from dataclasses import replace

from sentinel_rag.agent.offline import follow_up
from sentinel_rag.agent.offline.action_fields import names_person
from sentinel_rag.agent.offline.action_gaps import asks_for_person
from sentinel_rag.agent.offline.action_guard import beyond_incidents, only_reads, wants_action
from sentinel_rag.agent.offline.action_plans import MOST_OFFERED, Change, plan_change
from sentinel_rag.agent.offline.action_sentences import sentence_of, wish_of
from sentinel_rag.agent.offline.action_words import ActionWish, read_action, refuses_action
from sentinel_rag.agent.offline.change_conditions import put_off
from sentinel_rag.agent.offline.change_questions import About, changes_asked_about, incidents_in, told_changes
from sentinel_rag.agent.offline.change_repeats import DROPPED, asked_again, dropped
from sentinel_rag.agent.offline.compositions import changes
from sentinel_rag.agent.offline.conversation import AskedCall, AskedChange, ListItem
from sentinel_rag.agent.offline.remarks import say_instructions
from sentinel_rag.agent.offline.turn import MISSHAPEN, Turn
from sentinel_rag.agent.planner.plan import Ask, PlannedCall, View
from sentinel_rag.agent.references import Resolution, resolve
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.tool_calls import Denied, Failed
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS


async def answer_change(turn: Turn) -> Answer | None:
    """The answer to a wish to change something; None for any other question, and where nothing can be changed."""
    question = _question(turn)
    conversation = turn.conversation
    if refuses_action(question):
        return turn.plain_answer(Outcome.CLARIFICATION, "Nothing was changed, and nothing is unless you ask for it.")
    later = put_off(question)
    if later:
        return turn.plain_answer(Outcome.CLARIFICATION, later)
    if dropped(question, conversation):
        return turn.plain_answer(Outcome.ANSWERED, DROPPED)
    told = _about_changes(turn, question)
    if told is not None:
        return told
    again = asked_again(question, conversation)
    wish = read_action(question) if again is None and not only_reads(question) else None
    acts = wish is not None or again is not None or wants_action(question)
    if not acts or not await turn.gateway.offered_tools() >= WRITING_TOOLS:
        return None
    resolution = _resolved(turn, question, wish)
    decision = again if wish is None else plan_change(wish, resolution, conversation, turn.now)
    if decision is None and not wants_action(question):
        return None
    _begin(turn)
    if resolution.ask:
        conversation.references.ask_to_choose(resolution.choices, resolution.numbers, resolution.question)
        return turn.asked_back(resolution.ask)
    match decision:
        case Ask():
            return _asked_back(turn, decision)
        case AskedChange(tool=tool, arguments=arguments):
            # An approval is for these arguments and for no others, whatever the workspace is by now.
            return await _ask_for(turn, PlannedCall(tool, dict(arguments)), exact=True)
        case Change(call=call, workspace=workspace, person=person):
            if workspace:
                conversation.go_to(workspace)
            conversation.person = person or conversation.person
            return await _ask_for(turn, call, exact=False)
        case None:
            return turn.plain_answer(Outcome.OUT_OF_SCOPE, beyond_incidents(question))


def _about_changes(turn: Turn, question: str) -> Answer | None:
    """The answer to a question about what was changed here, which the conversation itself knows; None for another."""
    asked = changes_asked_about(question)
    if asked is None:
        return None
    references = turn.conversation.references
    resolution = resolve(question, references, now=turn.now.moment.astimezone(turn.zone))
    if asked is About.INCIDENT and resolution.ask:
        return None
    said = incidents_in(question if asked is not About.INCIDENT else resolution.text)
    told = told_changes(asked, said, turn.conversation.changes)
    references.begin_turn()
    references.leave_open_questions()
    turn.conversation.offers, turn.conversation.pending = (), ""
    for incident in said[:1]:
        references.focus_on(ListItem("incident", incident, incident=incident))
    return turn.plain_answer(Outcome.ANSWERED, told.text, told.suggestions)


def _question(turn: Turn) -> str:
    """The words that are read for a wish: the person's, a wish of theirs that was offered whole and that they picked,
    or their earlier wish with the incident that they chose."""
    references = turn.conversation.references
    screen = references.screen
    if follow_up.agrees(turn.question) and screen is not None and screen.turn == references.turn:
        only = screen.items[0] if len(screen.items) == 1 else None
        if only is not None and only.value in turn.conversation.offered_changes and not turn.conversation.offers:
            return only.value
    resolution = resolve(turn.question, references, now=turn.now.moment.astimezone(turn.zone))
    chosen = references.choices is not None and read_action(references.choices.question.text) is not None
    if resolution.asks_again:
        return resolution.text if resolution.text in turn.conversation.offered_changes else turn.question
    if chosen and resolution.resolved and _only_incidents(resolution):
        return resolution.text
    if asks_for_person(turn.conversation.pending) and not names_person(turn.question):
        turn.conversation.pending = ""  # another question came instead of the name
    return follow_up.completed(turn.question, turn.conversation)


def _only_incidents(resolution: Resolution) -> bool:
    return all(item.kind == "incident" for item in resolution.items)


def _resolved(turn: Turn, question: str, wish: ActionWish | None) -> Resolution:
    """What the words that name the incident point at. Free text is not looked into: it is written as it stands."""
    if wish is None:
        return Resolution(question)
    references = replace(turn.conversation.references, choices=None, asked=None)
    resolution = resolve(wish.target, references, now=turn.now.moment.astimezone(turn.zone))
    if resolution.question is None:
        return resolution
    return replace(resolution, question=replace(resolution.question, text=question))


def _begin(turn: Turn) -> None:
    """A change is a turn of its own. No correction and no "and [3]?" asks for it again with another incident."""
    references = turn.conversation.references
    references.begin_turn()
    references.leave_open_questions()
    turn.conversation.pending = ""


def _asked_back(turn: Turn, ask: Ask) -> Answer:
    turn.conversation.offered_changes = ask.options
    return turn.asked_back(ask.sentence, ask.options, ask.pending)


def _open_end(run: ToolRun) -> bool:
    """True for a change of which nobody knows whether it was made."""
    return isinstance(run.outcome, Failed) and changes.may_have_been_made(run.outcome)


def _workspaces_to_choose(run: ToolRun) -> tuple[str, ...]:
    """The workspaces of which the call has to name one, where it named none."""
    match run.outcome:
        case Failed(error=error) if error.field == "workspace" and "workspace" not in run.call.arguments:
            return tuple(error.allowed[:MOST_OFFERED])
        case _:
            return ()


async def _ask_for(turn: Turn, call: PlannedCall, *, exact: bool) -> Answer:
    if turn.progress is not None:
        turn.progress(Progress(f"Asking the gateway for {changes.call_text(call.tool, call.arguments)}"))
    (run,) = await turn.run((call,), exact=exact)
    conversation = turn.conversation
    arguments = dict(run.call.arguments)
    approval_id = run.outcome.approval_id if isinstance(run.outcome, Denied) else None
    earlier = conversation.change.approval_id if exact and conversation.change is not None else ""
    change = AskedChange(call.tool, arguments, conversation.turns, approval_id or "", done=run.worked)
    conversation.note_change(replace(change, unknown=_open_end(run)))
    conversation.offers = ()
    incident = str(arguments["incident"])
    conversation.references.focus_on(ListItem("incident", incident, incident=incident))
    conversation.last = AskedCall("get_incident_detail", {"incident": incident}, View.INCIDENT.value)
    places = _workspaces_to_choose(run)
    if places:
        wish = wish_of(call.tool, arguments)
        sentence = "Nothing was changed: incident numbers repeat between the workspaces. In which one is it?"
        return _asked_back(turn, Ask(sentence, tuple(sentence_of(wish, incident, place) for place in places)))
    writer = turn.writer()
    shown = conversation.references.current("incident")
    try:
        title, status = ("", "") if shown is None else (shown.title, shown.status)
        composed = changes.compose(writer, run, title=title, status=status, earlier=earlier)
    except MISSHAPEN:
        return turn.misshapen_answer([run])
    if composed.outcome is Outcome.ANSWERED and call.tool == "update_incident":
        say_instructions(writer, View.INCIDENT, [run])
    return turn.answer(writer, composed)
