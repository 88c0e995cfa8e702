"""Accounts in a file, or in a database that several surfaces share. A change that `sentinel users` makes is seen by a
running web surface at its next request, and a disabled person's sign-ins end with the change.

Nothing here knows HTTP or the gateway; passwords arrive hashed, and keys leave only through `gateway_key`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from pathlib import Path

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage import RecordConnection, RecordFile, Records
from sentinel_rag.surfaces.users.accounts import OWNER, Account, Role, checked_groups, checked_name
from sentinel_rag.surfaces.users.rows import PERSON, account_of
from sentinel_rag.surfaces.users.schema import MIGRATIONS
from sentinel_rag.surfaces.users.sealing import seal_at
from sentinel_rag.surfaces.users.sign_ins import SignIns

FILE, KEY_FILE = "people.sqlite", "people.key"


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


class UserStore:
    """The accounts at `records`, by default in a file of `folder`, which holds the key that seals people's keys either
    way; `sign_ins` are those of their people. May be used from any thread. Methods raise UnavailableError if the place
    cannot be used."""

    def __init__(self, folder: Path, *, clock: Clock, records: Records | None = None) -> None:
        self._clock = clock
        self._records = records or RecordFile(folder / FILE, MIGRATIONS, what="The file of accounts")
        self.sign_ins = SignIns(self._records, clock)
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
        """A new account; `password` is a hash, `key` the person's key at the gateway. Raises UsageError."""
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
            rows = run.execute(f"SELECT {PERSON} FROM person p WHERE user_id <> ?", [OWNER]).fetchall()  # noqa: S608  # a constant
        return tuple(sorted(map(account_of, rows), key=lambda account: account.name))

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
                f"SELECT {PERSON}, p.password FROM person p "  # noqa: S608  # a constant
                "WHERE name = ? AND password IS NOT NULL AND disabled_at IS NULL",
                [name.strip().lower()],
            ).fetchone()
        return None if row is None else (account_of(row[:-1]), str(row[-1]))

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
        """The person's key at the gateway; None for the owner, whose keys are the run's."""
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

    def close(self) -> None:
        self._records.close()

    def _one(self, column: str, value: str) -> Account:
        with self._records.transaction(reads=True) as run:
            row = run.execute(f"SELECT {PERSON} FROM person p WHERE {column} = ?", [value]).fetchone()  # noqa: S608  # our own column
        if row is None:
            raise UsageError(f"There is no account {value!r}.", next_step="See: sentinel users list")
        return account_of(row)

    def _refuse_taken(self, run: RecordConnection, name: str, oidc_name: str | None) -> None:
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


def _unusable(error: Exception) -> UnavailableError:
    return UnavailableError(
        f"The folder of accounts cannot be used: {error}.",
        next_step="Check the permissions and the free space of its folder, people in SENTINEL_HOME.",
    )
