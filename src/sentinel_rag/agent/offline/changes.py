"""A turn in which the person asks for a change: one call of a writing tool, and what became of it.

Only the person's own words are read for an order. What the conversation has shown comes in at one place, as the number
of the incident that their words point at. The call goes to the gateway as it was read; whether it runs, waits for a
person or is refused is the gateway's to say. What was asked is kept, so that "do it now" after an approval asks for the
same call and no other. Nothing that was not written is told as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.failures import LONGEST_ARGUMENT, call_text, say_waiting, why_refused
from sentinel_rag.agent.answers.renderer import RenderedView, Scene, tell, view_data
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.conversation import AskedChange, Conversation
from sentinel_rag.agent.offline.execution import say_instructions
from sentinel_rag.agent.offline.turn import MISSHAPEN, OfflineTurn
from sentinel_rag.agent.planner import Decision, DecisionKind, frame_of
from sentinel_rag.agent.planner.changes import (
    FORMS,
    MOST_OFFERED,
    Change,
    Missing,
    change_of,
    checked,
    filled,
    fitting,
    plan_change,
)
from sentinel_rag.agent.planner.decisions import PlannedCall, View
from sentinel_rag.agent.row_text import plain, quoted
from sentinel_rag.agent.things import ListItem
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.query_results import QueryErrorCode, note_code
from sentinel_rag.contracts.tool_calls import Denied, Failed, Reason
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.frame import NAMES, shaped_tokens
from sentinel_rag.language.frames.orders import (
    Act,
    Earlier,
    Order,
    Said,
    read_earlier,
    read_pick,
    read_values,
)

LONGEST_EXAMPLE, LONGEST_SHOWN = 100, 1_000
_NOTHING_WRITTEN = frozenset(
    {
        QueryErrorCode.INVALID_ARGUMENT,
        QueryErrorCode.QUERY_REJECTED,
        QueryErrorCode.THROTTLED,
        QueryErrorCode.ACCESS_DENIED,
        QueryErrorCode.WORKSPACE_NOT_FOUND,
        QueryErrorCode.CONFLICT,
    }
)
"""Failures after which it is certain that nothing was written; after the others somebody has to look."""


def _sentence(name: str, *values: str) -> str:
    text: str = view_data()["change"][name]
    return text.format(*values)


async def answer_change(turn: OfflineTurn, frame: Frame) -> Answer | None:
    """The answer to an order, or to what is said of earlier ones; None for any other question. `frame` is its own."""
    conversation = turn.conversation
    offered, waiting = conversation.offered_changes, conversation.waiting_change
    conversation.offered_changes, conversation.waiting_change = (), None
    read = conversation.talk.ordered(frame, turn.question, turn.now.moment)
    order = read if isinstance(read, Order) else None
    earlier = read_earlier(turn.question) if order is None else Earlier()
    if order is None and (offered or waiting) and conversation.offered_turn == conversation.turns - 1:
        picked = _picked(turn.question, offered, waiting, earlier, conversation)
        if isinstance(picked, Missing):
            return _asked_back(turn, picked)
        if picked is not None:
            return await _go(turn, checked(picked, person=conversation.person))
    if order is None:
        return await _about_earlier(turn, earlier)
    if order.act is Act.REFUSED:
        return turn.plain_answer(Outcome.CLARIFICATION, _sentence("refused"))
    if order.act is Act.LATER:
        said = order.wish.strip(" .!?")
        fits = said and len(said) <= LONGEST_EXAMPLE and "\n" not in said
        return turn.plain_answer(Outcome.CLARIFICATION, _sentence("later", said if fits else _sentence("example")))
    portal = _sentence("portal_device" if order.device else "portal")
    if not await turn.gateway.offered_tools() >= WRITING_TOOLS:
        return turn.plain_answer(Outcome.OUT_OF_SCOPE, _sentence("only_reads", portal), _instead(turn, order))
    if order.act is Act.HOW:
        return turn.plain_answer(Outcome.ANSWERED, FORMS)
    decision = None if order.act is Act.BEYOND else plan_change(order, conversation.talk, conversation.person)
    if decision is None:
        # A change is a turn of its own. No correction and no "and [3]?" asks for it again with another incident.
        conversation.talk.begin_turn()
        return turn.plain_answer(Outcome.OUT_OF_SCOPE, _sentence("beyond", portal))
    return await _go(turn, decision)


def _instead(turn: OfflineTurn, order: Order) -> tuple[str, ...]:
    """What can be asked of the things that an order names where nothing can be changed."""
    named = [token.value for token in shaped_tokens(turn.question) if token.shape in NAMES]
    if numbers := (*order.incidents, *order.numbers):
        return (f"What is incident {numbers[0]} about?", f"Show the alerts of incident {numbers[0]}")
    return (f"Which alerts name {named[0]}?",) if named else ("List the incidents still open, newest first",)


async def _go(turn: OfflineTurn, decision: Change | Missing) -> Answer:
    conversation = turn.conversation
    conversation.talk.begin_turn()
    if isinstance(decision, Missing):
        return _asked_back(turn, decision)
    if decision.workspace:
        conversation.go_to(decision.workspace)
    conversation.person = decision.person or conversation.person
    return await _ask_for(turn, PlannedCall(decision.call.tool, dict(decision.call.arguments)), exact=False)


def _picked(
    question: str, offered: Sequence[Change], waiting: Change | None, earlier: Earlier, conversation: Conversation
) -> Change | Missing | None:
    """The change that was offered last turn and that these words take, or complete."""
    if Said.YES in earlier.said and len(offered) == 1 and not conversation.talk.offers:
        return offered[0]
    values = read_values(question)
    if waiting is not None:
        return filled(waiting, conversation.waiting_slot, values)
    place = read_pick(question)
    if place is not None and offered:
        at = place - 1 if place > 0 else place
        return offered[at] if -len(offered) <= at < len(offered) else None
    left = fitting(offered, values)
    if len(left) > 1 and len(left) < len(offered):
        return Missing("Which of these?", left)
    return left[0] if len(left) == 1 else None


# --- what was asked for before


async def _about_earlier(turn: OfflineTurn, earlier: Earlier) -> Answer | None:
    """The answer to words that repeat, drop or ask about changes of this conversation."""
    conversation, change = turn.conversation, turn.conversation.change
    just_now = change is not None and change.turn == conversation.turns - 1 and not conversation.talk.offers
    pending = just_now and change is not None and not change.done
    if Said.DROP in earlier.said and pending:
        conversation.change = None
        return turn.plain_answer(Outcome.ANSWERED, _sentence("dropped"))
    if Said.YES in earlier.said and pending:
        conversation.talk.begin_turn()
        return turn.plain_answer(Outcome.CLARIFICATION, _sentence("no_approval"))
    about = next((said for said in (Said.UNDO, Said.ALL, Said.INCIDENT) if said in earlier.said), None)
    if about is not None:
        return _told(turn, about, earlier)
    again = Said.AGAIN in earlier.said or (just_now and Said.AGAIN_JUST_NOW in earlier.said)
    if not again or not await turn.gateway.offered_tools() >= WRITING_TOOLS:
        return None
    conversation.talk.begin_turn()
    if change is None or change.done:
        return turn.plain_answer(Outcome.CLARIFICATION, _sentence("none_waits" if change is None else "made_already"))
    # An approval is for these arguments and for no others, whatever the workspace is by now.
    return await _ask_for(turn, PlannedCall(change.tool, dict(change.arguments)), exact=True)


def _told(turn: OfflineTurn, about: Said, earlier: Earlier) -> Answer | None:
    """What the conversation itself knows of its changes; what other people changed is not told."""
    talk, incidents = turn.conversation.talk, earlier.numbers
    if about is Said.INCIDENT and not incidents and earlier.pointed:
        current = talk.current("incident")
        if current is None:
            return None
        incidents = (current.value,)
    talk.begin_turn()
    for incident in incidents[:1]:
        talk.speak_of(ListItem("incident", incident, incident=incident))
    changes = turn.conversation.changes
    known = [each for each in changes if not incidents or str(each.arguments.get("incident")) in incidents]
    if about is Said.UNDO:
        lines, shown = _undone(known)
    else:
        lines, shown = _listed(about, incidents, known), incidents
    suggestions = tuple(f"What is the status of incident {plain(each)}?" for each in shown[:2])
    return turn.plain_answer(Outcome.ANSWERED, "\n".join(lines), suggestions)


def _listed(about: Said, incidents: Sequence[str], known: Sequence[AskedChange]) -> list[str]:
    made = [each for each in known if each.done]
    yes, no = ("Yes. ", "No. ") if about is Said.INCIDENT else ("", "")
    of = f" of incident {' and '.join(incidents)}" if incidents else ""
    none = f"{no}Nothing{of} was changed in this conversation."
    lines = [f"{yes}Changed in this conversation:" if made else none]
    lines += [f"- {call_text(each.tool, each.arguments)}" for each in made]
    lines += _not_made(known)
    return lines if known or not incidents else [*lines, _sentence("others")]


def _not_made(known: Sequence[AskedChange]) -> list[str]:
    lines = []
    for each in known:
        name = "unknown" if each.unknown else "waiting" if each.approval_id else "not_made"
        if not each.done:
            lines.append(_sentence(name, call_text(each.tool, each.arguments), plain(each.approval_id)))
    return lines


def _undone(known: Sequence[AskedChange]) -> tuple[list[str], tuple[str, ...]]:
    """What undoing takes, and the incident that it is about."""
    made = [each for each in known if each.done]
    if made:
        last = made[-1]
        opposite = _opposite(last, plain(str(last.arguments.get("incident"))))
        return [_sentence("undo", call_text(last.tool, last.arguments), opposite)], (str(last.arguments["incident"]),)
    lines = [_sentence("nothing_to_undo"), *_not_made(known)]
    waits = any(each.approval_id and not each.unknown for each in known)
    return [*lines, _sentence("drop")] if waits else lines, ()


def _opposite(change: AskedChange, incident: str) -> str:
    if change.tool == "add_incident_comment":
        return "in the portal: a comment cannot be taken out by me."
    if change.arguments.get("status") == "Closed":
        return f"such as: reopen incident {incident}."
    if "owner" in change.arguments:
        return f"such as: assign incident {incident} to somebody@example.com."
    if "severity" in change.arguments:
        return f"such as: set the severity of incident {incident} to medium."
    return f"such as: close incident {incident} as undetermined."


# --- the call


def _asked_back(turn: OfflineTurn, missing: Missing) -> Answer:
    conversation = turn.conversation
    conversation.offered_changes, conversation.offered_turn = missing.offers, conversation.turns
    conversation.waiting_change, conversation.waiting_slot = missing.waits, missing.slot
    # What is offered here is picked here: the sentences are no questions that the conversation could ask again.
    conversation.talk.begin_turn()
    sentences = tuple(offer.sentence for offer in missing.offers)
    return turn.plain_answer(Outcome.CLARIFICATION, missing.sentence, sentences, numbered=True)


async def _ask_for(turn: OfflineTurn, call: PlannedCall, *, exact: bool) -> Answer:
    if turn.progress is not None:
        turn.progress(Progress(f"Asking the gateway for {call_text(call.tool, call.arguments)}"))
    (run,) = await turn.run((call,), exact=exact)
    conversation, arguments = turn.conversation, dict(run.call.arguments)
    approval_id = run.outcome.approval_id if isinstance(run.outcome, Denied) else None
    earlier = conversation.change.approval_id if exact and conversation.change is not None else ""
    unknown = isinstance(run.outcome, Failed) and run.outcome.error.code not in _NOTHING_WRITTEN
    conversation.note_change(
        AskedChange(call.tool, arguments, conversation.turns, approval_id or "", done=run.worked, unknown=unknown)
    )
    incident = {"incident": str(arguments["incident"])}
    told = PlannedCall("get_incident_detail", incident)
    conversation.talk.remember(Decision(DecisionKind.CALL, frame_of(told.tool, incident), (told,), view=View.INCIDENT))
    match run.outcome:
        case Failed(error=error) if error.field == "workspace" and "workspace" not in arguments and error.allowed:
            change = change_of(call.tool, arguments)
            offers = tuple(replace(change, workspace=place) for place in error.allowed[:MOST_OFFERED])
            return _asked_back(turn, Missing(_sentence("which_workspace"), offers))
    writer, shown = turn.writer(), conversation.talk.current("incident")
    try:
        outcome = _say_outcome(writer, run, shown, earlier)
    except MISSHAPEN:
        return turn.misshapen_answer([run])
    if outcome is Outcome.ANSWERED and call.tool == "update_incident":
        say_instructions(writer, View.INCIDENT, [run])
    return turn.answer(writer, RenderedView(outcome=outcome))


def _say_outcome(writer: AnswerWriter, run: ToolRun, shown: ListItem | None, earlier: str) -> Outcome:
    """What became of one call of a writing tool. `shown` is the incident as this conversation has shown it; `earlier`
    the approval that was asked for when the same call was made before."""
    match run.outcome:
        case Denied(approval_id=str() as approval_id) as waits:
            then = _sentence("then", plain(run.call.session_id))
            say_waiting(writer, run, waits, then)
            if earlier and earlier != approval_id:
                writer.fixed(_sentence("approval_ended", plain(earlier)))
            writer.fixed(_seen(run, shown))
            _say_call(writer, run, LONGEST_ARGUMENT)
            return Outcome.DENIED
        case Denied() as denied:
            why, step = why_refused(denied)
            writer.fixed(f"Nothing was changed: {why}.")
            if denied.note:
                writer.fixed(plain(denied.note))
            _say_call(writer, run)
            of_policy = denied.reason in (Reason.NO_RULE_MATCHED, Reason.RULE_DENIES, Reason.APPROVAL_REQUIRED)
            step = _sentence("policy") if of_policy else step
            writer.fixed(_sentence("new_session") if denied.reason is Reason.SINK_LABEL else step)
            return Outcome.DENIED
        case Failed(error=error):
            message = plain(error.message, limit=600).rstrip(".")
            if error.code in _NOTHING_WRITTEN:
                writer.fixed(f"Nothing was changed: {message}.")
            else:
                writer.fixed(_sentence("may_have_been_made", message))
                writer.say("ask what incident {} is about.", Echo(str(run.call.arguments["incident"])))
            _say_call(writer, run)
            if error.allowed:
                writer.fixed(f"Allowed: {', '.join(plain(value) for value in error.allowed[:20])}.")
            if error.next_step:
                writer.fixed(plain(error.next_step))
            return Outcome.TOOL_FAILED
    comments, made = run.call.tool_name == "add_incident_comment", run.at("/rows/0/changes")
    tell(Scene(writer, run), ["@commented" if comments else "@changed" if made else "@unchanged"])
    for place, note in enumerate(() if run.result is None else run.result.notes):
        if note_code(note) != "change_made":  # the table tells the changes with their evidence
            writer.note(run, place)
    return Outcome.ANSWERED


def _seen(run: ToolRun, shown: ListItem | None) -> str:
    """What this conversation knows of the incident: whoever decides can tell a wrong number by it. It is no fact of
    this turn, so it says when it was one."""
    if shown is None or not shown.title:
        return _sentence("not_seen", plain(str(run.call.arguments.get("incident"))))
    wanted, status = run.call.arguments.get("status"), shown.status
    known = f", status {plain(status)}" if status else ""
    text = f"This conversation showed the incident as {quoted(shown.title)}{known}."
    if wanted == "Active" and status in ("New", "Active"):
        return f"{text} It was not closed then, so there may be nothing to reopen."
    return f"{text} It was so already." if wanted and wanted == status == "Closed" else text


def _say_call(writer: AnswerWriter, run: ToolRun, told: int = 0) -> None:
    """The tool and every argument, each on a line of its own; nothing where none is longer than what is `told`."""
    arguments = {name: str(value) for name, value in run.call.arguments.items()}
    if all(len(text) <= told for text in arguments.values()):
        return
    writer.fixed(f"The call: {run.call.tool_name}")
    for name, text in arguments.items():
        writer.say("- " + name + ": {}", Echo(text[:LONGEST_SHOWN]))
        if len(text) > LONGEST_SHOWN:
            writer.fixed(f"  (its beginning; {len(text)} characters in all)")
