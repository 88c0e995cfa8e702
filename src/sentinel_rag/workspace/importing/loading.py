"""Load the rows of a file into its table: each value converted, whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.importing.destinations import (
    AS_ASKED,
    EPOCH_SOURCES,
    NO_KNOWN_TABLE,
    TIME_COLUMN,
    TIME_SOURCES,
    UNFIT_COLUMN,
    Destination,
    Headers,
    adopt_names,
    adopt_spelling,
    clean_headers,
    require_type,
)
from sentinel_rag.workspace.importing.raw_rows import (
    DETECTION_ROWS,
    CsvFile,
    RawRows,
    check_rejects,
    read_rejects,
    without_open_quotes,
)
from sentinel_rag.workspace.importing.reports import QUESTIONS, ImportReport, Misfit, Reject
from sentinel_rag.workspace.store import column_definition, create_table_sql, read_schema
from sentinel_rag.workspace.table_schemas import quote_name, quote_text

if TYPE_CHECKING:
    import duckdb


# From the text of a cell to a typed value, as SQL expressions: one vectorised pass and no Python per row. Each
# expression takes text (NULL for an absent cell) and gives the value or NULL; `misfit_sql` says when a NULL means "did
# not fit". Type detection for columns that no schema knows stands here too. The formats are those that portals and
# pandas write; `source_files` and `raw_rows` have made every cell text before.
NULL_WORDS = ("null", "none", "nan", "nat", "n/a", "<null>")
"""What exports write for "no value" in a column that is not text; compared without case."""

DATETIME_FORMATS = (
    "%m/%d/%Y, %I:%M:%S.%g %p", "%m/%d/%Y, %I:%M:%S %p", "%m/%d/%Y %I:%M:%S.%g %p", "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p", "%m/%d/%Y %H:%M:%S.%g", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%m/%d/%Y",
    "%a, %d %b %Y %H:%M:%S GMT", "%b %d, %Y %I:%M:%S.%g %p", "%b %d, %Y %I:%M:%S %p", "%b %d, %Y %I:%M %p",
    "%b %d, %Y, %I:%M:%S %p", "%d.%m.%Y, %H:%M:%S.%g", "%d.%m.%Y, %H:%M:%S", "%d.%m.%Y, %H:%M",
    "%d.%m.%Y %H:%M:%S.%g", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%a %b %d %H:%M:%S %Y UTC",
    "%a %b %d %H:%M:%S %Y", "%Y%m%d%H%M%S.%g"
)  # fmt: skip
"""Tried in order after ISO 8601. A date with slashes is American, month first, as the portal writes it in English; one
with dots is German, day first. `20201016100000.049` is how WMI writes a time."""

_FORMAT_LIST = "[" + ", ".join(quote_text(text) for text in DATETIME_FORMATS) + "]"


def value_sql(text: str, type_: str) -> str:
    """The typed value of the SQL text expression `text`."""
    if type_ == "string":
        return f"coalesce({text}, '')"
    if type_ == "dynamic":
        return f"coalesce(TRY_CAST({_present(text)} AS JSON), to_json({_present(text)}))"
    if type_ == "datetime":
        spaces = f"replace({_present(text)}, chr(8239), ' ')"
        return (
            f"coalesce(TRY_CAST({_present(text)} AS TIMESTAMPTZ) AT TIME ZONE 'UTC', "
            f"try_strptime({spaces}, {_FORMAT_LIST}), {_since_1970(_present(text))})"
        )
    if type_ in ("int", "long"):
        number = f"TRY_CAST({_present(text)} AS {'INTEGER' if type_ == 'int' else 'BIGINT'})"
        # A cast rounds 4624.6; only a fraction of zero, which pandas adds, is the same number.
        return f"CASE WHEN NOT contains({text}, '.') OR regexp_matches({text}, '\\.0*\\s*$') THEN {number} END"
    if type_ == "real":
        number = f"TRY_CAST({_present(text)} AS DOUBLE)"
        # A number beyond every double is cast to infinity, which is not what was written.
        return f"CASE WHEN NOT isinf({number}) OR contains(lower({text}), 'inf') THEN {number} END"
    duckdb_type = {"bool": "BOOLEAN", "decimal": "DECIMAL(38,10)", "guid": "UUID", "timespan": "INTERVAL"}[type_]
    return f"TRY_CAST({_present(text)} AS {duckdb_type})"


def _since_1970(text: str) -> str:
    """A time of this century as seconds, milliseconds, microseconds or nanoseconds since 1970."""
    whole = f"TRY_CAST({text} AS BIGINT)"
    return (
        f"CASE WHEN regexp_full_match({text}, '[1-3][0-9]{{9}}([.][0-9]+)?') "
        f"THEN make_timestamp(CAST(round(TRY_CAST({text} AS DOUBLE) * 1000000) AS BIGINT)) "
        f"WHEN regexp_full_match({text}, '[1-3][0-9]{{12}}') THEN make_timestamp({whole} * 1000) "
        f"WHEN regexp_full_match({text}, '[1-3][0-9]{{15}}') THEN make_timestamp({whole}) "
        f"WHEN regexp_full_match({text}, '[1-3][0-9]{{18}}') THEN make_timestamp({whole} // 1000) END"
    )


def misfit_sql(text: str, type_: str) -> str | None:
    """A condition for "there is a value and it did not fit", or None for types that take any text."""
    if type_ in ("string", "dynamic"):
        return None
    words = ", ".join(quote_text(word) for word in NULL_WORDS)
    return (
        f"({_present(text)} IS NOT NULL AND {value_sql(text, type_)} IS NULL AND lower(trim({text})) NOT IN ({words}))"
    )


def _present(text: str) -> str:
    return f"nullif(trim({text}), '')"


_WHOLE = r"-?(0|[1-9][0-9]{0,17})(\.0)?"
_REAL = r"-?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?|-?(0|[1-9][0-9]{0,14})|-?[0-9](\.[0-9]+)?[eE][+-]?[0-9]+"
"""A whole number among them has at most 15 digits, which a double holds exactly: longer ones are ids."""
_DATE = (
    r"\d{4}-\d{2}-\d{2}([T ].*)?|\d{1,2}/\d{1,2}/\d{4}[ ,].*|[A-Z][a-z]{2} \d{1,2}, \d{4}.*|\d{1,2}\.\d{1,2}\.\d{4}.*"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} .*|(19|20)\d{12}\.\d{3,6}"
)
_STRUCTURE = r"\s*[\[{].*"


def detection_sql(columns: Sequence[str], source: str) -> str:
    """For each column, by its place: counts of values present, whole, real, times, structures and booleans.

    The columns are laid under each other first, so that the tests are planned once and not for each column.
    """
    words = ", ".join(quote_text(word) for word in NULL_WORDS)
    places = ", ".join(str(place) for place in range(len(columns)))
    cells = ", ".join(quote_name(column) for column in columns)
    tests = (
        f"regexp_full_match(trim(cell), '{_WHOLE}')",
        f"regexp_full_match(trim(cell), '{_REAL}')",
        f"regexp_full_match(trim(cell), '{_DATE}') AND {value_sql('cell', 'datetime')} IS NOT NULL",
        f"regexp_full_match(cell, '(?s){_STRUCTURE}') AND json_valid(cell)",
        "lower(trim(cell)) IN ('true', 'false')",
    )
    counts = ", ".join(f"count(*) FILTER (WHERE {test})" for test in tests)
    return (
        f"SELECT place, [count(*), {counts}] FROM "  # noqa: S608 - names are quoted, the rest is ours
        f"(SELECT unnest([{places}]) AS place, unnest([{cells}]) AS cell FROM {source}) "
        f"WHERE {_present('cell')} IS NOT NULL AND lower(trim(cell)) NOT IN ({words}) GROUP BY place"
    )


def detected_type(counts: Sequence[int]) -> str:
    """The KQL type that every present value has, by the counts of `detection_sql`; `string` where none does."""
    present, whole, real, time, structure, boolean = counts
    for matching, type_ in (
        (whole, "long"),
        (time, "datetime"),
        (real, "real"),
        (structure, "dynamic"),
        (boolean, "bool"),
    ):
        if matching == present:
            return type_
    return "string"


_MAX_RESCUES = 20
_SHOWN_ROWS = 3
_SHOWN_CELL = 200


def materialised(cursor: duckdb.DuckDBPyConnection, rows: RawRows, folder: Path) -> RawRows:
    """The same rows in a temporary table, for a file that is read once for each of several tables.

    Its rejects are found here, once, and not by the readings after.
    """
    if rows.csv is None:
        return rows
    cells = ", ".join(f"c{index} VARCHAR" for index in range(rows.csv.width))
    cursor.execute("DROP TABLE IF EXISTS raw_rows")
    cursor.execute(f"CREATE TEMP TABLE raw_rows ({cells})")
    rejects = _insert_csv(cursor, rows.csv, "INSERT INTO raw_rows SELECT * FROM $source", folder)
    return replace(rows, source="raw_rows", csv=None, rejects=(*rows.rejects, *rejects))


def load(
    cursor: duckdb.DuckDBPyConnection, rows: RawRows, destination: Destination, *, file: str, folder: Path
) -> ImportReport:
    """Convert and store the rows of one destination. The report counts rejects of this reading only."""
    schema = read_schema(cursor)
    known = schema.get(destination.table, {})
    headers = adopt_spelling(adopt_names(clean_headers(rows.headers), destination.table), known)
    source = rows.source
    if destination.condition:
        source = f"(SELECT * FROM {rows.source} WHERE {destination.condition})"  # noqa: S608
    types = _types(cursor, headers, known, source, rows.texts)
    time_from, time_note = _time_source(cursor, source, headers, types)
    plan = _Plan(headers, types, time_from, source, rows.csv, folder)
    if known and not _is_empty(cursor, destination.table):
        loaded = _merge(cursor, destination.table, known, plan)
    else:
        loaded = _fill(cursor, destination.table, known, plan)
    if destination.assumed:
        require_type(cursor, destination.table)
    notes = [*rows.notes, *headers.notes, _choice(destination)]
    if time_note:
        notes.append(time_note)
    return ImportReport(
        file=file,
        table=destination.table,
        format=rows.format,
        rows_read=loaded.read + len(loaded.rejects),
        rows_stored=loaded.stored,
        duplicates_skipped=loaded.read - loaded.stored,
        rows_rejected=len(loaded.rejects),
        misfits=loaded.misfits,
        rejects=tuple(loaded.rejects),
        new_columns=loaded.added,
        notes=tuple(notes),
        commonest=_commonest(cursor, loaded.place, destination.table, plan.columns()),
        **_seen(cursor, loaded.place, plan.columns()),
    )


def _seen(cursor: duckdb.DuckDBPyConnection, place: str, columns: Mapping[str, str]) -> dict[str, Any]:
    """From when to when the rows of `place` are, and the first ones."""
    names = [name for name in columns if name != UNFIT_COLUMN]
    texts = ", ".join(f"left(CAST({quote_name(name)} AS VARCHAR), {_SHOWN_CELL})" for name in names)
    rows = cursor.execute(f"SELECT {texts} FROM {place} LIMIT {_SHOWN_ROWS}").fetchall()  # noqa: S608 - names are quoted
    filled = [at for at, _ in enumerate(names) if any(row[at] for row in rows)]
    found: dict[str, Any] = {
        "columns": tuple(names[at] for at in filled),
        "first": tuple(tuple(row[at] or "" for at in filled) for row in rows),
    }
    if TIME_COLUMN in columns:
        times = cursor.execute(f"SELECT min({TIME_COLUMN}), max({TIME_COLUMN}) FROM {place}").fetchone()  # noqa: S608
        found |= zip(
            ("oldest", "newest"), (f"{each:%Y-%m-%d %H:%M}" if each else "" for each in times or ()), strict=False
        )
    return found


def _commonest(cursor: duckdb.DuckDBPyConnection, place: str, table: str, columns: Mapping[str, str]) -> dict[str, str]:
    """By column of a question about `table`, the value that most rows of `place` have."""
    found: dict[str, str] = {}
    for column in {column for column, _ in QUESTIONS.get(table, ())} & columns.keys():
        value = f"CAST({quote_name(column)} AS VARCHAR)"
        row = cursor.execute(
            f"SELECT {value} FROM {place} WHERE {value} <> '' GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1"  # noqa: S608
        ).fetchone()
        found |= {} if row is None else {column: str(row[0])}
    return found


def _choice(destination: Destination) -> str:
    if destination.reason == NO_KNOWN_TABLE:
        return f"{NO_KNOWN_TABLE}, so {destination.table} was made; the terminal takes another: --table NAME"
    return "Table as it was asked for." if destination.reason == AS_ASKED else f"Table chosen by {destination.reason}."


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the rows of `source` become typed. `csv` is set where DuckDB's CSV reader gives them, with its rejects."""

    headers: Headers
    types: Mapping[str, str]
    time_from: int | None
    source: str
    csv: CsvFile | None
    folder: Path

    @property
    def can_misfit(self) -> bool:
        return any(misfit_sql("x", self.types[column.name]) for column in self.headers.columns)

    def columns(self) -> dict[str, str]:
        """The columns that are written, with their KQL types."""
        columns = {column.name: self.types[column.name] for column in self.headers.columns}
        if self.time_from is not None:
            columns[TIME_COLUMN] = "datetime"
        if self.can_misfit:
            columns[UNFIT_COLUMN] = "dynamic"
        return columns

    def insert_sql(self, target: str) -> str:
        """The INSERT of every typed row into `target`, to be completed with `$source`."""
        names = ", ".join(quote_name(name) for name in self.columns())
        return f"INSERT INTO {target} ({names}) {_typed_select(self)}"


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What one way of loading did."""

    read: int
    stored: int
    rejects: list[Reject]
    misfits: tuple[Misfit, ...]
    added: dict[str, str]
    place: str
    """Where the rows of the file lie typed, beside others or alone."""


def _fill(cursor: duckdb.DuckDBPyConnection, table: str, known: Mapping[str, str], plan: _Plan) -> _Loaded:
    """Write straight into a table without rows: nothing can be there already."""
    added = _extend_table(cursor, table, known, plan.columns())
    target = quote_name(table)
    rejects = _insert(cursor, plan, target)
    misfits: tuple[Misfit, ...] = ()
    if plan.can_misfit:
        misfits = _misfits(cursor, target, plan.types)
        if not misfits and UNFIT_COLUMN in added:
            cursor.execute(f"ALTER TABLE {target} DROP COLUMN {UNFIT_COLUMN}")
            del added[UNFIT_COLUMN]
    stored = _count(cursor, target)
    return _Loaded(stored, stored, rejects, misfits, added, target)


def _merge(cursor: duckdb.DuckDBPyConnection, table: str, known: Mapping[str, str], plan: _Plan) -> _Loaded:
    """Type the rows into a temporary table first, and add what the table does not hold yet."""
    cursor.execute("DROP TABLE IF EXISTS typed")
    cursor.execute(create_table_sql("typed", plan.columns()).replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    rejects = _insert(cursor, plan, "typed")
    misfits = _misfits(cursor, "typed", plan.types) if plan.can_misfit else ()
    columns = plan.columns()
    if not misfits and UNFIT_COLUMN in columns:
        del columns[UNFIT_COLUMN]
    added = _extend_table(cursor, table, known, columns)
    read = _count(cursor, "typed")
    stored = _add_new_rows(cursor, table, columns)
    return _Loaded(read, stored, rejects, misfits, added, "typed")


def _insert(cursor: duckdb.DuckDBPyConnection, plan: _Plan, target: str) -> list[Reject]:
    sql = plan.insert_sql(target)
    if plan.csv is not None:
        return _insert_csv(cursor, plan.csv, sql, plan.folder)
    cursor.execute(sql.replace("$source", plan.source))
    return []


def _is_empty(cursor: duckdb.DuckDBPyConnection, table: str) -> bool:
    return cursor.execute(f"SELECT 1 FROM {quote_name(table)} LIMIT 1").fetchone() is None  # noqa: S608


def _types(
    cursor: duckdb.DuckDBPyConnection, headers: Headers, known: Mapping[str, str], source: str, texts: frozenset[int]
) -> dict[str, str]:
    """The KQL type of each column: the table's, or what the values of a new column are; `texts` are texts or times."""
    unknown = [column for column in headers.columns if column.name not in known]
    types = {column.name: known[column.name] for column in headers.columns if column.name in known}
    if unknown:
        sample = f"(SELECT * FROM {source} LIMIT {DETECTION_ROWS})"  # noqa: S608
        sql = detection_sql([f"c{column.index}" for column in unknown], sample)
        counts = dict(cursor.execute(sql).fetchall())
        for place, column in enumerate(unknown):
            found = detected_type(counts[place]) if place in counts else "string"
            number = found in ("long", "real") and column.name.lower() in EPOCH_SOURCES
            types[column.name] = "string" if column.index in texts and found != "datetime" and not number else found
    if TIME_COLUMN in types:
        types[TIME_COLUMN] = "datetime"
    return types


def _time_source(
    cursor: duckdb.DuckDBPyConnection, source: str, headers: Headers, types: Mapping[str, str]
) -> tuple[int | None, str]:
    """The position of the column that stands in for TimeGenerated, and a note about it."""
    if TIME_COLUMN in types:
        return None, ""
    by_name = {column.name: column.index for column in headers.columns}
    for name in TIME_SOURCES:
        # The table may hold it as text, for a file that came before wrote it in a form that nobody reads.
        if name in types and (types[name] == "datetime" or _holds_times(cursor, source, by_name[name])):
            return by_name[name], f"The file has no TimeGenerated: it was filled from {name}."
    times = [name for name in by_name if types[name] == "datetime"]
    if len(times) == 1:
        return by_name[times[0]], f"The file has no TimeGenerated: it was filled from {times[0]}, its only time."
    numbers = {name.lower(): name for name in by_name if types[name] in ("long", "real")}
    for lower in EPOCH_SOURCES:
        if lower in numbers:
            name = numbers[lower]
            cell = f"c{by_name[name]}"
            odd = cursor.execute(
                f"SELECT 1 FROM (SELECT {cell} FROM {source} LIMIT {DETECTION_ROWS}) "  # noqa: S608 - names are ours
                f"WHERE nullif(trim({cell}), '') IS NOT NULL AND {value_sql(cell, 'datetime')} IS NULL LIMIT 1"
            ).fetchone()
            if odd is not None:
                continue  # a length of time, or a count
            return by_name[name], f"The file has no TimeGenerated: it was filled from {name}, read as time since 1970."
    return None, "The file has no time column: a query with a time range does not see its rows."


def _holds_times(cursor: duckdb.DuckDBPyConnection, source: str, index: int) -> bool:
    """Whether every cell of a column that holds something is a time, by the first rows."""
    sample = f"(SELECT * FROM {source} LIMIT {DETECTION_ROWS})"  # noqa: S608 - names are ours
    counts = dict(cursor.execute(detection_sql([f"c{index}"], sample)).fetchall())
    return 0 in counts and detected_type(counts[0]) == "datetime"


def _typed_select(plan: _Plan) -> str:
    """`SELECT` of every typed column over `$source`, in the order of `_Plan.columns`."""
    columns, types = plan.headers.columns, plan.types
    cells = [value_sql(f"c{column.index}", types[column.name]) for column in columns]
    if plan.time_from is not None:
        cells.append(value_sql(f"c{plan.time_from}", "datetime"))
    pairs = []
    for column in columns:
        condition = misfit_sql(f"c{column.index}", types[column.name])
        if condition:
            pairs.append((condition, f"{{'column': {quote_text(column.name)}, 'value': c{column.index}}}"))
    if pairs:
        anything = " OR ".join(condition for condition, _ in pairs)
        entries = ", ".join(f"CASE WHEN {condition} THEN {pair} END" for condition, pair in pairs)
        cells.append(f"CASE WHEN {anything} THEN to_json(list_filter([{entries}], lambda x: x IS NOT NULL)) END")
    return f"SELECT {', '.join(cells)} FROM $source"  # noqa: S608


def _insert_csv(cursor: duckdb.DuckDBPyConnection, csv: CsvFile, insert: str, folder: Path) -> list[Reject]:
    """Read the file, then again what a record with an open quote had swallowed, until nothing is left to rescue.

    A file with very many open quotes is in the end judged line by line, since each rescue reads all that follows.
    """
    rejects: list[Reject] = []
    for rescue in range(_MAX_RESCUES + 2):
        table = f"csv_rejects_{rescue}"
        cursor.execute(insert.replace("$source", csv.scan_sql(rejects=table)))
        found, swallowed = read_rejects(cursor, table, csv.path, first_line=csv.first_line, strict=csv.strict)
        rejects += found
        check_rejects(len(rejects))
        if not swallowed:
            return rejects
        first_line = (found[-1].line or csv.first_line) + 1
        if rescue >= _MAX_RESCUES:
            hopeless, swallowed = without_open_quotes(swallowed, first_line, everything=rescue > _MAX_RESCUES)
            rejects += hopeless
        path = folder / f"rescued{rescue}.txt"
        path.write_text(swallowed, encoding="utf-8", newline="")
        csv = replace(csv, path=path, has_header=False, first_line=first_line)
    return rejects


def _count(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
    return int(row[0]) if row else 0


def _misfits(cursor: duckdb.DuckDBPyConnection, table: str, types: Mapping[str, str]) -> tuple[Misfit, ...]:
    """Counts and first samples. Rows lie in the order of the file, so their place tells the record."""
    if not cursor.execute(f"SELECT 1 FROM {table} WHERE {UNFIT_COLUMN} IS NOT NULL LIMIT 1").fetchone():  # noqa: S608
        return ()
    found = cursor.execute(
        "SELECT pair->>'column' AS name, count(*), min(record, 3), arg_min(left(pair->>'value', 200), record, 3) "  # noqa: S608
        f"FROM (SELECT rowid - (SELECT min(rowid) FROM {table}) + 1 AS record, "
        f"unnest(CAST({UNFIT_COLUMN} AS JSON[])) AS pair FROM {table} WHERE {UNFIT_COLUMN} IS NOT NULL) "
        "GROUP BY name ORDER BY name"
    ).fetchall()
    return tuple(
        Misfit(name, types[name], count, tuple(records), tuple(values)) for name, count, records, values in found
    )


def _extend_table(
    cursor: duckdb.DuckDBPyConnection, table: str, known: Mapping[str, str], wanted: Mapping[str, str]
) -> dict[str, str]:
    """Create the table, or add the columns that it lacks. Returns what was added."""
    if not known:
        columns = {TIME_COLUMN: "datetime", **{name: type_ for name, type_ in wanted.items() if name != TIME_COLUMN}}
        cursor.execute(create_table_sql(table, columns))
        return columns
    added = {name: type_ for name, type_ in wanted.items() if name not in known}
    for name, type_ in added.items():
        cursor.execute(f"ALTER TABLE {quote_name(table)} ADD COLUMN {quote_name(name)} {column_definition(type_)}")
    return added


def _add_new_rows(cursor: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str]) -> int:
    """Insert what the table does not hold yet, as a multiset; returns how many rows.

    A stored row can equal a new one only where every column that the file lacks is empty in it.
    """
    names = ", ".join(quote_name(name) for name in columns)
    target = quote_name(table)
    before = _count(cursor, target)
    overlap = _overlap(cursor, target, columns)
    if overlap is None:
        cursor.execute(f"INSERT INTO {target} ({names}) SELECT {names} FROM typed")  # noqa: S608
    else:
        empty = [
            f"{quote_name(name)} = ''" if type_ == "string" else f"{quote_name(name)} IS NULL"
            for name, type_ in read_schema(cursor)[table].items()
            if name not in columns
        ]
        same = " AND ".join([overlap, *empty])
        order = f" ORDER BY {TIME_COLUMN}" if TIME_COLUMN in columns else ""
        cursor.execute(
            f"INSERT INTO {target} ({names}) SELECT * FROM (SELECT {names} FROM typed "  # noqa: S608
            f"EXCEPT ALL SELECT {names} FROM {target} WHERE {same}){order}"
        )
    return _count(cursor, target) - before


def _overlap(cursor: duckdb.DuckDBPyConnection, target: str, columns: Mapping[str, str]) -> str | None:
    """A condition for the stored rows that could equal a new one, or None if there is none in that time."""
    if TIME_COLUMN not in columns:
        condition = f"{TIME_COLUMN} IS NULL"
    else:
        bounds = cursor.execute(
            f"SELECT min({TIME_COLUMN}), max({TIME_COLUMN}), count(*) - count({TIME_COLUMN}) FROM typed"  # noqa: S608
        ).fetchone()
        oldest, newest, without = bounds or (None, None, 0)
        parts = [f"{TIME_COLUMN} BETWEEN TIMESTAMP '{oldest}' AND TIMESTAMP '{newest}'"] if oldest is not None else []
        if without:
            parts.append(f"{TIME_COLUMN} IS NULL")
        if not parts:
            return None
        condition = f"({' OR '.join(parts)})"
    found = cursor.execute(f"SELECT 1 FROM {target} WHERE {condition} LIMIT 1").fetchone()  # noqa: S608
    return condition if found else None
