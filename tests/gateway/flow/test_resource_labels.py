"""What was written is heard by whoever reads it, a part of it, or what it is part of; and by nobody else."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Label
from sentinel_rag.gateway.store import open_state, resources_of


@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize(
    ("written", "read", "heard"),
    [
        ("doc/5", "doc/5", True),
        ("doc/5", "doc/6", False),
        ("doc/5", "doc/*", True),
        ("doc/5/notes", "doc/5", True),
        ("doc/5/notes", "doc/5/*", True),
        ("doc/5/notes", "doc/5/title", False),
        ("doc/5", "doc/5/notes", True),
        ("doc", "doc/5/notes", True),
        ("doc", "doc/*", True),
        ("doc/5", "file/5", False),
        ("doc/5", "doc/55", False),
    ],
)
def test_who_hears_of_what_was_written(tmp_path: Path, written: str, read: str, heard: bool) -> None:
    async def run() -> Label:
        with open_state(tmp_path) as state:
            await state.database.run(state.resources.raise_to([written], TOP))
            return await state.resources.of([read])

    assert anyio.run(run) == (TOP if heard else BOTTOM)


def test_an_argument_is_one_part_whatever_it_holds() -> None:
    assert resources_of(["doc/{id}/x"], {"id": " A/b* "}) == ["doc/a%2Fb%2A/x"]
    assert resources_of(["doc/{id}/x"], {}) == ["doc/*"]
