"""A model-driven analyst over the small estate, whose model is a scripted one behind the real wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst import ModelAnalyst, TurnLimits
from sentinel_rag.agent.models.endpoints import compatible_endpoint, no_key
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import ChatModel
from sentinel_rag.agent.models.retrying import Tier
from sentinel_rag.contracts.conversations import Preferences
from sentinel_rag.contracts.evidence import Answer, Progress
from sentinel_rag.contracts.ports import Question, ToolGateway
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, shipped_catalogue
from sentinel_rag_testing.scripted_model import Reply, ScriptedModel

PATIENT = TimeLimits(connect_s=30, first_token_s=30, next_token_s=30, whole_answer_s=60, tail_s=10)
SESSION = "session-1"


@dataclass
class OneModel:
    """The same model for both tiers. `patient` is it with time limits that a busy machine keeps."""

    model: ChatModel
    patient: ChatModel

    def of(self, _: Tier) -> ChatModel:
        return self.model


def states(answer: Answer) -> dict[str, str]:
    """What the check says of each sentence of an answer."""
    return {sentence.text: sentence.state.value for sentence in answer.sentences}


@dataclass
class Desk:
    """An analyst with its gateway and its model's server. `lines` are the status lines so far."""

    server: ScriptedModel
    gateway: ScriptedGateway
    analyst: ModelAnalyst
    models: OneModel
    lines: list[str] = field(default_factory=list)

    states = staticmethod(states)

    async def ask(self, question: str, **options: Any) -> Answer:
        return await self.analyst.answer(Question(question, SESSION, Preferences(**options), self._hear))

    def _hear(self, progress: Progress) -> None:
        if progress.tool is None:
            self.lines.append(progress.text)

    def script(self, *replies: Reply) -> None:
        """What the model says from here on; the last reply repeats."""
        self.server.replies, self.server._given = replies, 0

    def be_patient(self) -> None:
        """From here on no time limit of a test counts."""
        self.models.model = self.models.patient

    def sent(self, place: int = -1) -> list[dict[str, Any]]:
        """The messages of one request to the model."""
        return self.server.requests[place].body["messages"]

    def asked(self, place: int = -1) -> str:
        """The person's newest question in one request, with the context that it is asked in."""
        return next(m["content"] for m in reversed(self.sent(place)) if "<context>" in str(m["content"]))

    def results(self, place: int = -1) -> list[str]:
        """The texts of the tool results in one request to the model."""
        return [message["content"] for message in self.sent(place) if message["role"] == "tool"]


MakeDesk = Callable[..., Desk]


@pytest.fixture
async def desk() -> AsyncIterator[MakeDesk]:
    """Make desks; their servers stop and their connections close at the end."""
    models: list[OpenAIWireModel] = []
    with ExitStack() as stack:

        def make(
            *replies: Reply,
            gateway: ToolGateway | None = None,
            limits: TurnLimits | None = None,
            times: TimeLimits = PATIENT,
            **options: Any,
        ) -> Desk:
            server = ScriptedModel(replies)
            url = stack.enter_context(server.running())
            endpoint = compatible_endpoint(f"{url}/v1", "scripted", no_key)
            model, patient = OpenAIWireModel(endpoint, limits=times), OpenAIWireModel(endpoint, limits=PATIENT)
            models.extend((model, patient))
            both = OneModel(model, patient)
            tools = small_estate() if gateway is None else gateway
            options = {"catalogue": shipped_catalogue(tools), "limits": limits or TurnLimits(turn_s=60), **options}
            analyst = ModelAnalyst(tools, both, clock=lambda: NOW, **options)
            return Desk(server, tools, analyst, both)  # type: ignore[arg-type]

        yield make
        for model in models:
            await model.aclose()
