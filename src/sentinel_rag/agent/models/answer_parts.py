"""One answer out of a provider's chunks, or out of a whole completion: the accumulator.

Takes parsed JSON documents and gives events; at the end it decides, from what was sent and not from what was claimed,
how the answer ended. Knows no HTTP and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentinel_rag.agent.models.failures import FailureKind, ModelError, PromptFilteredError
from sentinel_rag.agent.models.messages import AssistantMessage, CallProblem, ModelToolCall
from sentinel_rag.agent.models.port import Finished, FinishReason, ModelEvent, TextDelta, ToolCallStarted
from sentinel_rag.agent.models.tool_call_parts import ToolCallParts, TooManyPartsError
from sentinel_rag.agent.models.usage import TokenCounts
from sentinel_rag.agent.models.wire_failures import Asked, as_mapping, bad_answer, failure_of_error, filter_categories

MAX_TEXT_CHARACTERS = 400_000
_CUT_SHORT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens"})


class AnswerParts:
    """Collects one answer to what was asked."""

    def __init__(self, asked: Asked, *, offered: Iterable[str] = (), taken_ids: Iterable[str] = ()) -> None:
        self._asked = asked
        self._calls = ToolCallParts(offered, taken_ids)
        self._text: list[str] = []
        self._length = 0
        self._half = ""
        self._refused = False
        self._finish = ""
        self._filtered: dict[str, str] = {}
        self.tokens: TokenCounts | None = None

    @property
    def has_ended(self) -> bool:
        """True once the provider gave a reason; what may follow is usage and remarks of a filter."""
        return bool(self._finish)

    def add(self, document: Any) -> list[ModelEvent]:
        """Take a chunk, or a whole completion. Raises ModelError for an error object and for what is no answer."""
        if not isinstance(document, Mapping):
            raise self._bad("holds something that is no JSON object")
        if document.get("error") or "error" in (document.get("object"), document.get("type")):
            raise failure_of_error(document, asked=self._asked)
        self._count(document.get("usage"))
        choices = document.get("choices")
        if not choices:
            self._heed_prompt_filter(document.get("prompt_filter_results"))
        events: list[ModelEvent] = []
        for choice in _list(choices):
            if isinstance(choice, Mapping) and choice.get("index") in (0, None):
                self._choice(choice, events)
        return events

    def _heed_prompt_filter(self, results: Any) -> None:
        """Raise PromptFilteredError if the prompt was stopped, and not only remarked on."""
        verdicts = [as_mapping(as_mapping(entry).get("content_filter_results")) for entry in _list(results)]
        if any(as_mapping(verdict).get("filtered") is True for found in verdicts for verdict in found.values()):
            raise PromptFilteredError(
                {name: grade for found in verdicts for name, grade in filter_categories(found).items()}
            )

    def require_choices(self, document: Any) -> None:
        """Raise ModelError unless a whole completion holds an answer at all."""
        choices = document.get("choices") if isinstance(document, Mapping) else None
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            raise self._bad("holds no choices")

    def _choice(self, choice: Mapping[str, Any], events: list[ModelEvent]) -> None:
        self._filtered |= filter_categories(choice.get("content_filter_results"))
        if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
            self._finish = choice["finish_reason"].casefold()
        message = choice.get("delta") or choice.get("message")
        if not isinstance(message, Mapping):
            return
        self._say(_plain_text(message.get("content")), events)
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._refused = True
            self._say(refusal, events)
        pieces = [*_list(message.get("tool_calls"))]
        if isinstance(message.get("function_call"), Mapping):  # the form before tool calls; some servers keep it
            pieces.append({"index": 0, "function": message["function_call"]})
        for piece in pieces:
            try:
                opened = self._calls.add(piece)
            except TooManyPartsError:
                raise self._bad("holds more tool calls, or longer ones, than can be real") from None
            if opened:
                events.append(ToolCallStarted(opened))

    def _say(self, text: str, events: list[ModelEvent]) -> None:
        text, self._half = whole_characters(self._half + text)
        if not text:
            return
        self._length += len(text)
        if self._length > MAX_TEXT_CHARACTERS:
            raise self._bad("is longer than an answer can be")
        self._text.append(text)
        events.append(TextDelta(text))

    def _count(self, usage: Any) -> None:
        """Keep the newest counts: some servers send growing ones with every chunk."""
        if not isinstance(usage, Mapping):
            return
        counts = TokenCounts(
            input=_number(usage, "prompt_tokens"),
            output=_number(usage, "completion_tokens"),
            cached_input=_number(usage.get("prompt_tokens_details"), "cached_tokens"),
            reasoning=_number(usage.get("completion_tokens_details"), "reasoning_tokens"),
        )
        if counts.input or counts.output:
            self.tokens = counts

    def end(self, *, in_order: bool) -> Finished:
        """What the answer was, without usage. `in_order`: the provider closed it itself (`[DONE]`, a whole completion).

        Raises ModelError if it was cut off, failed or says nothing.
        """
        if self._finish == "error":
            raise ModelError(
                FailureKind.PROVIDER,
                "The model's provider failed amid the answer.",
                next_step="Ask again in a moment.",
            )
        if not self._finish and not in_order:
            raise self._cut_off()
        cut = self._finish in _CUT_SHORT
        filtered = self._finish == "content_filter"
        calls = self._read_calls(last_is_cut=cut or filtered)
        if not self._finish and any(call.problem is CallProblem.NO_ARGUMENTS_OBJECT for call in calls):
            raise self._cut_off()
        text = "".join(self._text)
        if filtered:
            reason = FinishReason.CONTENT_FILTER
        elif cut:
            reason = FinishReason.LENGTH
        elif calls:
            reason = FinishReason.TOOL_CALLS
        elif self._refused:
            reason = FinishReason.REFUSAL
        elif text.strip():
            reason = FinishReason.STOP
        else:
            raise ModelError(
                FailureKind.EMPTY_ANSWER,
                "The model ended its answer and said nothing.",
                next_step="Ask again; if it stays, ask in other words or choose another model.",
            )
        message = AssistantMessage(text, calls)
        return Finished(reason, message, filtered=dict(self._filtered), stated=bool(self._finish))

    def _read_calls(self, *, last_is_cut: bool) -> tuple[ModelToolCall, ...]:
        try:
            return self._calls.calls(last_is_cut=last_is_cut)
        except TooManyPartsError:
            raise self._bad("holds more tool calls, or longer ones, than can be real") from None

    def _cut_off(self) -> ModelError:
        return ModelError(
            FailureKind.CUT_OFF,
            "The model's answer broke off before its end.",
            next_step="Ask again; if it stays, check the connection.",
        )

    def _bad(self, what: str) -> ModelError:
        return bad_answer(self._asked.model, what)


def whole_characters(text: str) -> tuple[str, str]:
    """`text` with its halves of characters joined, and a first half at its end that waits for the next piece.

    Servers that escape characters beyond 16 bits cut between the two escapes; a half amid text becomes U+FFFD.
    """
    if text.isascii():
        return text, ""
    half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
    whole = text[: len(text) - len(half)]
    return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"), half


def _plain_text(content: Any) -> str:
    """The text of `content`: a string, or a list of parts of which the text ones count."""
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] for part in _list(content) if isinstance(part, Mapping) and isinstance(part.get("text"), str)
    )


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _number(holder: Any, key: str) -> int:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
