"""A change on its way: one call of a writing tool, made once for each time the person says so, and repeated exactly.

The call goes to the gateway as it was read; whether it runs, waits for a person or is refused is the gateway's to say.
What was asked is kept, so that "do it now" after an approval asks for the same call and no other.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.conversation import AskedCall, AskedChange, Conversation
from sentinel_rag.agent.offline.action_plans import Change
from sentinel_rag.agent.offline.compositions import changes
from sentinel_rag.agent.offline.plan import Ask, PlannedCall, View
from sentinel_rag.agent.offline.remarks import say_instructions
from sentinel_rag.agent.offline.turn import MISSHAPEN, Turn
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress
from sentinel_rag.contracts.tool_calls import Denied

_BEFORE = (
    r"^\W*(?:(?:ok|okay|please|pls|now|then|and|so|yes|done|great|it['’]?s|it\s+(?:is|was|has\s+been)|approved)"
    r"[\s,.!:]+)*"
)
_EXPLICIT = re.compile(
    rf"{_BEFORE}(?:do\s+(?:it|that|the\s+change)\s+now|"
    r"(?:do|make|run|send|apply|repeat)\s+the\s+(?:change|call|update|comment)"
    r"(?:\s+(?:now|again))?|(?:it\s+(?:is|was|has\s+been)\s+|it['’]?s\s+)?approved(?:\s+now)?|"
    r"(?:close|change|update|assign|reopen|comment)\s+it\s+now)(?:,?\s+please)?\W*$",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    rf"{_BEFORE}(?:do\s+(?:it|that)(?:\s+again)?|(?:run|make|send|apply|repeat|execute)\s+(?:it|that)(?:\s+(?:now|again))?|"
    r"try\s+(?:it\s+|that\s+)?(?:once\s+)?(?:more|again)(?:\s+now)?|again|retry|go\s+ahead)(?:,?\s+please)?\W*$",
    re.IGNORECASE,
)
DROPPED = "I will not ask for it again. What waits for an approval goes on waiting until it is denied or expires."
_NONE_WAITS = "No change waits in this conversation. Ask for it whole, such as: close incident N as benign positive."
_DROPPED = re.compile(
    r"^\W*(?:no[\s,]+)?(?:never\s*mind|cancel(?:\s+(?:it|that|the\s+change))?|forget\s+(?:it|that))\W*$", re.I
)


def asked_again(question: str, conversation: Conversation) -> AskedChange | Ask | None:
    """The change that "do it now" means; None if the words mean none. Looser words count right after the change."""
    change = conversation.change
    just_now = change is not None and change.turn == conversation.turns - 1 and not conversation.offers
    if not (_EXPLICIT.match(question) or (just_now and _LOOSE.match(question))):
        return None
    if change is None:
        return Ask(_NONE_WAITS)
    if change.done:
        return Ask("That change was made already. Ask for it whole again if it is to be made once more.")
    return change


def dropped(question: str, conversation: Conversation) -> bool:
    """True for "never mind" right after a change that waits: it is forgotten here."""
    change = conversation.change
    if change is None or change.done or change.turn != conversation.turns - 1 or not _DROPPED.match(question):
        return False
    conversation.change = None
    return True


async def make_change(turn: Turn, change: Change) -> Answer:
    """Ask for the call, in the workspace that the words name or that the conversation is at."""
    if change.workspace:
        turn.conversation.go_to(change.workspace)
    turn.conversation.person = change.person or turn.conversation.person
    return await _ask_for(turn, change.call, exact=False)


async def make_again(turn: Turn, change: AskedChange) -> Answer:
    """Ask for exactly the same call again: an approval is for these arguments and for no others."""
    return await _ask_for(turn, PlannedCall(change.tool, dict(change.arguments)), exact=True)


async def _ask_for(turn: Turn, call: PlannedCall, *, exact: bool) -> Answer:
    if turn.progress is not None:
        turn.progress(Progress(f"Asking the gateway for {changes.call_text(call.tool, call.arguments)}"))
    (run,) = await turn.run((call,), exact=exact)
    conversation = turn.conversation
    arguments = dict(run.call.arguments)
    approval_id = run.outcome.approval_id if isinstance(run.outcome, Denied) else None
    conversation.change = AskedChange(call.tool, arguments, conversation.turns, approval_id or "", done=run.worked)
    conversation.offers = ()
    incident = str(arguments["incident"])
    conversation.incident, conversation.alert = incident, None
    conversation.last = AskedCall("get_incident_detail", {"incident": incident}, View.INCIDENT.value)
    writer = turn.writer()
    try:
        composed = changes.compose(writer, run)
    except MISSHAPEN:
        return turn.misshapen_answer([run])
    if composed.outcome is Outcome.ANSWERED and call.tool == "update_incident":
        say_instructions(writer, View.INCIDENT, [run])
    return turn.checked_answer(writer, composed)
