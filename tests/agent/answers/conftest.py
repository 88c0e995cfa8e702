"""Three incidents, a dossier, log rows and a computed duration, as results of a conversation."""

from __future__ import annotations

import pytest

from answer_rows import results
from sentinel_rag.agent.answers.evidence import ReadResults


@pytest.fixture
def evidence() -> ReadResults:
    return ReadResults(results(), said=["What about evil.example and T1003?"])
