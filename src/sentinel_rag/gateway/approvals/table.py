"""The table of approvals: what is read and written inside one transaction, and nothing that waits.

Every move between states is one guarded UPDATE in an immediate transaction of the file, so any number of gateway
processes may share it: what the row says decides, never what a process remembers. Times are whole microseconds of UTC.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sentinel_rag.audit import RecordConnection
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.gateway.approvals.approval import Approval, ApprovalState, Ruling, YesOutcome
from sentinel_rag.gateway.approvals.binding import ApprovalQuestion, Binding, DecidedBy

KEPT = timedelta(days=30)
"""How long an ended approval can still be listed; the journal keeps its story."""

_COLUMNS = "approval_id, state, asked_at, ends_at, body, decided_by, via, actor, comment, decided_at, used_at, outcome"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _tables(connection: RecordConnection) -> None:
    connection.execute(
        "CREATE TABLE approval (approval_id TEXT PRIMARY KEY, binding_sha256 TEXT NOT NULL, key_id TEXT NOT NULL, "
        "tool TEXT NOT NULL, state TEXT NOT NULL, asked_at INTEGER NOT NULL, ends_at INTEGER NOT NULL, "
        "approvers TEXT NOT NULL, body BLOB NOT NULL, decided_by TEXT, via TEXT, actor TEXT, comment TEXT, "
        "decided_at INTEGER, used_at INTEGER, token TEXT, notify_at INTEGER, "
        "notify_attempts INTEGER NOT NULL DEFAULT 0) STRICT"
    )
    connection.execute("CREATE INDEX approval_binding ON approval (binding_sha256, state)")
    connection.execute("CREATE INDEX approval_state ON approval (state, asked_at)")
    connection.execute("CREATE INDEX approval_key ON approval (key_id, asked_at)")


def _many_that_ended(connection: RecordConnection) -> None:
    """A key may ask thousands of times in the days that ended ones are kept; nobody reads through them."""
    connection.execute("CREATE INDEX approval_mark ON approval (state, ends_at, asked_at, decided_at, used_at)")
    connection.execute("DROP INDEX approval_binding")
    connection.execute("CREATE INDEX approval_binding ON approval (binding_sha256, state, decided_at)")


def _whom_they_are_asked_for(connection: RecordConnection) -> None:
    """`asker` is the conversation that asks: a session of a person's, or the key of an agent that asks by itself,
    however many sessions it opens. `person` is the key of that person; `by_asker` says that they decide themselves."""
    connection.execute("ALTER TABLE approval ADD COLUMN asker TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE approval ADD COLUMN person TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE approval ADD COLUMN by_asker INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE INDEX approval_asker ON approval (asker, asked_at)")
    connection.execute("CREATE INDEX approval_person ON approval (person, asked_at)")
    connection.execute("DROP INDEX approval_key")


def _what_runs_at_the_yes(connection: RecordConnection) -> None:
    """`outcome` is what became of a call that ran when it was approved, `told` what its agent is told when it sends the
    call again, which `call_sha256` finds; once."""
    connection.execute("ALTER TABLE approval ADD COLUMN call_sha256 TEXT NOT NULL DEFAULT ''")
    connection.execute("ALTER TABLE approval ADD COLUMN outcome TEXT")
    connection.execute("ALTER TABLE approval ADD COLUMN told BLOB")
    connection.execute("CREATE INDEX approval_told ON approval (call_sha256) WHERE told IS NOT NULL")


def _what_a_no_holds_for(connection: RecordConnection) -> None:
    """`near_duplicate_sha256` is what calls share that read alike; it is empty once a no is lifted, and for questions
    of older versions. `approval_bound` is until when whose questions are over a bound that is on record."""
    connection.execute("ALTER TABLE approval ADD COLUMN near_duplicate_sha256 TEXT NOT NULL DEFAULT ''")
    connection.execute("CREATE INDEX approval_near_duplicate ON approval (near_duplicate_sha256, state)")
    connection.execute("CREATE TABLE approval_bound (asker TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT")


MIGRATIONS = (_tables, _many_that_ended, _whom_they_are_asked_for, _what_runs_at_the_yes, _what_a_no_holds_for)


@dataclass(frozen=True, slots=True)
class Notice:
    """A pending approval that the webhook's receiver has to hear of: the how manieth attempt this is, and the token
    that a decision of the receiver has to carry."""

    approval: Approval
    token: str
    attempt: int


@dataclass(frozen=True, slots=True)
class ApprovalStanding:
    """Who asked, where it stands, who may decide, and what a decision through the webhook has to carry (empty once it
    cannot be decided any more)."""

    key_id: str
    state: ApprovalState
    approvers: tuple[str, ...]
    token: str
    decided_by: DecidedBy = DecidedBy.OTHER


def insert(connection: RecordConnection, approval: Approval, token: str) -> None:
    """Add a pending approval, and forget those that ended long ago."""
    binding = approval.binding
    whole = {"binding": binding.to_dict(), "question": approval.question.to_dict(), "sent": approval.sent}
    body = canonical_json(whole)
    connection.execute(
        "INSERT INTO approval (approval_id, binding_sha256, key_id, tool, state, asked_at, ends_at, "
        "approvers, body, token, notify_at, asker, person, by_asker, call_sha256, near_duplicate_sha256) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            approval.approval_id,
            binding.sha256(),
            binding.key_id,
            binding.tool,
            approval.state.value,
            micros(approval.asked_at),
            micros(approval.ends_at),
            json.dumps(approval.question.approvers),
            body,
            token,
            micros(approval.asked_at),
            asker_of(binding, approval.person),
            approval.person or "",
            int(approval.question.decided_by is DecidedBy.ASKER),
            binding.call_sha256(),
            binding.near_duplicate_sha256,
        ],
    )
    # None ends before it was asked, and by that time an index finds the old ones.
    connection.execute(
        "DELETE FROM approval WHERE state IN ('denied', 'used', 'expired') AND asked_at < ?1 AND ends_at < ?1",
        [micros(approval.asked_at - KEPT)],
    )
    # An agent that has not come for it by now will not.
    connection.execute(
        "UPDATE approval SET told = NULL WHERE told IS NOT NULL AND ends_at < ?", [micros(approval.asked_at)]
    )


def asker_of(binding: Binding, person: str | None) -> str:
    """The conversation that asks, as bounds count it."""
    return binding.key_id if person is None else binding.session_id


def find(connection: RecordConnection, approval_id: str, now: datetime) -> Approval | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM approval WHERE approval_id = ?", [approval_id]).fetchone()  # noqa: S608  # a constant
    return None if row is None else _decode(row, now)


def standing(connection: RecordConnection, approval_id: str, now: datetime) -> ApprovalStanding | None:
    """What decides about a verdict, without the body, which may be long."""
    row = connection.execute(
        "SELECT key_id, state, ends_at, approvers, token, by_asker FROM approval WHERE approval_id = ?", [approval_id]
    ).fetchone()
    if row is None:
        return None
    by = DecidedBy.ASKER if row[5] else DecidedBy.OTHER
    return ApprovalStanding(row[0], _state_at(row[1], row[2], now), tuple(json.loads(row[3])), row[4] or "", by)


def open_for(
    connection: RecordConnection, binding_sha256: str, states: Sequence[ApprovalState], now: datetime
) -> str | None:
    """The oldest approval of exactly that binding that is in one of `states` and has not lapsed."""
    row = connection.execute(
        "SELECT approval_id FROM approval WHERE binding_sha256 = ? AND ends_at > ? "  # noqa: S608  # marks of values
        f"AND state IN ({', '.join('?' * len(states))}) ORDER BY asked_at, rowid LIMIT 1",
        [binding_sha256, micros(now), *(state.value for state in states)],
    ).fetchone()
    return None if row is None else str(row[0])


def rule(connection: RecordConnection, approval_id: str, state: ApprovalState, ruling: Ruling, ends: datetime) -> bool:
    """Decide a pending approval; False if it is not pending or has lapsed by the time of the ruling."""
    changed = connection.execute(
        "UPDATE approval SET state = ?, decided_by = ?, via = ?, actor = ?, comment = ?, decided_at = ?, ends_at = ?, "
        "token = NULL, notify_at = NULL WHERE approval_id = ? AND state = 'pending' AND ends_at > ?",
        [
            state.value,
            ruling.by,
            ruling.via,
            ruling.actor,
            ruling.comment,
            micros(ruling.at),
            micros(ends),
            approval_id,
            micros(ruling.at),
        ],
    ).rowcount
    return changed == 1


def denied(
    connection: RecordConnection, binding: Binding, person: str | None, since: datetime
) -> tuple[str, str, str, datetime] | None:
    """The newest no since then that holds for this call: the approval's id, the deciding key, the actor that the
    webhook's receiver named, and when. A person's no holds for what their conversations ask, and anybody's of the key
    for what an agent asks by itself."""
    rows = connection.execute(
        "SELECT approval_id, decided_by, actor, decided_at, person FROM approval WHERE near_duplicate_sha256 = ? "
        "AND state = 'denied' AND key_id = ? AND decided_at > ? ORDER BY decided_at DESC",
        [binding.near_duplicate_sha256, binding.key_id, micros(since)],
    ).fetchall()
    held = (row for row in rows if person in (None, row[4]))
    return next(((row[0], row[1], row[2], _moment(row[3])) for row in held), None)


def near_duplicates(connection: RecordConnection, approval_id: str, state: ApprovalState) -> list[str]:
    """The others in that state that read alike and for which a no to this one holds."""
    rows = connection.execute(
        "SELECT other.approval_id FROM approval AS one JOIN approval AS other ON other.key_id = one.key_id "
        "AND other.person IN (one.person, '') AND other.near_duplicate_sha256 = one.near_duplicate_sha256 "
        "WHERE one.approval_id = ? AND one.near_duplicate_sha256 <> '' AND other.state = ? "
        "AND other.approval_id <> one.approval_id",
        [approval_id, state.value],
    )
    return [row[0] for row in rows.fetchall()]


def lift(connection: RecordConnection, approval_id: str) -> bool:
    """Let a no hold no longer; False if there is none that does."""
    changed = connection.execute(
        "UPDATE approval SET near_duplicate_sha256 = '' "
        "WHERE approval_id = ? AND state = 'denied' AND near_duplicate_sha256 <> ''",
        [approval_id],
    ).rowcount
    return changed == 1


def bound(connection: RecordConnection, asker: str, now: datetime, until: datetime) -> bool:
    """Note that whose questions are over their bound; False while that is noted."""
    changed = connection.execute(
        "INSERT INTO approval_bound (asker, until) VALUES (?, ?) "
        "ON CONFLICT (asker) DO UPDATE SET until = excluded.until WHERE approval_bound.until <= ?",
        [asker, micros(until), micros(now)],
    ).rowcount
    return changed == 1


def use(connection: RecordConnection, approval_id: str, binding_sha256: str, now: datetime) -> bool:
    """Spend an approved approval of exactly that binding; False if there is none (any more)."""
    changed = connection.execute(
        "UPDATE approval SET state = 'used', used_at = ? "
        "WHERE approval_id = ? AND binding_sha256 = ? AND state = 'approved' AND ends_at > ?",
        [micros(now), approval_id, binding_sha256, micros(now)],
    ).rowcount
    return changed == 1


def ran(connection: RecordConnection, approval_id: str, ran: YesOutcome, told: bytes | None) -> None:
    """Keep what became of the call, and what its agent is told; None where it may still send it."""
    connection.execute(
        "UPDATE approval SET outcome = ?, told = ? WHERE approval_id = ?",
        [json.dumps(ran.to_dict()), told, approval_id],
    )


def told(connection: RecordConnection, call_sha256: str, now: datetime) -> tuple[str, bytes] | None:
    """The approval by which exactly that call ran, and what its agent has not been told of it yet."""
    row = connection.execute(
        "SELECT approval_id, told FROM approval WHERE call_sha256 = ? AND told IS NOT NULL AND ends_at > ? "
        "ORDER BY asked_at LIMIT 1",
        [call_sha256, micros(now)],
    ).fetchone()
    return None if row is None else (str(row[0]), bytes(row[1]))


def take(connection: RecordConnection, approval_id: str) -> bool:
    """That the agent is told now; False if another call was first."""
    changed = connection.execute(
        "UPDATE approval SET told = NULL WHERE approval_id = ? AND told IS NOT NULL", [approval_id]
    ).rowcount
    return changed == 1


def overdue(connection: RecordConnection, now: datetime) -> list[tuple[str, str]]:
    """Id and stored state of those whose time is over and whose row does not say so yet."""
    return connection.execute(
        "SELECT approval_id, state FROM approval WHERE state IN ('pending', 'approved') AND ends_at <= ? "
        "ORDER BY ends_at",
        [micros(now)],
    ).fetchall()


def lapse(connection: RecordConnection, approval_id: str, now: datetime) -> bool:
    """Mark one of `overdue`; False if another process has done so."""
    changed = connection.execute(
        "UPDATE approval SET state = 'expired', token = NULL, notify_at = NULL "
        "WHERE approval_id = ? AND state IN ('pending', 'approved') AND ends_at <= ?",
        [approval_id, micros(now)],
    ).rowcount
    return changed == 1


def page(
    connection: RecordConnection, state: ApprovalState | None, limit: int, now: datetime, asker: str | None = None
) -> tuple[list[Approval], int]:
    """At most `limit`, oldest first, and how many more there are: newer ones among the pending, which are decided in
    turn, else older ones. With `asker`, the key of a person, those that this person decides about themselves."""
    conditions: list[tuple[str, object]] = [] if state is None else [("state = ?", state.value)]
    if asker is not None:
        conditions += [("person = ?", asker), ("by_asker = ?", 1)]
    where = f"WHERE {' AND '.join(text for text, _ in conditions)}" if conditions else ""
    values = [value for _, value in conditions]
    total = int(connection.execute(f"SELECT count(*) FROM approval {where}", values).fetchone()[0])  # noqa: S608  # constants
    order = "ASC" if state is ApprovalState.PENDING else "DESC"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM approval {where} ORDER BY asked_at {order}, rowid {order} LIMIT ?",  # noqa: S608  # constants
        [*values, limit],
    ).fetchall()
    found = [_decode(row, now) for row in rows]
    return (found if order == "ASC" else found[::-1]), total - len(found)


def pending_by_tool(connection: RecordConnection, now: datetime) -> dict[str, int]:
    rows = connection.execute(
        "SELECT tool, count(*) FROM approval WHERE state = 'pending' AND ends_at > ? GROUP BY tool", [micros(now)]
    )
    return dict(rows.fetchall())


def mark(connection: RecordConnection, now: datetime) -> str:
    """Another text after each change of any approval, also one that the clock makes: no move between states leaves how
    many there are of each, and when the newest of each was asked, decided and used."""
    rows = connection.execute(
        "SELECT state, ends_at > ?, count(*), max(asked_at), max(decided_at), max(used_at), count(outcome) "
        "FROM approval GROUP BY 1, 2 ORDER BY 1, 2",
        [micros(now)],
    )
    return hashlib.sha256(repr(rows.fetchall()).encode()).hexdigest()[:16]


def claim_notices(connection: RecordConnection, now: datetime, waits: Sequence[float], limit: int) -> list[Notice]:
    """Pending approvals whose notice is due, oldest first, with the next attempt put off by the wait of this one: a
    process that ends in the middle has only delayed it, and two processes do not send the same attempt."""
    rows = connection.execute(
        f"SELECT token, notify_attempts, {_COLUMNS} FROM approval "  # noqa: S608  # a constant
        "WHERE state = 'pending' AND notify_at <= ? AND ends_at > ? ORDER BY asked_at, rowid LIMIT ?",
        [micros(now), micros(now), limit],
    ).fetchall()
    notices = [Notice(_decode(row[2:], now), row[0], row[1] + 1) for row in rows]
    for notice in notices:
        wait = waits[min(notice.attempt, len(waits)) - 1]
        connection.execute(
            "UPDATE approval SET notify_attempts = ?, notify_at = ? WHERE approval_id = ?",
            [notice.attempt, micros(now + timedelta(seconds=wait)), notice.approval.approval_id],
        )
    return notices


def end_notices(connection: RecordConnection, approval_id: str) -> None:
    """No further attempt: it was delivered, or given up."""
    connection.execute("UPDATE approval SET notify_at = NULL WHERE approval_id = ?", [approval_id])


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970; whole, so that two times compare in SQL as they do in Python."""
    return (moment - _EPOCH) // _MICROSECOND


def _moment(value: int) -> datetime:
    return _EPOCH + value * _MICROSECOND


def _state_at(stored: str, ends_at: int, now: datetime) -> ApprovalState:
    """The state by the clock, whether or not the row says so yet."""
    state = ApprovalState(stored)
    if state in (ApprovalState.PENDING, ApprovalState.APPROVED) and ends_at <= micros(now):
        return ApprovalState.EXPIRED
    return state


def _decode(row: Sequence[object], now: datetime) -> Approval:
    approval_id, state, asked_at, ends_at, body, decided_by, via, actor, comment, decided_at, used_at, outcome = row
    assert isinstance(body, bytes)
    assert isinstance(asked_at, int)
    assert isinstance(ends_at, int)
    stored = json.loads(body)
    ruling = None
    if isinstance(decided_at, int):
        ruling = Ruling(str(decided_by), str(via), str(actor), str(comment), _moment(decided_at))
    return Approval(
        approval_id=str(approval_id),
        state=_state_at(str(state), ends_at, now),
        binding=Binding.from_dict(stored["binding"]),
        question=ApprovalQuestion.from_dict(stored["question"]),
        asked_at=_moment(asked_at),
        ends_at=_moment(ends_at),
        ruling=ruling,
        used_at=_moment(used_at) if isinstance(used_at, int) else None,
        sent=stored.get("sent"),
        ran=_ran(outcome),
    )


def _ran(stored: object) -> YesOutcome | None:
    if not isinstance(stored, str):
        return None
    told = json.loads(stored)
    return YesOutcome(told["status"], told["audit_id"], told["reason"] or "", told["approval_id"] or "")
