"""Reads and writes incidents in the log of versions that SecurityIncident is.

The newest row of an incident is its state; a write appends a row and changes none, as Sentinel does, so that KQL sees
before and after. Each write is one transaction of the store, which is its order and its durability: once a method has
returned, the row is in the file. Above stand the REST endpoints; any thread may call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.workspace.incidents.bodies import IncidentWrite
from sentinel_rag.workspace.incidents.comments import Comment, comment_names, comments_of
from sentinel_rag.workspace.incidents.odata_filter import SqlCondition
from sentinel_rag.workspace.incidents.rows import Row, etag_of, fetch_rows, json_list, json_object, wire_time
from sentinel_rag.workspace.kql_types import quote_name
from sentinel_rag.workspace.store import Store

if TYPE_CHECKING:
    import duckdb

MAX_COMMENTS = 100
_WRITE_WAIT_S = 20.0
_NEWEST = (
    "SELECT * FROM SecurityIncident WHERE coalesce(IncidentName, '') <> '' {condition} "
    "QUALIFY row_number() OVER (PARTITION BY lower(IncidentName) ORDER BY TimeGenerated DESC NULLS LAST) = 1"
)


class NotCurrentError(Exception):
    """The etag of the write is not that of the newest row: somebody wrote in between."""


class TooManyCommentsError(Exception):
    """The incident holds as many comments as the service keeps."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, as the log names them."""

    name: str
    object_id: str

    def entry(self) -> dict[str, str | None]:
        return {"objectId": self.object_id, "email": None, "name": self.name, "userPrincipalName": None}


class IncidentStore:
    """The incidents of one workspace. Incidents without a GUID cannot be addressed and are not among them."""

    def __init__(self, store: Store, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def get(self, name: str) -> Row | None:
        """The newest row of the incident with the GUID `name`."""
        with self._store.cursor() as cursor:
            return _newest(cursor, name)

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
            newest = _NEWEST.format(condition="AND TimeGenerated <= ?")
            cursor.execute(
                f"SELECT * FROM ({newest}) WHERE {condition.sql} ORDER BY {order} LIMIT ? OFFSET ?",  # noqa: S608 - compiled
                [as_of, *condition.parameters, limit, offset],
            )
            return fetch_rows(cursor), as_of

    def put(self, name: str, write: IncidentWrite, author: Author, *, if_match: str | None = None) -> tuple[Row, bool]:
        """Append the version that `write` asks for; the new row, and whether the incident is new.

        Raises NotCurrentError if `if_match` or the write's own etag is not that of the newest row.
        """
        with self._store.writing(wait_s=_WRITE_WAIT_S) as cursor:
            before = _newest(cursor, name)
            for etag in (if_match, write.etag):
                if etag is not None and etag != "*" and (before is None or etag != etag_of(before)):
                    raise NotCurrentError
            at = self._moment(before)
            owner = _known_person(cursor, write.owner)
            changed = _written(write, owner, before, at) | {"ModifiedBy": author.name}
            if before is None:
                _insert(cursor, {**changed, **_first_version(cursor, name, at)})
            else:
                _append(cursor, before, changed)
            after = _newest(cursor, name)
            assert after is not None
            return after, before is None

    def comments(self, name: str) -> list[Comment] | None:
        """The comments of an incident, newest first; None if there is no such incident."""
        with self._store.cursor() as cursor:
            row = _newest(cursor, name)
            return None if row is None else comments_of(row, comment_names(cursor, name))[::-1]

    def put_comment(
        self, incident: str, name: str, message: str, author: Author, *, etag: str | None = None
    ) -> tuple[Comment, bool] | None:
        """Add the comment with the GUID `name`, or replace its message; None if there is no such incident.

        Raises NotCurrentError for an etag that is not the comment's, TooManyCommentsError at the service's limit.
        """
        with self._store.writing(wait_s=_WRITE_WAIT_S) as cursor:
            row = _newest(cursor, incident)
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
            _append(cursor, row, _commented(row, entries if known else [*entries, entry], at, author))
            return Comment(name if known is None else known.name, entry), known is None

    def delete_comment(self, incident: str, name: str, author: Author) -> bool:
        """Take a comment away; whether it was there."""
        with self._store.writing(wait_s=_WRITE_WAIT_S) as cursor:
            row = _newest(cursor, incident)
            comments = [] if row is None else comments_of(row, comment_names(cursor, incident))
            kept = [comment.entry for comment in comments if comment.name.lower() != name.lower()]
            if row is None or len(kept) == len(comments):
                return False
            _append(cursor, row, _commented(row, kept, self._moment(row), author))
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


def _newest(cursor: duckdb.DuckDBPyConnection, name: str) -> Row | None:
    cursor.execute(_NEWEST.format(condition="AND lower(IncidentName) = lower(?)"), [name])
    rows = fetch_rows(cursor)
    return rows[0] if rows else None


def _written(write: IncidentWrite, owner: Mapping[str, str | None], before: Row | None, at: datetime) -> dict[str, Any]:
    """The columns that a write sets. A reopened incident keeps its ClosedTime, as real ones do."""
    closes = write.status == "Closed" and (before is None or before["Status"] != "Closed")
    columns: dict[str, Any] = {
        "TimeGenerated": at,
        "LastModifiedTime": at,
        "Title": write.title,
        "Description": write.description,
        "Severity": write.severity,
        "Status": write.status,
        "Classification": write.classification,
        "ClassificationReason": write.classification_reason,
        "ClassificationComment": write.classification_comment,
        "Owner": json.dumps(owner, ensure_ascii=False),
        "Labels": json.dumps(write.labels, ensure_ascii=False),
        "FirstActivityTime": write.first_activity,
        "LastActivityTime": write.last_activity,
    }
    if closes:
        columns["ClosedTime"] = at
    if before is not None and before["FirstModifiedTime"] is None:
        columns["FirstModifiedTime"] = at
    return columns


def _commented(row: Row, entries: Sequence[Mapping[str, Any]], at: datetime, author: Author) -> dict[str, Any]:
    additional = {**json_object(row["AdditionalData"]), "commentsCount": len(entries)}
    return {
        "TimeGenerated": at,
        "LastModifiedTime": at,
        "Comments": json.dumps(list(entries), ensure_ascii=False),
        "AdditionalData": json.dumps(additional, ensure_ascii=False),
        "ModifiedBy": author.name,
    }


def _first_version(cursor: duckdb.DuckDBPyConnection, name: str, at: datetime) -> dict[str, Any]:
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


def _insert(cursor: duckdb.DuckDBPyConnection, columns: Mapping[str, Any]) -> None:
    names = ", ".join(quote_name(column) for column in columns)
    marks = ", ".join("?" * len(columns))
    cursor.execute(f"INSERT INTO SecurityIncident ({names}) VALUES ({marks})", list(columns.values()))  # noqa: S608 - our columns


def _append(cursor: duckdb.DuckDBPyConnection, before: Row, changed: Mapping[str, Any]) -> None:
    """The row `before` once more with `changed` columns; columns that an import added are carried along."""
    row = {column: value for column, value in before.items() if value is not None} | dict(changed)
    _insert(cursor, row)


def _known_person(cursor: duckdb.DuckDBPyConnection, owner: Mapping[str, str | None]) -> Mapping[str, str | None]:
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
