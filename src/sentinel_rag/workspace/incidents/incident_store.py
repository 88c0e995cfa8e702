"""Incidents, their comments and their bookmarks, as the REST API changes them, over the log of versions that
SecurityIncident is.

SQL and columns only, inside a transaction of the caller; `incident_store` says when what is written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.workspace.incidents.bodies import (
    NotCurrentError,
    Row,
    Write,
    bookmark_columns,
    derived_guid,
    etag_of,
    fetch_rows,
    json_list,
    json_object,
    require_current,
    wire_time,
)
from sentinel_rag.workspace.incidents.odata_filter import SqlCondition
from sentinel_rag.workspace.store import Store
from sentinel_rag.workspace.table_schemas import quote_name

if TYPE_CHECKING:
    import duckdb


NEWEST = (
    "SELECT * FROM SecurityIncident WHERE coalesce(IncidentName, '') <> '' {condition} "
    "QUALIFY row_number() OVER (PARTITION BY lower(IncidentName) ORDER BY TimeGenerated DESC NULLS LAST) = 1"
)
"""SQL for the newest row of each incident, with room for one more condition on the rows."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, as the log names them."""

    name: str
    object_id: str

    def entry(self) -> dict[str, str | None]:
        return {"objectId": self.object_id, "email": None, "name": self.name, "userPrincipalName": None}


def newest_row(cursor: duckdb.DuckDBPyConnection, name: str) -> Row | None:
    """The newest row of the incident with the GUID `name`."""
    cursor.execute(NEWEST.format(condition="AND lower(IncidentName) = lower(?)"), [name])
    rows = fetch_rows(cursor)
    return rows[0] if rows else None


def written_columns(write: Write, owner: Mapping[str, str | None], before: Row | None, at: datetime) -> dict[str, Any]:
    """The columns that a write sets. A reopened incident keeps its ClosedTime, as real ones do."""
    closes = write.columns["Status"] == "Closed" and (before is None or before["Status"] != "Closed")
    person = json.dumps(owner, ensure_ascii=False)
    columns = {**write.columns, "TimeGenerated": at, "LastModifiedTime": at, "Owner": person}
    if closes:
        columns["ClosedTime"] = at
    if before is not None and before["FirstModifiedTime"] is None:
        columns["FirstModifiedTime"] = at
    return columns


def commented_columns(row: Row, entries: Sequence[Mapping[str, Any]], at: datetime, author: Author) -> dict[str, Any]:
    """The columns that a change of the comments sets."""
    additional = {**json_object(row["AdditionalData"]), "commentsCount": len(entries)}
    return {
        "TimeGenerated": at,
        "LastModifiedTime": at,
        "Comments": json.dumps(list(entries), ensure_ascii=False),
        "AdditionalData": json.dumps(additional, ensure_ascii=False),
        "ModifiedBy": author.name,
    }


CORRELATION = "Microsoft Defender XDR - alert correlation"
"""Who writes, where Defender merges by itself."""


def merged_columns(source: Row, target: Row, at: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of source and target that a merge sets: the source is closed and labelled, its alerts and labels
    move, its comments stay. As at the service, the source does not say where they went."""
    labels, moved = json_list(source["Labels"]), json_list(source["AlertIds"])
    held = list(dict.fromkeys((*json_list(target["AlertIds"]), *moved)))
    taken = {label["labelName"] for label in json_list(target["Labels"])}
    both = [*json_list(target["Labels"]), *(label for label in labels if label["labelName"] not in taken)]
    written = {"TimeGenerated": at, "LastModifiedTime": at, "ModifiedBy": CORRELATION}
    return {
        **written,
        "Status": "Closed",
        "ClosedTime": at,
        "Labels": json.dumps([*labels, {"labelName": "Redirected", "labelType": "AutoAssigned"}]),
        "AlertIds": "[]",
        "AdditionalData": json.dumps({**json_object(source["AdditionalData"]), "alertsCount": 0}),
    }, {
        **written,
        "Labels": json.dumps(both, ensure_ascii=False),
        "AlertIds": json.dumps(held),
        "AdditionalData": json.dumps({**json_object(target["AdditionalData"]), "alertsCount": len(held)}),
    }


def numbered_row(cursor: duckdb.DuckDBPyConnection, number: int) -> Row | None:
    """The newest row of the incident with the Sentinel number `number`."""
    cursor.execute(NEWEST.format(condition="AND IncidentNumber = ?"), [number])
    rows = fetch_rows(cursor)
    return rows[0] if rows else None


def first_columns(cursor: duckdb.DuckDBPyConnection, name: str, at: datetime) -> dict[str, Any]:
    """What the first version of an incident has beside what was written: the next number, and no alerts."""
    highest = cursor.execute("SELECT coalesce(max(IncidentNumber), 0) FROM SecurityIncident").fetchone()
    assert highest is not None
    return {
        "IncidentName": name,
        "IncidentNumber": highest[0] + 1,
        "CreatedTime": at,
        "ProviderName": "Azure Sentinel",
        "ProviderIncidentId": str(highest[0] + 1),
        "AlertIds": "[]",
        "BookmarkIds": "[]",
        "Comments": "[]",
        "Tasks": "[]",
        "RelatedAnalyticRuleIds": "[]",
        "AdditionalData": json.dumps({"alertsCount": 0, "bookmarksCount": 0, "commentsCount": 0}),
        "SourceSystem": "Azure",
        "Type": "SecurityIncident",
    }


def insert_version(cursor: duckdb.DuckDBPyConnection, columns: Mapping[str, Any]) -> None:
    """Add a version of these columns."""
    append_row(cursor, "SecurityIncident", {}, columns)


def append_version(cursor: duckdb.DuckDBPyConnection, before: Row, changed: Mapping[str, Any]) -> None:
    """The row `before` once more with `changed` columns; columns that an import added are carried along."""
    append_row(cursor, "SecurityIncident", before, changed)


def append_row(cursor: duckdb.DuckDBPyConnection, table: str, before: Row, changed: Mapping[str, Any]) -> None:
    """The same for any table that is a log of versions."""
    row = {column: value for column, value in before.items() if value is not None} | dict(changed)
    names = ", ".join(quote_name(column) for column in row)
    marks = ", ".join("?" * len(row))
    cursor.execute(f"INSERT INTO {quote_name(table)} ({names}) VALUES ({marks})", list(row.values()))  # noqa: S608 - our names


def known_person(cursor: duckdb.DuckDBPyConnection, owner: Mapping[str, str | None]) -> Mapping[str, str | None]:
    """The owner completed from the directory, as the service does for whoever it finds there; else as given."""
    object_id = owner["objectId"] or ""
    address = owner["userPrincipalName"] or owner["email"] or ""
    if not (object_id or address):
        return owner
    cursor.execute(
        "SELECT AccountObjectId, AccountUPN, AccountDisplayName FROM IdentityInfo "
        "WHERE (? <> '' AND lower(AccountObjectId) = lower(?)) OR (? <> '' AND lower(AccountUPN) = lower(?)) "
        "ORDER BY TimeGenerated DESC LIMIT 1",
        [object_id, object_id, address, address],
    )
    person = cursor.fetchone()
    if person is None:
        return owner
    found_id, upn, display_name = person
    return {
        "objectId": found_id or owner["objectId"],
        "email": owner["email"] or upn,
        "assignedTo": display_name or owner["assignedTo"],
        "userPrincipalName": upn or owner["userPrincipalName"],
    }


# Comments of an incident: entries of the Comments column, which has no ids, and the ids that REST gives them. An id
# that a client chose is kept in a table of the workspace's own; a comment that came with an import has an id derived
# from its incident and time.
@dataclass(frozen=True, slots=True)
class Comment:
    """One comment: its GUID, and the entry as the Comments column holds it."""

    name: str
    entry: Mapping[str, Any]

    @property
    def etag(self) -> str:
        return etag_of(self.entry).strip('"')  # recorded from the service: a comment's etag has no quotes


def comment_names(cursor: duckdb.DuckDBPyConnection, incident: str) -> dict[str, str]:
    """Creation time (as in the entry) -> GUID, of the comments of `incident` that were written through REST."""
    cursor.execute("SELECT created, name FROM sentinel.incident_comments WHERE incident = ?", [incident.lower()])
    return dict(cursor.fetchall())


def comments_of(row: Row, names: Mapping[str, str]) -> list[Comment]:
    """The comments of an incident's newest row, oldest first as the column keeps them."""
    incident = str(row["IncidentName"]).lower()
    comments = []
    seen: Counter[str] = Counter()
    for entry in json_list(row["Comments"]):
        if isinstance(entry, dict):
            created = str(entry.get("createdTimeUtc"))
            seen[created] += 1
            name = names.get(created) or derived_guid("comment", incident, created, seen[created])
            comments.append(Comment(name, entry))
    return comments


def comment_body(comment: Comment, incident: str, workspace_path: str) -> dict[str, Any]:
    """The REST resource of a comment."""
    author = comment.entry.get("author")
    author = author if isinstance(author, dict) else {}
    created = comment.entry.get("createdTimeUtc")
    return {
        "id": f"{workspace_path}/Incidents/{incident}/Comments/{comment.name}",
        "name": comment.name,
        "etag": comment.etag,
        "type": "Microsoft.SecurityInsights/Incidents/Comments",
        "properties": {
            "message": comment.entry.get("message") or "",
            "createdTimeUtc": created,
            "lastModifiedTimeUtc": comment.entry.get("lastModifiedTimeUtc") or created,
            "author": {key: author.get(key) for key in ("objectId", "email", "userPrincipalName", "name")},
        },
    }


def _moment_behind(clock: Clock, before: Row | None) -> datetime:
    """Now, but behind the newest row whatever the clocks say: the newest row is the state."""
    now = clock().astimezone(UTC).replace(tzinfo=None)
    if before is None or before["TimeGenerated"] is None:
        return now
    behind: datetime = before["TimeGenerated"] + timedelta(microseconds=1)
    return max(now, behind)


# The newest row of an incident is its state; a write appends a row and changes none, as Sentinel does, so that KQL sees
# before and after. Each write is one transaction of the store, which is its order and its durability: once a method has
# returned, the row is in the file.
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

    def put(self, name: str, write: Write, author: Author, *, if_match: str | None = None) -> tuple[Row, bool]:
        """Append the version that `write` asks for; the new row, and whether the incident is new.

        Raises NotCurrentError if `if_match` or the write's own etag is not that of the newest row.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            before = newest_row(cursor, name)
            require_current(before, if_match, write.etag)
            at = _moment_behind(self._clock, before)
            owner = known_person(cursor, write.columns["Owner"])
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
            at = max(_moment_behind(self._clock, each) for each in (before, other))
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
            at = _moment_behind(self._clock, row)
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
            append_version(cursor, row, commented_columns(row, kept, _moment_behind(self._clock, row), author))
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


# HuntingBookmark is a log of versions: a write appends a row, taking away is a row that says so. What an incident holds
# is its column BookmarkIds, so a relation is a version of the incident; the relation's own name, which no column has,
# is kept beside it. Each write is one transaction; any thread may call.
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

    def put(self, name: str, write: Write, author: Author, *, if_match: str | None = None) -> tuple[Row, bool]:
        """Append the version that `write` asks for; the new row, and whether the bookmark is new.

        Raises NotCurrentError if `if_match` or the write's own etag is not that of the newest row.
        """
        with self._store.writing(wait_s=WRITE_WAIT_S) as cursor:
            before = _newest(cursor, name)
            require_current(before, if_match, write.etag)
            at = _moment_behind(self._clock, before)
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
            at = _moment_behind(self._clock, before)
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
        at = _moment_behind(self._clock, row)
        changed = {
            "TimeGenerated": at,
            "LastModifiedTime": at,
            "BookmarkIds": json.dumps(bookmarks),
            "AdditionalData": json.dumps(additional, ensure_ascii=False),
            "ModifiedBy": author.name,
        }
        append_version(cursor, row, changed)


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
