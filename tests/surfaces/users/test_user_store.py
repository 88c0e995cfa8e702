"""The file of accounts: what is in it and what is not, two processes on it, and damaged files."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.surfaces.users import AccountDisabled, AccountTerms, Role, UserStore, check_new_password

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
KEY = "sr_0123456789ab_" + "7" * 64
HOUR = timedelta(hours=1)


class Hand:
    """A clock that a test sets."""

    now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def hand() -> Hand:
    return Hand()


@pytest.fixture
def people(tmp_path: Path, hand: Hand) -> Iterator[UserStore]:
    with closing(UserStore(tmp_path, clock=hand)) as store:
        yield store


def add(people: UserStore, name: str, oidc_name: str | None = None) -> str:
    account = people.add(
        name,
        AccountTerms(frozenset({Role.ANALYST})),
        password="a hash",
        oidc_name=oidc_name,
        key=KEY,
        key_id="0123456789ab",
    )
    return account.user_id


def test_a_key_is_opened_for_its_account_alone_and_not_without_the_sealing_key(
    people: UserStore, tmp_path: Path
) -> None:
    dana, erin = add(people, "dana"), add(people, "erin")
    assert people.gateway_key(dana) == KEY
    with closing(sqlite3.connect(tmp_path / "people.sqlite")) as file:
        sealed = dict(file.execute("SELECT user_id, sealed_key FROM person").fetchall())
        assert all(KEY.encode() not in value for value in sealed.values())
        file.execute("UPDATE person SET sealed_key = ? WHERE user_id = ?", [sealed[dana], erin])
        file.commit()
    with pytest.raises(UnavailableError, match="does not open"):
        people.gateway_key(erin)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file_name in ("people.sqlite", "people.sqlite-wal"):
        shutil.copy(tmp_path / file_name, copy)
    with closing(UserStore(copy, clock=Hand())) as stolen, pytest.raises(UnavailableError, match="does not open"):
        stolen.gateway_key(dana)


def test_what_another_process_changes_is_seen_at_once(people: UserStore, tmp_path: Path, hand: Hand) -> None:
    user_id = add(people, "dana")
    token = people.sign_ins.begin(user_id, lasts=HOUR).token
    with closing(UserStore(tmp_path, clock=hand)) as command:
        found = people.sign_ins.check(token, program=False)
        assert found is not None
        assert command.find("Dana ").user_id == user_id
        command.disable(user_id)
        assert people.sign_ins.check(token, program=False) is None
        assert people.password_of("dana") is None


def test_a_token_is_of_one_kind_ends_and_is_nowhere_in_the_file(people: UserStore, tmp_path: Path, hand: Hand) -> None:
    user_id = add(people, "dana")
    browser = people.sign_ins.begin(user_id, lasts=HOUR, idle=HOUR / 2)
    program = people.sign_ins.begin(user_id, lasts=HOUR, program=True, name="p")
    assert people.sign_ins.check(browser.token, program=True) is None
    assert people.sign_ins.check(program.token, program=False) is None
    assert people.sign_ins.check("", program=False) is None
    hand.now = NOW + HOUR / 3
    assert people.sign_ins.check(browser.token, program=False) is not None
    hand.now = NOW + HOUR * 0.7  # used within the half hour before
    assert people.sign_ins.check(browser.token, program=False) is not None
    hand.now = NOW + HOUR
    assert people.sign_ins.check(browser.token, program=False) is None
    assert people.sign_ins.check(program.token, program=True) is None
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert browser.token.encode() not in written
    assert program.token.encode() not in written


def test_sign_ins_of_a_person_are_bounded_and_the_oldest_go(people: UserStore, hand: Hand) -> None:
    user_id = add(people, "dana")
    tokens = []
    for number in range(60):
        hand.now = NOW + timedelta(seconds=number)
        tokens.append(people.sign_ins.begin(user_id, lasts=HOUR).token)
    alive = [people.sign_ins.check(token, program=False) is not None for token in tokens]
    assert alive == [False] * 10 + [True] * 50


def test_the_provider_s_id_of_a_person_is_kept_and_names_are_not_shared(people: UserStore) -> None:
    user_id = add(people, "dana", "dana@example.com")
    with pytest.raises(UsageError, match="signs in as"):
        add(people, "erin", "dana@example.com")
    with pytest.raises(UsageError, match="already"):
        add(people, "dana")
    for _ in range(2):
        found = people.person_at_provider("https://a.example", "u-1", "DANA@example.com")
        assert found is not None
        assert found.user_id == user_id
    assert people.person_at_provider("https://a.example", "u-2", "dana@example.com") is None
    assert people.person_at_provider("https://b.example", "u-1", "dana@example.com") is None


def test_a_name_that_a_disabled_account_has_says_which_and_how_it_lives_again(people: UserStore) -> None:
    user_id = add(people, "dana", "dana@example.com")
    assert people.person_at_provider("https://a.example", "u-1", "dana@example.com") is not None
    people.disable(user_id)
    for name, oidc_name in (("dana", None), ("dana2", "Dana@example.com")):
        with pytest.raises(UsageError, match=r"dana.* which is disabled") as refused:
            people.check_free(name, oidc_name)
        assert "sentinel users change dana --role" in refused.value.next_step
    add(people, "dana2", "dana2@example.com")
    with pytest.raises(AccountDisabled, match="Your account here, dana, is disabled"):
        people.person_at_provider("https://a.example", "u-1", "dana2@example.com")


@pytest.mark.parametrize("name", ["", " ", "owner", "OWNER", "a b", "../x", "dana\n", "x" * 65, "-x", "ünal"])
def test_a_name_that_is_none_is_refused_with_the_next_step(people: UserStore, name: str) -> None:
    if name == "dana\n":
        assert add(people, name)  # a line end behind it is no part of it
        return
    with pytest.raises(UsageError) as refused:
        add(people, name)
    assert refused.value.next_step
    assert people.list() == ()


def test_the_owner_is_made_once_and_not_managed(people: UserStore) -> None:
    assert people.add_owner() == people.add_owner()
    assert people.list() == ()
    assert people.password_of("owner") is None
    with pytest.raises(UsageError, match="owner"):
        people.find("owner")


@pytest.mark.parametrize(
    "password", ["", "short", "x" * 300, "aaaaaaaaaaaaaaaa", "my name is dana!", "PasswordPassword", "123456789012"]
)
def test_a_password_that_would_be_guessed_is_refused(password: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_new_password(password, "dana")
    assert not password or password not in str(refused.value)


def test_files_that_are_not_as_they_should_be_are_told_of(tmp_path: Path) -> None:
    with closing(UserStore(tmp_path / "a", clock=Hand())):
        pass
    (tmp_path / "a" / "people.key").chmod(0o644)
    with pytest.raises(UnavailableError, match="read by others"):
        UserStore(tmp_path / "a", clock=Hand())
    with closing(UserStore(tmp_path / "b", clock=Hand())):
        pass
    with closing(sqlite3.connect(tmp_path / "b" / "people.sqlite")) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(UnavailableError, match="newer version"):
        UserStore(tmp_path / "b", clock=Hand())
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "people.sqlite").write_text("this is no database" * 100)
    with pytest.raises(UnavailableError, match="is damaged"):
        UserStore(tmp_path / "c", clock=Hand())
