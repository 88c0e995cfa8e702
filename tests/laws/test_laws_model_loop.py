"""Laws of the model-driven loop: whatever a model says, calls or fails with, in whatever order, over several questions.

Every question ends in an answer; every request that a provider gets is one that it accepts; the bounds hold; the same
change is sent at most once a question; no invented value is shown without its mark, and every word of a model is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.small_estate import NOW, small_estate

from conversation_rules import conversation_faults
from sentinel_rag.agent.model_analyst import ModelAnalyst, TurnLimits
from sentinel_rag.agent.models.failures import ContextOverflowError, FailureKind, ModelError, PromptFilteredError
from sentinel_rag.agent.models.port import (
    NO_DEADLINE,
    AssistantMessage,
    CallProblem,
    Finished,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ModelToolCall,
    ModelUsage,
    ToolChoice,
)
from sentinel_rag.agent.models.retrying import Tier
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import ToolCall, ToolOutcome
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, denial, failure, rows_result, shipped_catalogue

pytestmark = [pytest.mark.requirement("CHAT-13"), pytest.mark.requirement("GRND-1")]
LIMITS = TurnLimits(turn_s=60, rounds=5, calls_a_round=4, calls=6, retries=0)
INVENTED = "987654"

Said = str | tuple[tuple[str, str], ...] | FailureKind
_TEXTS = st.sampled_from(
    [
        *("Incident 40 is High [c1.1].", f"Incident {INVENTED} is High.", f"Incident {INVENTED} is High [c1.1]."),
        *("Incident 40 is High [c1.1].\n" * 40, f"Incident {INVENTED} is High.\n" * 40),
        *("Hello.", "Which one?", "I closed it.", " ", f"1: Incident {INVENTED} is Low [c1].", "1:"),
    ]
)
_CALLS = st.sampled_from(
    [
        ("query_incidents", "all"),
        ("query_incidents", "none"),
        ("query_alerts", "all"),
        ("get_top_entities", "all"),
        ("update_incident", "all"),
        ("read_rows", "all"),
        ("compute", "all"),
        ("no_such_tool", "all"),
        ("query_incidents", "broken"),
    ]
)
_FAILURES = st.sampled_from(
    [FailureKind.PROMPT_FILTERED, FailureKind.CONTEXT_OVERFLOW, FailureKind.CREDIT, FailureKind.CUT_OFF]
)
_SAID = st.one_of(_TEXTS, st.lists(_CALLS, min_size=1, max_size=7).map(tuple), _FAILURES)
_TURNS = st.lists(st.lists(_SAID, min_size=1, max_size=6), min_size=1, max_size=4)


def _error(kind: FailureKind) -> ModelError:
    if kind is FailureKind.PROMPT_FILTERED:
        return PromptFilteredError({"violence": "high"})
    if kind is FailureKind.CONTEXT_OVERFLOW:
        return ContextOverflowError(limit_tokens=None, used_tokens=None)
    return ModelError(kind, "empty_answer")


@dataclass
class _Stream:
    outcome: Finished | ModelError
    over: bool = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ModelEvent:
        if self.over:
            raise StopAsyncIteration
        self.over = True
        if isinstance(self.outcome, ModelError):
            raise self.outcome
        return self.outcome


@dataclass
class AnyModel:
    """Says what was drawn, whatever it is asked, and keeps every request. Ids begin again with every answer, as some
    providers have it."""

    script: Iterator[Said] = field(default_factory=lambda: iter(()))
    requests: list[ModelRequest] = field(default_factory=list)
    name: str = "any"

    def of(self, _: Tier) -> AnyModel:
        return self

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> _Stream:
        del deadline
        self.requests.append(request)
        said = next(self.script, "That is all.")
        usage = ModelUsage(requests=1, uncounted=1, unpriced=1, models=(self.name,))
        if isinstance(said, FailureKind):
            return _Stream(_error(said))
        if isinstance(said, str):
            return _Stream(Finished(FinishReason.STOP, AssistantMessage(said), usage))
        calls = tuple(_call(place, name, kind) for place, (name, kind) in enumerate(said))
        return _Stream(Finished(FinishReason.TOOL_CALLS, AssistantMessage("", calls), usage))

    async def aclose(self) -> None:
        return None


def _call(place: int, name: str, kind: str) -> ModelToolCall:
    call_id = f"call_{place}"
    if name == "no_such_tool":
        return ModelToolCall(call_id, name, None, "{}", CallProblem.UNKNOWN_TOOL, "There is no such tool.")
    if kind == "broken":
        return ModelToolCall(call_id, name, None, "{", CallProblem.NO_ARGUMENTS_OBJECT, "No object.")
    given = {
        "update_incident": {"incident": "40"},
        "read_rows": {"result": "c1"},
        "compute": {"op": "count", "rows": "c1"},
    }
    arguments = {"severity": "Low", "status": "New"} if kind == "none" else given.get(name, {})
    return ModelToolCall(call_id, name, arguments, "{}")


class _Gateway:
    """The estate: alerts are refused, entities fail, changes work."""

    def __init__(self) -> None:
        self.inner: ScriptedGateway = small_estate(lambda: NOW)
        self.inner.answers["query_alerts"] = denial()
        self.inner.answers["get_top_entities"] = failure(QueryErrorCode.TIMEOUT, "Too slow.")
        self.inner.answers["update_incident"] = rows_result([{"number": 40, "title": "Inbox rule", "status": "Closed"}])
        self.calls: list[ToolCall] = []

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        return await self.inner.execute(call)

    async def offered_tools(self) -> frozenset[str]:
        return await self.inner.offered_tools()


async def _ask_all(turns: Sequence[Sequence[Said]]) -> None:
    model, gateway = AnyModel(), _Gateway()
    analyst = ModelAnalyst(gateway, model, catalogue=shipped_catalogue(gateway), clock=lambda: NOW, limits=LIMITS)
    for said in turns:
        model.requests.clear()
        gateway.calls.clear()
        model.script = iter(said)
        answer = await analyst.answer(Question("What is going on, and close incident 40", "session-1"))
        assert answer.text.strip()
        for sentence in answer.sentences:
            assert INVENTED not in sentence.text or sentence.state in (
                SentenceState.NOT_FOUND,
                SentenceState.CONTRADICTED,
            )
        told = "".join(sentence.text for sentence in answer.sentences)
        assert answer.text.count(INVENTED) == told.count(INVENTED)
        for request in model.requests:
            assert conversation_faults(request.messages) == ()
        changes = [call for call in gateway.calls if call.tool_name == "update_incident"]
        assert len(changes) <= 1
        assert len(gateway.calls) <= LIMITS.calls
        asked = [request.tool_choice for request in model.requests]
        again = 2  # with the rows defanged, and with fewer turns
        assert asked.count(ToolChoice.NONE) <= 1 + 1 + again, "the last request, and the last of the repair"
        query_first, look, last, repair = 1, 1, 1, LIMITS.repair_rounds
        assert len(asked) <= LIMITS.rounds + query_first + look + last + repair + again
        sent = [trace.call_id for trace in answer.tools if trace.name != "compute"]
        assert sent == [call.call_id for call in gateway.calls]


@given(_TURNS)
@settings(max_examples=40, deadline=None)
def test_every_question_ends_within_its_bounds_in_a_conversation_that_a_provider_takes(
    turns: list[list[Said]],
) -> None:
    anyio.run(_ask_all, turns)
