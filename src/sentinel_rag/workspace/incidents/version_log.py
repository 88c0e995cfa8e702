"""The log of versions that SecurityIncident is: its newest rows, and the row that a write appends.

SQL and columns only, inside a transaction of the caller; `incident_store` says when what is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.incidents.bodies import Row, Write, fetch_rows, json_list, json_object
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
