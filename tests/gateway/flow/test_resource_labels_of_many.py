"""A call may read more resources than one statement asks for: each is heard all the same."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.gateway.store import open_state

SECRET, DOUBTFUL = Label(Sensitivity.HIGH), Label(Sensitivity.LOW, Integrity.UNTRUSTED)


@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize("written", [0, 31, 32, 63, 199])
def test_the_join_is_over_all_of_them(tmp_path: Path, written: int) -> None:
    many = [f"doc/{number}" for number in range(200)]

    async def run() -> tuple[Label, Label]:
        with open_state(tmp_path) as state:
            await state.database.run(state.resources.raise_to([many[written]], SECRET))
            await state.database.run(state.resources.raise_to(["doc/100"], DOUBTFUL))
            return await state.resources.of(many), await state.resources.of(many[:100][:written])

    all_of_them, before = anyio.run(run)
    assert all_of_them == SECRET.join(DOUBTFUL)
    assert before == BOTTOM
