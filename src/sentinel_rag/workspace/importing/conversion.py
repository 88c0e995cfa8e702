"""From the text of a cell to a typed value, as SQL expressions: one vectorised pass and no Python per row.

Each expression takes text (NULL for an absent cell) and gives the value or NULL; `misfit_sql` says when a NULL means
"did not fit". Type detection for columns that no schema knows stands here too. The formats are those that portals and
pandas write; `source_files` and `raw_rows` have made every cell text before.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.workspace.kql_types import quote_name, quote_text

NULL_WORDS = ("null", "none", "nan", "nat", "n/a", "<null>")
"""What exports write for "no value" in a column that is not text; compared without case."""

DATETIME_FORMATS = (
    "%m/%d/%Y, %I:%M:%S.%g %p",
    "%m/%d/%Y, %I:%M:%S %p",
    "%m/%d/%Y %I:%M:%S.%g %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %H:%M:%S.%g",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%b %d, %Y %I:%M:%S.%g %p",
    "%b %d, %Y %I:%M:%S %p",
    "%b %d, %Y %I:%M %p",
    "%b %d, %Y, %I:%M:%S %p",
    "%d.%m.%Y, %H:%M:%S.%g",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%Y, %H:%M",
    "%d.%m.%Y %H:%M:%S.%g",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%a %b %d %H:%M:%S %Y UTC",
    "%a %b %d %H:%M:%S %Y",
    "%Y%m%d%H%M%S.%g",
)
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
    duckdb_type = {
        "bool": "BOOLEAN",
        "decimal": "DECIMAL(38,10)",
        "guid": "UUID",
        "timespan": "INTERVAL",
    }[type_]
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
