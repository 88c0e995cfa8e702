"""The values behind handles. They belong to one session, are found only with it, and go when it closes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from sentinel_rag.audit import Connection, StateDatabase, Work
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.interceptor.flow.references import NoSuchHandle, Reference, step_into
from sentinel_rag.interceptor.flow.view import Hidden
from sentinel_rag.interceptor.policy.fields import pointer_text

MAX_SESSION_BYTES = 64_000_000
"""Hidden values that one session may keep; the results beyond it, oldest first, are forgotten."""


@dataclass(frozen=True, slots=True)
class Found:
    """A stored value and its label. `inside`: it is a part of what was hidden, so that it was found at all tells
    something about the hidden value."""

    value: JsonValue
    label: Label
    inside: bool


class HandleStore:
    """The handles in `database`, whose tables the session store made."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    async def resolve(self, session_id: str, references: Collection[Reference]) -> Mapping[Reference, Found]:
        """What each stands for. Raises NoSuchHandle if the session has not all of them, with the label of what the
        refusal tells."""
        return await self._database.run(lambda connection: _find_all(connection, session_id, references))

    def keep(self, session_id: str, hidden: Collection[Hidden]) -> Work[object]:
        """The write that stores the hidden parts of a result; of one that comes when its session is closed, nothing."""

        def write(connection: Connection) -> None:
            is_open = connection.execute(
                "SELECT 1 FROM session WHERE session_id = ? AND closed_at IS NULL", [session_id]
            ).fetchone()
            if is_open is None:
                return
            connection.executemany(
                "INSERT INTO handle VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (
                        *(session_id, part.reference.result, pointer_text(part.reference.path), part.encoded),
                        *(part.label.sensitivity.value, part.label.integrity.value),
                    )
                    for part in hidden
                ],
            )
            _forget_oldest(connection, session_id)

        return write


def next_result(connection: Connection, session_id: str) -> int:
    """The number of the next result of a session, counted in the file, so that no two calls share one."""
    row = connection.execute(
        "UPDATE session SET results = results + 1 WHERE session_id = ? RETURNING results", [session_id]
    ).fetchone()
    return int(row[0])


def _find_all(connection: Connection, session_id: str, references: Collection[Reference]) -> Mapping[Reference, Found]:
    found: dict[Reference, Found] = {}
    told = BOTTOM
    missing: NoSuchHandle | None = None
    for reference in references:
        try:
            found[reference] = _find(connection, session_id, reference)
        except NoSuchHandle as fault:
            missing = fault
            told = told.join(fault.told)
    if missing is not None:
        missing.told = join_all([told, *(each.label for each in found.values() if each.inside)])
        raise missing
    return found


def _find(connection: Connection, session_id: str, reference: Reference) -> Found:
    for length in range(len(reference.path), -1, -1):
        row: tuple[bytes, int, int] | None = connection.execute(
            "SELECT value, sensitivity, integrity FROM handle WHERE session_id = ? AND result = ? AND pointer = ?",
            [session_id, reference.result, pointer_text(reference.path[:length])],
        ).fetchone()
        if row is not None:
            label = Label(Sensitivity(row[1]), Integrity(row[2]))
            hidden: Any = msgspec.json.decode(row[0])
            try:
                return Found(step_into(hidden, reference.path[length:]), label, length < len(reference.path))
            except NoSuchHandle as fault:
                fault.told = label
                raise
    raise NoSuchHandle("there is no such handle in this session")


def _forget_oldest(connection: Connection, session_id: str) -> None:
    kept, newest = 0, True
    sizes = connection.execute(
        "SELECT result, sum(length(value)) FROM handle WHERE session_id = ? GROUP BY result ORDER BY result DESC",
        [session_id],
    ).fetchall()
    for result, size in sizes:
        kept += size
        if kept > MAX_SESSION_BYTES and not newest:
            connection.execute("DELETE FROM handle WHERE session_id = ? AND result <= ?", [session_id, result])
            return
        newest = False
