"""Conversations, accounts and the record of questions in PostgreSQL: the same tests as of the files, and what several
surfaces over one database need: a question is answered once, a conversation by one surface at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agent" / "conversations"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "surfaces" / "users"))

from test_conversations_store import (
    FACT,
    TURN,
    WHOLE,
    Calendar,
    test_a_conversation_goes_some_days_after_its_last_question,
    test_a_deleted_conversation_does_not_come_back_by_the_next_turn,
    test_an_id_is_found_by_its_beginning,
    test_single_questions_go_before_conversations,
    test_the_oldest_go_when_there_are_too_many,
)
from test_user_store import (  # the same, with the fixtures of this file
    Hand,
    add,
    test_a_name_that_is_none_is_refused_with_the_next_step,
    test_sign_ins_of_a_person_are_bounded_and_the_oldest_go,
    test_the_owner_is_made_once_and_not_managed,
    test_the_provider_s_id_of_a_person_is_kept_and_names_are_not_shared,
)
from tests.support.postgres_proxy import PostgresProxy
from tests.support.postgres_server import PostgresServer

from sentinel_rag.agent.conversations.store import MIGRATIONS as CONVERSATION_TABLES
from sentinel_rag.agent.conversations.store import ConversationStore
from sentinel_rag.audit import PostgresPlace
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import KeyStore
from sentinel_rag.storage import Migration, RecordFile
from sentinel_rag.storage.postgres import RecordSchema
from sentinel_rag.storage.sqlite import move_records
from sentinel_rag.surfaces.cli.users import _StoredKeys
from sentinel_rag.surfaces.users import (
    AccountChanges,
    AccountInChange,
    AccountTerms,
    Role,
    UserStore,
    scopes_of,
)
from sentinel_rag.surfaces.users.store import MIGRATIONS as PEOPLE_TABLES
from sentinel_rag.surfaces.web.turns import ConversationRecord, Event, TurnState
from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURN_TABLES
from waiting import until

__all__ = [
    "test_a_conversation_goes_some_days_after_its_last_question",
    "test_a_deleted_conversation_does_not_come_back_by_the_next_turn",
    "test_a_name_that_is_none_is_refused_with_the_next_step",
    "test_an_id_is_found_by_its_beginning",
    "test_sign_ins_of_a_person_are_bounded_and_the_oldest_go",
    "test_single_questions_go_before_conversations",
    "test_the_oldest_go_when_there_are_too_many",
    "test_the_owner_is_made_once_and_not_managed",
    "test_the_provider_s_id_of_a_person_is_kept_and_names_are_not_shared",
]

pytestmark = pytest.mark.requirement("OPS-5")
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
STORES = {"conversations": CONVERSATION_TABLES, "people": PEOPLE_TABLES, "turns": TURN_TABLES}
SCHEMAS = {"conversations": "kept_chat", "people": "kept_web", "turns": "kept_web"}
EMPTY = "DELETE FROM kept_chat.conversation; DELETE FROM kept_web.person; DELETE FROM kept_web.conversation"

Open = Callable[[str], RecordSchema]


def schema(url: str, component: str, steps: tuple[Migration, ...] | None = None) -> RecordSchema:
    place = PostgresPlace(url, SCHEMAS[component], Path())
    return RecordSchema(place, component, STORES[component] if steps is None else steps, what="The records")


@pytest.fixture(scope="module")
def made(postgres: PostgresServer) -> str:
    """The address of a database that has the tables of all three stores."""
    for component in STORES:
        with closing(schema(postgres.url, component)) as records, records.transaction():
            pass
    return postgres.url


@pytest.fixture
def opened(made: str) -> Iterator[Open]:
    """Opens a store's empty tables as another process would, each time anew."""
    with psycopg.connect(made, autocommit=True) as connection:
        connection.execute(EMPTY)
    every: list[RecordSchema] = []

    def one(component: str) -> RecordSchema:
        every.append(schema(made, component))
        return every[-1]

    yield one
    for records in every:
        records.close()


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def store(opened: Open, calendar: Calendar) -> ConversationStore:
    return ConversationStore(opened("conversations"), clock=calendar, keep_days=30, keep=3)


@pytest.fixture
def people(opened: Open, hand: Hand, tmp_path: Path) -> UserStore:
    return UserStore(tmp_path, clock=hand, records=opened("people"))


def record(opened: Open) -> ConversationRecord:
    return ConversationRecord(None, clock=lambda: NOW, records=opened("turns"))


def test_what_is_written_is_read_again_by_another_process(store: ConversationStore, opened: Open) -> None:
    """Also what PostgreSQL takes in no text, and a turn that is written twice."""
    hostile = replace(TURN, number=2, question="and now? \ud800 \x00 \x01", answer="'; DROP TABLE turn; --")
    store.save(replace(WHOLE, turns=(TURN, hostile)), known=False)
    store.save(replace(WHOLE, turns=(replace(hostile, answer="the last word"),), cleared_turns=1), known=True)
    other = ConversationStore(opened("conversations"), clock=Calendar())
    read = replace(hostile, question="and now? ? \x00 \x01", answer="the last word")
    assert other.load("session-0001") == replace(WHOLE, turns=(TURN, read), cleared_turns=1)
    assert [turn.facts for turn in other.load("session-0001", with_answers=True).turns] == [(FACT,)] * 2  # type: ignore[union-attr]
    assert other.count() == 1


def test_chats_of_several_processes_share_it(opened: Open) -> None:
    def converse(name: int) -> None:
        store = ConversationStore(opened("conversations"), clock=lambda: NOW)
        for number in range(1, 6):
            turn = replace(TURN, number=number)
            store.save(replace(WHOLE, conversation_id=f"session-{name}", turns=(turn,)), known=number > 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(converse, range(4)))
    entries = ConversationStore(opened("conversations"), clock=lambda: NOW).list()
    assert sorted((entry.conversation_id, entry.turns) for entry in entries) == [(f"session-{n}", 5) for n in range(4)]


def test_an_account_that_one_surface_ends_is_ended_at_the_other(
    people: UserStore, opened: Open, hand: Hand, tmp_path: Path
) -> None:
    user_id = add(people, "dana")
    token = people.sign_ins.begin(user_id, lasts=hand.now - hand.now.replace(hour=0)).token
    other = UserStore(tmp_path, clock=hand, records=opened("people"))
    assert other.sign_ins.check(token, program=False) is not None
    assert other.sign_ins.check(token, program=True) is None
    assert other.gateway_key(user_id) == people.gateway_key(user_id)
    other.disable(user_id)
    assert people.sign_ins.check(token, program=False) is None


def test_one_request_that_comes_to_two_surfaces_begins_one_turn(opened: Open) -> None:
    surfaces = [record(opened), record(opened)]
    surfaces[0].open("c" * 16, "dana", "a question")
    conversation = surfaces[1].find("c" * 16, "dana")
    assert conversation is not None
    with ThreadPoolExecutor(8) as pool:
        begun = list(
            pool.map(
                lambda n: surfaces[n % 2].begin(f"turn-{n:012}", conversation, "r-1", "a question").turn_id, range(8)
            )
        )
    assert len(set(begun)) == 1
    assert [turn.turn_id for turn in surfaces[0].turns("c" * 16, 0, 10)] == [begun[0]]
    assert surfaces[0].owners(["c" * 16, "unknown"]) == {"c" * 16: "dana"}
    assert surfaces[0].owners([]) == {}


def test_a_conversation_is_answered_by_one_surface_at_a_time(opened: Open) -> None:
    first, second = record(opened), record(opened)
    assert first.shared
    first.open("c" * 16, "dana", "a question")
    conversation = first.find("c" * 16, "dana")
    assert conversation is not None
    first.begin("a" * 16, conversation, None, "one")
    second.begin("b" * 16, conversation, None, "two")
    first.begin("d" * 16, conversation, None, "three")
    assert (first.is_next("a" * 16, "c" * 16), second.is_next("b" * 16, "c" * 16)) == (True, False)
    assert first.is_next("d" * 16, "c" * 16) is False  # although its own surface is free
    first.end("a" * 16, TurnState.ANSWERED, {"answer": "x"}, [Event("text", {"text": "x"})])
    assert (second.is_next("b" * 16, "c" * 16), first.is_next("d" * 16, "c" * 16)) == (True, False)
    second.end("b" * 16, TurnState.FAILED, None, [])
    assert first.is_next("d" * 16, "c" * 16)
    answered = second.settled("a" * 16, "dana")
    assert answered is not None
    assert (answered.state, answered.events) == (TurnState.ANSWERED, (Event("text", {"text": "x"}),))


DYING = """
    import os, signal, sys
    from datetime import UTC, datetime, timedelta
    from pathlib import Path
    from sentinel_rag.agent.conversations.store import ConversationStore
    from sentinel_rag.agent.conversations.store import MIGRATIONS as CONVERSATIONS
    from sentinel_rag.audit import PostgresPlace
    from sentinel_rag.storage.postgres import RecordSchema
    from sentinel_rag.surfaces.web.turns import ConversationRecord
    from sentinel_rag.surfaces.web.turns.record import MIGRATIONS as TURNS

    def place(schema):
        return PostgresPlace(os.environ["URL"], schema, Path())

    now = lambda: datetime(2026, 11, 28, 12, tzinfo=UTC)
    turns = RecordSchema(place("kept_web"), "turns", TURNS, what="The record")
    surface = ConversationRecord(None, clock=now, records=turns)
    surface.begin("a" * 16, surface.find("c" * 16, "dana"), "r-1", "one")
    kept = RecordSchema(place("kept_chat"), "conversations", CONVERSATIONS, what="The conversations")
    store = ConversationStore(kept, clock=now)
    assert store.load("session-0001") is not None
    print("begun", flush=True)
    sys.stdin.readline()
    with kept.transaction() as run:
        run.execute("UPDATE conversation SET title = 'half'")
        run.execute("DELETE FROM turn")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_surface_that_is_killed_leaves_whole_turns_and_holds_up_nobody(
    opened: Open, store: ConversationStore, made: str
) -> None:
    store.save(WHOLE, known=False)
    survivor = record(opened)
    survivor.open("c" * 16, "dana", "a question")
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DYING)],
        env={**os.environ, "URL": made},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as surface:
        assert surface.stdout is not None
        assert surface.stdout.readline() == "begun\n"
        conversation = survivor.find("c" * 16, "dana")
        assert conversation is not None
        survivor.begin("b" * 16, conversation, None, "two")
        assert survivor.is_next("b" * 16, "c" * 16) is False
        running = survivor.settled("a" * 16, "dana")
        assert running is not None
        assert running.state is TurnState.RUNNING
        surface.communicate("\n")
    assert surface.returncode == -signal.SIGKILL
    until(lambda: survivor.is_next("b" * 16, "c" * 16))  # the server hears of a process's end a moment later
    stopped = survivor.settled("a" * 16, "dana")
    assert stopped is not None
    assert (stopped.state, stopped.answer) == (TurnState.STOPPED, None)
    assert store.load("session-0001") == WHOLE
    assert [entry.title for entry in store.list()] == ["list open incidents"]


def test_a_database_that_is_away_is_told_without_its_password_and_used_again(
    made: str, postgres: PostgresServer
) -> None:
    with PostgresProxy(postgres.port) as proxy, closing(schema(proxy.url(made), "conversations")) as records:
        store = ConversationStore(records, clock=lambda: NOW, keep=5)
        store.save(replace(WHOLE, conversation_id="through-a-proxy"), known=False)
        proxy.cut_all()
        assert store.load("through-a-proxy") is not None  # a connection that broke while it rested is replaced
        with proxy.away():
            with pytest.raises(UnavailableError, match="The records cannot be used now") as told:
                store.count()
            password = made.split(":")[2].split("@")[0]
            assert password not in f"{told.value} {told.value.next_step}"
        assert store.delete("through-a-proxy")


def test_tables_of_a_newer_version_are_not_touched(made: str, tmp_path: Path) -> None:
    with closing(schema(made, "people", ())) as older, pytest.raises(UnavailableError, match="newer version"):
        UserStore(tmp_path, clock=Hand(), records=older)


def test_work_that_fails_leaves_nothing_and_the_next_goes_on(opened: Open) -> None:
    records = opened("people")
    with pytest.raises(UnavailableError, match="The records cannot be used now"), records.transaction() as run:
        run.execute("INSERT INTO person (user_id, name) VALUES (?, ?)", ["x", "x"])
    with pytest.raises(KeyError), records.transaction() as run:
        run.execute("DELETE FROM person")
        raise KeyError
    with pytest.raises(UnavailableError), records.transaction(reads=True) as run:
        run.execute("DELETE FROM person")
    with records.transaction(reads=True) as run:
        assert run.execute("SELECT count(*) FROM person").fetchone() == (0,)


def test_what_lay_in_files_is_moved_once_with_its_order(opened: Open, tmp_path: Path, hand: Hand) -> None:
    folder = tmp_path / "home"
    with closing(UserStore(folder, clock=hand)) as before:
        user_id = add(before, "dana")
        token = before.sign_ins.begin(user_id, lasts=timedelta(hours=1)).token
    with closing(ConversationRecord(folder / "turns.sqlite", clock=lambda: NOW)) as before_turns:
        for number in range(3):
            before_turns.open(f"conversation-{number}", "dana", f"question {number}")
        conversation = before_turns.find("conversation-1", "dana")
        assert conversation is not None
        before_turns.begin("a" * 16, conversation, "r-1", "why \x00?")
        before_turns.end("a" * 16, TurnState.ANSWERED, {"answer": "so"}, [Event("text", {"text": "so"})])
        listed = before_turns.list("dana", 10)
    for component, file, tables in (
        ("people", "people.sqlite", ("person", "sign_in")),
        ("turns", "turns.sqlite", ("conversation", "turn")),
    ):
        with closing(RecordFile(folder / file, STORES[component], what="The file")) as source:
            assert set(move_records(source, opened(component), tables).values()) <= {1, 3}
            with pytest.raises(UsageError, match="holds records already"):
                move_records(source, opened(component), tables)
    people = UserStore(folder, clock=hand, records=opened("people"))
    assert people.sign_ins.check(token, program=False) is not None
    assert people.gateway_key(user_id) is not None
    turns = record(opened)
    assert turns.list("dana", 10) == listed
    answered = turns.turn_of_request("r-1", "dana")
    assert answered is not None
    assert (answered.question, answered.answer) == ("why \x00?", {"answer": "so"})


CHANGES = """
import sys
from pathlib import Path

from sentinel_rag.audit import PostgresPlace
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import KeyStore
from sentinel_rag.storage.postgres import RecordSchema
from sentinel_rag.surfaces.cli.users import _StoredKeys
from sentinel_rag.surfaces.users import AccountChanges, AccountInChange, AccountTerms, Role, UserStore
from sentinel_rag.surfaces.users.store import MIGRATIONS

url, schema, folder = sys.argv[1:]
accounts = RecordSchema(PostgresPlace(url, schema, Path()), "people", MIGRATIONS, what="The accounts")
people = UserStore(Path(folder), clock=utc_now, records=accounts)
changes = AccountChanges(people, _StoredKeys(KeyStore(Path(folder) / "keys.sqlite")))
print("ready", flush=True)
sys.stdin.readline()
done = 0
for number in range(60):
    try:
        if number % 3:
            changes.change("dana", AccountTerms(frozenset([Role.ANALYST, Role.AUDITOR][: 1 + number % 2])))
        else:
            changes.reset("dana", f"hash {number}")
        done += 1
    except AccountInChange:
        pass
print(done, flush=True)
"""


def test_two_surfaces_that_change_an_account_at_once_leave_it_one_key_that_works(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    schema = "accounts_at_once_web"
    accounts = RecordSchema(PostgresPlace(postgres.url, schema, Path()), "people", PEOPLE_TABLES, what="The accounts")
    with (
        closing(UserStore(tmp_path, clock=utc_now, records=accounts)) as people,
        closing(KeyStore(tmp_path / "keys.sqlite")) as keys,
    ):
        AccountChanges(people, _StoredKeys(keys)).add(
            "dana", AccountTerms(frozenset({Role.ANALYST})), password="a hash", oidc_name=None
        )
        command = [sys.executable, "-c", CHANGES, postgres.url, schema, str(tmp_path)]
        surfaces = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        for each in surfaces:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in surfaces:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [each.communicate()[0] for each in surfaces]
        assert sum(map(int, told)) > 0
        dana = people.find("dana")
        key = people.gateway_key(dana.user_id)
        principal = keys.verify(key)
        assert principal is not None
        assert principal.key_id == dana.key_id
        assert principal.scopes == scopes_of(dana.roles)
        assert [info.key_id for info in keys.list() if info.state(utc_now()) == "live"] == [dana.key_id]


def test_an_account_is_free_again_once_the_surface_that_changed_it_is_gone(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    schema = "accounts_left_web"

    def store() -> UserStore:
        place = PostgresPlace(postgres.url, schema, Path())
        return UserStore(
            tmp_path, clock=utc_now, records=RecordSchema(place, "people", PEOPLE_TABLES, what="The accounts")
        )

    with closing(store()) as people:
        add(people, "dana")
        with closing(store()) as other, other.changing("dana"):
            with pytest.raises(AccountInChange, match="somebody else"), people.changing("dana"):
                pass
            other.close()  # as its process ends: what it held falls with its connection
            with people.changing("Dana ") as account:
                assert account.name == "dana"
