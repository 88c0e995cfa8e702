"""What the tests of knowledge share: the shipped playbooks."""

from __future__ import annotations

from pathlib import Path

import pytest

PLAYBOOKS = Path(__file__).resolve().parents[2] / "data" / "playbooks"


@pytest.fixture(scope="session")
def playbooks() -> Path:
    return PLAYBOOKS
