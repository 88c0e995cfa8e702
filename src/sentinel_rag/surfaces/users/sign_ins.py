"""Sign-ins of people who have accounts, at browsers and as tokens for programs. Of a token its digest alone is kept."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.storage import Records
from sentinel_rag.surfaces.users.accounts import SignIn
from sentinel_rag.surfaces.users.rows import PERSON, account_of

TOUCH = timedelta(minutes=1)
"""How exactly the time of a sign-in's last use is kept."""
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
