"""The loop: ask the model, run the calls it makes, ask again, until it answers in text or its rounds are used up; then
once for the sources of its sentences, and once more about those that do not stand in what they cite.

Ends in a value for whatever a model or a provider does; nothing of what they do raises past it. Each request has the
conversation fitted, the tier chosen and the usage counted, and is made again where another one can be answered: with
the rows defanged if the provider's filter stopped them, with fewer turns if the context was too long; never after a
call that may have changed something. Which text a person sees is decided in `composing`, what the check says of it in
`agent.answers`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread
from msgspec import structs

from sentinel_rag.agent.answers.check import CheckedAnswer, check_answer, gives_few_sources
from sentinel_rag.agent.answers.repair import numbered_sentences, repair_request, repaired, rewritten, sourced
from sentinel_rag.agent.history import Budget
from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.model_analyst.answer_text import Draft, shown, with_calls, without_reasoning, written_call
from sentinel_rag.agent.model_analyst.composing import draft_opening
from sentinel_rag.agent.model_analyst.first_look import told, unread, with_not_read
from sentinel_rag.agent.model_analyst.tools import answer_calls, is_own, unanswered
from sentinel_rag.agent.model_analyst.turn import Ended, Ending, ModelTurn
from sentinel_rag.agent.models.answer_parts import unused_id
from sentinel_rag.agent.models.failures import ContextOverflowError, ModelError, PromptFilteredError
from sentinel_rag.agent.models.port import (
    SMALL_CONTEXT_TOKENS,
    AssistantMessage,
    ChatModel,
    Finished,
    FinishReason,
    ModelMessage,
    ModelRequest,
    SystemMessage,
    ToolChoice,
    ToolResultMessage,
    UserMessage,
    complete,
)
from sentinel_rag.agent.models.retrying import RetryingModel, Tier, choose_tier
from sentinel_rag.agent.offline.turn import MISSHAPEN
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.agent.tokens import count_message, count_tool
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.contracts.ports import ToolGateway

OVERFLOW_SHARE = 0.5
"""What is left of a conversation that was too long for the model, where the provider did not say what it reads."""
_MARGIN = 0.9
LONGEST_KEPT = 80
"""Characters of a text with spaces that are kept: titles and names are shorter, command lines and scripts longer."""
_CELL = re.compile(r"^(\s*(?:\[c\d+(?:\.\d+)?\]\s|[\w ]{1,40}(?:: |=))?)(.*)$")
"""What stands before a value: the number of its row, or its column."""
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{64,}")
_HASH_OR_PATH = re.compile(r"[0-9a-fA-F]{64}|[0-9a-fA-F]{128}|/subscriptions/\S*", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:powershell|cmd(?:\.exe)?\s|/c\s|wscript|mshta|rundll32|regsvr32|certutil|bash\s+-|curl\s|wget\s|<script|"
    r"javascript:|\bunion\s+select\b|\bdrop\s+table\b|\$\(|\|\||&&|invoke-|iex\b|-enc\b|mimikatz)",
    re.IGNORECASE,
)
LOOKED_AT = 800
"""Characters from which an answer is read once more before it goes out: shorter ones say what was asked and no more."""
LOOKING = "Looking at what is still open..."
LOOK_SHARE = 0.5
"""Of the question's time, what must be left for a second look."""
REWRITTEN = 0.5
"""Of an answer's length, what a reply without a call must have to be taken for that answer, written anew."""
ROUNDS_KEPT = 3
"""Rounds that must be left for it."""
GIVING_SOURCES = "Looking up the sources..."
CORRECTING = "Correcting what does not stand in its source..."
REPAIR_SHARE = 0.25
"""Of the question's time, what must be left for a repair."""
ONLY_READING = "Not run: only what reads can be called here. Send the corrected sentences."
ONLY_OWN = "Not run: only compute and read_rows can be called now. Send the corrected sentences."
UNASKED_SHARE = 3
"""Of an answer without a tool, one sentence in so many that states what no result holds sends it back."""
ROUNDS_TOLD = 5
"""Rounds left from which the model is told of them."""
_ENDINGS = {
    FinishReason.LENGTH: Ending.CUT,
    FinishReason.REFUSAL: Ending.REFUSED,
    FinishReason.CONTENT_FILTER: Ending.FILTERED,
}
_log = logging.getLogger(__name__)


class TieredModels(Protocol):
    """A model for each tier; both can be the same."""

    def of(self, tier: Tier) -> ChatModel: ...


async def _ask(
    models: TieredModels,
    turn: ModelTurn,
    *,
    tool_choice: ToolChoice = ToolChoice.AUTO,
    extra: Sequence[ModelMessage] = (),
    shown: bool = True,
) -> Finished:
    """The model's answer to the conversation so far. `extra` stands behind it for this request alone. With `shown` the
    text is shown as it comes, in the place of what was shown before.

    Raises ModelError; what was spent is counted in `turn` in any case.
    """
    while True:
        memory = turn.memory
        messages, tokens = _messages(turn, extra)
        turn.tier = choose_tier(
            turn.features,
            last_tier=memory.last_tier,
            last_failed=memory.last_failed,
            rounds=turn.rounds,
            context_tokens=tokens,
        )
        model = RetryingModel(models.of(turn.tier.tier), budget=turn.retries)
        request = ModelRequest(messages, turn.tools, tool_choice, memory.history.budget.response)
        if shown:
            turn.begin_text()
        try:
            listen = turn.hear if shown else lambda _: None
            finished = await complete(model, request, deadline=turn.deadline, listen=listen)
        except ModelError as failure:
            turn.usage += failure.usage
            if _another_way(turn, failure, messages):
                continue
            raise
        _count(turn, finished, messages)
        if finished.reason is FinishReason.CONTENT_FILTER and _defang(turn, messages):
            continue
        return finished


def _messages(turn: ModelTurn, extra: Sequence[ModelMessage]) -> tuple[tuple[ModelMessage, ...], int]:
    memory = turn.memory
    if memory.defanged:
        extra = (*extra, UserMessage(prompt("rows_shortened").text))
    fitted = memory.history.fitted(SystemMessage(turn.rules.text), turn.tools)
    turn.warning = fitted.warning or turn.warning
    messages = (*fitted.messages, *extra)
    more = sum(count_message(message, memory.history.counter) for message in extra)
    return _defanged_messages(messages) if memory.defanged else messages, fitted.tokens + more


def _another_way(turn: ModelTurn, failure: ModelError, messages: Sequence[ModelMessage]) -> bool:
    """Change what is sent next, if that can help; False if it cannot."""
    if isinstance(failure, PromptFilteredError) and _defang(turn, messages):
        return True
    if isinstance(failure, ContextOverflowError) and not turn.acted and not turn.shortened:
        turn.shortened = True
        return _shorten(turn, failure)
    # The adapter gives up once text came. Here what was shown of it is taken back, so nothing is said twice.
    return failure.delivered and failure.retry_possible and not turn.acted and turn.retries.take()


def _defang(turn: ModelTurn, messages: Sequence[ModelMessage]) -> bool:
    """Send rows defanged from now on; False if none were sent as they are, so that they are not what the filter
    stopped."""
    rows = any(isinstance(message, ToolResultMessage) for message in messages)
    if not rows or turn.memory.defanged or turn.acted:
        return False
    turn.memory.defanged = True
    turn.say("The provider's filter stopped texts of the rows; asking again without them...")
    return True


def _shorten(turn: ModelTurn, failure: ContextOverflowError) -> bool:
    """Let the conversation be only as long as the model reads; it stays so."""
    history = turn.memory.history
    total = int((failure.limit_tokens or history.budget.total * OVERFLOW_SHARE) * _MARGIN)
    if total >= history.budget.total:  # it counts other than we do
        total = int(history.budget.total * OVERFLOW_SHARE)
    before = history.budget
    try:
        history.budget = Budget.of_context(total, turns=before.turns)
        history.fitted(SystemMessage(turn.rules.text), turn.tools)
    except (ValueError, ConfigurationError):  # not even rules and tools fit: the model is too small for this work
        history.budget = before
        return False
    turn.say("The conversation is too long for the model; asking again with less of it...")
    return True


def _count(turn: ModelTurn, finished: Finished, messages: Sequence[ModelMessage]) -> None:
    """Add the usage of an answer; where the provider counted nothing, count here."""
    turn.usage += finished.usage
    if finished.usage.uncounted:
        counter = turn.memory.history.counter
        sent = sum(count_message(message, counter) for message in messages)
        sent += sum(count_tool(tool, counter) for tool in turn.tools)
        turn.uncounted_tokens += sent + counter.count(finished.message.text)


def _defanged_messages(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    return tuple(
        structs.replace(message, text=defanged(message.text)) if isinstance(message, ToolResultMessage) else message
        for message in messages
    )


def defanged(text: str) -> str:
    """A result as `answers.view` writes it, whole or cut, without what trips a provider's content filter: attack text,
    encoded payloads, long free text. Each such value is replaced by its length. Ids, numbers, times, addresses and
    short names stay: an answer can still be checked against the rows."""
    return "\n".join(" | ".join(map(_defanged_cell, line.split(" | "))) for line in text.split("\n"))


def _defanged_cell(cell: str) -> str:
    found = _CELL.match(cell)
    before, value = (found[1], found[2]) if found else ("", cell)
    dangerous = (
        (len(value) > LONGEST_KEPT and " " in value)
        or (_ENCODED.search(value) and not _HASH_OR_PATH.fullmatch(value))
        or _COMMAND.search(value)
        or reads_like_instruction(value)
    )
    return f"{before}[text of {len(value)} characters left out]" if dangerous else cell


async def run_loop(gateway: ToolGateway, models: TieredModels, turn: ModelTurn) -> Ended:
    """Carry one question to its end.

    The open turn of `turn.memory.history` gets every message but the last text, which is added by the caller.
    """
    try:
        ended = await _rounds(gateway, models, turn)
    except (ModelError, ConfigurationError) as failure:
        return Ended(Ending.FAILED, failure=failure)
    if not ended.whole:
        return ended
    text = shown(ended.text)  # the form that is checked, so that places in it agree
    found = await checked(turn, text)
    try:
        cited = text if found is None else await _sourced(gateway, models, turn, text, found)
        if cited != text:
            text, found = cited, await checked(turn, cited)
        if found is not None:
            text = await _repaired(gateway, models, turn, text, found)
    except (ModelError, ConfigurationError):
        pass  # the answer stands as it was, with its marks
    return replace(ended, text=text)


async def checked(turn: ModelTurn, text: str) -> CheckedAnswer | None:
    """The check of a model's text, in a thread of its own: another person's question does not wait for it. None where
    a result has not the agreed shape, so that no check can be made."""
    try:
        return await anyio.to_thread.run_sync(lambda: check_answer(shown(text), turn.memory.evidence))
    except (*MISSHAPEN, AssertionError, RecursionError):
        _log.exception("an answer could not be compared with the results")
        return None


def _new_draft(turn: ModelTurn, out_of_rounds: bool) -> Draft:
    return Draft(turn.memory.evidence, opening=draft_opening(turn, out_of_rounds=out_of_rounds))


async def _rounds(gateway: ToolGateway, models: TieredModels, turn: ModelTurn) -> Ended:
    limits = turn.limits
    urged: list[ModelMessage] = []
    draft: _Draft | None = None
    turn.say("Thinking...")
    while True:
        spent = turn.rounds >= limits.rounds or turn.calls >= limits.calls
        out = spent or turn.faulty_rounds >= limits.faulty_rounds
        turn.new_draft = partial(_new_draft, turn, spent)
        extra = [*urged] if draft is None else draft.messages("redraft")
        extra += [UserMessage(prompt("last_round").text)] if out else []
        choice = ToolChoice.NONE if out else ToolChoice.AUTO
        finished = await _ask(models, turn, tool_choice=choice, extra=extra, shown=draft is None)
        message = finished.message
        message = with_calls(structs.replace(message, text=without_reasoning(message.text)), turn.reading)
        finished = replace(finished, message=message)
        if not message.tool_calls:
            if not out and not urged and await _states_unasked(turn, message.text):
                # A state is asked of the tools again, every time (CHAT-16); a model that forgot is told once.
                urged = [message, UserMessage(prompt("query_first").text)]
                continue
            ended = _ended(finished, turn, spent)
            if draft is not None:
                return draft.after(ended)
            draft = None if out or not ended.whole else await _worth_a_look(turn, ended)
            more = None if draft is None else await _second_look(models, turn, draft)
            if draft is None or more is None:
                return ended
            if not more.message.tool_calls:
                return draft.after(_ended(more, turn, spent))
            finished, message = more, more.message
        urged = []
        message = _with_fresh_ids(message, turn)
        turn.memory.history.add(message)
        if out:
            for answer in unanswered(message.tool_calls):
                turn.memory.history.add(answer)
            return _ended(finished, turn, spent)
        turn.rounds += 1
        answers = await answer_calls(gateway, turn, message.tool_calls, stated=finished.stated)
        # Off the event loop: a thousand rows take most of a second to read.
        await anyio.to_thread.run_sync(lambda: turn.memory.evidence.update())
        for answer in _with_word(answers, turn, limits.rounds - turn.rounds, drafted=draft is not None):
            turn.memory.history.add(answer)
        turn.say("Reading the results...")


@dataclass(frozen=True, slots=True)
class _Draft:
    """An answer that its writer looks at once more. `open` is what it rests on and nobody has read."""

    ended: Ended
    found: CheckedAnswer
    open: str

    def messages(self, name: str) -> list[ModelMessage]:
        """The draft, and what its writer is asked about it."""
        asked = f"{prompt(name).text.format(self.open)}\n{numbered_sentences(self.found, cited=True)}"
        return [AssistantMessage(self.ended.text), UserMessage(asked)]

    def after(self, reply: Ended) -> Ended:
        """The answer with the changes of a reply, or the reply that was written in its place; else as it stands."""
        if not reply.whole:
            return self.ended
        changed = rewritten(self.ended.text, self.found, reply.text)
        if changed is not None:
            return replace(self.ended, text=changed)
        return reply if len(reply.text) >= len(self.ended.text) * REWRITTEN else self.ended


async def _worth_a_look(turn: ModelTurn, ended: Ended) -> _Draft | None:
    """The answer as a draft; None where it is short, rests on no call, names nothing that is left to read, or where
    there is little left to read it with."""
    if len(ended.text) < LOOKED_AT or not turn.rounds or turn.limits.rounds - turn.rounds < ROUNDS_KEPT:
        return None
    if turn.acted or turn.time_left_share < LOOK_SHARE or turn.memory.history.budget.total < SMALL_CONTEXT_TOKENS:
        return None
    things = unread(turn, ended.text)
    ended = replace(ended, text=shown(ended.text))  # the form that is numbered, so that places in it agree
    found = await checked(turn, ended.text) if things else None
    return None if found is None else _Draft(ended, found, told(things))


async def _second_look(models: TieredModels, turn: ModelTurn, draft: _Draft) -> Finished | None:
    """What the model replies once it has read its answer as its reader will: calls, changes, or nothing of both."""
    turn.say(LOOKING)
    try:
        more = await _ask(models, turn, extra=draft.messages("second_look"), shown=False)
    except (ModelError, ConfigurationError):
        return None
    return more if all(call.name in turn.reading for call in more.message.tool_calls) else None


async def _states_unasked(turn: ModelTurn, text: str) -> bool:
    """True if `text` states what only a tool can know, and no tool was asked in this conversation."""
    if len(turn.memory.results) or not text.strip():
        return False
    found = await checked(turn, text)
    states = [] if found is None else [sentence.state for sentence in found.sentences]
    # Of a general answer a sentence or two may look like one.
    return 0 < len(states) <= states.count(SentenceState.NOT_FOUND) * UNASKED_SHARE


async def _sourced(gateway: ToolGateway, models: TieredModels, turn: ModelTurn, text: str, found: CheckedAnswer) -> str:
    """The text with the sources that its writer gives afterwards: who writes and cites at once writes for the check and
    not for the reader. A small model, which is told to cite as it writes, is not asked again."""
    if not gives_few_sources(found) or turn.memory.history.budget.total < SMALL_CONTEXT_TOKENS:
        return text
    request = f"{prompt('sources').text}\n{numbered_sentences(found)}"
    reply = await _asked_back(gateway, models, turn, text, request, GIVING_SOURCES)
    return sourced(text, found, reply) if reply else text


async def _repaired(
    gateway: ToolGateway, models: TieredModels, turn: ModelTurn, text: str, found: CheckedAnswer
) -> str:
    """The text after one repair round: the model is told which sentences do not stand in what they cite, and why."""
    request = repair_request(found)
    if not request:
        return text
    reply = await _asked_back(gateway, models, turn, text, request, CORRECTING)
    return repaired(text, found, reply) if reply else text


async def _asked_back(
    gateway: ToolGateway, models: TieredModels, turn: ModelTurn, text: str, request: str, status: str
) -> str:
    """What the model replies to a request about its answer; empty where there is no result, or no time for it.

    For what no result holds it may query once; after that it computes and reads on alone.
    """
    if not turn.memory.results or turn.time_left_share < REPAIR_SHARE:
        return ""
    turn.say(status)
    extra: list[ModelMessage] = [AssistantMessage(text), UserMessage(request)]
    queried = False
    for left in range(turn.limits.repair_rounds - 1, -1, -1):
        choice = ToolChoice.AUTO if left else ToolChoice.NONE
        finished = await _ask(models, turn, tool_choice=choice, extra=extra, shown=False)
        message = finished.message
        if not message.tool_calls:
            return without_reasoning(message.text)
        message = _with_fresh_ids(message, turn, extra)
        may = [call for call in message.tool_calls if left and call.name in turn.reading]
        run = [call for call in may if is_own(call) or not queried]
        others = [call for call in message.tool_calls if call not in run]
        answers = await answer_calls(gateway, turn, run, stated=finished.stated) if run else []
        extra += [message, *answers, *unanswered(others, ONLY_OWN if queried else ONLY_READING)]
        queried = queried or any(not is_own(call) for call in run)
        await anyio.to_thread.run_sync(lambda: turn.memory.evidence.update())
    return ""


def _ended(finished: Finished, turn: ModelTurn, out: bool) -> Ended:
    return Ended(
        _ENDINGS.get(finished.reason, Ending.TEXT),
        finished.message.text,
        out_of_rounds=out,
        filtered=tuple(sorted(finished.filtered)),
        written_call=written_call(finished.message.text, [tool.name for tool in turn.tools]),
    )


def _with_word(
    answers: Sequence[ToolResultMessage], turn: ModelTurn, left: int, *, drafted: bool
) -> list[ToolResultMessage]:
    """The answers, and behind them what is not read yet, and how many rounds are left for it."""
    more = with_not_read(answers, turn) if left > 0 and not drafted else list(answers)
    if left > ROUNDS_TOLD or not more:
        return more
    rounds = f"{more[-1].text}\n(Rounds of tool calls left for this question: {max(0, left)}.)"
    return [*more[:-1], structs.replace(more[-1], text=rounds)]


def _with_fresh_ids(message: AssistantMessage, turn: ModelTurn, extra: Sequence[ModelMessage] = ()) -> AssistantMessage:
    """The message with new ids for calls whose id an earlier turn, or one of `extra`, used: some providers begin again
    with each answer, and what was trimmed out of the request is still remembered here."""
    repairing = (call for each in extra if isinstance(each, AssistantMessage) for call in each.tool_calls)
    known = {*turn.memory.history.call_ids, *(call.call_id for call in repairing)}
    calls = []
    for call in message.tool_calls:
        call_id = unused_id(known) if call.call_id in known else call.call_id
        known.add(call_id)
        calls.append(structs.replace(call, call_id=call_id))
    return structs.replace(message, tool_calls=tuple(calls))
