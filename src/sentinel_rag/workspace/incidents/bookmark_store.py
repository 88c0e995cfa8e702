"""Reads and writes bookmarks, and which of them an incident holds.

HuntingBookmark is a log of versions: a write appends a row, taking away is a row that says so. What an incident holds
is its column BookmarkIds, so a relation is a version of the incident; the relation's own name, which no column has, is
kept beside it. Each write is one transaction; any thread may call.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.workspace.incidents.bookmark_bodies import BookmarkWrite, bookmark_columns
from sentinel_rag.workspace.incidents.incident_store import WRITE_WAIT_S
from sentinel_rag.workspace.incidents.rows import Row, derived_guid, fetch_rows, json_list, json_object, require_current
from sentinel_rag.workspace.incidents.version_log import Author, append_row, append_version, newest_row
from sentinel_rag.workspace.store import Store

if TYPE_CHECKING:
    import duckdb

MAX_BOOKMARKS = 20
_NEWEST = (
    "SELECT * FROM (SELECT * FROM HuntingBookmark WHERE coalesce(BookmarkId, '') <> '' QUALIFY row_number() OVER "
    "(PARTITION BY lower(BookmarkId) ORDER BY TimeGenerated DESC NULLS LAST) = 1) "
    "WHERE NOT coalesce(SoftDeleted, false)"
)


class TooManyBookmarksError(Exception):
    """The incident holds as many bookmarks as the service keeps."""


class BookmarkStore:
    """The bookmarks of one workspace."""

    def __init__(self, store: Store, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def all(self) -> list[Row]:
        """The newest row of each bookmark that was not taken away, the newest first."""
        with self._store.cursor() as cursor:
            cursor.execute(f"{_NEWEST} ORDER BY CreatedTime DESC NULLS LAST, BookmarkId")
            return fetch_rows(cursor)

    def get(self, name: str) -> Row | None:
        """The newest row of the bookmark with the GUID `name`."""
        with self._store.cursor() as cursor:
            return _newest(cursor, name)

    def put(self, name: str, write: BookmarkWrite, author: Author, *, if_match: str | None = None) -> tuple[Row, bool]:
        """Append the version that `write` asks for; the new row, and whether the bookmark is new.

        Raises NotCurrentError if `if_match` or the write's own etag is not that of the newest row.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            before = _newest(cursor, name)
            require_current(before, if_match, write.etag)
            at = self._moment(before)
            columns = bookmark_columns(write, author.entry(), at)
            if before is None:
                first = {"BookmarkId": name, "CreatedTime": at, "CreatedBy": columns["UpdatedBy"]}
                append_row(cursor, "HuntingBookmark", {**first, "Type": "HuntingBookmark"}, columns)
            else:
                append_row(cursor, "HuntingBookmark", before, columns)
            after = _newest(cursor, name)
            assert after is not None
            return after, before is None

    def delete(self, name: str) -> bool:
        """Take a bookmark away; whether it was there. Incidents that name it show it no more."""
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            before = _newest(cursor, name)
            if before is None:
                return False
            at = self._moment(before)
            append_row(cursor, "HuntingBookmark", before, {"TimeGenerated": at, "SoftDeleted": True})
            return True

    def of_incident(self, incident: str) -> list[Row] | None:
        """The bookmarks that an incident holds, in its order; None if there is no such incident."""
        with self._store.cursor() as cursor:
            row = newest_row(cursor, incident)
            if row is None:
                return None
            found = (_newest(cursor, bookmark) for bookmark in _held(row))
            return [bookmark for bookmark in found if bookmark is not None]

    def relations(self, incident: str) -> list[tuple[str, str]] | None:
        """(name of the relation, id of the bookmark) for each that the incident holds; None for no such incident."""
        with self._store.cursor() as cursor:
            row = newest_row(cursor, incident)
            if row is None:
                return None
            names = _names(cursor, incident)
            return [
                (names.get(bookmark) or derived_guid("relation", incident.lower(), bookmark), bookmark)
                for bookmark in _held(row)
                if _newest(cursor, bookmark) is not None
            ]

    def relate(self, incident: str, relation: str, bookmark: str, author: Author) -> bool | None:
        """Hold `bookmark` in the incident under the relation's name; whether it was not held before.

        None if there is no such incident. Raises KeyError for no such bookmark, TooManyBookmarksError at the limit.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            row = newest_row(cursor, incident)
            if row is None:
                return None
            if _newest(cursor, bookmark) is None:
                raise KeyError(bookmark)
            renamed = [held for held, name in _names(cursor, incident).items() if name.lower() == relation.lower()]
            before = _held(row)
            held = [each for each in before if each == bookmark or each not in renamed]  # one relation, one bookmark
            fresh = bookmark not in held
            if fresh and len(held) >= MAX_BOOKMARKS:
                raise TooManyBookmarksError
            cursor.execute(
                "DELETE FROM sentinel.incident_relations "
                "WHERE incident = ? AND (bookmark = ? OR lower(name) = lower(?))",
                [incident.lower(), bookmark, relation],
            )
            cursor.execute(
                "INSERT INTO sentinel.incident_relations VALUES (?, ?, ?)", [incident.lower(), relation, bookmark]
            )
            after = [*held, bookmark] if fresh else held
            if after != before:
                self._hold(cursor, row, after, author)
            return fresh and not renamed

    def unrelate(self, incident: str, relation: str, author: Author) -> bool:
        """Let go of the bookmark behind that relation; whether the incident held it."""
        related = {name.lower(): bookmark for name, bookmark in self.relations(incident) or ()}
        bookmark = related.get(relation.lower())
        if bookmark is None:
            return False
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            row = newest_row(cursor, incident)
            held = [] if row is None else _held(row)
            if row is None or bookmark not in held:
                return False
            cursor.execute(
                "DELETE FROM sentinel.incident_relations WHERE incident = ? AND bookmark = ?",
                [incident.lower(), bookmark],
            )
            self._hold(cursor, row, [each for each in held if each != bookmark], author)
            return True

    def _hold(self, cursor: duckdb.DuckDBPyConnection, row: Row, bookmarks: list[str], author: Author) -> None:
        additional = {**json_object(row["AdditionalData"]), "bookmarksCount": len(bookmarks)}
        at = self._moment(row)
        changed = {
            "TimeGenerated": at,
            "LastModifiedTime": at,
            "BookmarkIds": json.dumps(bookmarks),
            "AdditionalData": json.dumps(additional, ensure_ascii=False),
            "ModifiedBy": author.name,
        }
        append_version(cursor, row, changed)

    def _moment(self, before: Row | None) -> datetime:
        """Now, but behind the newest row whatever the clocks say: the newest row is the state."""
        now = self._clock().astimezone(UTC).replace(tzinfo=None)
        if before is None or before["TimeGenerated"] is None:
            return now
        behind: datetime = before["TimeGenerated"] + timedelta(microseconds=1)
        return max(now, behind)


def _newest(cursor: duckdb.DuckDBPyConnection, name: str) -> Row | None:
    cursor.execute(f"{_NEWEST} AND lower(BookmarkId) = lower(?)", [name])
    rows = fetch_rows(cursor)
    return rows[0] if rows else None


def _held(row: Row) -> list[str]:
    """The ids of an incident's bookmarks in lower case, each once."""
    return list(dict.fromkeys(str(item).lower() for item in json_list(row["BookmarkIds"]) if item))


def _names(cursor: duckdb.DuckDBPyConnection, incident: str) -> dict[str, str]:
    """Bookmark -> name of the relation, of those that came through REST."""
    cursor.execute("SELECT bookmark, name FROM sentinel.incident_relations WHERE incident = ?", [incident.lower()])
    return dict(cursor.fetchall())
