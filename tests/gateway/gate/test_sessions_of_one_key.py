"""Sessions of one key rise together: what one has seen, the agent may carry into the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from small_gate import KEY, Clock

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.store import ContextMoved, Session, State

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TAINT-2")]
SECRET, UNTRUSTED = Label(Sensitivity.HIGH), Label(integrity=Integrity.UNTRUSTED)
MEDIUM = Label(Sensitivity.MEDIUM)


@pytest.fixture
def beside(state: State, reopen: Callable[[], State]) -> Iterator[State]:
    """A second gateway process over the same state."""
    with reopen() as other:
        yield other


async def reveal(state: State, session: Session, label: Label, clock: Clock, audit_id: str = "a") -> None:
    await state.database.run(session.raise_to(label, audit_id=audit_id, tool="t", now=clock()))


async def stored(state: State, session: Session) -> Label:
    """What the file has of a session, as another process reads it."""
    found = await state.sessions.find(session.session_id, session.key_id)
    assert found is not None
    await state.sessions.refresh(found)
    return found.context


async def test_the_agents_own_sessions_rise_with_every_session_of_the_key(
    state: State, beside: State, clock: Clock
) -> None:
    own, second = await state.sessions.open(KEY), await state.sessions.open(KEY)
    clean = await state.sessions.open(KEY, user_key_id="person")
    await reveal(state, clean, SECRET, clock, "a1")
    assert (own.context, second.context, clean.context) == (SECRET, SECRET, SECRET)
    for session in (own, second, clean):
        assert await stored(beside, session) == SECRET
        told = await state.sessions.raises(session)
        assert [(one.audit_id, one.tool, one.label) for one in told] == [("a1", "t", SECRET)]


async def test_a_persons_session_rises_by_what_the_agents_own_reveal_and_by_no_other_persons(
    state: State, beside: State, clock: Clock
) -> None:
    own = await state.sessions.open(KEY)
    first = await state.sessions.open(KEY, user_key_id="person")
    second = await state.sessions.open(KEY, user_key_id="another person")
    await reveal(state, first, MEDIUM, clock)
    assert (second.context, await stored(beside, second)) == (BOTTOM, BOTTOM)
    assert (own.context, await stored(beside, own)) == (MEDIUM, MEDIUM)
    await reveal(state, own, UNTRUSTED, clock)
    # Only what was revealed there, and not all that it had seen: the rest is of the first person's session.
    assert (second.context, await stored(beside, second)) == (UNTRUSTED, UNTRUSTED)
    assert (first.context, await stored(beside, first)) == (MEDIUM.join(UNTRUSTED), MEDIUM.join(UNTRUSTED))


async def test_a_read_whose_first_try_was_undone_still_counts_as_use_of_its_session(state: State, clock: Clock) -> None:
    """Else a session that rested for a day and reads again would not count for the floor of the next one."""
    rested = await state.sessions.open(KEY)
    clock.passes(hours=25)

    def undone(connection: RecordConnection) -> None:
        rested.raise_to(BOTTOM, audit_id="a", tool="t", now=clock())(connection)
        raise ContextMoved

    with pytest.raises(ContextMoved):
        await state.database.run(undone)
    await reveal(state, rested, SECRET, clock)
    assert (await state.sessions.open(KEY)).context == SECRET


async def test_what_is_revealed_again_reaches_a_session_opened_since(state: State, beside: State, clock: Clock) -> None:
    own = await state.sessions.open(KEY)
    await reveal(state, own, SECRET, clock)
    clean = await state.sessions.open(KEY, user_key_id="person")
    assert clean.context == BOTTOM
    await reveal(state, own, BOTTOM, clock)
    assert (clean.context, await stored(beside, clean)) == (BOTTOM, BOTTOM)
    await reveal(state, own, SECRET, clock)
    assert (clean.context, await stored(beside, clean)) == (SECRET, SECRET)


async def test_other_keys_and_closed_sessions_stay_as_they_are(state: State, beside: State, clock: Clock) -> None:
    own, other = await state.sessions.open(KEY), await state.sessions.open("another")
    others = await state.sessions.open("another", user_key_id="person")
    closed = await state.sessions.open(KEY)
    await state.sessions.close(closed.session_id, KEY)
    await reveal(state, own, TOP, clock)
    assert (other.context, others.context) == (BOTTOM, BOTTOM)
    assert (await stored(beside, other), await stored(beside, others)) == (BOTTOM, BOTTOM)
    assert await state.sessions.raises(closed) == []


async def test_a_session_above_the_label_is_left_alone(state: State, beside: State, clock: Clock) -> None:
    own = await state.sessions.open(KEY)
    clean = await state.sessions.open(KEY, user_key_id="person")
    await reveal(state, clean, TOP, clock, "a1")
    await reveal(state, own, SECRET, clock, "a2")
    assert await stored(beside, clean) == TOP
    assert [one.audit_id for one in await state.sessions.raises(clean)] == ["a1"]


async def test_sessions_of_another_process_rise_in_the_file(state: State, beside: State, clock: Clock) -> None:
    own = await state.sessions.open(KEY)
    other = await beside.sessions.open(KEY)
    clean = await beside.sessions.open(KEY, user_key_id="person")
    await reveal(state, own, SECRET, clock)
    assert other.context == BOTTOM
    with pytest.raises(ContextMoved):
        await reveal(beside, other, BOTTOM, clock)
    assert await beside.sessions.refresh(other)
    assert not await beside.sessions.refresh(other)
    assert other.context == SECRET
    with pytest.raises(ContextMoved):
        await reveal(beside, clean, BOTTOM, clock)
    assert await beside.sessions.refresh(clean)
    assert clean.context == SECRET


async def test_a_refresh_tells_whether_there_was_news(state: State, beside: State, clock: Clock) -> None:
    session = await state.sessions.open(KEY)
    other = await beside.sessions.find(session.session_id, KEY)
    assert other is not None
    assert not await state.sessions.refresh(session)
    _, write = other.name(named_in("host ws-1"), "user")
    await beside.database.run(write)
    assert await state.sessions.refresh(session)
    assert not await state.sessions.refresh(session)
    await beside.sessions.close(session.session_id, KEY)
    assert await state.sessions.refresh(session)
    assert session.closed
