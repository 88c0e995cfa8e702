"""The loop: ask the model, run the calls it makes, ask again, until it answers in text or its rounds are used up.

Ends in a value for whatever a model or a provider does; nothing of what they do raises past it. Which text a person
sees, and whether it is true, is decided above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from sentinel_rag.agent.history import cut_result
from sentinel_rag.agent.model_analyst.calling import answer_calls, unanswered
from sentinel_rag.agent.model_analyst.draft import Draft
from sentinel_rag.agent.model_analyst.local_forms import with_calls, without_reasoning
from sentinel_rag.agent.model_analyst.requests import TieredModels, ask
from sentinel_rag.agent.model_analyst.result_text import result_text
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.models import (
    AssistantMessage,
    Finished,
    FinishReason,
    ModelError,
    ToolChoice,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError
from sentinel_rag.contracts.ports import ToolGateway


class Ending(StrEnum):
    """How the loop ended."""

    TEXT = "text"
    CUT = "cut"
    REFUSED = "refused"
    FILTERED = "filtered"
    UNASKED = "unasked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ended:
    """`text` is the model's and unchecked; of UNASKED it states facts although no tool was asked, twice. `failure` is
    there exactly for FAILED, `filtered` names what a filter found. `out_of_rounds`: it was asked to answer without
    further calls."""

    ending: Ending
    text: str = ""
    out_of_rounds: bool = False
    failure: SentinelError | None = None
    filtered: tuple[str, ...] = ()


Drafting = Callable[[bool], Draft | None]
"""Makes what shows the next text of the model while it comes, if that can be done; `True` once it is out of rounds."""


async def run_loop(
    gateway: ToolGateway,
    models: TieredModels,
    turn: Turn,
    *,
    states_facts: Callable[[str], bool],
    drafting: Drafting = lambda _: None,
) -> Ended:
    """Carry one question to its end. `states_facts` tells whether a text holds facts that only tools can know.

    The open turn of `turn.memory.history` gets every message but the last text, which is added once it is checked.
    """
    try:
        return await _rounds(gateway, models, turn, states_facts, drafting)
    except (ModelError, ConfigurationError) as failure:
        return Ended(Ending.FAILED, failure=failure)


async def _rounds(
    gateway: ToolGateway, models: TieredModels, turn: Turn, states_facts: Callable[[str], bool], drafting: Drafting
) -> Ended:
    limits = turn.limits
    urged = False
    turn.say("Thinking...")
    while True:
        out = turn.rounds >= limits.rounds or turn.faulty_rounds >= limits.faulty_rounds or turn.calls >= limits.calls
        turn.new_draft = partial(drafting, out)
        if out:
            finished = await ask(models, turn, tool_choice=ToolChoice.NONE, prompts=("last_round",))
        elif urged and not turn.runs:
            finished = await ask(models, turn, tool_choice=ToolChoice.REQUIRED, prompts=("query_first",))
        else:
            finished = await ask(models, turn)
        message = finished.message
        message = with_calls(replace(message, text=without_reasoning(message.text)), turn.reading)
        finished = replace(finished, message=message)
        if not message.tool_calls:
            if not turn.runs and states_facts(message.text):
                if urged or out:
                    return Ended(Ending.UNASKED, message.text)
                urged = True  # a state is asked of the tools again, every time (CHAT-16)
                continue
            return _ended(finished, out)
        message = _with_fresh_ids(message, turn)
        turn.memory.history.add(message)
        if out:
            for answer in unanswered(message.tool_calls):
                turn.memory.history.add(answer)
            return _ended(finished, out)
        turn.rounds += 1
        answers = await answer_calls(
            gateway, turn, message.tool_calls, stated=finished.stated, tell=lambda run: _told(turn, run)
        )
        for answer in answers:
            turn.memory.history.add(answer)
        turn.say("Reading the results...")


def _ended(finished: Finished, out: bool) -> Ended:
    endings = {
        FinishReason.LENGTH: Ending.CUT,
        FinishReason.REFUSAL: Ending.REFUSED,
        FinishReason.CONTENT_FILTER: Ending.FILTERED,
    }
    ending = endings.get(finished.reason, Ending.TEXT)
    return Ended(ending, finished.message.text, out_of_rounds=out, filtered=tuple(sorted(finished.filtered)))


def _told(turn: Turn, run: ToolRun) -> str:
    """A result for the model, in its share of the context."""
    history = turn.memory.history
    result = result_text(run, history.budget.tool_result, history.counter)
    return cut_result(
        result.rows,
        history.budget.tool_result,
        history.counter,
        total=result.total,
        head=result.head,
        tail=result.tail,
    ).text


def _with_fresh_ids(message: AssistantMessage, turn: Turn) -> AssistantMessage:
    """The message with new ids for calls whose id an earlier turn used: some providers begin again with each answer,
    and what was trimmed out of the request is still remembered here."""
    known = set(turn.memory.history.call_ids)
    calls = []
    for call in message.tool_calls:
        call_id = call.call_id
        number = len(known) + 1
        while call_id in known:
            call_id = f"call_{number}"
            number += 1
        known.add(call_id)
        calls.append(call if call_id == call.call_id else replace(call, call_id=call_id))
    return replace(message, tool_calls=tuple(calls))
