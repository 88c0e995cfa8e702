"""Properties of the workspace's pure parts, and one of a whole import: what goes in as text comes out as text."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from kql_duckdb.binder.naming import matches as matches_wildcard
from law_examples import examples
from sentinel_rag.workspace.importing.raw_rows import detect
from sentinel_rag.workspace.queries import TimespanError, parse_duration, parse_timespan
from sentinel_rag.workspace.serving.query_api import MAX_WAIT_S, parse_prefer
from sentinel_rag.workspace.workspace import Workspace

NOW = datetime(2025, 3, 12, 15, tzinfo=UTC)
SEPARATORS = [",", "\t", ";", "|", "❖", "¦", "^", "~"]

# What no text file can hold: lone surrogates; NUL and the characters that end lines for some readers but not others.
text = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\u2028\u2029\ufeff")
    | st.sampled_from("\"',;|\n"),
    max_size=20,
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    opened = Workspace.open(tmp_path_factory.mktemp("laws"))
    yield opened
    opened.close()


counter = iter(range(1_000_000))


@pytest.mark.requirement("DATA-5")
@settings(
    max_examples=examples(60, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.lists(st.tuples(text, text), min_size=1, max_size=8),
    separator=st.sampled_from(SEPARATORS),
    line_end=st.sampled_from(["\n", "\r\n"]),
    mark=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
@example(rows=[("", "")], separator=",", line_end="\n", mark=False, quoting=csv.QUOTE_MINIMAL)
@example(rows=[('"', '""'), ("\n", ",")], separator="❖", line_end="\r\n", mark=True, quoting=csv.QUOTE_ALL)
@example(rows=[(" leading", "trailing ")], separator="\t", line_end="\n", mark=False, quoting=csv.QUOTE_MINIMAL)
def test_any_strings_written_as_csv_come_back(
    workspace: Workspace,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    separator: str,
    line_end: str,
    mark: bool,
    quoting: Any,
) -> None:
    assume(not any(cell == "null" for row in rows for cell in row))  # exports write it for "no value"
    number = next(counter)
    path = tmp_path_factory.mktemp("csv") / f"Law{number}_CL.csv"
    with path.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=line_end, quoting=quoting)
        writer.writerow(["Computer", "SyslogMessage"])
        writer.writerows(rows)
    workspace.import_path(path, table="Syslog")
    stored = workspace.query("Syslog | project Computer, SyslogMessage")
    (report,) = workspace.import_path(path, table="Syslog")
    assert report.rows_stored == 0
    wanted = Counter(rows)
    found = Counter((str(computer), str(message)) for computer, message in stored.rows)
    for row, count in wanted.items():
        assert found[row] >= count


@pytest.mark.requirement("DATA-5")
@settings(
    max_examples=examples(60, 20),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"Computer": text | st.sampled_from(["TRUE", "false", "0", "4624", "1.50", "[1, 2]"])},
            optional={
                "SyslogMessage": text,
                "ProcessID": st.integers(-(2**31), 2**31 - 1),
                "Extra": st.recursive(
                    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
                    max_leaves=6,
                ),
            },
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_json_lines_are_accounted_for(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    table = f"Law{next(counter)}_CL"
    path = tmp_path_factory.mktemp("json") / "x.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    (report,) = workspace.import_path(path, table=table)
    assert (report.rows_read, report.rows_stored, report.rows_rejected) == (len(rows), len(rows), 0)
    assert report.misfits == ()
    stored = workspace.query(f"{table} | project Computer")
    assert Counter(row[0] for row in stored.rows) == Counter(row["Computer"] for row in rows)


@given(
    header=st.lists(st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True), min_size=2, max_size=8, unique=True),
    separator=st.sampled_from(SEPARATORS),
    count=st.integers(1, 5),
)
def test_the_separator_of_a_plain_file_is_found(header: list[str], separator: str, count: int) -> None:
    lines = [separator.join(header), *(separator.join(f"v{column}" for column in range(len(header))),) * count]
    dialect = detect("\n".join(lines) + "\n", complete=True)
    assert dialect.separator == separator
    assert dialect.columns == tuple(header)
    assert dialect.has_header


@pytest.mark.requirement("DATA-4")
@given(
    days=st.integers(0, 3000),
    hours=st.integers(0, 100),
    minutes=st.integers(0, 100),
    milliseconds=st.integers(0, 10**7),
)
def test_a_duration_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, milliseconds: int) -> None:
    text = f"P{days}DT{hours}H{minutes}M{milliseconds / 1000}S"
    expected = timedelta(days=days, hours=hours, minutes=minutes, milliseconds=milliseconds)
    assert abs(parse_duration(text) - expected) < timedelta(milliseconds=1)
    window = parse_timespan(text, now=NOW)
    assert window.end == NOW
    assert window.start is not None
    assert abs((NOW - window.start) - expected) < timedelta(milliseconds=1)


moments = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


@pytest.mark.requirement("DATA-4")
@given(start=moments, length=st.timedeltas(timedelta(), timedelta(days=4000)), offset=st.integers(-14, 14))
def test_the_forms_of_an_interval_agree(start: datetime, length: timedelta, offset: int) -> None:
    from datetime import timezone

    end = start + length
    zone = timezone(timedelta(hours=offset))
    by_ends = parse_timespan(f"{start.isoformat()}/{end.astimezone(zone).isoformat()}", now=NOW)
    assert (by_ends.start, by_ends.end) == (start, end)
    by_length = parse_timespan(f"{start.isoformat()}/PT{length.total_seconds():.6f}S", now=NOW)
    assert by_length.start == start
    assert by_length.end is not None
    assert abs(by_length.end - end) <= timedelta(microseconds=100)


@pytest.mark.requirement("DATA-4")
@given(st.text(max_size=40))
@example("P")
@example("PT")
@example("P1H")
@example("P99999999999999D")
@example("0001-01-01T00:00:00Z/P9000000D")
@example("P3000000D/0001-01-01T00:00:00+14:00")
def test_any_text_is_a_range_or_a_refusal(text: str) -> None:
    assume(text.strip())
    try:
        window = parse_timespan(text, now=NOW)
    except TimespanError:
        return
    assert window.start is not None
    assert window.end is not None
    assert window.start <= window.end


@pytest.mark.requirement("DATA-4")
@given(st.text(max_size=80))
def test_any_prefer_header_gives_bounded_preferences(header: str) -> None:
    assert 0 < parse_prefer(header).wait_s <= MAX_WAIT_S


@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_wildcards_match_as_a_glob_does(pattern: str, name: str) -> None:
    import re

    expected = re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), name) is not None
    assert matches_wildcard(pattern, name) == expected


scalars = st.one_of(
    st.tuples(st.just("long"), st.integers(-(2**63) + 1, 2**63 - 1)),
    st.tuples(st.just("real"), st.floats(allow_nan=True, allow_infinity=True)),
    st.tuples(
        st.just("string"), st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)
    ),
    st.tuples(st.just("bool"), st.booleans()),
)


@pytest.mark.requirement("DATA-4")
@settings(max_examples=examples(150, 60), deadline=None)
@given(scalars)
def test_a_value_bound_in_sql_leaves_as_its_cell(workspace: Workspace, scalar: tuple[str, Any]) -> None:
    """Through the same encoding as every answer: 64-bit numbers exact, text untouched, no NaN as a JSON number."""
    import duckdb

    from sentinel_rag.workspace.queries import FINISHERS, cell_sql

    kind, value = scalar
    type_ = {"long": "BIGINT", "real": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}[kind]
    sql = f"SELECT {cell_sql('v', kind)} FROM (SELECT CAST(? AS {type_}) AS v)"
    row = duckdb.connect().execute(sql, [value]).fetchone()
    assert row is not None
    cell = FINISHERS[kind](row[0]) if kind in FINISHERS else row[0]
    if kind == "real" and not math.isfinite(value):
        assert cell == ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    else:
        assert cell == value
    json.dumps(cell, allow_nan=False)


@pytest.mark.requirement("DATA-4")
@settings(max_examples=examples(100, 50), deadline=None)
@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))
def test_a_time_leaves_with_z_and_comes_back(moment: datetime) -> None:
    import duckdb

    from sentinel_rag.contracts.query_results import parse_time
    from sentinel_rag.workspace.queries import cell_sql

    row = duckdb.connect().execute(f"SELECT {cell_sql('v', 'datetime')} FROM (SELECT ? AS v)", [moment]).fetchone()
    assert row is not None
    assert row[0].endswith("Z")
    assert parse_time(row[0]) == moment.replace(tzinfo=UTC)
