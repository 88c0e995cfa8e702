"""A desk of approvals for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from approval_desk import Clock, Desk, open_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "journal.sqlite", Clock()) as opened:
        yield opened
