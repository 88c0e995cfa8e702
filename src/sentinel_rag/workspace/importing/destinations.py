"""Where the rows of a file go: the table, and the column of each field."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.workspace.importing.raw_rows import RawRows
from sentinel_rag.workspace.importing.source_files import UnreadableFileError
from sentinel_rag.workspace.queries import nearest_names
from sentinel_rag.workspace.table_schemas import quote_name, quote_text, reference_tables

if TYPE_CHECKING:
    import duckdb


# Headers of exports carry marks (" [UTC]"), other cases, characters that KQL names cannot hold, a pandas index.
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
    }
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


# In this order: what the person said, a `$table` column, a `Type` column that names tables, the name of the file, the
# columns; else a new table of its own, named after the file with Azure's `_CL` for custom logs.
Schema = Mapping[str, Mapping[str, str]]

_EVERYWHERE = frozenset({"TenantId", "TimeGenerated", "Type", "SourceSystem", "Computer", "_ResourceId", "Timestamp"})
_OF_EVERY_ROW = {"TenantId", "TimeGenerated", "Type"}
_AZURES_NAME = re.compile(r"[A-Z](?=[A-Z0-9]*[a-z])[A-Za-z0-9]{2,59}")
_LEAST_OVERLAP = 0.6
_OF_SEVERAL_WORDS = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_LEAST_TELLING = 4
"""So many names of several words must fit where they are spelled otherwise: any list has a title and a status."""
_COMMON = frozenset({
    "SigninLogs", "SecurityAlert", "SecurityIncident", "SecurityEvent", "AuditLogs", "OfficeActivity", "AzureActivity",
    "CommonSecurityLog", "Syslog", "DeviceProcessEvents", "DeviceNetworkEvents", "DeviceFileEvents",
    "DeviceLogonEvents", "EmailEvents", "IdentityLogonEvents"
})  # fmt: skip
"""Tables that a file is rather of than of others with the same columns."""
_MOST_NAMED, _NO_ACCIDENT = 3, 10
_ACTIONS: Mapping[str, str] = {
    action: table
    for table, actions in {
        "DeviceProcessEvents": ("ProcessCreated", "OpenProcess"),
        "DeviceFileEvents": ("FileCreated", "FileModified", "FileDeleted", "FileRenamed"),
        "DeviceRegistryEvents": (
            "RegistryKeyCreated", "RegistryKeyDeleted", "RegistryKeyRenamed", "RegistryValueSet",
            "RegistryValueDeleted"
        ),
        "DeviceImageLoadEvents": ("ImageLoaded",),
        "DeviceLogonEvents": ("LogonSuccess", "LogonFailed", "LogonAttempted"),
        "DeviceNetworkEvents": (
            "ConnectionSuccess", "ConnectionFailed", "ConnectionAttempt", "ConnectionRequest", "ConnectionFound",
            "ConnectionAcknowledged", "InboundConnectionAccepted", "InboundConnectionAttempt",
            "ListeningConnectionCreated", "DnsConnectionInspected", "HttpConnectionInspected", "SslConnectionInspected",
            "NetworkSignatureInspected", "IcmpConnectionInspected", "SshConnectionInspected",
            "NtlmAuthenticationInspected"
        )
    }.items()
    for action in actions
}  # fmt: skip
"""What advanced hunting calls what happened, and the table that holds it; any other stands in DeviceEvents."""
BY_NAME = "the file's name"
NO_KNOWN_TABLE = "No known table has its columns"
AS_ASKED = "as asked"
"""Why a new table is made for a file."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")


def named_table(name: str, schema: Schema) -> str:
    """The table that a person named. Raises UnreadableFileError for one that neither exists nor is a custom log."""
    if name in schema or name in reference_tables():
        return name
    nearest = nearest_names(name, schema)
    if _NAME.fullmatch(name) and name.endswith("_CL"):
        if nearest and nearest[0].lower() == name.lower():
            return nearest[0]
        return name
    hint = f"Did you mean {' or '.join(nearest)}? " if nearest else ""
    raise UnreadableFileError(
        f"There is no table '{name}'.",
        next_step=f"{hint}A new table's name is made of letters, digits and _ and ends in _CL.",
    )


def is_table_name(text: str, schema: Schema, columns: Collection[str] = ()) -> bool:
    """Whether a cell of a `$table` or `Type` column names a table. Beside `columns` that every row of Log Analytics
    has, the Type is the table, whichever of Azure's it is."""
    if text in schema or text in reference_tables():
        return True
    if text.endswith("_CL"):
        return _NAME.fullmatch(text) is not None
    return {*columns} >= _OF_EVERY_ROW and _AZURES_NAME.fullmatch(text) is not None


def table_of_file(path: Path, columns: Collection[str], schema: Schema) -> tuple[str, str]:
    """The table by the file's name or its columns, and the reason in words.

    Raises UnreadableFileError for a file of one column that fits none: that is hardly an export.
    """
    names = {name for name in columns if name not in _EVERYWHERE}
    by_name = _table_in_name(path.stem, schema)
    if (
        by_name
        and len({known_as(name, by_name) for name in names} & schema[by_name].keys()) >= len(names) * _LEAST_OVERLAP / 2
    ):
        return by_name, BY_NAME
    for spelled, least in ((str, 0), (folded, _LEAST_TELLING)):
        scores = _scores({spelled(name) for name in names}, schema, spelled, least)
        best = max(scores, key=lambda table: scores[table], default="")
        if best and scores[best][0] >= _LEAST_OVERLAP:
            as_well = [table for table in scores if table != best and scores[table][0] == scores[best][0]]
            return best, f"its columns{_also(as_well)}"
    stem = re.sub(r"\W+", "_", path.stem, flags=re.ASCII).strip("_") or "Imported"
    stem = stem.removesuffix("_CL")[:56]
    custom = f"{stem if stem[0].isalpha() else f'T_{stem}'}_CL"
    for table in schema:
        if table.lower() == custom.lower():
            return table, BY_NAME
    if len(set(columns)) < 2:
        raise UnreadableFileError(
            f"{path} has one column and fits no known table, so it is probably not an export.",
            next_step=f"If it is one, say where it belongs: --table {custom}",
        )
    return custom, NO_KNOWN_TABLE


def _scores(
    names: Collection[str], schema: Schema, spelled: Callable[[str], str], least_telling: int
) -> dict[str, tuple[float, bool, float]]:
    """How well each table fits: of the names, and of its own columns. One of which too few names tell is left out."""
    scores = {}
    for table, known in schema.items():
        own = {spelled(column): column for column in known if spelled is str or not column.startswith("_")}
        found = {own.get(name) or own.get(spelled(known_as(name, table)), "") for name in names} - {""}
        if len(found) < 2 or table.endswith("_CL"):
            continue  # a custom table has the columns of whatever was imported first, which proves nothing
        if sum(_OF_SEVERAL_WORDS.search(name) is not None for name in found) >= least_telling:
            scores[table] = (len(found) / len(names), table in _COMMON, len(found) / len(known))
    return scores


def _also(tables: Sequence[str]) -> str:
    if not tables:
        return ""
    more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
    others = f"{', '.join(sorted(tables)[:_MOST_NAMED])}{more}"
    return f", which fit {others} as well: the commonest was taken (--table names another)"


def _table_in_name(stem: str, schema: Schema) -> str:
    """The longest name of a table that the file's name begins with, or holds if it is long enough to be no accident."""
    letters = re.sub(r"[^a-z]", "", stem.lower())
    names = {table: table.lower().removesuffix("_cl") for table in schema}
    fitting = [table for table, name in names.items() if letters.startswith(name)]
    fitting = fitting or [table for table, name in names.items() if len(name) >= _NO_ACCIDENT and name in letters]
    return max(fitting, key=len, default="")


def tables_of_actions(columns: Collection[str]) -> Mapping[str, str]:
    """The table of each `ActionType` of an export of advanced hunting; empty for a file that is none."""
    hunted = {"ActionType"} <= set(columns) and not {"DeviceName", "DeviceId"}.isdisjoint(columns)
    return _ACTIONS if hunted else {}


# A file is usually for one table; where a `$table` or `Type` column names several, each gets the rows that name it, and
# rows that name none go where the file belongs.
_TYPE_SAMPLE_ROWS = 20_000


class SeveralTablesError(Exception):
    """The first rows of a file named one table and later rows another: it must be read again with `thorough`."""


@dataclass(frozen=True, slots=True)
class Destination:
    """One table of a file. `condition` selects its rows by the text of a column; empty for all rows.

    `assumed` says that only the first rows were seen to name this table in their `Type`.
    """

    table: str
    reason: str
    condition: str = ""
    assumed: bool = False


def destinations(
    cursor: duckdb.DuckDBPyConnection,
    rows: RawRows,
    headers: Headers,
    schema: Mapping[str, Mapping[str, str]],
    *,
    path: Path,
    table: str | None,
    thorough: bool,
) -> list[Destination]:
    """Where the rows go: usually one table, several where a column of the file names them.

    Unless `thorough`, a `Type` column is judged by its first rows; `load` looks at the rest when it has them.
    """
    if table is not None:
        return [Destination(named_table(table, schema), AS_ASKED)]
    columns = [column.name for column in headers.columns]
    type_index = next((column.index for column in headers.columns if column.name == "Type"), None)
    fallback = table_of_file(path, columns, schema)
    for index, reason in ((headers.table_index, "its $table column"), (type_index, "its Type column")):
        if index is None:
            continue
        sampled = index == type_index and not thorough
        limit = f" LIMIT {_TYPE_SAMPLE_ROWS}" if sampled else ""
        found = cursor.execute(
            f"SELECT DISTINCT trim(name) FROM (SELECT c{index} AS name FROM {rows.source}{limit}) ORDER BY 1"  # noqa: S608
        ).fetchall()
        named = [value for (value,) in found]
        known = [value for value in named if value and is_table_name(value, schema, columns)]
        if not known:
            continue
        chosen = [Destination(name, reason, f"trim(c{index}) = {quote_text(name)}") for name in known]
        if len(known) == len(named) == 1:
            return [replace(chosen[0], condition="", assumed=sampled)]
        others = ", ".join(quote_text(name) for name in known)
        if len(known) < len(named):
            rest = f"coalesce(trim(c{index}), '') NOT IN ({others})"
            chosen.append(Destination(*fallback, condition=rest))
        return chosen
    return _by_action(cursor, rows, headers, fallback) or [Destination(*fallback)]


def _by_action(
    cursor: duckdb.DuckDBPyConnection, rows: RawRows, headers: Headers, fallback: tuple[str, str]
) -> list[Destination]:
    """Where the rows of an export of advanced hunting go, each by its ActionType; none for a file that is no such one,
    or whose name says where it belongs."""
    tables = tables_of_actions([column.name for column in headers.columns])
    if not tables or fallback[1] == BY_NAME:
        return []
    index = next(column.index for column in headers.columns if column.name == "ActionType")
    found = cursor.execute(f"SELECT DISTINCT trim(c{index}) FROM {rows.source}").fetchall()  # noqa: S608 - names are ours
    actions = [value for (value,) in found]
    chosen = dict.fromkeys(tables[action] for action in actions if action in tables)
    if not chosen:
        return []
    reason = "its ActionType column"
    if len(chosen) == 1 and all(action in tables for action in actions):
        return [Destination(next(iter(chosen)), reason)]
    made = []
    for table in chosen:
        own = ", ".join(quote_text(action) for action in actions if tables.get(action) == table)
        made.append(Destination(table, reason, f"trim(c{index}) IN ({own})"))
    known = ", ".join(quote_text(action) for action in actions if action in tables)
    if any(action not in tables for action in actions):
        made.append(Destination("DeviceEvents", reason, f"coalesce(trim(c{index}), '') NOT IN ({known})"))
    return made


def require_type(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    """Every row of the transaction must name `table`; what stood there before does, or was given by a person."""
    other = cursor.execute(
        f"SELECT 1 FROM {quote_name(table)} WHERE trim(Type) NOT IN ('', {quote_text(table)}) LIMIT 1"  # noqa: S608
    ).fetchone()
    if other:
        raise SeveralTablesError
