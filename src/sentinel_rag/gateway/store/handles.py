"""The values behind handles. They belong to one session, are found only with it, and go when it closes, or once nobody
has used it for a month: the session's row counts them, so that no call is the slower for what was kept before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sentinel_rag.audit import RecordConnection, StateDatabase, Work
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.flow.view import HandleReference, Hidden, NoSuchHandle, step_into
from sentinel_rag.gateway.policy.model import pointer_text
from sentinel_rag.gateway.store.session_tables import PART_BYTES

MAX_SESSION_BYTES = 64_000_000
"""What one session may keep of hidden values; the results beyond it, oldest first, are forgotten."""

KEPT = timedelta(days=30)
"""Without a call for as long a session's hidden values are forgotten; its label stays."""

MAX_FORGOTTEN = 5
"""Sessions whose values are forgotten at a time."""


MAX_PLACES = 2_000
"""Places that one statement asks for."""

_Place = tuple[int, str]
"""A result of a session, and a pointer into it."""

_Kept = tuple[Any, Label]
"""A hidden value and its label."""


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A stored value and its label. `inside`: it is a part of what was hidden, so that it was found at all tells
    something about the hidden value."""

    value: JsonValue
    label: Label
    inside: bool


class HandleStore:
    """The handles in `database`, whose tables the session store made."""

    def __init__(self, database: StateDatabase) -> None:
        self._database = database

    async def resolve(
        self, session_id: str, references: Collection[HandleReference]
    ) -> Mapping[HandleReference, StoredValue]:
        """What each stands for. Raises NoSuchHandle if the session has not all of them, with the label of what the
        refusal tells."""
        stored = await self._stored(session_id, references)
        found: dict[HandleReference, StoredValue] = {}
        told = BOTTOM
        missing: NoSuchHandle | None = None
        for reference in references:
            try:
                found[reference] = _find(stored, reference)
            except NoSuchHandle as fault:
                missing = fault
                told = told.join(fault.told)
        if missing is not None:
            missing.told = join_all([told, *(each.label for each in found.values() if each.inside)])
            raise missing
        return found

    async def known(
        self, session_id: str, references: Collection[HandleReference]
    ) -> Mapping[HandleReference, StoredValue]:
        """What each stands for of which the session has something; the others are left out."""
        stored = await self._stored(session_id, references)
        found: dict[HandleReference, StoredValue] = {}
        for reference in references:
            with suppress(NoSuchHandle):
                found[reference] = _find(stored, reference)
        return found

    async def _stored(self, session_id: str, references: Collection[HandleReference]) -> Mapping[_Place, _Kept]:
        """The hidden values that the references name, or into which they lead. One statement for many, and beside the
        writers: how many handles a call has must cost nobody else anything."""
        places = list(dict.fromkeys(place for reference in references for place in _places(reference)))
        if not places:
            return {}
        return await self._database.look(lambda connection: dict(_read(connection, session_id, places)))

    def keep(self, session_id: str, hidden: Collection[Hidden]) -> Work[object]:
        """The write that stores the hidden parts of a result; of one that comes when its session is closed, nothing."""

        rows = [
            (
                *(session_id, part.reference.result, pointer_text(part.reference.path), part.encoded),
                *(part.label.sensitivity.value, part.label.integrity.value),
            )
            for part in hidden
        ]
        size = sum(_size(pointer, len(encoded)) for _, _, pointer, encoded, *_ in rows)

        def write(connection: RecordConnection) -> None:
            counted = connection.execute(
                "UPDATE session SET hidden_bytes = hidden_bytes + ? WHERE session_id = ? AND closed_at IS NULL "
                "RETURNING hidden_bytes",
                [size, session_id],
            ).fetchone()
            if counted is None:
                return
            connection.executemany("INSERT INTO handle VALUES (?, ?, ?, ?, ?, ?)", rows)
            if counted[0] > MAX_SESSION_BYTES:
                _forget_oldest(connection, session_id, counted[0])

        return write

    def forget_unused(self, now: datetime) -> int:
        """Forget the hidden values of sessions without a call for `KEPT`; of how many, at most `MAX_FORGOTTEN`.
        Blocks."""
        return self._database.run_now(lambda connection: _forget_unused(connection, format_time(now - KEPT)))


def next_result(connection: RecordConnection, session_id: str) -> int:
    """The number of the next result of a session, counted in the file, so that no two calls share one."""
    row = connection.execute(
        "UPDATE session SET results = results + 1 WHERE session_id = ? RETURNING results", [session_id]
    ).fetchone()
    return int(row[0])


def _places(reference: HandleReference) -> Iterator[_Place]:
    """Where the value may be stored, or what it is a part of; the longest path first."""
    for length in range(len(reference.path), -1, -1):
        yield reference.result, pointer_text(reference.path[:length])


def _read(connection: RecordConnection, session_id: str, places: Sequence[_Place]) -> Iterator[tuple[_Place, _Kept]]:
    for start in range(0, len(places), MAX_PLACES):
        asked = places[start : start + MAX_PLACES]
        marks = ", ".join(["(?, ?)"] * len(asked))
        rows = connection.execute(
            "SELECT handle.result, handle.pointer, value, sensitivity, integrity "  # noqa: S608  # marks of values
            f"FROM (VALUES {marks}) AS place JOIN handle ON handle.session_id = ? AND handle.result = place.column1 "
            "AND handle.pointer = place.column2 /* a long key */",
            [*(each for place in asked for each in place), session_id],
        )
        for result, pointer, value, sensitivity, integrity in rows.fetchall():
            label = Label(Sensitivity(sensitivity), Integrity(integrity))
            yield (result, pointer), (msgspec.json.decode(value), label)


def _find(stored: Mapping[_Place, _Kept], reference: HandleReference) -> StoredValue:
    for length, place in zip(range(len(reference.path), -1, -1), _places(reference), strict=True):
        if place in stored:
            hidden, label = stored[place]
            try:
                return StoredValue(step_into(hidden, reference.path[length:]), label, length < len(reference.path))
            except NoSuchHandle as fault:
                fault.told = label
                raise
    raise NoSuchHandle("there is no such handle in this session")


def _size(pointer: str, value_bytes: int) -> int:
    """What one hidden value counts. Reckoned here alone: the engines count characters of a text differently."""
    return value_bytes + len(pointer) + PART_BYTES


def _forget_oldest(connection: RecordConnection, session_id: str, kept: int) -> None:
    """Forget whole results until what is left fits; the newest stays, whatever it takes."""
    one = "SELECT {}(result) FROM handle WHERE session_id = ?"
    newest = connection.execute(one.format("max"), [session_id]).fetchone()[0]
    while kept > MAX_SESSION_BYTES:
        oldest = connection.execute(one.format("min"), [session_id]).fetchone()[0]
        if oldest == newest:
            break
        parts = connection.execute(
            "SELECT pointer, length(value) FROM handle WHERE session_id = ? AND result = ?", [session_id, oldest]
        )
        kept -= sum(_size(pointer, length) for pointer, length in parts)
        connection.execute("DELETE FROM handle WHERE session_id = ? AND result = ?", [session_id, oldest])
    connection.execute("UPDATE session SET hidden_bytes = ? WHERE session_id = ?", [kept, session_id])


def _forget_unused(connection: RecordConnection, limit: str) -> int:
    unused = connection.execute(
        f"SELECT session_id FROM session WHERE hidden_bytes > 0 AND used_at < ? LIMIT {MAX_FORGOTTEN}",  # noqa: S608  # a number
        [limit],
    ).fetchall()
    for (session_id,) in unused:
        connection.execute("DELETE FROM handle WHERE session_id = ?", [session_id])
        connection.execute("UPDATE session SET hidden_bytes = 0 WHERE session_id = ?", [session_id])
    return len(unused)
