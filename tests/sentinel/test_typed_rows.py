"""The fast reading of an answer and the lenient one agree on every body, and the fast one reads what is well formed."""

from __future__ import annotations

import gc
import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel_rag.contracts.query_results import QueryFailedError
from sentinel_rag.sentinel.logs.log_analytics import (
    CollectorPause,
    LogsTable,
    decode_table,
    read_answer,
    read_large_answer,
    read_typed,
)
from sentinel_rag.sentinel.response_bodies import load_json

pytestmark = pytest.mark.requirement("DATA-1")

DIGITS = st.integers(0, 9_999_999)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "guid": st.uuids().map(str),
    "long": st.integers(-(2**63), 2**63 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "real": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["NaN", "Infinity", "-Infinity", 7]),
    "bool": st.booleans() | st.sampled_from([0, 1]),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    "datetime": st.datetimes()
    .map(lambda moment: f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0"))
    .flatmap(lambda text: st.sampled_from(["Z", ".1Z", ".1234567Z", ".9999999Z", "", "+02:00"]).map(text.__add__))
    .filter(lambda text: text[:4] not in ("0001", "9999")),
    "timespan": DIGITS.map(lambda ticks: f"{ticks % 90}.01:02:03.{ticks:07d}") | st.just("-00:00:01"),
    "dynamic": st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ).map(json.dumps)
    | st.text()
    | st.sampled_from(
        ['{"a": "x\\ny"}', '{"a": "x\ny"}', '"\\ud800"', "[1, 2", "NaN", "[1e400]", "", " [1]", "007", "nul"]
    ),
}


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(st.none() | CELLS[kind] for kind in kinds)), max_size=5))
    columns = [{"name": f"C{place}", "type": kind} for place, kind in enumerate(kinds)]
    table = {"name": draw(st.sampled_from(["PrimaryResult", "Table_0"])), "columns": columns, "rows": rows}
    return json.dumps({"tables": [table]}, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


def leniently(body: bytes) -> LogsTable:
    return decode_table(load_json(body)["tables"][0], "T")


def comparable(table: LogsTable) -> list[list[tuple[type, Any]]]:
    """Rows in which NaN equals itself and True is not 1."""
    return [[(type(cell), str(cell)) for cell in row] for row in table.rows]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(bodies())
def test_both_readings_give_the_same_values(body: bytes) -> None:
    table = read_answer(body, "T", 0)
    assert table.columns == leniently(body).columns
    assert comparable(table) == comparable(leniently(body))


def body_of(kind: str, *cells: Any) -> bytes:
    rows = [[cell] for cell in cells]
    document = {"tables": [{"name": "PrimaryResult", "columns": [{"name": "C", "type": kind}], "rows": rows}]}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("string", "a"), ("guid", "00000000-0000-0000-0000-000000000001"), ("long", 2**62), ("int", 1), ("real", 1.5),
        ("bool", True), ("decimal", "1.50"), ("datetime", "2024-07-02T00:00:00.1234569Z"), ("timespan", "1.00:00:00"),
        ("dynamic", '{"a":[1]}'), ("somethingnew", {"a": 1}),
    ],
)  # fmt: skip
def test_a_well_formed_cell_of_each_type_is_read_the_fast_way(kind: str, cell: Any) -> None:
    body = body_of(kind, cell, None)
    typed = read_typed(body)
    assert typed is not None
    assert typed.table("T", partial_reason="", duration_ms=0).rows == leniently(body).rows


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [("real", "NaN", math.nan), ("bool", 1, True), ("string", "a\ud800b", "a\ufffdb"), ("int", "7", 7)],
)
def test_what_the_fast_way_does_not_take_is_still_read(kind: str, cell: Any, value: Any) -> None:
    body = body_of(kind, cell, None)
    assert read_typed(body) is None
    (row, empty) = read_answer(body, "T", 0).rows
    assert row == (value,) or (row[0] != row[0] and value != value)
    assert empty == (None,)


def test_a_row_with_another_number_of_cells_is_no_table_in_either_reading() -> None:
    body = b'{"tables": [{"name": "PrimaryResult", "columns": [{"name": "C", "type": "int"}], "rows": [[1], [1, 2]]}]}'
    assert read_typed(body) is None
    with pytest.raises(ValueError, match="another number of cells"):
        leniently(body)


def test_two_cells_cannot_make_one() -> None:
    """Text of one row that is half of a JSON array, with its other half in the next, stays text in both."""
    body = body_of("dynamic", "[1", "2]", "3,4", '{"a":1}')
    assert read_answer(body, "T", 0).rows == (("[1",), ("2]",), ("3,4",), ({"a": 1},))


def test_the_garbage_collector_is_back_after_a_large_answer_and_after_a_broken_one() -> None:
    assert gc.isenabled()
    assert len(read_large_answer(body_of("long", *range(1000)), "T", 0).rows) == 1000
    assert gc.isenabled()
    with pytest.raises(QueryFailedError):
        read_large_answer(b"{", "T", 0)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off_and_two_readers_do_not_turn_it_on_for_each_other() -> None:
    pause = CollectorPause()
    with pause:
        with pause:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with pause:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
