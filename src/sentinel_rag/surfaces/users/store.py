"""Accounts and sign-ins: their values and tables, tokens of browsers and programs, the owner's links, the seal on
people's gateway keys, and what `sentinel users` and the page change.

The store is a file, or a database that several surfaces share; a running web surface sees a change at its next request.
Of a token its digest alone is kept. Keys are sealed with AES-256-GCM, so that a copy of the database alone opens
nothing; whoever can read all files of this home can read both, and make a link that signs in the owner, which is made
of the run's secret in `run/zones.json`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.labels import READER_NAMES, Sensitivity, is_reader_name
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approvals.approval import ELICITED, WEBHOOK
from sentinel_rag.gateway.store import Scope
from sentinel_rag.gateway.store.keys import RUN_KEY_IDS
from sentinel_rag.storage import Migration, RecordConnection, RecordFile, Records

OWNER = "owner"
"""Id and name of whoever runs `sentinel up` on this machine; no other account is named so."""

_TAKEN = frozenset({OWNER, ELICITED, WEBHOOK, *RUN_KEY_IDS})
"""Under these names decisions are on record, and a policy's `approvers` may name them."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?")


class Role(StrEnum):
    """What a person does here: ask, decide approvals, read the audit, look after the policy."""

    ANALYST = "analyst"
    APPROVER = "approver"
    AUDITOR = "auditor"
    ADMIN = "admin"


_SCOPES = {Role.ANALYST: Scope.USER, Role.APPROVER: Scope.APPROVE, Role.AUDITOR: Scope.AUDIT, Role.ADMIN: Scope.ADMIN}


def scopes_of(roles: Collection[Role]) -> frozenset[Scope]:
    """The scopes that the person's key at the gateway has."""
    return frozenset(_SCOPES[role] for role in roles)


@dataclass(frozen=True, slots=True)
class Account:
    """A person. `groups` are the names under which the person reads knowledge; `key_id` is the person's key at the
    gateway, empty for the owner, whose keys are made for each run. `oidc_name` is what the identity provider calls
    a person who signs in there."""

    user_id: str
    name: str
    roles: frozenset[Role]
    groups: tuple[str, ...] = ()
    clearance: Sensitivity = Sensitivity.MEDIUM
    created_at: str = ""
    disabled_at: str | None = None
    has_password: bool = False
    oidc_name: str | None = None
    key_id: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The form of `sentinel users list --json`."""
        return {
            "name": self.name,
            "roles": sorted(self.roles),
            "groups": list(self.groups),
            "clearance": self.clearance.name,
            "state": "disabled" if self.disabled_at else "live",
            "signs_in_with": [
                *(["password"] if self.has_password else []),
                *([] if self.oidc_name is None else [f"identity provider as {self.oidc_name}"]),
            ],
            "key_id": self.key_id,
            "created_at": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class SignIn:
    """A browser that is signed in, or a program's token (`program`). `csrf` is what a browser's page sends back with
    each change; a program, which no other site can make send its token, needs none."""

    sign_in_id: str
    account: Account
    program: bool
    name: str
    csrf: str
    created_at: str
    used_at: str
    ends_at: str


def checked_name(text: str) -> str:
    """`text` as an account's name, in lower case. Raises UsageError."""
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{text!r} is no name for an account.",
            next_step="Use 1 to 64 letters a to z, digits or . _ @ -, with a letter or digit at both ends.",
        )
    if name in _TAKEN:
        raise UsageError(
            f"The name {name!r} is that of whoever runs sentinel up here, or of what it runs.",
            next_step="Choose another name.",
        )
    return name


def checked_groups(texts: Collection[str]) -> tuple[str, ...]:
    """The groups, each once, in order. Raises UsageError."""
    for text in texts:
        if not is_reader_name(text):
            raise UsageError(f"{text[:80]!r} is no name for a group. {READER_NAMES}", next_step="Choose such a name.")
    return tuple(sorted(set(texts)))


PERSON = (
    "p.user_id, p.name, p.roles, p.groups, p.clearance, p.created_at, p.disabled_at, p.password IS NOT NULL, "
    "p.oidc_name, p.key_id"
)
"""The columns of `account_of`, of a table or join in which accounts are `p`."""


def account_of(row: tuple[Any, ...]) -> Account:
    """The account of a row of `PERSON`."""
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


TOUCH = timedelta(minutes=1)
"""How exactly the time of a sign-in's last use is kept."""
_INVITATION = 2
"""A third kind of token in the column `program`, beside those of browsers (0) and programs (1)."""
MAX_SIGN_INS = 50
"""Browsers and tokens of one person, each; a new one beyond ends the oldest."""

_WITH_PERSON = (
    f"s.sign_in_id, s.program, s.name, s.csrf, s.created_at, s.used_at, s.ends_at, s.idle_s, {PERSON} "
    "FROM sign_in s JOIN person p USING (user_id)"
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A new sign-in; `token` is shown or sent this once, and not stored."""

    sign_in_id: str
    token: str
    csrf: str
    ends_at: str


class SignIns:
    """The sign-ins at `records`, beside the accounts. May be used from any thread. Methods raise UnavailableError if
    the place cannot be used."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def begin(
        self, user_id: str, *, lasts: timedelta, idle: timedelta | None = None, program: bool = False, name: str = ""
    ) -> Opened:
        """Sign a person in; the token works for `lasts`, and not after it was unused for `idle`."""
        return self._begin(user_id, lasts, idle, int(program), name)

    def invite(self, user_id: str, *, lasts: timedelta) -> Opened:
        """A token with which the person chooses a password, once; it signs in nobody, and ends an earlier one."""
        with self._records.transaction() as run:
            run.execute("DELETE FROM sign_in WHERE user_id = ? AND program = ?", [user_id, _INVITATION])
        return self._begin(user_id, lasts, None, _INVITATION, "")

    def invited(self, token: str, run: RecordConnection | None = None) -> Account | None:
        """Whom an invitation is for; None for one that is unknown, spent or over, or of a disabled account."""
        if run is None:
            with self._records.transaction(reads=True) as reading:
                return self.invited(token, reading)
        row = run.execute(
            f"SELECT {PERSON} FROM sign_in s JOIN person p USING (user_id) "  # noqa: S608  # a constant
            "WHERE s.digest = ? AND s.program = ? AND s.ends_at > ? AND p.disabled_at IS NULL",
            [_digest(token), _INVITATION, format_time(self._clock())],
        ).fetchone()
        return None if row is None else account_of(row)

    def _begin(self, user_id: str, lasts: timedelta, idle: timedelta | None, kind: int, name: str) -> Opened:
        token, now = secrets.token_urlsafe(32), self._clock()
        opened = Opened(secrets.token_hex(8), token, secrets.token_urlsafe(24), format_time(now + lasts))
        with self._records.transaction() as run:
            run.execute("DELETE FROM sign_in WHERE ends_at <= ?", [format_time(now)])
            run.execute(
                "DELETE FROM sign_in WHERE sign_in_id IN (SELECT sign_in_id FROM sign_in WHERE user_id = ? "
                "AND program = ? ORDER BY created_at DESC, rowid DESC LIMIT ? OFFSET ?)",
                [user_id, kind, 2**31 - 1, MAX_SIGN_INS - 1],
            )
            run.execute(
                "INSERT INTO sign_in VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    _digest(token),
                    opened.sign_in_id,
                    user_id,
                    kind,
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
                f"SELECT {_WITH_PERSON} "  # a constant
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
                f"SELECT {_WITH_PERSON} "  # a constant
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


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _sign_in(row: tuple[Any, ...]) -> SignIn:
    sign_in_id, program, name, csrf, created_at, used_at, ends_at, _ = row[:8]
    return SignIn(sign_in_id, account_of(row[8:]), bool(program), name, csrf, created_at, used_at, ends_at)


PATH = "/sign-in/once"
LASTS = timedelta(hours=1)

_FORM = re.compile(r"([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f]{32})")


def owner_link(secret: str, now: datetime) -> str:
    """The path of a new link."""
    said = f"{int((now + LASTS).timestamp()):08x}-{secrets.token_hex(8)}"
    return f"{PATH}/{said}-{_mac(secret, said)}"


class OwnerLinks:
    """Checks the rest of a link's path, what stands behind `PATH`; each is used once."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock
        self._used: dict[str, int] = {}

    def is_good(self, token: str) -> bool:
        """Whether the link could be used now; looking spends nothing."""
        match = _FORM.fullmatch(token)
        if match is None:
            return False
        genuine = hmac.compare_digest(_mac(self._secret, f"{match[1]}-{match[2]}"), match[3])
        return genuine and int(match[1], 16) > self._clock().timestamp() and match[2] not in self._used

    def use(self, token: str) -> bool:
        """Spend the link; whether it was good."""
        if not self.is_good(token):
            return False
        ends, nonce, _ = token.split("-")
        now = self._clock().timestamp()
        self._used = {used: end for used, end in self._used.items() if end > now} | {nonce: int(ends, 16)}
        return True


def _mac(secret: str, said: str) -> str:
    return hmac.new(secret.encode(), f"owner link {said}".encode(), hashlib.sha256).hexdigest()[:32]


def _first(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE person (user_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, roles TEXT NOT NULL, "
        "groups TEXT NOT NULL, clearance TEXT NOT NULL, created_at TEXT NOT NULL, disabled_at TEXT, "
        "password TEXT, oidc_name TEXT UNIQUE, oidc_issuer TEXT, oidc_subject TEXT, "
        "key_id TEXT NOT NULL, sealed_key BLOB, UNIQUE (oidc_issuer, oidc_subject)) STRICT"
    )
    # Kept is the SHA-256 of a token: it is 256 random bits, which nobody guesses at any speed.
    connection.execute(
        "CREATE TABLE sign_in (digest BLOB PRIMARY KEY, sign_in_id TEXT NOT NULL UNIQUE, "
        "user_id TEXT NOT NULL REFERENCES person ON DELETE CASCADE, program INTEGER NOT NULL, name TEXT NOT NULL, "
        "csrf TEXT NOT NULL, created_at TEXT NOT NULL, used_at TEXT NOT NULL, ends_at TEXT NOT NULL, "
        "idle_s REAL) STRICT"
    )
    connection.execute("CREATE INDEX sign_in_person ON sign_in (user_id, program)")


def _second(connection: RecordConnection) -> None:
    """Who changes an account and its key at this moment."""
    connection.execute("ALTER TABLE person ADD COLUMN changed_by TEXT")


MIGRATIONS: tuple[Migration, ...] = (_first, _second)


_NONCE = 12


class Seal:
    """Seals and opens texts, each bound to the account that it belongs to."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def close(self, text: str, owner: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), owner.encode())

    def open(self, sealed: bytes, owner: str) -> str:
        """The text. Raises UnavailableError for what this key did not seal, or sealed for another account."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], owner.encode()).decode()
        except (InvalidTag, ValueError):
            raise UnavailableError(
                "A stored key does not open with the sealing key beside it.",
                next_step="Restore people.sqlite and people.key from one backup, or add the accounts anew.",
            ) from None


def seal_at(path: Path) -> Seal:
    """The seal whose key lies in `path`, readable by its owner only; made if there is none."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(fresh, path)  # of two processes that make one, the first wins and both read the same
        fresh.unlink()
    key = path.read_bytes()
    if len(key) != 32 or path.stat().st_mode & 0o077:
        raise UnavailableError(
            f"The file {path.name} is damaged or may be read by others than its owner.",
            next_step=f"Restore it from a backup, or run: chmod 600 {path}",
        )
    return Seal(key)


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


class AccountInChange(SentinelError):
    """Another surface changes the account at this moment."""

    code = "account_in_change"


@dataclass(frozen=True, slots=True)
class AccountTerms:
    """What an account may do and see."""

    roles: frozenset[Role]
    clearance: Sensitivity = Sensitivity.MEDIUM
    groups: tuple[str, ...] = ()


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
        terms: AccountTerms,
        *,
        password: str | None,
        oidc_name: str | None = None,
        key: str,
        key_id: str,
    ) -> Account:
        """A new account; `password` is a hash, `key` the person's key at the gateway. Raises UsageError."""
        user_id, checked = secrets.token_hex(8), checked_name(name)
        row = [
            user_id,
            checked,
            *_columns(terms),
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

    def reset(self, user_id: str, password: str | None, key: str) -> None:
        """Another hash, or none until an invitation is accepted, and the key's new text; every sign-in ends."""
        with self._records.transaction() as run:
            run.execute(
                "UPDATE person SET password = ?, sealed_key = ? WHERE user_id = ?",
                [password, self._seal.close(key, user_id), user_id],
            )
            run.execute("DELETE FROM sign_in WHERE user_id = ?", [user_id])

    def accept(self, invitation: str, password: str) -> bool:
        """Store the hash that the person who was invited chose; whether the invitation was still good. It is spent, and
        every other sign-in of the account ends."""
        with self._records.transaction() as run:
            account = self.sign_ins.invited(invitation, run)
            if account is not None:
                run.execute("UPDATE person SET password = ? WHERE user_id = ?", [password, account.user_id])
                run.execute("DELETE FROM sign_in WHERE user_id = ?", [account.user_id])
        return account is not None

    @contextmanager
    def changing(self, name: str) -> Iterator[Account]:
        """The account of that name, which no other process changes during the block: its key is changed at the gateway,
        and then here. A process that ended amid it holds nothing. Raises AccountInChange."""
        user_id, own = self.find(name).user_id, self._records.holder
        with self._records.transaction() as run:
            (other,) = run.execute("SELECT changed_by FROM person WHERE user_id = ?", [user_id]).fetchone()
            if other not in (None, own) and self._records.is_live(run, other):
                raise AccountInChange(
                    f"The account {name.strip().lower()} is being changed by somebody else at this moment.",
                    next_step="Look at what became of it, then try again.",
                )
            run.execute("UPDATE person SET changed_by = ? WHERE user_id = ?", [own, user_id])
        try:
            yield self._one("user_id", user_id)
        finally:
            with self._records.transaction() as run:
                run.execute("UPDATE person SET changed_by = NULL WHERE user_id = ? AND changed_by = ?", [user_id, own])

    def disable(self, user_id: str) -> None:
        """End an account; its sign-ins end at once."""
        with self._records.transaction() as run:
            run.execute("UPDATE person SET disabled_at = ? WHERE user_id = ?", [format_time(self._clock()), user_id])
            run.execute("DELETE FROM sign_in WHERE user_id = ?", [user_id])

    def give_terms(self, user_id: str, terms: AccountTerms, *, key: str, key_id: str) -> None:
        """Other roles, with the key that has their scopes; a disabled account is live again."""
        with self._records.transaction() as run:
            run.execute(
                "UPDATE person SET roles = ?, groups = ?, clearance = ?, key_id = ?, sealed_key = ?, "
                "disabled_at = NULL WHERE user_id = ?",
                [*_columns(terms), key_id, self._seal.close(key, user_id), user_id],
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
        if oidc_name is None:
            return
        if not oidc_name.strip():
            raise UsageError("A name at the identity provider has letters.", next_step="Give the person's name there.")
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


class PersonKeys(Protocol):
    """The keys of people at the gateway, changed by somebody who may. Methods raise SentinelError."""

    def make(
        self, name: str, scopes: Collection[Scope], clearance: Sensitivity, readers: Collection[str], replaces: str
    ) -> tuple[str, str]:
        """Text and id of a new key; the one that it replaces, if any, ends once it is there."""
        ...

    def rotate(self, key_id: str) -> str | None:
        """The key's new text; None for a key that has ended."""
        ...

    def end(self, key_id: str) -> None:
        """End a key for good."""
        ...


def _columns(terms: AccountTerms) -> tuple[str, str, str]:
    """The columns `roles`, `groups` and `clearance`."""
    return json.dumps(sorted(terms.roles)), json.dumps(checked_groups(terms.groups)), terms.clearance.name


class AccountChanges:
    """Changes of the accounts in `people`, whose keys `keys` changes. Blocks; methods raise SentinelError."""

    def __init__(self, people: UserStore, keys: PersonKeys) -> None:
        self._people = people
        self._keys = keys

    def add(self, name: str, terms: AccountTerms, *, password: str | None, oidc_name: str | None) -> Account:
        """A new account; `password` is a hash, None where the person signs in otherwise or chooses one later."""
        terms = _as_of_key(terms)
        self._people.check_free(name, oidc_name)
        key, key_id = self._make(checked_name(name), terms, replaces="")
        try:
            bound = None if oidc_name is None else oidc_name.strip().lower()
            return self._people.add(name, terms, password=password, oidc_name=bound, key=key, key_id=key_id)
        except BaseException:
            self._keys.end(key_id)
            raise

    def change(self, name: str, terms: AccountTerms) -> Account:
        """Other terms, with a key that has their scopes; a disabled account is live again."""
        terms = _as_of_key(terms)
        with self._people.changing(name) as account:
            key, key_id = self._make(account.name, terms, replaces=account.key_id)
            self._people.give_terms(account.user_id, terms, key=key, key_id=key_id)
        return self._people.find(name)

    def disable(self, name: str) -> Account:
        """End an account, its sign-ins and its key."""
        with self._people.changing(name) as account:
            self._people.disable(account.user_id)
            self._keys.end(account.key_id)
        return self._people.find(name)

    def check_reset(self, name: str) -> Account:
        """The account, if it can have another password. Raises UsageError."""
        account = self._people.find(name)
        if account.oidc_name is not None:
            raise UsageError(
                f"{account.name} signs in at the identity provider and has no password here.",
                next_step="Reset it there, or disable this account and add another one.",
            )
        return account

    def reset(self, name: str, password: str | None) -> Account:
        """Another password, or none until the person chooses one; every sign-in and token ends, and the key's secret is
        another one, so that it is on record."""
        self.check_reset(name)
        with self._people.changing(name) as account:
            key = None if account.disabled_at else self._keys.rotate(account.key_id)
            if key is None:
                raise UsageError(
                    f"The account {account.name} is disabled.",
                    next_step=f"Make it live first: sentinel users change {account.name} --role ...",
                )
            self._people.reset(account.user_id, password, key)
        return self._people.find(name)

    def _make(self, name: str, terms: AccountTerms, replaces: str) -> tuple[str, str]:
        if not terms.roles:
            raise UsageError("An account has at least one role.", next_step="Name one, or disable the account.")
        return self._keys.make(name, scopes_of(terms.roles), terms.clearance, terms.groups, replaces)


def _as_of_key(terms: AccountTerms) -> AccountTerms:
    """The terms as the person's key has them: who does not ask reads nothing, so that nothing is kept for a later role
    which nobody was asked for. Raises UsageError for a group's name that is none."""
    groups = checked_groups(terms.groups)
    return replace(terms, groups=groups) if Role.ANALYST in terms.roles else AccountTerms(terms.roles, Sensitivity.LOW)


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
