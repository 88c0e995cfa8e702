"""Accounts and sign-ins in a file, or in a database that several surfaces share. A change that `sentinel users` makes
is seen by a running web surface at its next request, and a disabled person's sign-ins end with the change.

Nothing here knows HTTP or the Interceptor; passwords arrive hashed, and keys leave only through `gateway_key`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.records import Connection, RecordFile, Records
from sentinel_rag.surfaces.people.accounts import OWNER, Account, Role, SignIn, checked_groups, checked_name
from sentinel_rag.surfaces.people.schema import MIGRATIONS
from sentinel_rag.surfaces.people.sealing import seal_at

FILE, KEY_FILE = "people.sqlite", "people.key"
TOUCH = timedelta(minutes=1)
"""How exactly the time of a sign-in's last use is kept."""
MAX_SIGN_INS = 50
"""Browsers and tokens of one person, each; a new one beyond ends the oldest."""

_PERSON = (
    "p.user_id, p.name, p.roles, p.groups, p.clearance, p.created_at, p.disabled_at, p.password IS NOT NULL, "
    "p.oidc_name, p.key_id"
)


class AccountDisabled(SentinelError):
    """The account of whoever signs in was disabled; `name` is that account's."""

    code = "account_disabled"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Your account here, {name}, is disabled. Your id at the identity provider is bound to it, so no other "
            "account can be yours.",
            next_step="Whoever looks after accounts here makes it live again: " + _revived(name),
        )
        self.name = name


@dataclass(frozen=True, slots=True)
class Opened:
    """A new sign-in; `token` is shown or sent this once, and not stored."""

    sign_in_id: str
    token: str
    csrf: str
    ends_at: str


class PeopleStore:
    """The accounts at `records`, by default in a file of `folder`, which holds the key that seals people's keys either
    way. May be used from any thread. Methods raise UnavailableError if the place cannot be used."""

    def __init__(self, folder: Path, *, clock: Clock, records: Records | None = None) -> None:
        self._clock = clock
        self._records = records or RecordFile(folder / FILE, MIGRATIONS, what="The file of accounts")
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._seal = seal_at(folder / KEY_FILE)
        except OSError as error:
            raise _unusable(error) from error
        with self._records.transaction(reads=True):
            pass  # what ails the place is said at the start

    def add(
        self,
        name: str,
        roles: Collection[Role],
        *,
        password: str | None,
        oidc_name: str | None = None,
        groups: Collection[str] = (),
        clearance: Sensitivity = Sensitivity.MEDIUM,
        key: str,
        key_id: str,
    ) -> Account:
        """A new account; `password` is a hash, `key` the person's key at the Interceptor. Raises UsageError."""
        user_id, checked = secrets.token_hex(8), checked_name(name)
        row = [
            user_id,
            checked,
            json.dumps(sorted(roles)),
            json.dumps(checked_groups(groups)),
            clearance.name,
            format_time(self._clock()),
            password,
            oidc_name,
            key_id,
            self._seal.close(key, user_id),
        ]
        with self._records.transaction() as run:
            self._refuse_taken(run, checked, oidc_name)
            run.execute(
                "INSERT INTO person (user_id, name, roles, groups, clearance, created_at, password, oidc_name, key_id, "
                "sealed_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        return self._one("user_id", user_id)

    def check_free(self, name: str, oidc_name: str | None) -> None:
        """Raise UsageError for a name that cannot be given to a new account."""
        with self._records.transaction() as run:
            self._refuse_taken(run, checked_name(name), oidc_name)

    def add_owner(self) -> Account:
        """The account of whoever runs this home, who signs in by the link of a start; made once."""
        with self._records.transaction() as run:
            run.execute(
                "INSERT INTO person (user_id, name, roles, groups, clearance, created_at, key_id) "
                "VALUES (?, ?, ?, '[]', ?, ?, '') ON CONFLICT DO NOTHING",
                [OWNER, OWNER, json.dumps(sorted(Role)), Sensitivity.HIGH.name, format_time(self._clock())],
            )
        return self._one("user_id", OWNER)

    def list(self) -> tuple[Account, ...]:
        """Every account but the owner's, by name."""
        with self._records.transaction(reads=True) as run:
            rows = run.execute(f"SELECT {_PERSON} FROM person p WHERE user_id <> ?", [OWNER]).fetchall()  # noqa: S608  # a constant
        return tuple(sorted(map(_account, rows), key=lambda account: account.name))

    def find(self, name: str) -> Account:
        """The account of that name; the owner's is not managed. Raises UsageError if there is none."""
        found = self._one("name", name.strip().lower())
        if found.user_id == OWNER:
            raise UsageError(
                "The owner is whoever runs sentinel up here, and has no account to manage.",
                next_step="See: sentinel users list",
            )
        return found

    def password_of(self, name: str) -> tuple[Account, str] | None:
        """The account of that name and the hash of its password; None where nobody can sign in so."""
        with self._records.transaction(reads=True) as run:
            row = run.execute(
                f"SELECT {_PERSON}, p.password FROM person p "  # noqa: S608  # a constant
                "WHERE name = ? AND password IS NOT NULL AND disabled_at IS NULL",
                [name.strip().lower()],
            ).fetchone()
        return None if row is None else (_account(row[:-1]), str(row[-1]))

    def set_password(self, user_id: str, password: str, *, keep_sign_ins: bool = False) -> None:
        """Store another hash; the person's browsers and tokens end, unless it is the same password hashed better."""
        with self._records.transaction() as run:
            run.execute("UPDATE person SET password = ? WHERE user_id = ?", [password, user_id])
            if not keep_sign_ins:
                run.execute("DELETE FROM sign_in WHERE user_id = ?", [user_id])

    def disable(self, user_id: str) -> None:
        """End an account; its sign-ins end at once."""
        with self._records.transaction() as run:
            run.execute("UPDATE person SET disabled_at = ? WHERE user_id = ?", [format_time(self._clock()), user_id])
            run.execute("DELETE FROM sign_in WHERE user_id = ?", [user_id])

    def give_terms(
        self,
        user_id: str,
        *,
        roles: Collection[Role],
        groups: Collection[str],
        clearance: Sensitivity,
        key: str,
        key_id: str,
    ) -> None:
        """Other roles, with the key that has their scopes; a disabled account is live again."""
        with self._records.transaction() as run:
            run.execute(
                "UPDATE person SET roles = ?, groups = ?, clearance = ?, key_id = ?, sealed_key = ?, "
                "disabled_at = NULL WHERE user_id = ?",
                [
                    json.dumps(sorted(roles)),
                    json.dumps(checked_groups(groups)),
                    clearance.name,
                    key_id,
                    self._seal.close(key, user_id),
                    user_id,
                ],
            )

    def gateway_key(self, user_id: str) -> str | None:
        """The person's key at the Interceptor; None for the owner, whose keys are the run's."""
        with self._records.transaction(reads=True) as run:
            row = run.execute("SELECT sealed_key FROM person WHERE user_id = ?", [user_id]).fetchone()
        return None if row is None or row[0] is None else self._seal.open(bytes(row[0]), user_id)

    def person_at_provider(self, issuer: str, subject: str, name: str) -> Account | None:
        """The account of whoever an identity provider vouches for. The first sign-in under the name that the operator
        gave binds the account to the provider's own id of the person; from then on that id alone counts, so that
        whoever is given the same name there later is somebody else.

        Raises AccountDisabled where that account is, also if another one waits under the name: a person's id belongs
        to one account.
        """
        with self._records.transaction() as run:
            row = run.execute(
                "SELECT user_id, name, disabled_at FROM person WHERE oidc_issuer = ? AND oidc_subject = ?",
                [issuer, subject],
            ).fetchone()
            if row is None:
                row = run.execute(
                    "SELECT user_id, name, disabled_at FROM person WHERE oidc_name = ? AND oidc_subject IS NULL",
                    [name.strip().lower()],
                ).fetchone()
                if row is not None and row[2] is None:
                    run.execute(
                        "UPDATE person SET oidc_issuer = ?, oidc_subject = ? WHERE user_id = ?",
                        [issuer, subject, row[0]],
                    )
        if row is None:
            return None
        if row[2] is not None:
            raise AccountDisabled(row[1])
        return self._one("user_id", row[0])

    def begin(
        self, user_id: str, *, lasts: timedelta, idle: timedelta | None = None, program: bool = False, name: str = ""
    ) -> Opened:
        """Sign a person in; the token works for `lasts`, and not after it was unused for `idle`."""
        token, now = secrets.token_urlsafe(32), self._clock()
        opened = Opened(secrets.token_hex(8), token, secrets.token_urlsafe(24), format_time(now + lasts))
        with self._records.transaction() as run:
            run.execute("DELETE FROM sign_in WHERE ends_at <= ?", [format_time(now)])
            run.execute(
                "DELETE FROM sign_in WHERE sign_in_id IN (SELECT sign_in_id FROM sign_in WHERE user_id = ? "
                "AND program = ? ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?)",
                [user_id, int(program), 2**31 - 1, MAX_SIGN_INS - 1],
            )
            run.execute(
                "INSERT INTO sign_in VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    _digest(token),
                    opened.sign_in_id,
                    user_id,
                    int(program),
                    name,
                    opened.csrf,
                    format_time(now),
                    format_time(now),
                    opened.ends_at,
                    None if idle is None else idle.total_seconds(),
                ],
            )
        return opened

    def check(self, token: str, *, program: bool, uses: bool = True) -> SignIn | None:
        """The sign-in of a token of that kind; None for one that is unknown or over, or of a disabled account. Without
        `uses` it does not count as a use: a page that only waits does not keep its person signed in."""
        now = self._clock()
        with self._records.transaction(reads=True) as run:
            row = run.execute(
                f"SELECT s.sign_in_id, s.program, s.name, s.csrf, s.created_at, s.used_at, s.ends_at, s.idle_s, "  # noqa: S608  # a constant
                f"{_PERSON} FROM sign_in s JOIN person p USING (user_id) "
                "WHERE s.digest = ? AND s.program = ? AND s.ends_at > ? AND p.disabled_at IS NULL",
                [_digest(token), int(program), format_time(now)],
            ).fetchone()
        if row is None:
            return None
        found = _sign_in(row)
        unused = now - datetime.fromisoformat(found.used_at)
        if row[7] is not None and unused.total_seconds() > row[7]:
            return None
        if uses and unused > TOUCH:
            with self._records.transaction() as run:
                run.execute("UPDATE sign_in SET used_at = ? WHERE sign_in_id = ?", [format_time(now), found.sign_in_id])
        return found

    def tokens(self, user_id: str) -> tuple[SignIn, ...]:
        """The person's tokens for programs that still work, newest first."""
        with self._records.transaction(reads=True) as run:
            rows = run.execute(
                f"SELECT s.sign_in_id, s.program, s.name, s.csrf, s.created_at, s.used_at, s.ends_at, s.idle_s, "  # noqa: S608  # a constant
                f"{_PERSON} FROM sign_in s JOIN person p USING (user_id) "
                "WHERE s.user_id = ? AND s.program = 1 AND s.ends_at > ? ORDER BY s.created_at DESC",
                [user_id, format_time(self._clock())],
            ).fetchall()
        return tuple(map(_sign_in, rows))

    def end(self, user_id: str, sign_in_id: str) -> bool:
        """End one sign-in of that person; whether there was one."""
        with self._records.transaction() as run:
            found = run.execute(
                "DELETE FROM sign_in WHERE sign_in_id = ? AND user_id = ?", [sign_in_id, user_id]
            ).rowcount
        return bool(found)

    def end_browsers(self, user_id: str) -> None:
        """End every sign-in of that person at a browser; tokens for programs go on."""
        with self._records.transaction() as run:
            run.execute("DELETE FROM sign_in WHERE user_id = ? AND program = 0", [user_id])

    def close(self) -> None:
        self._records.close()

    def _one(self, column: str, value: str) -> Account:
        with self._records.transaction(reads=True) as run:
            row = run.execute(f"SELECT {_PERSON} FROM person p WHERE {column} = ?", [value]).fetchone()  # noqa: S608  # our own column
        if row is None:
            raise UsageError(f"There is no account {value!r}.", next_step="See: sentinel users list")
        return _account(row)

    def _refuse_taken(self, run: Connection, name: str, oidc_name: str | None) -> None:
        taken = run.execute("SELECT name, disabled_at FROM person WHERE name = ?", [name]).fetchone()
        if taken is not None:
            raise UsageError(
                f"There is an account {name!r} already{_also_disabled(taken[1])}.",
                next_step=f"Choose another name, or change it: {_revived(name)}",
            )
        if not oidc_name:
            return
        bound = run.execute(
            "SELECT name, disabled_at FROM person WHERE oidc_name = ?", [oidc_name.strip().lower()]
        ).fetchone()
        if bound is not None:
            raise UsageError(
                f"An account signs in as {oidc_name!r} already: {bound[0]}{_also_disabled(bound[1])}.",
                next_step="See: sentinel users list"
                if bound[1] is None
                else f"Make it live again, with its person's id: {_revived(bound[0])}",
            )


def _revived(name: str) -> str:
    """The command that gives an account its terms, and makes a disabled one live."""
    return f"sentinel users change {name} --role ..."


def _also_disabled(disabled_at: str | None) -> str:
    return "" if disabled_at is None else ", which is disabled"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _account(row: tuple[Any, ...]) -> Account:
    user_id, name, roles, groups, clearance, created_at, disabled_at, has_password, oidc_name, key_id = row
    return Account(
        user_id,
        name,
        frozenset(map(Role, json.loads(roles))),
        tuple(json.loads(groups)),
        Sensitivity[clearance],
        created_at,
        disabled_at,
        bool(has_password),
        oidc_name,
        key_id,
    )


def _sign_in(row: tuple[Any, ...]) -> SignIn:
    sign_in_id, program, name, csrf, created_at, used_at, ends_at, _ = row[:8]
    return SignIn(sign_in_id, _account(row[8:]), bool(program), name, csrf, created_at, used_at, ends_at)


def _unusable(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"The folder of accounts cannot be used: {error}.",
        next_step="Check the permissions and the free space of its folder, people in SENTINEL_HOME.",
    )
