"""A turn in which the person asks for a change: one call of a writing tool, made once for each time they say so.

Only the person's own words are read for an order. What the conversation has shown comes in at one place, as the number
of the incident that their words point at. The call goes to the gateway as it was read; whether it runs, waits for a
person or is refused is the gateway's to say. What was asked is kept, so that "do it now" after an approval asks for the
same call and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.offline import change_answers
from sentinel_rag.agent.offline.conversation import AskedCall, AskedChange, Conversation, ListItem
from sentinel_rag.agent.offline.failures import call_text
from sentinel_rag.agent.offline.remarks import say_instructions
from sentinel_rag.agent.offline.turn import MISSHAPEN, Turn
from sentinel_rag.agent.planner import Decision, Kind, frame_of
from sentinel_rag.agent.planner.changes import (
    FORMS,
    MOST_OFFERED,
    Change,
    Line,
    Missing,
    Shown,
    change_of,
    checked,
    filled,
    fitting,
    plan_change,
)
from sentinel_rag.agent.planner.plan import PlannedCall, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.tool_calls import Denied, Failed
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.language.frames.orders import (
    Act,
    Earlier,
    Order,
    Said,
    read_earlier,
    read_order,
    read_pick,
    read_values,
)
from sentinel_rag.language.frames.shapes import NAMES, shaped_tokens

_REFUSED = "Nothing was changed, and nothing is unless you ask for it."
_LATER = (
    "Nothing was changed: I do not wait for a condition or for a time. Look first, and say it when it is to be done, "
    "such as: {}."
)
_EXAMPLE = "close incident N as benign positive"
_DROPPED = "I will not ask for it again. What waits for an approval goes on waiting until it is denied or expires."
_NONE_WAITS = f"No change waits in this conversation. Ask for it whole, such as: {_EXAMPLE}."
_NO_APPROVAL = "That approves nothing: a person approves a change where approvals are kept. After that, say: do it now."
_MADE_ALREADY = "That change was made already. Ask for it whole again if it is to be made once more."
_LONGEST_EXAMPLE = 100


async def answer_change(turn: Turn) -> Answer | None:
    """The answer to an order, or to what is said of earlier ones; None for any other question."""
    conversation = turn.conversation
    offered, waiting = conversation.offered_changes, conversation.waiting_change
    conversation.offered_changes, conversation.waiting_change = (), None
    order = read_order(turn.question)
    earlier = read_earlier(turn.question) if order is None else Earlier()
    just_offered = conversation.offered_turn == conversation.turns - 1
    if order is None and just_offered:
        picked = _picked(turn.question, offered, waiting, earlier, conversation)
        if isinstance(picked, Missing):
            return _asked_back(turn, picked)
        if picked is not None:
            return await _go(turn, checked(picked, person=conversation.person))
    if order is None:
        return await _about_earlier(turn, earlier)
    if order.act is Act.REFUSED:
        return turn.plain_answer(Outcome.CLARIFICATION, _REFUSED)
    if order.act is Act.LATER:
        said = order.wish.strip(" .!?")
        fits = said and len(said) <= _LONGEST_EXAMPLE and "\n" not in said
        return turn.plain_answer(Outcome.CLARIFICATION, _LATER.format(said if fits else _EXAMPLE))
    if not await turn.gateway.offered_tools() >= WRITING_TOOLS:
        return _only_reads(turn, order)
    if order.act is Act.HOW:
        return turn.plain_answer(Outcome.ANSWERED, FORMS)
    decision = None if order.act is Act.BEYOND else plan_change(order, _shown(conversation), conversation.person)
    if decision is None:
        _begin(turn)
        return turn.plain_answer(Outcome.OUT_OF_SCOPE, _beyond_incidents(order))
    return await _go(turn, decision)


async def _go(turn: Turn, decision: Change | Missing) -> Answer:
    _begin(turn)
    if isinstance(decision, Missing):
        return _asked_back(turn, decision)
    conversation = turn.conversation
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


def _shown(conversation: Conversation) -> Shown:
    """What words of an order may point at."""
    talk = conversation.talk
    current, screen = talk.current("incident"), talk.lists[-1] if talk.lists else None
    lines = tuple(
        Line(item.kind, item.value if item.kind == "incident" else item.incident)
        for item in (screen.items if screen is not None else ())
    )
    return Shown(current.value if current is not None else "", lines, talk.known_incidents())


# --- what no tool does


def _only_reads(turn: Turn, order: Order) -> Answer | None:
    """What is said to every order where nothing can be changed."""
    named = [token.value for token in shaped_tokens(turn.question) if token.shape in NAMES]
    suggestions: tuple[str, ...] = ("List the incidents still open, newest first",)
    if numbers := (*order.incidents, *order.numbers):
        suggestions = (f"What is incident {numbers[0]} about?", f"Show the alerts of incident {numbers[0]}")
    elif named:
        suggestions = (f"Which alerts name {named[0]}?",)
    text = (
        "I can only read: nothing was changed. Closing, assigning, commenting, blocking and the like are done by a "
        f"person, in {_portal(order)}. I can show you what you need for the decision."
    )
    return turn.plain_answer(Outcome.OUT_OF_SCOPE, text, suggestions)


def _beyond_incidents(order: Order) -> str:
    """What is said to an order for what no tool changes."""
    return (
        "Of all actions I can ask for changes of one incident only, and nothing was changed: its status, severity, "
        "owner and classification, and comments. Write one such as: close incident N as benign positive; assign "
        "incident N to somebody@example.com; comment on incident N: and the text. Anything else is done by a person, "
        f"in {_portal(order)}."
    )


def _portal(order: Order) -> str:
    if order.device:
        return "Microsoft Defender or Entra, or a playbook that your team runs"
    return "the incident page of Microsoft Sentinel or Defender"


# --- what was asked for before


async def _about_earlier(turn: Turn, earlier: Earlier) -> Answer | None:
    """The answer to words that repeat, drop or ask about changes of this conversation."""
    conversation = turn.conversation
    change = conversation.change
    just_now = change is not None and change.turn == conversation.turns - 1 and not conversation.talk.offers
    if Said.DROP in earlier.said and change is not None and just_now and not change.done:
        conversation.change = None
        return turn.plain_answer(Outcome.ANSWERED, _DROPPED)
    if Said.YES in earlier.said and just_now and change is not None and not change.done:
        _begin(turn)
        return turn.plain_answer(Outcome.CLARIFICATION, _NO_APPROVAL)
    about = next((said for said in (Said.UNDO, Said.ALL, Said.INCIDENT) if said in earlier.said), None)
    if about is not None:
        return _told(turn, about, earlier)
    if Said.AGAIN not in earlier.said and not (just_now and Said.AGAIN_JUST_NOW in earlier.said):
        return None
    if not await turn.gateway.offered_tools() >= WRITING_TOOLS:
        return None
    _begin(turn)
    if change is None or change.done:
        return turn.plain_answer(Outcome.CLARIFICATION, _NONE_WAITS if change is None else _MADE_ALREADY)
    # An approval is for these arguments and for no others, whatever the workspace is by now.
    return await _ask_for(turn, PlannedCall(change.tool, dict(change.arguments)), exact=True)


def _told(turn: Turn, about: Said, earlier: Earlier) -> Answer | None:
    """What the conversation itself knows of its changes; what other people changed is not told."""
    talk = turn.conversation.talk
    incidents = earlier.numbers
    if about is Said.INCIDENT and not incidents and earlier.pointed:
        current = talk.current("incident")
        if current is None:
            return None
        incidents = (current.value,)
    talk.begin_turn()
    for incident in incidents[:1]:
        talk.speak_of(ListItem("incident", incident, incident=incident))
    known = [
        each for each in turn.conversation.changes if not incidents or str(each.arguments.get("incident")) in incidents
    ]
    if about is Said.UNDO:
        text, shown = _undone(known)
    else:
        text, shown = _listed(about, incidents, known), incidents
    suggestions = tuple(f"What is the status of incident {plain(each)}?" for each in shown[:2])
    return turn.plain_answer(Outcome.ANSWERED, text, suggestions)


def _listed(about: Said, incidents: Sequence[str], known: Sequence[AskedChange]) -> str:
    made = [each for each in known if each.done]
    answers = about is Said.INCIDENT
    lines = [f"{'Yes. ' if answers else ''}Changed in this conversation:"] if made else []
    lines += [f"- {call_text(each.tool, each.arguments)}" for each in made]
    if not made:
        of = f" of incident {' and '.join(incidents)}" if incidents else ""
        lines.append(f"{'No. ' if answers else ''}Nothing{of} was changed in this conversation.")
    lines += _not_made(known)
    if not known and incidents:
        lines.append("What other people changed is not known here.")
    return "\n".join(lines)


def _not_made(known: Sequence[AskedChange]) -> list[str]:
    lines = []
    for each in known:
        call = call_text(each.tool, each.arguments)
        if each.done:
            continue
        if each.unknown:
            lines.append(f"Whether this one was made is not known: {call}. Look at the incident.")
        elif each.approval_id:
            lines.append(
                f"Asked for and not made: {call}. It was sent to approval {plain(each.approval_id)}; once a person has "
                "approved it, say: do it now."
            )
        else:
            lines.append(f"Asked for and not made, because it was refused or failed: {call}.")
    return lines


def _undone(known: Sequence[AskedChange]) -> tuple[str, tuple[str, ...]]:
    """What undoing takes, and the incident that it is about."""
    made = [each for each in known if each.done]
    if not made:
        lines = ["Nothing was changed in this conversation, so there is nothing to undo.", *_not_made(known)]
        if any(each.approval_id and not each.unknown for each in known):
            lines.append("To drop it, say: never mind, right after asking for it; or have the approval denied.")
        return "\n".join(lines), ()
    last = made[-1]
    incident = str(last.arguments.get("incident"))
    text = (
        f"I undo nothing by myself. The last change was {call_text(last.tool, last.arguments)}. "
        f"Ask for the opposite as a change of its own, {_opposite(last, plain(incident))}"
    )
    return text, (incident,)


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


def _begin(turn: Turn) -> None:
    """A change is a turn of its own. No correction and no "and [3]?" asks for it again with another incident."""
    turn.conversation.talk.begin_turn()


def _asked_back(turn: Turn, missing: Missing) -> Answer:
    conversation = turn.conversation
    conversation.offered_changes, conversation.offered_turn = missing.offers, conversation.turns
    conversation.waiting_change, conversation.waiting_slot = missing.waits, missing.slot
    # What is offered here is picked here: the sentences are no questions that the conversation could ask again.
    conversation.talk.begin_turn()
    sentences = tuple(offer.sentence for offer in missing.offers)
    return turn.plain_answer(Outcome.CLARIFICATION, missing.sentence, sentences, numbered=True)


def _workspaces_to_choose(run: ToolRun) -> tuple[str, ...]:
    """The workspaces of which the call has to name one, where it named none."""
    match run.outcome:
        case Failed(error=error) if error.field == "workspace" and "workspace" not in run.call.arguments:
            return tuple(error.allowed[:MOST_OFFERED])
        case _:
            return ()


async def _ask_for(turn: Turn, call: PlannedCall, *, exact: bool) -> Answer:
    if turn.progress is not None:
        turn.progress(Progress(f"Asking the gateway for {call_text(call.tool, call.arguments)}"))
    (run,) = await turn.run((call,), exact=exact)
    conversation = turn.conversation
    arguments = dict(run.call.arguments)
    approval_id = run.outcome.approval_id if isinstance(run.outcome, Denied) else None
    earlier = conversation.change.approval_id if exact and conversation.change is not None else ""
    unknown = isinstance(run.outcome, Failed) and change_answers.may_have_been_made(run.outcome)
    conversation.note_change(
        AskedChange(call.tool, arguments, conversation.turns, approval_id or "", done=run.worked, unknown=unknown)
    )
    incident = {"incident": str(arguments["incident"])}
    conversation.last = AskedCall("get_incident_detail", incident, View.INCIDENT.value)
    told = PlannedCall("get_incident_detail", incident)
    conversation.talk.remember(Decision(Kind.CALL, frame_of(told.tool, incident), (told,), view=View.INCIDENT))
    places = _workspaces_to_choose(run)
    if places:
        change = change_of(call.tool, arguments)
        sentence = "Nothing was changed: incident numbers repeat between the workspaces. In which one is it?"
        return _asked_back(turn, Missing(sentence, tuple(replace(change, workspace=place) for place in places)))
    writer = turn.writer()
    shown = conversation.talk.current("incident")
    try:
        title, status = ("", "") if shown is None else (shown.title, shown.status)
        composed = change_answers.compose(writer, run, title=title, status=status, earlier=earlier)
    except MISSHAPEN:
        return turn.misshapen_answer([run])
    if composed.outcome is Outcome.ANSWERED and call.tool == "update_incident":
        say_instructions(writer, View.INCIDENT, [run])
    return turn.answer(writer, composed)
