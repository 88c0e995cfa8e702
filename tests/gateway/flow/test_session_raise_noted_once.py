"""A call that raises sessions together is noted once for each of them, whoever opened them."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.approvals import Raised
from sentinel_rag.gateway.store import open_state


@pytest.mark.requirement("TAINT-5")
def test_each_session_that_rises_has_one_note_of_the_call(tmp_path: Path) -> None:
    async def run() -> list[list[Raised]]:
        with open_state(tmp_path) as state:
            own = await state.sessions.open("agent")
            kept_ready = await state.sessions.open("agent")
            of_a_person = await state.sessions.open("agent", user_key_id="person")
            of_another_key = await state.sessions.open("other")
            rise = own.raise_to(TOP, audit_id="call-1", tool="read_mail", now=utc_now())
            await state.database.run(rise)
            assert (own.context, kept_ready.context, of_a_person.context) == (TOP, TOP, TOP)
            assert of_another_key.context == BOTTOM
            again = own.raise_to(TOP, audit_id="call-2", tool="read_mail", now=utc_now())
            await state.database.run(again)
            return [await state.sessions.raises(one) for one in (own, kept_ready, of_a_person, of_another_key)]

    *risen, other = anyio.run(run)
    assert [[(note.audit_id, note.tool, note.label) for note in notes] for notes in risen] == (
        [[("call-1", "read_mail", TOP)]] * 3
    )
    assert other == []
