"""Reads and writes incidents in the log of versions that SecurityIncident is.

The newest row of an incident is its state; a write appends a row and changes none, as Sentinel does, so that KQL sees
before and after. Each write is one transaction of the store, which is its order and its durability: once a method has
returned, the row is in the file. Above stand the REST endpoints; any thread may call.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.workspace.incidents.bodies import IncidentWrite
from sentinel_rag.workspace.incidents.comments import Comment, comment_names, comments_of
from sentinel_rag.workspace.incidents.odata_filter import SqlCondition
from sentinel_rag.workspace.incidents.rows import (
    NotCurrentError,
    Row,
    fetch_rows,
    json_list,
    require_current,
    wire_time,
)
from sentinel_rag.workspace.incidents.version_log import (
    NEWEST,
    Author,
    append_version,
    commented_columns,
    first_columns,
    insert_version,
    known_person,
    merged_columns,
    newest_row,
    numbered_row,
    written_columns,
)
from sentinel_rag.workspace.store import Store

MAX_COMMENTS = 100
WRITE_WAIT_S = 20.0


class TooManyCommentsError(Exception):
    """The incident holds as many comments as the service keeps."""


class IncidentStore:
    """The incidents of one workspace. Incidents without a GUID cannot be addressed and are not among them."""

    def __init__(self, store: Store, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def get(self, name: str) -> Row | None:
        """The newest row of the incident with the GUID `name`."""
        with self._store.cursor() as cursor:
            return newest_row(cursor, name)

    def page(
        self, condition: SqlCondition, order: str, *, limit: int, offset: int, as_of: datetime | None
    ) -> tuple[list[Row], datetime | None]:
        """At most `limit` newest rows behind `offset`, as the log stood at `as_of` (None: now), and that moment.

        Pages that carry the moment on fit together whatever is written in between.
        """
        with self._store.cursor() as cursor:
            if as_of is None:
                found = cursor.execute("SELECT max(TimeGenerated) FROM SecurityIncident").fetchone()
                as_of = found[0] if found else None
            newest = NEWEST.format(condition="AND TimeGenerated <= ?")
            cursor.execute(
                f"SELECT * FROM ({newest}) WHERE {condition.sql} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608 - compiled
                [as_of, *condition.parameters, limit, offset],
            )
            return fetch_rows(cursor), as_of

    def put(self, name: str, write: IncidentWrite, author: Author, *, if_match: str | None = None) -> tuple[Row, bool]:
        """Append the version that `write` asks for; the new row, and whether the incident is new.

        Raises NotCurrentError if `if_match` or the write's own etag is not that of the newest row.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            before = newest_row(cursor, name)
            require_current(before, if_match, write.etag)
            at = self._moment(before)
            owner = known_person(cursor, write.owner)
            changed = written_columns(write, owner, before, at) | {"ModifiedBy": author.name}
            if before is None:
                insert_version(cursor, {**changed, **first_columns(cursor, name, at)})
            else:
                append_version(cursor, before, changed)
            after = newest_row(cursor, name)
            assert after is not None
            return after, before is None

    def merge(self, source: int, target: int) -> None:
        """Merge one incident into another as Defender's correlation does. Raises LookupError for a number that no
        incident has."""
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            rows = [numbered_row(cursor, number) for number in (source, target)]
            before, other = rows
            if before is None or other is None or source == target:
                raise LookupError(source if before is None or source == target else target)
            at = max(map(self._moment, (before, other)))
            closed, grown = merged_columns(before, other, at)
            append_version(cursor, before, closed)
            append_version(cursor, other, grown)

    def comments(self, name: str) -> list[Comment] | None:
        """The comments of an incident, newest first; None if there is no such incident."""
        with self._store.cursor() as cursor:
            row = newest_row(cursor, name)
            return None if row is None else comments_of(row, comment_names(cursor, name))[::-1]

    def put_comment(
        self, incident: str, name: str, message: str, author: Author, *, etag: str | None = None
    ) -> tuple[Comment, bool] | None:
        """Add the comment with the GUID `name`, or replace its message; None if there is no such incident.

        Raises NotCurrentError for an etag that is not the comment's, TooManyCommentsError at the service's limit.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            row = newest_row(cursor, incident)
            if row is None:
                return None
            comments = comments_of(row, comment_names(cursor, incident))
            known = next((comment for comment in comments if comment.name.lower() == name.lower()), None)
            if etag not in (None, "*") and (known is None or known.etag != str(etag).strip('"')):
                raise NotCurrentError
            if known is None and len(comments) >= MAX_COMMENTS:
                raise TooManyCommentsError
            at = self._moment(row)
            entry: dict[str, Any]
            if known is None:
                entry = {"message": message, "createdTimeUtc": wire_time(at), "lastModifiedTimeUtc": wire_time(at)}
                entry["author"] = author.entry()
                cursor.execute(
                    "INSERT INTO sentinel.incident_comments VALUES (?, ?, ?)", [incident.lower(), name, wire_time(at)]
                )
            else:
                entry = {**known.entry, "message": message, "lastModifiedTimeUtc": wire_time(at)}
            entries = [entry if comment is known else comment.entry for comment in comments]
            append_version(cursor, row, commented_columns(row, entries if known else [*entries, entry], at, author))
            return Comment(name if known is None else known.name, entry), known is None

    def delete_comment(self, incident: str, name: str, author: Author) -> bool:
        """Take a comment away; whether it was there."""
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            row = newest_row(cursor, incident)
            comments = [] if row is None else comments_of(row, comment_names(cursor, incident))
            kept = [comment.entry for comment in comments if comment.name.lower() != name.lower()]
            if row is None or len(kept) == len(comments):
                return False
            append_version(cursor, row, commented_columns(row, kept, self._moment(row), author))
            return True

    def alerts(self, row: Row) -> list[Row]:
        """The newest row of each alert that the incident names and the log holds, oldest first."""
        ids = [str(item).lower() for item in json_list(row["AlertIds"]) if item]
        if not ids:
            return []
        with self._store.cursor() as cursor:
            cursor.execute(
                "SELECT * FROM SecurityAlert WHERE list_contains(?, lower(SystemAlertId)) "
                "QUALIFY row_number() OVER (PARTITION BY lower(SystemAlertId) ORDER BY TimeGenerated DESC) = 1 "
                "ORDER BY StartTime, SystemAlertId",
                [ids],
            )
            return fetch_rows(cursor)

    def _moment(self, before: Row | None) -> datetime:
        """Now, but behind the newest row whatever the clocks say: the newest row is the state."""
        now = self._clock().astimezone(UTC).replace(tzinfo=None)
        if before is None or before["TimeGenerated"] is None:
            return now
        behind: datetime = before["TimeGenerated"] + timedelta(microseconds=1)
        return max(now, behind)
