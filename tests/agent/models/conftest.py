"""What the tests of the model port share: a port onto a scripted model, with time limits that suit a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from sentinel_rag.agent.models.endpoints import api_key, compatible_endpoint, no_key
from sentinel_rag.agent.models.openai_wire import OpenAIWireModel, TimeLimits
from sentinel_rag.agent.models.port import ModelRequest, SystemMessage, UserMessage
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME

PATIENT = TimeLimits(connect_s=30, first_token_s=30, next_token_s=30, whole_answer_s=60, tail_s=10)
SHORT = TimeLimits(connect_s=30, first_token_s=1.0, next_token_s=0.8, whole_answer_s=2.0, tail_s=0.3)
"""For scenarios of silence only: on a busy machine a good answer can take a second."""
TOOLS = [TOOLS_BY_NAME[name] for name in ("query_alerts", "query_incidents", "get_incident_detail", "list_tables")]

Connect = Callable[..., OpenAIWireModel]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Make models for the address of a scripted one; all are closed at the end."""
    models: list[OpenAIWireModel] = []

    def make(url: str, *, key: str = "", limits: TimeLimits = PATIENT) -> OpenAIWireModel:
        model = OpenAIWireModel(
            compatible_endpoint(f"{url}/v1", "scripted", api_key(key) if key else no_key), limits=limits
        )
        models.append(model)
        return model

    yield make
    for model in models:
        await model.aclose()


@pytest.fixture
def question() -> ModelRequest:
    """A question with the tools that the scenarios call."""
    return ModelRequest([SystemMessage("Be brief."), UserMessage("How many incidents are open?")], tools=TOOLS)


@pytest.fixture
def patient_limits() -> TimeLimits:
    return PATIENT


@pytest.fixture
def short_limits() -> TimeLimits:
    return SHORT
