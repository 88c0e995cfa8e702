"""The turns of a conversation, and making them fit: first older rows go, then older turns, then the newest is cut.

Pure. A turn is kept, shortened or left out whole, so that no call is ever parted from its result. Rows that older turns
read are stale by now, and a question about a state queries again (CHAT-16), so they are the first to be left out; the
words of a turn stay longer. What a tool returned is cut between its rows, and never silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from sentinel_rag.agent.models.port import (
    RESPONSE_TOKENS,
    AssistantMessage,
    ModelMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from sentinel_rag.agent.tokens import TokenCounter, count_message

WARNING = "Context getting long, older messages will be trimmed"

WARNING_SHARE = 0.8
MOST_OF_A_RESULT = 24_000
SMALLEST_CONTEXT = 2_048
"""Tokens below which no question fits beside rules and tools."""
STOPPED_CALL = "This call was stopped before its result came. Nothing is known of it."
STOPPED_ANSWER = "(This question was stopped before it was answered.)"
LEFT_OUT = "(These rows were left out to keep the conversation short. Call the tool again for what is true now.)"

MARK = " ... (cut)"
_ROOM_FOR_NOTE = 24
MOST_CHARACTERS = 32
"""Of one token, as far as it matters: longer ones are runs of spaces or signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens, but for `turns`. `total` holds everything of a request: rules, tools, turns and the room for `response`.

    `tool_results` bounds the rows of all turns together, `tool_result` those of one call.
    """

    total: int = 128_000
    response: int = RESPONSE_TOKENS
    tool_results: int = 40_000
    tool_result: int = 16_000
    turns: int = 30

    def __post_init__(self) -> None:
        if self.total < SMALLEST_CONTEXT or self.turns < 1 or not 0 < self.response < self.total:
            raise ValueError("a context has at least 2,048 tokens, one turn, and room for an answer")
        if not 0 < self.tool_result <= self.tool_results <= self.total:
            raise ValueError("a tool result fits into all of them, and they fit into the context")

    @classmethod
    def of_context(cls, total: int, *, turns: int = 30) -> Budget:
        """The budget of a model whose context holds `total` tokens: the same shares, whatever its size. A result never
        gets more than MOST_OF_A_RESULT: a model reads the next page if it needs it."""
        whole = cls()
        results = int(whole.tool_results * total / whole.total)
        # A small model still needs room for an answer: an eighth of its context at most.
        return cls(
            total=total,
            response=min(whole.response, max(256, total // 8)),
            tool_results=results,
            tool_result=min(MOST_OF_A_RESULT, max(256, results * 2 // 5)),
            turns=turns,
        )

    @property
    def warning(self) -> int:
        """The tokens from which the person is warned."""
        return int((self.total - self.response) * WARNING_SHARE)


@dataclass(frozen=True, slots=True)
class Counted:
    """A message with its tokens, counted once."""

    message: ModelMessage
    tokens: int

    @classmethod
    def of(cls, message: ModelMessage, counter: TokenCounter) -> Counted:
        return cls(message, count_message(message, counter))

    @property
    def is_result(self) -> bool:
        """True for what a tool returned."""
        return isinstance(self.message, ToolResultMessage)


@dataclass(slots=True)
class Turn:
    """The messages of one turn, in order; the first is the question."""

    messages: list[Counted] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(each.tokens for each in self.messages)

    @property
    def result_tokens(self) -> int:
        """Tokens of what the tools returned."""
        return sum(each.tokens for each in self.messages if each.is_result)

    def waiting(self) -> tuple[str, ...]:
        """The ids of the calls that have no result yet, in the model's order."""
        waiting: list[str] = []
        for each in self.messages:
            match each.message:
                case AssistantMessage(tool_calls=calls):
                    waiting = [call.call_id for call in calls]
                case ToolResultMessage(call_id=call_id):
                    waiting.remove(call_id)
                case SystemMessage() | UserMessage():
                    pass
        return tuple(waiting)

    def call_ids(self) -> Iterator[str]:
        """Every call id of the turn."""
        for each in self.messages:
            if isinstance(each.message, AssistantMessage):
                yield from (call.call_id for call in each.message.tool_calls)

    def refusal(self, message: ModelMessage) -> str:
        """Why `message` cannot come next; empty if it can."""
        waiting = self.waiting()
        match message:
            case SystemMessage():
                return "the rules are given to fitted(), not added"
            case ToolResultMessage(call_id=call_id):
                return "" if call_id in waiting else f"the result {call_id!r} answers no call that waits"
            case UserMessage() | AssistantMessage() if waiting:
                return f"the call {waiting[0]!r} has no result yet"
            case AssistantMessage(tool_calls=calls):
                ids = [call.call_id for call in calls]
                known = set(self.call_ids())
                twice = next((each for place, each in enumerate(ids) if each in known or each in ids[:place]), None)
                return "" if twice is None else f"the call id {twice!r} is used twice"
            case UserMessage():
                return ""

    @property
    def answered(self) -> bool:
        """True if the turn ends in words of the assistant."""
        last = self.messages[-1].message
        return isinstance(last, AssistantMessage) and not last.tool_calls

    def closing(self) -> tuple[ModelMessage, ...]:
        """What makes a turn that was stopped valid: a result for each call, and a word instead of the answer."""
        results = tuple(ToolResultMessage(call_id, STOPPED_CALL) for call_id in self.waiting())
        return results if self.answered else (*results, AssistantMessage(STOPPED_ANSWER))


@dataclass(frozen=True, slots=True)
class Fitted:
    """What to send. `dropped_turns` are those of the whole conversation that are not in `messages`; `tokens` is the
    size of the request, tools included. `warning` is for the person, and empty mostly."""

    messages: tuple[ModelMessage, ...]
    dropped_turns: int = 0
    warning: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class FittedTurns:
    """The turns that are sent, oldest first, as messages with their tokens."""

    turns: tuple[tuple[Counted, ...], ...]
    dropped: int

    @property
    def tokens(self) -> int:
        return sum(each.tokens for turn in self.turns for each in turn)


def fit_turns(turns: Sequence[Turn], room: int, budget: Budget, counter: TokenCounter) -> FittedTurns:
    """The newest of `turns` that take at most `room` tokens, their rows at most `budget.tool_results`. The last turn is
    always there, if there is one: its longest texts are cut where it does not fit alone."""
    chosen: list[tuple[Counted, ...]] = []
    only_words = False
    rows_left, room_left = budget.tool_results, room
    for turn in reversed(turns[-budget.turns :]):
        messages = tuple(turn.messages)
        if not chosen:
            messages = _shorten_to(messages, room_left, rows_left, counter)
        elif only_words or turn.result_tokens > rows_left or turn.tokens > room_left:
            only_words = True  # what is older than rows that are left out is left out too
            messages = tuple(_without_rows(each, counter) for each in messages)
        size = sum(each.tokens for each in messages)
        if chosen and size > room_left:
            break
        chosen.append(messages)
        room_left -= size
        rows_left -= sum(each.tokens for each in messages if each.is_result)
    return FittedTurns(tuple(reversed(chosen)), len(turns) - len(chosen))


def _without_rows(each: Counted, counter: TokenCounter) -> Counted:
    if not each.is_result:
        return each
    stub = Counted.of(replace(each.message, text=LEFT_OUT), counter)
    return stub if stub.tokens < each.tokens else each


def _shorten_to(messages: tuple[Counted, ...], room: int, rows: int, counter: TokenCounter) -> tuple[Counted, ...]:
    """The same messages with the longest results, then the longest texts and arguments, cut until all fit."""
    shortened = list(messages)
    results = [place for place, each in enumerate(messages) if each.is_result]
    words = [place for place in range(len(messages) - 1, -1, -1) if place not in results]
    size = sum(each.tokens for each in messages)
    over_rows = sum(messages[place].tokens for place in results) - rows
    _cut_largest(shortened, results, max(over_rows, size - room), counter)
    size = sum(each.tokens for each in shortened)
    if size > room:
        _cut_largest(shortened, words, size - room, counter)
    return tuple(shortened)


def _cut_largest(messages: list[Counted], places: Sequence[int], excess: int, counter: TokenCounter) -> None:
    """Bring the largest of `places` down to one common height, so that `excess` tokens are saved and small ones stay
    whole."""
    if excess <= 0 or not places:
        return
    height = _common_height([messages[place].tokens for place in places], excess)
    for place in places:
        if messages[place].tokens > height:
            messages[place] = _cut_message(messages[place], height, counter)


def _common_height(sizes: Sequence[int], excess: int) -> int:
    """The height to which the larger of `sizes` must go down, so that `excess` is saved."""
    target = max(0, sum(sizes) - excess)
    left = len(sizes)
    for size in sorted(sizes):
        if size * left <= target:
            target -= size
            left -= 1
        else:
            break
    return target // left if left else max(sizes)


def _cut_message(each: Counted, height: int, counter: TokenCounter) -> Counted:
    """One message in at most `height` tokens, as far as its frame and its calls allow."""
    message = each.message
    if isinstance(message, AssistantMessage) and message.tool_calls:
        most = max(16, height // (len(message.tool_calls) + 1))
        calls = tuple(
            replace(call, arguments={"left_out": "too long to be repeated"})
            if call.arguments is not None and counter.count(call.arguments_text) > most
            else call
            for call in message.tool_calls
        )
        message = replace(message, tool_calls=calls)
    frame = Counted.of(replace(message, text=""), counter).tokens
    cut = cut_lines if each.is_result else cut_text
    return Counted.of(replace(message, text=cut(message.text, height - frame, counter)), counter)


def cut_lines(text: str, limit: int, counter: TokenCounter) -> str:
    """`text` in `limit` tokens, cut between its lines; the first and the last stay, since they are what marks it as
    data. The line "... showing first N of M lines" says so. A first line between them that is too long alone is cut
    inside, with a mark; a text of a few lines is cut like `cut_text`."""
    head, *lines = text.splitlines() or [""]
    if len(lines) < 3:
        return cut_text(text, limit, counter)
    room = limit - _ROOM_FOR_NOTE
    head, tail = cut_text(head, room // 2, counter), cut_text(lines.pop(), room // 4, counter)
    room -= sum(counter.count(part) + 1 for part in (head, tail) if part)
    shown: list[str] = []
    for line in lines:
        size = counter.count(line[: room * MOST_CHARACTERS + 1]) + 1
        if size > room:
            if not shown and room > _ROOM_FOR_NOTE:
                shown.append(cut_text(line, room, counter))
            break
        shown.append(line)
        room -= size
    note = f"... showing first {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
    return "\n".join(part for part in (head, *shown, note, tail) if part)


def cut_text(text: str, limit: int, counter: TokenCounter) -> str:
    """`text` if it takes at most `limit` tokens, else its beginning and " ... (cut)". Never more than `limit`, unless
    that is too small for the mark."""
    start = text[: max(0, limit) * MOST_CHARACTERS]
    size = counter.count(start)
    if not text or (len(start) == len(text) and size <= limit):
        return text
    room = max(0, limit - counter.count(MARK))
    while start and size > room:
        start = start[: min(len(start) - 1, len(start) * room // size)]
        size = counter.count(start)
    return start.rstrip() + MARK
