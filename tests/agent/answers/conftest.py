"""Three incidents, a dossier, log rows and a computed duration, as results of a conversation."""

from __future__ import annotations

import pytest

from answer_rows import results
from sentinel_rag.agent.answers.evidence import Evidence


@pytest.fixture
def evidence() -> Evidence:
    return Evidence(results(), said=["What about evil.example and T1003?"])
