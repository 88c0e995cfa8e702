"""Stored keys: what they may do, how they end, what is kept of them, and that every change is on record once."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel_rag.audit import JournalReader
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import Rate
from sentinel_rag.gateway.store import KeyState, KeyStore, Principal, RefusedKey, Scope, open_state
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway

CORPUS = Path(__file__).parent / "corpus"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Calendar:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def keys(tmp_path: Path, calendar: Calendar) -> Iterator[KeyStore]:
    with closing(KeyStore(tmp_path / "keys.sqlite", clock=calendar)) as store:
        yield store


@pytest.mark.requirement("GATE-7")
def test_a_key_is_known_with_everything_that_it_was_made_with(keys: KeyStore) -> None:
    text, info = keys.create(
        [Scope.USER, Scope.APPROVE],
        name="ana",
        clearance=Sensitivity.HIGH,
        rate=Rate(5, 10.0),
        for_key="agent",
    )
    expected = Principal(
        info.key_id, frozenset({Scope.USER, Scope.APPROVE}), "ana", Sensitivity.HIGH, Rate(5, 10.0), "agent"
    )
    assert keys.verify(text) == keys.check(text) == expected
    assert keys.find(info.key_id) == info


def test_a_key_that_speaks_for_nobody_sees_nothing_hidden(keys: KeyStore) -> None:
    principal = keys.verify(keys.create([Scope.EXECUTE], clearance=Sensitivity.HIGH)[0])
    assert principal is not None
    assert principal.clearance is Sensitivity.LOW


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"scopes": []}, "scope"),
        ({"name": "-x"}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\x1b[2J"}, "name"),
        ({"name": "ｆull"}, "name"),
        ({"expires_in": timedelta(0)}, "expire"),
        ({"expires_in": timedelta(days=-1)}, "expire"),
        ({"for_key": "agent"}, "user"),
    ],
    ids=str,
)
def test_terms_that_make_no_sense_make_no_key(keys: KeyStore, terms: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        keys.create(**{"scopes": [Scope.EXECUTE], **terms})  # type: ignore[arg-type]
    assert refused.value.next_step
    assert keys.list() == []
    assert keys.changes(0) == []


def test_a_live_name_is_taken_and_a_revoked_one_is_free(keys: KeyStore) -> None:
    first = keys.create([Scope.AUDIT], name="night shift", unique_name=True)[1]
    with pytest.raises(UsageError, match="exists already"):
        keys.create([Scope.AUDIT], name="night shift", unique_name=True)
    keys.revoke(first.key_id)
    assert keys.create([Scope.AUDIT], name="night shift", unique_name=True)


def test_a_key_ends_at_its_moment(keys: KeyStore, calendar: Calendar) -> None:
    text, info = keys.create([Scope.EXECUTE], expires_in=timedelta(days=1))
    calendar.now = START + timedelta(days=1) - timedelta(milliseconds=1)
    assert keys.verify(text) is not None
    calendar.now = START + timedelta(days=1)
    assert keys.check(text) == RefusedKey(KeyState.EXPIRED, info.key_id)
    assert keys.rotate(info.key_id) is None
    assert [each.state(calendar.now) for each in keys.list()] == ["expired"]
    assert keys.revoke(info.key_id)
    assert keys.check(text) == RefusedKey(KeyState.REVOKED, info.key_id)


@pytest.mark.requirement("GATE-7")
def test_rotation_keeps_the_id_and_ends_the_old_text_at_once(keys: KeyStore) -> None:
    old, info = keys.create([Scope.EXECUTE], name="agent-2", rate=Rate(5, 10.0))
    rotated = keys.rotate(info.key_id)
    assert rotated is not None
    new, after = rotated
    assert new != old
    assert keys.check(old) == RefusedKey(KeyState.SUPERSEDED, info.key_id)
    assert keys.verify(new) == info.principal() == after.principal()
    assert after.rotated_at is not None


def test_within_an_overlap_both_texts_work_and_never_three(keys: KeyStore, calendar: Calendar) -> None:
    first, info = keys.create([Scope.EXECUTE])
    second = _text(keys.rotate(info.key_id, overlap=timedelta(minutes=30)))
    assert keys.verify(first) == keys.verify(second) == info.principal()
    third = _text(keys.rotate(info.key_id, overlap=timedelta(minutes=30)))
    assert keys.check(first) == RefusedKey(KeyState.WRONG_SECRET, info.key_id)
    assert keys.verify(second) == keys.verify(third) == info.principal()
    calendar.now = START + timedelta(minutes=30)
    assert keys.check(second) == RefusedKey(KeyState.SUPERSEDED, info.key_id)
    assert keys.verify(third) == info.principal()
    keys.revoke(info.key_id)
    assert keys.check(third) == RefusedKey(KeyState.REVOKED, info.key_id)
    assert keys.rotate(info.key_id) is None


def test_a_rotation_without_overlap_ends_a_running_overlap_too(keys: KeyStore) -> None:
    first, info = keys.create([Scope.EXECUTE])
    second = _text(keys.rotate(info.key_id, overlap=timedelta(hours=1)))
    third = _text(keys.rotate(info.key_id))
    assert [keys.verify(text) is not None for text in (first, second, third)] == [False, False, True]


@pytest.mark.requirement("GATE-7")
def test_every_change_of_another_process_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(KeyStore(path)) as serving, closing(KeyStore(path)) as administration:
        old, info = administration.create([Scope.AUDIT])
        assert serving.verify(old) is not None
        new = _text(administration.rotate(info.key_id))
        assert (serving.verify(old), serving.verify(new)) == (None, info.principal())
        assert serving.revoke(info.key_id)
        assert not administration.revoke(info.key_id)
        assert administration.rotate(info.key_id) is None
        assert administration.check(new) == RefusedKey(KeyState.REVOKED, info.key_id)
        assert not administration.revoke("none-such")
        assert administration.rotate("none-such") is None


def test_only_keyed_hashes_are_stored_and_the_pepper_lies_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(KeyStore(path)) as keys:
        texts = [keys.create([Scope.EXECUTE])[0] for _ in range(3)]
        database = b"".join(file.read_bytes() for file in tmp_path.glob("keys.sqlite*"))
        pepper = (tmp_path / "keys.pepper").read_text().strip()
        assert (tmp_path / "keys.pepper").stat().st_mode & 0o777 == 0o600
        import hashlib

        for text in texts:
            secret = text.rpartition("_")[2]
            for trace in (secret.encode(), bytes.fromhex(secret), hashlib.sha256(secret.encode()).digest()):
                assert trace not in database
        assert pepper.encode() not in database
        assert bytes.fromhex(pepper) not in database


@pytest.mark.parametrize("damage", ["missing", "another", "damaged", "open to all"])
def test_without_its_own_pepper_the_store_says_so(tmp_path: Path, damage: str) -> None:
    path, pepper = tmp_path / "keys.sqlite", tmp_path / "keys.pepper"
    with closing(KeyStore(path)) as keys:
        text = keys.create([Scope.EXECUTE])[0]
    kept = pepper.read_bytes()
    match damage:
        case "missing":
            pepper.unlink()
        case "another":
            pepper.write_text("0" * 64)
        case "damaged":
            pepper.write_text("not hexadecimal")
        case _:
            pepper.chmod(0o644)
    with pytest.raises(UnavailableError, match=r"keys\.pepper") as refused:
        KeyStore(path)
    assert refused.value.next_step
    pepper.write_bytes(kept)
    pepper.chmod(0o600)
    with closing(KeyStore(path)) as keys:
        assert keys.verify(text) is not None


def test_an_empty_store_may_lose_its_pepper(tmp_path: Path) -> None:
    KeyStore(tmp_path / "keys.sqlite").close()
    (tmp_path / "keys.pepper").unlink()
    with closing(KeyStore(tmp_path / "keys.sqlite")) as keys:
        assert keys.verify(keys.create([Scope.EXECUTE])[0]) is not None


def test_keys_of_the_first_release_stay_valid(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    shutil.copy(CORPUS / "keys-0.sqlite", path)
    path.chmod(0o600)
    issued = json.loads((CORPUS / "keys-0.json").read_text())
    for _ in range(2):  # migrated once, then opened as it is
        with closing(KeyStore(path)) as keys:
            for each in issued:
                found = keys.check(each["key"])
                if each["revoked"]:
                    assert isinstance(found, RefusedKey)
                    assert found.state is KeyState.REVOKED
                else:
                    assert isinstance(found, Principal)
                    assert (found.name, sorted(found.scopes)) == (each["name"], each["scopes"])
                    assert (found.clearance, found.rate, found.for_key) == (Sensitivity.LOW, None, None)
                assert isinstance(keys.check(each["key"][:-1] + "x"), RefusedKey)
            assert len(keys.list()) == len(issued)
    with closing(KeyStore(path)) as keys:
        live = next(each for each in issued if not each["revoked"])
        found = keys.verify(live["key"])
        assert found is not None
        assert keys.verify(_text(keys.rotate(found.key_id))) is not None


@pytest.mark.requirement("GATE-7")
def test_keys_made_before_they_had_readers_stay_valid_and_read_what_is_for_everybody(tmp_path: Path) -> None:
    for name in ("keys-1.sqlite", "keys-1.pepper"):
        shutil.copy(CORPUS / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    issued = json.loads((CORPUS / "keys-1.json").read_text())
    for _ in range(2):
        with closing(KeyStore(tmp_path / "keys-1.sqlite")) as keys:
            agent, person = keys.verify(issued["execute"]), keys.verify(issued["user"])
            assert agent is not None
            assert person is not None
            assert (agent.name, agent.readers, person.for_key, person.readers) == (
                "courier",
                frozenset(),
                "agent",
                frozenset(),
            )
            assert keys.verify(issued["revoked"]) is None
            assert len(keys.list()) == 3


@pytest.mark.requirement("KNOW-4")
def test_a_key_reads_under_its_names_until_it_ends(keys: KeyStore, calendar: Calendar) -> None:
    text, info = keys.create(
        [Scope.USER], readers=["tier2", "HR", "tier2"], for_key="agent", expires_in=timedelta(days=1)
    )
    principal = keys.verify(text)
    assert principal is not None
    assert principal.readers == info.readers == keys.readers_of(info.key_id) == {"HR", "tier2"}
    assert [event.detail["readers"] for _, event in keys.changes(0)] == [["HR", "tier2"]]
    rotated = keys.rotate(info.key_id)
    assert rotated is not None
    assert rotated[1].readers == {"HR", "tier2"}
    calendar.now += timedelta(days=2)
    assert keys.readers_of(info.key_id) == frozenset()
    _, other = keys.create([Scope.EXECUTE], readers=["tier1"])
    assert keys.readers_of(other.key_id) == {"tier1"}
    keys.revoke(other.key_id)
    assert keys.readers_of(other.key_id) == keys.readers_of("nobody") == frozenset()
    for wrong in ("*", "a,b", ""):
        with pytest.raises(UsageError, match="is no name of a reader"):
            keys.create([Scope.EXECUTE], readers=[wrong])


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer version") as refused:
        KeyStore(path)
    assert refused.value.next_step


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to be looked at" * 50])
def test_a_file_that_is_no_key_store_is_new_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys.sqlite"
    path.write_bytes(content)
    if content:
        with pytest.raises(UnavailableError, match="cannot be opened"):
            KeyStore(path)
        assert path.read_bytes() == content
    else:
        KeyStore(path).close()


def _make_keys(path: Path, number: int) -> None:
    with closing(KeyStore(path)) as keys:
        for _ in range(10):
            keys.create([Scope.EXECUTE], name=f"worker-{number}")


def test_processes_that_open_a_new_store_together_share_one_pepper(tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_make_keys, args=(path, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with closing(KeyStore(path)) as keys:
        assert len(keys.list()) == 30
        assert len(keys.changes(0)) == 30
    assert sorted(file.suffix for file in tmp_path.glob("keys*")) == [".pepper", ".sqlite"]


@pytest.mark.requirement("GATE-7")
def test_changes_made_while_nothing_ran_are_recorded_once_at_the_next_start(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    with closing(KeyStore(tmp_path / "keys.sqlite")) as keys:
        text, info = keys.create([Scope.AUDIT], name="night shift", by="command line, user 7")
        new = _text(keys.rotate(info.key_id, overlap=timedelta(minutes=5)))
        keys.revoke(info.key_id)
    for _ in range(2):
        with running_gateway(shipped_policy, tmp_path, executor):
            pass
    entries = [entry.record for entry in JournalReader(tmp_path / "journal.sqlite").read() if entry.kind == "key"]
    ours = [record for record in entries if record["key_id"] == info.key_id]
    assert [record["change"] for record in ours] == ["created", "rotated", "revoked"]
    assert {record["name"] for record in ours} == {"night shift"}
    assert ours[0]["by"] == "command line, user 7"
    assert ours[0]["detail"]["scopes"] == ["audit"]
    assert ours[1]["detail"]["overlap_s"] == 300
    assert all(record["changed_at"] <= record["at"] for record in ours)
    journal = b"".join(file.read_bytes() for file in tmp_path.glob("journal.sqlite*"))
    for key in (text, new):
        assert key.rpartition("_")[2].encode() not in journal


def test_a_change_is_on_record_before_the_first_use_that_shows_it(
    shipped_policy: Policy, executor: FakeToolServer, tmp_path: Path
) -> None:
    with (
        running_gateway(shipped_policy, tmp_path, executor) as gateway,
        closing(KeyStore(tmp_path / "keys.sqlite")) as cli,
    ):
        text, info = cli.create([Scope.EXECUTE], name="late")
        assert gateway.call("list_tables", {}, key=text).status == 200
        cli.revoke(info.key_id)
        refused = gateway.call("list_tables", {}, key=text)
        assert (refused.status, refused.body["reason"]) == (401, "unauthenticated")
        assert "revoked" in refused.body["detail"]
        kinds = [
            (entry.kind, entry.record.get("change") or entry.record.get("key_state"))
            for entry in JournalReader(tmp_path / "journal.sqlite").read()
            if entry.record.get("key_id") == info.key_id
        ]
    assert [kind for kind in kinds if kind[0] != "intent"] == [
        ("key", "created"),
        ("session", "opened"),
        ("key", "revoked"),
        ("authentication_failed", "revoked"),
    ]


@pytest.mark.anyio
async def test_a_crash_between_change_and_record_neither_drops_nor_doubles_it(tmp_path: Path) -> None:
    with open_state(tmp_path) as state:
        state.keys.create([Scope.AUDIT], name="before")
        await state.key_journal.catch_up()
        state.keys.create([Scope.AUDIT], name="never recorded by this process")
    with open_state(tmp_path) as state:
        await state.key_journal.catch_up()
        await state.key_journal.catch_up()
        records = [entry.record["name"] for entry in await state.journal.read() if entry.kind == "key"]
    assert records == ["before", "never recorded by this process"]


@pytest.mark.anyio
async def test_two_recorders_of_one_journal_record_each_change_once(tmp_path: Path) -> None:
    import anyio

    from sentinel_rag.gateway.store import KeyJournal

    with open_state(tmp_path) as state, closing(KeyStore(tmp_path / "keys.sqlite")) as other:
        recorders = [state.key_journal, KeyJournal(other, state.database, state.journal)]
        for number in range(20):
            state.keys.create([Scope.AUDIT], name=f"key {number}")
        other.list()
        async with anyio.create_task_group() as group:
            for recorder in recorders * 2:
                group.start_soon(recorder.catch_up)
        names = [entry.record["name"] for entry in await state.journal.read() if entry.kind == "key"]
    assert names == [f"key {number}" for number in range(20)]


def _text(rotated: tuple[str, object] | None) -> str:
    assert rotated is not None
    return rotated[0]
