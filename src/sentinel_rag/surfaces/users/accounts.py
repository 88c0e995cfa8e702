"""Accounts and sign-ins: their values, their rows, tokens of browsers and programs, and the owner's links.

Of a token its digest alone is kept. A link that signs in the owner is made of the run's secret: whoever can read
`run/zones.json` can make one, and owns the data anyway.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.labels import READER_NAMES, Sensitivity, is_reader_name
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approvals.approval import ELICITED, WEBHOOK
from sentinel_rag.gateway.store import Scope
from sentinel_rag.gateway.store.keys import RUN_KEY_IDS
from sentinel_rag.storage import RecordConnection, Records

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


_SCOPES = {
    Role.ANALYST: Scope.USER,
    Role.APPROVER: Scope.APPROVE,
    Role.AUDITOR: Scope.AUDIT,
    Role.ADMIN: Scope.ADMIN,
}


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
