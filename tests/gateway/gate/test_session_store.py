"""Sessions, resource labels and handles as the gate uses them: what rises, is forgotten and outlives a restart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from small_gate import KEY, NOON, Clock

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow import HandleReference, Hidden, NoSuchHandle
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.policy.model import ValueKind
from sentinel_rag.gateway.store import (
    ContextMoved,
    Session,
    SessionClosed,
    State,
    TooManySessions,
    handles,
    next_result,
    resources_of,
    sessions,
)
from sentinel_rag.gateway.store.handles import StoredValue

pytestmark = pytest.mark.anyio
MEDIUM, SECRET = Label(Sensitivity.MEDIUM), Label(Sensitivity.HIGH)
UNTRUSTED = Label(integrity=Integrity.UNTRUSTED)


async def raised(
    state: State, session: Session, label: Label, clock: Clock, audit_id: str = "a", tool: str = "t"
) -> None:
    await state.database.run(session.raise_to(label, audit_id=audit_id, tool=tool, now=clock()))


async def test_a_session_is_one_object_and_belongs_to_its_key(state: State) -> None:
    session = await state.sessions.claim("s1", KEY)
    assert session is not None
    assert (session.session_id, session.key_id, session.user_key_id) == ("s1", KEY, None)
    assert (session.context, session.closed, session.named) == (BOTTOM, False, {})
    assert await state.sessions.claim("s1", KEY) is session
    assert await state.sessions.claim("s1", "another") is None
    assert await state.sessions.find("s1", "another") is None
    assert await state.sessions.find("s1", KEY) is session
    assert await state.sessions.find("s2", KEY) is None
    first, second = await state.sessions.open(KEY), await state.sessions.open(KEY)
    assert first.session_id != second.session_id
    assert len(first.session_id) >= 32


async def test_the_opening_and_the_closing_are_on_record(state: State) -> None:
    session = await state.sessions.open(KEY, user_key_id="person")
    assert (session.key_id, session.user_key_id) == (KEY, "person")
    assert await state.sessions.find(session.session_id, "person") is session
    assert not await state.sessions.close(session.session_id, "another")
    assert await state.sessions.close(session.session_id, "person")
    assert session.closed
    assert await state.sessions.close(session.session_id, KEY)  # closing twice is once
    records = [entry.record for entry in await state.journal.read(0, 10)]
    assert [(one["kind"], one["key_id"], one["session_id"], one["change"]) for one in records] == [
        ("session", "person", session.session_id, "opened"),
        ("session", "person", session.session_id, "closed"),
    ]
    assert [one["context"] for one in records] == [BOTTOM.to_dict()] * 2
    assert len({one["audit_id"] for one in records} - {None, ""}) == 2
    with pytest.raises(SessionClosed, match="closed") as refused:
        await state.sessions.claim(session.session_id, KEY)
    assert refused.value.next_step


@pytest.mark.requirement("TAINT-2")
async def test_an_agents_new_session_starts_where_its_recent_ones_are(state: State, clock: Clock) -> None:
    await raised(state, await state.sessions.open(KEY), SECRET, clock)
    await raised(state, await state.sessions.open(KEY, user_key_id="person"), UNTRUSTED, clock)
    assert (await state.sessions.open(KEY)).context == TOP
    assert (await state.sessions.open("another")).context == BOTTOM
    assert (await state.sessions.open(KEY, user_key_id="person")).context == BOTTOM
    clock.passes(days=90)
    assert (await state.sessions.open(KEY)).context == TOP
    clock.passes(days=90, seconds=1)
    assert (await state.sessions.open(KEY)).context == BOTTOM


@pytest.mark.requirement("TAINT-2")
async def test_a_session_counts_from_its_last_call_to_the_minute(state: State, clock: Clock) -> None:
    session = await state.sessions.open(KEY)
    await raised(state, session, SECRET, clock)
    clock.passes(seconds=60)
    await raised(state, session, SECRET, clock)  # too soon to be written down
    clock.now = NOON + timedelta(days=90, seconds=30)
    assert (await state.sessions.open(KEY)).context == BOTTOM
    clock.now = NOON + timedelta(seconds=61)
    await raised(state, session, SECRET, clock)
    clock.now = NOON + timedelta(days=90, seconds=30)
    assert (await state.sessions.open(KEY)).context == SECRET


async def test_an_opener_has_so_many_sessions_a_day_and_takes_none_from_others(state: State, clock: Clock) -> None:
    for _ in range(2):
        await state.sessions.open(KEY, most=2)
    with pytest.raises(TooManySessions, match="2 sessions") as refused:
        await state.sessions.open(KEY, most=2)
    assert refused.value.next_step
    await state.sessions.open(KEY, user_key_id="person", most=1)
    with pytest.raises(TooManySessions):
        await state.sessions.open(KEY, user_key_id="person", most=1)
    await state.sessions.open(KEY, user_key_id="second person", most=1)
    await state.sessions.open("another", most=1)
    clock.passes(hours=24)
    with pytest.raises(TooManySessions):
        await state.sessions.open(KEY, most=2)
    clock.passes(seconds=1)
    await state.sessions.open(KEY, most=2)


@pytest.mark.requirement("TAINT-2")
async def test_a_context_rises_before_it_is_written_and_the_rises_are_told(state: State, clock: Clock) -> None:
    session = await state.sessions.open(KEY)
    write = session.raise_to(MEDIUM, audit_id="a1", tool="first", now=clock())
    assert session.context == MEDIUM
    await state.database.run(write)
    await raised(state, session, MEDIUM, clock, "a2", "same again")
    clock.passes(minutes=5)
    await raised(state, session, UNTRUSTED, clock, "a3", "second")
    assert session.context == MEDIUM.join(UNTRUSTED)
    told = await state.sessions.raises(session)
    assert [(one.audit_id, one.tool, one.label) for one in told] == [
        ("a1", "first", MEDIUM),
        ("a3", "second", MEDIUM.join(UNTRUSTED)),
    ]
    assert told[0].at < told[1].at
    assert [one.audit_id for one in await state.sessions.raises(session, 1)] == ["a1"]
    assert await state.sessions.raises(await state.sessions.open(KEY)) == []


@pytest.mark.requirement("TAINT-2")
async def test_what_a_session_knows_outlives_a_restart(reopen: Callable[[], State], clock: Clock) -> None:
    user, endorsed = NamedValue(ValueKind.HOST, "ws-1"), NamedValue(ValueKind.INCIDENT, "7")
    with reopen() as state:
        session = await state.sessions.open(KEY, user_key_id="person")
        await raised(state, session, TOP, clock)
        for value, by in ((user, "user"), (endorsed, "participants")):
            fresh, write = session.name([value], by)
            assert fresh == [value]
            await state.database.run(write)
        session_id = session.session_id
    with reopen() as state:
        again = await state.sessions.find(session_id, "person")
        assert again is not None
        assert (again.context, again.key_id, again.user_key_id) == (TOP, KEY, "person")
        assert again.named == {user: "user", endorsed: "participants"}
        await state.sessions.close(session_id, KEY)
    with reopen() as state, pytest.raises(SessionClosed):
        await state.sessions.claim(session_id, KEY)


async def test_a_value_is_named_once_and_a_session_names_only_so_many(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_NAMED", 3)
    session = await state.sessions.open(KEY)
    values = [NamedValue(ValueKind.HOST, f"ws-{number}") for number in range(5)]
    assert session.name(values[:2], "user")[0] == values[:2]
    assert session.name(values[:3], "rule")[0] == [values[2]]
    assert session.name(values, "user")[0] == []
    assert session.named == {values[0]: "user", values[1]: "user", values[2]: "rule"}


@pytest.mark.requirement("TAINT-2")
async def test_a_write_is_refused_where_the_file_knows_more(
    state: State, reopen: Callable[[], State], clock: Clock
) -> None:
    session = await state.sessions.open(KEY)
    with reopen() as beside:
        other = await beside.sessions.find(session.session_id, KEY)
        assert other is not None
        await raised(beside, other, SECRET, clock)
        fresh, write = other.name([NamedValue(ValueKind.HOST, "ws-1")], "user")
        await beside.database.run(write)
        with pytest.raises(ContextMoved):
            await raised(state, session, MEDIUM, clock)
        assert len(await state.sessions.raises(session)) == 1  # the refused one has left nothing
        await state.sessions.refresh(session)
        assert session.context == SECRET
        assert dict.fromkeys(fresh, "user") == session.named
        await raised(state, session, UNTRUSTED, clock)
        await beside.sessions.refresh(other)
        assert other.context == TOP
        await beside.sessions.close(session.session_id, KEY)
        with pytest.raises(ContextMoved):
            await raised(state, session, BOTTOM, clock)
        await state.sessions.refresh(session)
        assert session.closed


async def test_a_session_that_was_pushed_out_of_memory_is_read_again(
    state: State, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_REMEMBERED", 2)
    session = await state.sessions.claim("s0", KEY)
    assert session is not None
    await raised(state, session, SECRET, clock)
    del session
    for number in range(1, 4):
        await state.sessions.claim(f"s{number}", "another")
    again = await state.sessions.claim("s0", KEY)
    assert again is not None
    assert again.context == SECRET


ARGUMENTS = {"incident": "55", "name": " A/b ", "number": 7}


@pytest.mark.parametrize(
    ("templates", "resources"),
    [
        ([], []),
        (["incident/{incident}"], ["incident/55"]),
        (["notes/{name}", "fixed/place"], ["notes/a%2Fb", "fixed/place"]),
        (["incident/{other}/notes"], ["incident/*"]),
        (["incident/{number}/{incident}"], ["incident/7/55"]),
        (["incident/*"], ["incident/*"]),
    ],
)
async def test_resources_are_named_by_the_arguments(templates: list[str], resources: list[str]) -> None:
    assert resources_of(templates, ARGUMENTS) == resources


@pytest.mark.requirement("TAINT-6")
async def test_a_resource_keeps_its_label_and_so_does_all_it_is_part_of(
    state: State, reopen: Callable[[], State]
) -> None:
    labels = state.resources
    await state.database.run(labels.raise_to(["incident/55/notes", "other"], SECRET))
    await state.database.run(labels.raise_to(["incident/55/notes"], UNTRUSTED))
    for resource, label in [
        ("incident/55/notes", TOP),
        ("incident/55/*", TOP),
        ("incident/*", TOP),
        ("incident/55", TOP),
        ("other", SECRET),
        ("*", BOTTOM),
        ("other/*", SECRET),
    ]:
        assert await labels.of([resource]) == label, resource
    assert await labels.of([]) == BOTTOM
    assert await labels.of(["incident/1", "other"]) == SECRET
    with reopen() as again:
        assert await again.resources.of(["incident/*"]) == TOP
        assert await again.resources.of(["other"]) == SECRET


@pytest.mark.requirement("TAINT-6")
async def test_a_call_that_was_decided_by_an_older_label_is_refused(state: State, reopen: Callable[[], State]) -> None:
    with reopen() as beside:
        await beside.database.run(beside.resources.raise_to(["incident/55"], SECRET))
    await state.database.run(state.resources.confirm(["incident/1"], BOTTOM))
    await state.database.run(state.resources.confirm(["incident/55"], TOP))
    with pytest.raises(ContextMoved):
        await state.database.run(state.resources.confirm(["incident/1", "incident/55"], UNTRUSTED))
    assert await state.resources.of(["incident/55"]) == SECRET
    await state.database.run(state.resources.raise_to(["incident/55"], UNTRUSTED))
    assert await state.resources.of(["incident/55"]) == TOP


def hidden(path: str, value: object, label: Label = SECRET, result: int = 1) -> Hidden:
    return Hidden(HandleReference.parse(f"r{result}#{path}"), msgspec.json.encode(value), label)


async def kept(state: State, session_id: str, *parts: Hidden) -> None:
    await state.sessions.claim(session_id, KEY)
    await state.database.run(state.handles.keep(session_id, parts))


@pytest.mark.requirement("TAINT-3")
async def test_a_handle_is_found_with_its_session_and_leads_into_its_value(state: State) -> None:
    await kept(state, "s1", hidden("/a", {"b": [1, 2]}, TOP), hidden("/c", "text", UNTRUSTED))
    one, part, other = (HandleReference.parse(text) for text in ("r1#/a", "r1#/a/b/1", "r1#/c"))
    assert await state.handles.resolve("s1", {one, part, other}) == {
        one: StoredValue({"b": [1, 2]}, TOP, inside=False),
        part: StoredValue(2, TOP, inside=True),
        other: StoredValue("text", UNTRUSTED, inside=False),
    }
    assert await state.handles.resolve("s1", []) == {}
    await kept(state, "s1", hidden("", "whole", MEDIUM, result=2))
    whole = HandleReference.parse("r2#")
    assert await state.handles.resolve("s1", [whole]) == {whole: StoredValue("whole", MEDIUM, inside=False)}


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize(
    ("session_id", "texts", "told"),
    [
        ("s2", ["r1#/a"], BOTTOM),
        ("s1", ["r2#/a"], BOTTOM),
        ("s1", ["r1#"], BOTTOM),
        ("s1", ["r1#/cc"], BOTTOM),
        ("s1", ["r1#/a/x"], SECRET),  # what is not inside a hidden value is a word about it
        ("s1", ["r1#/a/x", "r1#/c/0"], TOP),
        ("s1", ["r2#", "r1#/a"], BOTTOM),
        ("s1", ["r2#", "r1#/a/b"], SECRET),
        ("s1", ["r2#", "r1#/a/b", "r1#/c/0"], TOP),
    ],
)
async def test_a_handle_that_is_not_there_is_refused_with_what_that_tells(
    state: State, session_id: str, texts: list[str], told: Label
) -> None:
    await kept(state, "s1", hidden("/a", {"b": [1, 2]}, SECRET), hidden("/c", "text", UNTRUSTED))
    with pytest.raises(NoSuchHandle, match="there is no such handle in this session") as refused:
        await state.handles.resolve(session_id, [HandleReference.parse(text) for text in texts])
    assert refused.value.told == told


@pytest.mark.requirement("TAINT-3")
async def test_a_result_that_comes_when_its_session_is_closed_keeps_nothing(state: State) -> None:
    session = await state.sessions.open(KEY)
    await state.sessions.close(session.session_id, KEY)
    await state.database.run(state.handles.keep(session.session_id, [hidden("/a", 1)]))
    with pytest.raises(NoSuchHandle):
        await state.handles.resolve(session.session_id, [HandleReference.parse("r1#/a")])


@pytest.mark.requirement("TAINT-3")
async def test_handles_go_with_their_session(state: State) -> None:
    session, other = await state.sessions.open(KEY), await state.sessions.open(KEY)
    for one in (session, other):
        await kept(state, one.session_id, hidden("/a", 1))
    await state.sessions.close(session.session_id, KEY)
    with pytest.raises(NoSuchHandle):
        await state.handles.resolve(session.session_id, [HandleReference.parse("r1#/a")])
    assert await state.handles.resolve(other.session_id, [HandleReference.parse("r1#/a")])


async def test_the_oldest_results_are_forgotten_beyond_the_room_of_a_session(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "MAX_SESSION_BYTES", 100)
    monkeypatch.setattr(handles, "PART_BYTES", -len("/a"))  # so that values alone count
    text = "x" * 38  # with its quotes 40 bytes

    async def known(session_id: str = "s1") -> list[int]:
        found = []
        for result in range(1, 6):
            try:
                await state.handles.resolve(session_id, [HandleReference.parse(f"r{result}#/a")])
            except NoSuchHandle:
                continue
            found.append(result)
        return found

    await kept(state, "s2", hidden("/a", text))
    await kept(state, "s1", hidden("/a", text, result=1), hidden("/b", "x" * 18, result=1))
    await kept(state, "s1", hidden("/a", text, result=2))
    assert await known() == [1, 2]  # exactly the room there is
    await kept(state, "s1", hidden("/a", "y", result=3))
    assert await known() == [2, 3]
    await kept(state, "s1", hidden("/a", "z" * 500, result=4))
    assert await known() == [4]  # the newest stays, whatever it takes
    await kept(state, "s1", hidden("/a", "y", result=5))
    assert await known() == [5]
    assert await known("s2") == [1]


async def test_results_of_a_session_are_counted_in_the_file(state: State) -> None:
    one, other = await state.sessions.open(KEY), await state.sessions.open(KEY)

    async def count(session: Session) -> int:
        return await state.database.run(lambda connection: next_result(connection, session.session_id))

    assert [await count(one), await count(one), await count(other)] == [1, 2, 1]


async def test_an_id_can_stand_behind_an_option(state: State) -> None:
    for _ in range(100):  # one in 64 began with a dash when they were base64
        session = await state.sessions.open(KEY)
        assert session.session_id.isalnum()
        assert len(session.session_id) == 48
