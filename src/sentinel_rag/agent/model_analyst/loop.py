"""The loop: ask the model, run the calls it makes, ask again, until it answers in text or its rounds are used up; then
once more about the sentences that do not stand in what they cite.

Ends in a value for whatever a model or a provider does; nothing of what they do raises past it. Which text a person
sees is decided above; what the check says of it, in `agent.answers`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import anyio
import anyio.to_thread
from msgspec import structs

from sentinel_rag.agent.answers.check import CheckedAnswer
from sentinel_rag.agent.answers.repair import repair_request, repaired
from sentinel_rag.agent.model_analyst.answer_text import Draft, shown
from sentinel_rag.agent.model_analyst.local_forms import with_calls, without_reasoning, written_call
from sentinel_rag.agent.model_analyst.requests import TieredModels, ask
from sentinel_rag.agent.model_analyst.tools import answer_calls, only_own, unanswered
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import (
    AssistantMessage,
    Finished,
    FinishReason,
    ModelMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.contracts.ports import ToolGateway

CORRECTING = "Correcting what does not stand in its source..."
REPAIR_SHARE = 0.25
"""Of the question's time, what must be left for a repair."""
ONLY_OWN = "Not run: only compute and read_rows can be called here. Send the corrected sentences."
UNASKED_SHARE = 3
"""Of an answer without a tool, one sentence in so many that states what no result holds sends it back."""
ROUNDS_TOLD = 5
"""Rounds left from which the model is told of them."""


class Ending(StrEnum):
    """How the loop ended."""

    TEXT = "text"
    CUT = "cut"
    REFUSED = "refused"
    FILTERED = "filtered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ended:
    """`text` is the model's, with its citations. `failure` is there exactly for FAILED, `filtered` names what a filter
    found. `out_of_rounds`: it was asked to answer without further calls. `written_call` names the tool of a call that
    stands in the text instead of having been made."""

    ending: Ending
    text: str = ""
    out_of_rounds: bool = False
    failure: SentinelError | None = None
    filtered: tuple[str, ...] = ()
    written_call: str = ""


Drafting = Callable[[bool], Draft | None]
"""Makes what shows the next text of the model while it comes, if that can be done; `True` once it is out of rounds."""
Checking = Callable[[str], Awaitable[CheckedAnswer]]
"""Compares a text with the results of the conversation."""


async def run_loop(
    gateway: ToolGateway, models: TieredModels, turn: Turn, *, check: Checking, drafting: Drafting = lambda _: None
) -> Ended:
    """Carry one question to its end.

    The open turn of `turn.memory.history` gets every message but the last text, which is added by the caller.
    """
    try:
        ended = await _rounds(gateway, models, turn, check, drafting)
    except (ModelError, ConfigurationError) as failure:
        return Ended(Ending.FAILED, failure=failure)
    if ended.ending is not Ending.TEXT or ended.written_call:
        return ended
    try:
        return replace(ended, text=await _repaired(gateway, models, turn, ended.text, check))
    except (ModelError, ConfigurationError):
        return ended  # the answer stands as it was, with its marks


async def _rounds(gateway: ToolGateway, models: TieredModels, turn: Turn, check: Checking, drafting: Drafting) -> Ended:
    limits = turn.limits
    urged: list[ModelMessage] = []
    turn.say("Thinking...")
    while True:
        spent = turn.rounds >= limits.rounds or turn.calls >= limits.calls
        out = spent or turn.faulty_rounds >= limits.faulty_rounds
        turn.new_draft = partial(drafting, spent)
        extra = [UserMessage(prompt("last_round").text)] if out else urged
        finished = await ask(models, turn, tool_choice=ToolChoice.NONE if out else ToolChoice.AUTO, extra=extra)
        message = finished.message
        message = with_calls(structs.replace(message, text=without_reasoning(message.text)), turn.reading)
        finished = replace(finished, message=message)
        if not message.tool_calls:
            if not out and not urged and await _states_unasked(turn, message.text, check):
                # A state is asked of the tools again, every time (CHAT-16); a model that forgot is told once.
                urged = [message, UserMessage(prompt("query_first").text)]
                continue
            return _ended(finished, turn, spent)
        urged = []
        message = _with_fresh_ids(message, turn)
        turn.memory.history.add(message)
        if out:
            for answer in unanswered(message.tool_calls):
                turn.memory.history.add(answer)
            return _ended(finished, turn, spent)
        turn.rounds += 1
        answers = await answer_calls(gateway, turn, message.tool_calls, stated=finished.stated)
        for answer in _with_rounds_left(answers, limits.rounds - turn.rounds):
            turn.memory.history.add(answer)
        # Off the event loop: a thousand rows take most of a second to read.
        await anyio.to_thread.run_sync(lambda: turn.memory.evidence.update())
        turn.say("Reading the results...")


async def _states_unasked(turn: Turn, text: str, check: Checking) -> bool:
    """True if `text` states what only a tool can know, and no tool was asked in this conversation."""
    if len(turn.memory.results) or not text.strip():
        return False
    checked = await check(text)
    missed = sum(sentence.state is SentenceState.NOT_FOUND for sentence in checked.sentences)
    return (
        0 < len(checked.sentences) <= missed * UNASKED_SHARE
    )  # of a general answer a sentence or two may look like one


async def _repaired(gateway: ToolGateway, models: TieredModels, turn: Turn, text: str, check: Checking) -> str:
    """The text after one repair round: the model is told which sentences do not stand in what they cite, and why."""
    text = shown(text)  # the form that is checked, so that places in it agree
    checked = await check(text)
    request = repair_request(checked)
    if not request or not turn.memory.results or turn.time_left_share < REPAIR_SHARE:
        return text
    turn.say(CORRECTING)
    extra: list[ModelMessage] = [AssistantMessage(text), UserMessage(request)]
    for left in range(turn.limits.repair_rounds - 1, -1, -1):
        choice = ToolChoice.AUTO if left else ToolChoice.NONE
        finished = await ask(models, turn, tool_choice=choice, extra=extra, shown=False)
        message = finished.message
        if not message.tool_calls:
            return repaired(text, checked, without_reasoning(message.text))
        message = _with_fresh_ids(message, turn, extra)
        run = left and only_own(message.tool_calls)
        answers = (
            await answer_calls(gateway, turn, message.tool_calls, stated=finished.stated)
            if run
            else unanswered(message.tool_calls, ONLY_OWN)
        )
        extra += [message, *answers]
    return text


def _ended(finished: Finished, turn: Turn, out: bool) -> Ended:
    endings = {
        FinishReason.LENGTH: Ending.CUT,
        FinishReason.REFUSAL: Ending.REFUSED,
        FinishReason.CONTENT_FILTER: Ending.FILTERED,
    }
    text = finished.message.text
    return Ended(
        endings.get(finished.reason, Ending.TEXT),
        text,
        out_of_rounds=out,
        filtered=tuple(sorted(finished.filtered)),
        written_call=written_call(text, [tool.name for tool in turn.tools]),
    )


def _with_rounds_left(answers: Sequence[ToolResultMessage], left: int) -> list[ToolResultMessage]:
    if left > ROUNDS_TOLD or not answers:
        return list(answers)
    last = answers[-1]
    told = f"{last.text}\n(Rounds of tool calls left for this question: {max(0, left)}.)"
    return [*answers[:-1], structs.replace(last, text=told)]


def _with_fresh_ids(message: AssistantMessage, turn: Turn, extra: Sequence[ModelMessage] = ()) -> AssistantMessage:
    """The message with new ids for calls whose id an earlier turn, or one of `extra`, used: some providers begin again
    with each answer, and what was trimmed out of the request is still remembered here."""
    repairing = (call for each in extra if isinstance(each, AssistantMessage) for call in each.tool_calls)
    known = {*turn.memory.history.call_ids, *(call.call_id for call in repairing)}
    calls = []
    for call in message.tool_calls:
        call_id = call.call_id
        number = len(known) + 1
        while call_id in known:
            call_id = f"call_{number}"
            number += 1
        known.add(call_id)
        calls.append(call if call_id == call.call_id else structs.replace(call, call_id=call_id))
    return structs.replace(message, tool_calls=tuple(calls))
