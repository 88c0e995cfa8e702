"""Which column of a file goes to which column of a table, and under which name.

Headers of exports carry marks (" [UTC]"), other cases, characters that KQL names cannot hold, a pandas index. Pure;
what is renamed or left out is told in notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

TIME_COLUMN = "TimeGenerated"
TIME_SOURCES = (
    "Timestamp",
    "timestamp",
    "EventTime",
    "TimeCreatedUtc",
    "TimeCreated",
    "CreatedDateTime",
    "ActivityDateTime",
    "createdDateTime",
    "CreationTime",
    "StartTimeUtc",
    "StartTime",
    "properties_lastModifiedTimeUtc",
    "LastModifiedTime",
    "EventSubmissionTimestamp",
    "Date",
    "date",
    "time",
)
"""Columns that stand in for TimeGenerated where a file has none, best first."""

EPOCH_SOURCES = (
    *("timestamp", "time", "ts", "_time", "epoch", "epochtime", "unixtime", "unix_time", "eventtime", "event_time"),
    *("alerttime", "datetime", "createdtime", "starttime", "start_time", "receivedtime"),
)
"""Columns, in lower case, whose whole numbers may be seconds or smaller parts since 1970."""

SYNONYMS: Mapping[str, Mapping[str, str]] = {
    "SecurityAlert": {
        "Severity": "AlertSeverity",
        "StartTimeUtc": "StartTime",
        "EndTimeUtc": "EndTime",
        "AlertDisplayName": "DisplayName",
        "ProviderAlertId": "VendorOriginalId",
        "TimeGeneratedUtc": "TimeGenerated",
        "CompromisedHost": "CompromisedEntity",
        "ExtendedLink": "ExtendedLinks",
    },
}
"""Names that other programs (msticpy, the alerts' own API) give to columns of a table: under theirs no question would
find them."""

UNFIT_COLUMN = "UnfitValues"
_MARK = re.compile(r"\s*\[[^\]]*\]\s*$")
_ANOTHER_ZONE = re.compile(r"\[(?!UTC\])[^\]]*(?:time|utc|gmt|[+-]\d)[^\]]*\]\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """`index` is the position in the file, `name` the column of the table."""

    index: int
    header: str
    name: str


@dataclass(frozen=True, slots=True)
class Headers:
    """The columns of a file by their clean names. `table_index` is the position of a `$table` column."""

    columns: tuple[MappedColumn, ...]
    table_index: int | None
    notes: tuple[str, ...]


def clean_headers(headers: Sequence[str]) -> Headers:
    """Clean and unique names. A nameless first column is the index that pandas writes, and is left out."""
    columns: list[MappedColumn] = []
    notes: list[str] = []
    renamed: list[str] = []
    taken: set[str] = {UNFIT_COLUMN.lower()}
    table_index: int | None = None
    for index, header in enumerate(headers):
        text = header.strip().lstrip("\ufeff")
        if text == "$table":
            table_index = index
            continue
        if index == 0 and (not text or re.fullmatch(r"Unnamed: \d+", text)):
            notes.append("The first column has no name: the row index of a pandas export, left out.")
            continue
        name = _unique(_kql_name(_MARK.sub("", text)) or f"Column{index + 1}", taken)
        taken.add(name.lower())
        if name != _MARK.sub("", text):
            renamed.append(f"'{header}' as {name}")
        columns.append(MappedColumn(index, header, name))
    zoned = [header.strip() for header in headers if _ANOTHER_ZONE.search(header)]
    if zoned:
        notes.append(f"Times are read as UTC, and these say that they are not: {', '.join(zoned)}. Export them in UTC.")
    if renamed:
        notes.append(f"Columns stored under another name: {', '.join(renamed)}.")
    return Headers(tuple(columns), table_index, tuple(notes))


def _kql_name(text: str) -> str:
    name = re.sub(r"^\W+|\W+$", "", text, flags=re.ASCII)
    name = re.sub(r"\W+", "_", name, flags=re.ASCII)
    return f"_{name}" if name[:1].isdigit() else name


def _unique(name: str, taken: set[str]) -> str:
    if name.lower() not in taken:
        return name
    number = 1
    while f"{name}_{number}".lower() in taken:
        number += 1
    return f"{name}_{number}"


def folded(name: str) -> str:
    """A name without what programs write otherwise: case, and what stands between its words."""
    return name.replace("_", "").casefold()


@cache
def synonyms(table: str) -> Mapping[str, str]:
    """The table's own names by what others call its columns, folded."""
    return {folded(name): own for name, own in SYNONYMS.get(table, {}).items()}


def known_as(name: str, table: str) -> str:
    """The table's own name for a column that others call `name`."""
    return synonyms(table).get(folded(name), name)


def adopt_names(headers: Headers, table: str) -> Headers:
    """The columns under the table's own names, where the file does not have those beside them."""
    given = {folded(column.name) for column in headers.columns}
    columns, notes = list[MappedColumn](), list(headers.notes)
    for column in headers.columns:
        name = known_as(column.name, table)
        if name != column.name and folded(name) not in given:
            given.add(folded(name))
            notes.append(f"Column '{column.header}' is stored as {name}, which {table} calls it.")
            column = MappedColumn(column.index, column.header, name)
        columns.append(column)
    return Headers(tuple(columns), headers.table_index, tuple(notes))


def adopt_spelling(headers: Headers, table: Mapping[str, str]) -> Headers:
    """Where the table has the same name in another case, that spelling wins: DuckDB could not hold both. So it does
    where only what stands between the words differs (`system_alert_id`), and the file has no nearer one."""
    by_lower = {TIME_COLUMN.lower(): TIME_COLUMN, **{name.lower(): name for name in table}}
    by_words = {folded(name): name for name in by_lower.values() if not name.startswith("_")}
    taken = {by_lower[column.name.lower()] for column in headers.columns if column.name.lower() in by_lower}
    columns: list[MappedColumn] = []
    notes = list(headers.notes)
    for column in headers.columns:
        name = by_lower.get(column.name.lower(), "") or by_words.get(folded(column.name), column.name)
        if name in taken and column.name.lower() not in by_lower:
            name = column.name
        taken.add(name)
        if name != column.name:
            notes.append(f"Column '{column.header}' is stored as {name}, the table's spelling of it.")
        columns.append(MappedColumn(column.index, column.header, name))
    return Headers(tuple(columns), headers.table_index, tuple(notes))
