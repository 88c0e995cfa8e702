"""An offline analyst over the small estate, at the estate's own time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

Ask = Callable[[str], Awaitable[Answer]]


@pytest.fixture
def gateway() -> ScriptedGateway:
    return small_estate()


@pytest.fixture
def analyst(gateway: ScriptedGateway) -> OfflineAnalyst:
    return OfflineAnalyst(gateway, clock=lambda: NOW)


@pytest.fixture
def ask(analyst: OfflineAnalyst) -> Ask:
    """Ask one question after another in one session."""

    async def one(question: str) -> Answer:
        return await analyst.answer(Question(question, "shift-1"))

    return one
