"""Names, pointers and resources may be long and like nothing else: longer than an index of PostgreSQL takes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.support.postgres_state import EmptyStates

from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.gateway.flow import HandleReference, Hidden
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.policy.model import ValueKind
from sentinel_rag.gateway.store import open_state, resources_of


def noise(seed: int) -> str:
    """4 000 characters that do not compress."""
    draw = random.Random(seed)
    return "".join(chr(draw.randrange(0x4E00, 0x9FA5)) for _ in range(4_000))


@pytest.mark.anyio
@pytest.mark.requirement("OPS-5")
async def test_long_names_pointers_and_resources_are_kept_apart(postgres_states: EmptyStates, tmp_path: Path) -> None:
    place = postgres_states.place(tmp_path / "state")
    one, other = noise(1), noise(2)
    with open_state(place.folder, postgres=place) as state:
        session = await state.sessions.open("agent")
        values = [NamedValue(ValueKind.QUOTED, text) for text in (one, other)]
        _, write = session.name(values, "user")
        await state.database.run(write)
        await state.database.run(write)  # naming twice is once
        reference = HandleReference(1, (one,))
        await state.database.run(state.handles.keep(session.session_id, [Hidden(reference, b'"hidden"', TOP)]))
        resources = [resources_of(["doc/{name}"], {"name": text})[0] for text in (one, other)]
        for label in (BOTTOM, TOP, BOTTOM):
            await state.database.run(state.resources.raise_to(resources[:1], label))
    with open_state(place.folder, postgres=place) as state:
        again = await state.sessions.find(session.session_id, "agent")
        assert again is not None
        assert set(again.named) == set(values)
        assert (await state.handles.resolve(session.session_id, [reference]))[reference].value == "hidden"
        assert await state.resources.of(resources[:1]) == TOP
        assert await state.resources.of(resources[1:]) == BOTTOM
