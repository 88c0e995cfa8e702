"""Hidden values of a session: how many it has kept makes no call slower, small ones take room too, and what nobody has
used for a month is forgotten, on either engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.flow import HandleReference, Hidden, NoSuchHandle
from sentinel_rag.gateway.flow.view import MAX_HANDLES
from sentinel_rag.gateway.store import HandleStore, State, handles, open_state

pytestmark = pytest.mark.requirement("TAINT-3")
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module", params=["files", "postgresql"])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    folder = tmp_path_factory.mktemp("state")
    place = None
    if request.param == "postgresql":
        states: EmptyStates = request.getfixturevalue("postgres_states")
        place = states.place(folder)
    with open_state(folder, clock=lambda: NOW, postgres=place) as opened:
        yield opened


class WatchedDatabase:
    """A database that tells what a reader asks beside the writers; nothing else may be asked of it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.asked: list[str] = []
        self.values: list[Sequence[Any]] = []

    async def look(self, work: Any) -> Any:
        def watched(connection: RecordConnection) -> Any:
            seen = Watched(connection)
            try:
                return work(seen)
            finally:
                self.asked += seen.asked
                self.values += seen.values

        return await self.state.database.look(watched)


class Watched:
    """A connection that tells which rows a statement brought."""

    def __init__(self, connection: RecordConnection) -> None:
        self.connection = connection
        self.asked: list[str] = []
        self.values: list[Sequence[Any]] = []

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        self.asked.append(sql)
        self.values.append(parameters)
        return self.connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        self.asked.append(sql)
        return self.connection.executemany(sql, parameters)


def parts(result: int, many: int, value: bytes = b"7") -> list[Hidden]:
    return [Hidden(HandleReference(result, (f"row{number}",)), value, TOP) for number in range(many)]


async def keep(state: State, session_id: str, hidden: list[Hidden]) -> list[str]:
    """Keep them; the statements that looked at hidden values which are there already."""

    def work(connection: RecordConnection) -> list[str]:
        watched = Watched(connection)
        state.handles.keep(session_id, hidden)(watched)
        return [sql for sql in watched.asked if "FROM handle" in sql]

    return await state.database.run(work)


def rows(state: State, session_id: str) -> dict[int, int]:
    """How many hidden values each result has."""
    return dict(
        state.database.run_now(
            lambda connection: connection.execute(
                "SELECT result, count(*) FROM handle WHERE session_id = ? GROUP BY result", [session_id]
            ).fetchall()
        )
    )


def counted(state: State, session_id: str) -> int:
    [[found]] = state.database.run_now(
        lambda connection: connection.execute(
            "SELECT hidden_bytes FROM session WHERE session_id = ?", [session_id]
        ).fetchall()
    )
    return int(found)


@pytest.mark.anyio
async def test_a_result_looks_at_none_of_the_hidden_values_before_it(state: State) -> None:
    session = (await state.sessions.open("key")).session_id
    for result in range(1, 4):
        assert await keep(state, session, parts(result, 300)) == []
    assert rows(state, session) == {1: 300, 2: 300, 3: 300}


@pytest.mark.anyio
async def test_many_small_ones_take_room_and_whole_results_go_from_the_oldest(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a tool server controls: how many parts a result has, and their names, NUL among them."""
    monkeypatch.setattr(handles, "MAX_SESSION_BYTES", 3_000)
    session = (await state.sessions.open("key")).session_id
    await keep(state, session, [Hidden(HandleReference(1, ("a\x00b" * 20,)), b"1", TOP)])
    await keep(state, session, parts(2, 10))
    await keep(state, session, parts(3, 10))
    assert rows(state, session) == {1: 1, 2: 10, 3: 10}
    await keep(state, session, parts(4, 10))
    assert rows(state, session) == {3: 10, 4: 10}
    assert counted(state, session) == 20 * (1 + len("/row0") + handles.PART_BYTES)
    await keep(state, session, parts(5, 100))
    assert rows(state, session) == {5: 100}, "the newest stays, whatever it takes"
    await state.sessions.close(session, "key")
    assert (rows(state, session), counted(state, session)) == ({}, 0)


@pytest.mark.anyio
async def test_what_nobody_has_used_for_a_month_is_forgotten_and_its_label_is_not(state: State) -> None:
    old, used = [(await state.sessions.open("key")).session_id for _ in range(2)]
    session = await state.sessions.find(old, "key")
    assert session is not None
    await state.database.run(session.raise_to(TOP, audit_id="a", tool="t", now=NOW))
    for each in (old, used):
        await keep(state, each, parts(1, 3))
    before = format_time(NOW - timedelta(days=30, minutes=1))
    state.database.run_now(
        lambda connection: connection.execute("UPDATE session SET used_at = ? WHERE session_id = ?", [before, old])
    )
    assert [state.handles.forget_unused(NOW) for _ in range(2)] == [1, 0]
    assert (rows(state, old), rows(state, used)) == ({}, {1: 3})
    await state.sessions.refresh(session)
    assert (session.context, session.closed) == (TOP, False)
    await keep(state, old, parts(2, 1))
    assert rows(state, old) == {2: 1}, "it goes on where it is used again"


@pytest.mark.anyio
async def test_a_call_with_as_many_handles_as_it_may_have_is_one_look_beside_the_writers(state: State) -> None:
    """What the attacker controls: handles and how deep they lead. Each was as many statements as it has segments, in
    the turn of every gateway's writer."""
    session = (await state.sessions.open("key")).session_id
    values = [
        Hidden(HandleReference(result, ("a",)), b'{"b": [1, {"c": "x"}]}', TOP) for result in range(1, MAX_HANDLES)
    ]
    await keep(state, session, values)
    deep = HandleReference(MAX_HANDLES, ("a",) * 16)
    inside = [HandleReference(result, ("a", "b", "1", "c")) for result in range(1, MAX_HANDLES)]
    watched = WatchedDatabase(state)
    store = HandleStore(cast("Any", watched))
    found = await store.resolve(session, inside)
    assert {(each.value, each.inside) for each in found.values()} == {("x", True)}
    with pytest.raises(NoSuchHandle) as missing:
        await store.resolve(session, [*inside, deep])
    assert missing.value.told == TOP, "that the others are there is told too"
    whole = HandleReference(1, ("a",))
    wrong = [deep, HandleReference(1, ("a", "b", "7")), HandleReference(1, ("other",)), HandleReference(2, ())]
    known = await store.known(session, [*wrong, whole])
    assert {reference: each.value for reference, each in known.items()} == {whole: {"b": [1, {"c": "x"}]}}
    assert len(watched.asked) == 3


@pytest.mark.anyio
async def test_a_handle_is_found_by_index_however_much_its_session_hides(state: State) -> None:
    session = (await state.sessions.open("key")).session_id
    for result in (1, 2, 3):
        await keep(state, session, parts(result, 1_000))
    watched = WatchedDatabase(state)
    await HandleStore(cast("Any", watched)).known(session, [HandleReference(1, ("a", "b"))])
    [sql], [values] = watched.asked, watched.values

    def plan(connection: RecordConnection) -> str:
        if isinstance(connection, sqlite3.Connection):
            steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", list(values)).fetchall()
            return "\n".join(step[3] for step in steps)
        connection.execute("ANALYZE handle")
        return "\n".join(step for (step,) in connection.execute(f"EXPLAIN {sql}", values).fetchall())

    told = state.database.run_now(plan)
    whole_key = ("session_id=? AND result=? AND pointer=?", "(md5(pointer) = md5(")
    assert any(each in told for each in whole_key), told


@pytest.mark.anyio
async def test_the_longest_stored_path_counts_and_nothing_of_another_session(state: State) -> None:
    mine, other = [(await state.sessions.open("key")).session_id for _ in range(2)]
    await keep(state, mine, [Hidden(HandleReference(1, ("a",)), b'{"b": "outer"}', TOP)])
    await keep(state, mine, [Hidden(HandleReference(1, ("a", "b")), b'"inner"', TOP)])
    asked = HandleReference(1, ("a", "b"))
    assert (await state.handles.resolve(mine, [asked]))[asked].value == "inner"
    assert await state.handles.known(other, [asked]) == {}
    assert await state.handles.resolve(mine, []) == {}
