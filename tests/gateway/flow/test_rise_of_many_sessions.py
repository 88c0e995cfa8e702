"""A key's sessions rise together however many they are: each to its own join, noted once, and by a handful of
statements, since every gateway of the state waits meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres_state import EmptyStates

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store import Session, State, open_state
from sentinel_rag.gateway.store.session_tables import Opener, raise_below

LABELS = [Label(sensitivity, integrity) for sensitivity, integrity in product(Sensitivity, Integrity)]


class Counting:
    """A connection that counts what is asked of it."""

    def __init__(self, connection: RecordConnection) -> None:
        self.connection = connection
        self.asked: list[tuple[str, Sequence[Any]]] = []

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        self.asked.append((sql, parameters))
        return self.connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        raise AssertionError("one statement for each session")


@pytest.fixture(scope="module", params=["files", "postgresql"])
def state(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    folder = tmp_path_factory.mktemp("state")
    if request.param == "files":
        opened = open_state(folder)
    else:
        states: EmptyStates = request.getfixturevalue("postgres_states")
        opened = open_state(folder, postgres=states.place(folder))
    with opened:
        yield opened


def put_sessions(state: State, rows: Iterable[tuple[str, str, str | None, Label, bool]]) -> None:
    at = format_time(utc_now())
    values = [
        (name, key, person, at, at, label.sensitivity.value, label.integrity.value, at if closed else None)
        for name, key, person, label, closed in rows
    ]
    state.database.run_now(
        lambda connection: connection.executemany(
            "INSERT INTO session (session_id, key_id, user_key_id, opened_at, used_at, sensitivity, integrity, "
            "closed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
    )


async def counted(state: State, session: Session, label: Label) -> int:
    write = session.raise_to(label, audit_id="call", tool="read", now=utc_now())

    def work(connection: RecordConnection) -> int:
        counting = Counting(connection)
        write(counting)
        return len(counting.asked)

    return await state.database.run(work)


@pytest.mark.anyio
@pytest.mark.requirement("TAINT-5")
async def test_a_thousand_sessions_rise_by_as_many_statements_as_one(state: State) -> None:
    """What the attacker controls: how many sessions its key has open when it reads a secret."""
    took = []
    for key, many in (("few", 1), ("many", 1_000)):
        put_sessions(state, [(f"{key}-{number}", key, None, BOTTOM, False) for number in range(many)])
        put_sessions(state, [(f"{key}-person-{number}", key, "person", BOTTOM, False) for number in range(many)])
        took.append(await counted(state, await state.sessions.open(key), LABELS[-1]))
        [(risen, noted)] = await state.database.look(
            lambda connection, key=key: connection.execute(  # type: ignore[misc]
                "SELECT count(*), (SELECT count(*) FROM session_raise AS note JOIN session AS other "
                "ON note.session_id = other.session_id WHERE other.key_id = ?1) FROM session "
                "WHERE key_id = ?1 AND sensitivity = 2 AND integrity = 1",
                [key],
            ).fetchall()
        )
        assert (risen, noted) == (2 * many + 1, 2 * many + 1)
    assert took[0] == took[1] <= 10


@pytest.mark.anyio
@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize("label", LABELS, ids=lambda label: f"{label.sensitivity.name}-{label.integrity.name}")
async def test_each_open_one_rises_to_its_own_join_and_no_other_is_touched(state: State, label: Label) -> None:
    """From every label, by every label, opened by agent or person; closed ones and those of other keys stay. The
    objects of this process know what the file knows."""
    key = f"key-{label.sensitivity.name}-{label.integrity.name}"
    others = [
        (f"{key}-{number}", f"{key}-other" if other else key, person, low, closed)
        for number, (low, person, closed, other) in enumerate(
            product(LABELS, (None, "person"), (False, True), (False, True))
        )
    ]
    # What reads is a person's own at first: then only the sessions that the agent opened rise with it.
    put_sessions(state, [(f"{key}-reads", key, "person", BOTTOM, False), *others])
    held = {name: await state.sessions.find(name, owner) for name, owner, *_ in others}
    by_person = await state.sessions.find(f"{key}-reads", key)
    assert by_person is not None

    async def expect(now: dict[str, Label]) -> None:
        for name, expected in now.items():
            session = held[name]
            assert session is not None
            assert session.context == expected
            await state.sessions.refresh(session)
            assert session.context == expected
            notes = await state.sessions.raises(session)
            before = next(low for other, _, _, low, _ in others if other == name)
            assert [(note.audit_id, note.label) for note in notes] == (
                [] if expected == before else [("call", expected)]
            )

    await counted(state, by_person, label)
    first = {
        name: low.join(label) if person is None and owner == key and not closed else low
        for name, owner, person, low, closed in others
    }
    live = {name: label for name, label in first.items() if not closed_of(others, name)}
    await expect(live)
    if label == BOTTOM:
        return
    put_sessions(state, [(f"{key}-own", key, None, BOTTOM, False)])
    own = await state.sessions.find(f"{key}-own", key)
    assert own is not None
    await counted(state, own, label)
    await expect(
        {
            name: low.join(label) if owner == key and not closed else low
            for name, owner, _, low, closed in others
            if not closed
        }
    )


@pytest.mark.anyio
@pytest.mark.requirement("TAINT-5")
async def test_a_persons_session_that_comes_later_rises_with_the_next_call(state: State) -> None:
    """Also where the call reveals nothing that the sessions before it had not."""
    own = await state.sessions.open("later")
    first = await state.sessions.open("later", user_key_id="person")
    await counted(state, own, LABELS[3])
    second = await state.sessions.open("later", user_key_id="person")
    assert (first.context, second.context) == (LABELS[3], BOTTOM)
    own.raise_to(LABELS[2], audit_id="call", tool="read", now=utc_now())  # at once, before anything is written
    assert (first.context, second.context) == (LABELS[3], LABELS[2])
    own.raise_to(LABELS[3], audit_id="call", tool="read", now=utc_now())
    assert second.context == LABELS[3]


def closed_of(rows: Iterable[tuple[str, str, str | None, Label, bool]], name: str) -> bool:
    return next(closed for other, _, _, _, closed in rows if other == name)


def test_sessions_that_are_high_already_or_closed_are_not_looked_at(tmp_path: Path) -> None:
    """Each call asks what it raises, so the way there is the index of the open sessions of a lower label."""
    with open_state(tmp_path) as state, closing(state.database):
        for opener, index in ((Opener.AGENT, "session_of_agent"), (Opener.PERSON, "session_of_person")):
            plans: list[str] = []

            def work(connection: RecordConnection, opener: Opener = opener, plans: list[str] = plans) -> None:
                counting = Counting(connection)
                raise_below(counting, opener, "key", LABELS[-1], ("call", "read", utc_now()))
                for sql, parameters in counting.asked:
                    plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]

            state.database.run_now(work)
            looked = [step for step in plans if "session" in step.lower()]
            assert looked
            assert all(
                f"INDEX {index} (key_id=? AND sensitivity=? AND integrity=?)" in step or "PRIMARY KEY" in step
                for step in looked
            ), plans


@pytest.mark.anyio
async def test_how_much_a_key_has_seen_is_asked_by_index_however_many_sessions_it_has(state: State) -> None:
    """The floor of a new session is the join over sessions of a day, closed and persons' ones among them, and those of
    earlier days count for nothing."""
    key = "floor"
    await state.sessions.open(key)
    put_sessions(state, [("floor-1", key, "person", Label(Sensitivity.HIGH, Integrity.TRUSTED), True)])
    assert (await state.sessions.open(key)).context == Label(Sensitivity.HIGH, Integrity.TRUSTED)
    put_sessions(state, [("floor-2", key, None, Label(Sensitivity.LOW, Integrity.UNTRUSTED), True)])
    assert (await state.sessions.open(key)).context == LABELS[-1]
    state.database.run_now(
        lambda connection: connection.execute(
            "UPDATE session SET used_at = '2020-01-01T00:00:00.000000Z' WHERE key_id = ?", [key]
        )
    )
    assert (await state.sessions.open(key)).context == BOTTOM
