"""Results, errors and answers survive the wire: `from_dict` undoes `to_dict`, over JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table, ToolTrace
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.contracts.query_results import (
    CodedNote,
    Column,
    Coverage,
    QueryError,
    QueryErrorCode,
    QueryResult,
    TimeWindow,
    format_time,
    note_code,
    parse_time,
)

times = st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))
words = st.text(max_size=20)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8
)
coverages = st.builds(
    Coverage,
    workspace=words,
    tables=st.lists(words, max_size=2).map(tuple),
    window=st.builds(TimeWindow, st.none() | times, st.none() | times),
    time_column=words,
    rows_returned=st.integers(0, 100),
    rows_total=st.none() | st.integers(0, 10**6),
    query=words,
    duration_ms=st.floats(0, 1e6),
    partial=st.booleans(),
    partial_reason=words,
    table_rows=st.none() | st.integers(0, 10**9),
    table_oldest=st.none() | times,
    table_newest=st.none() | times,
)
objects = st.dictionaries(words, values, max_size=3)
results = st.builds(
    QueryResult,
    columns=st.lists(st.builds(Column, words, words), max_size=3).map(tuple),
    rows=st.lists(objects, max_size=3).map(tuple),
    coverage=coverages,
    summary=objects,
    notes=st.lists(words | st.builds(CodedNote, words, words, objects), max_size=2).map(tuple),
)
errors = st.builds(
    QueryError,
    code=st.sampled_from(QueryErrorCode),
    message=words,
    next_step=words,
    field=words,
    allowed=st.lists(words, max_size=3).map(tuple),
    retry_after_s=st.none() | st.floats(0, 60),
    line=st.none() | st.integers(1, 99),
    position=st.none() | st.integers(0, 99),
)
answers = st.builds(
    Answer,
    outcome=st.sampled_from(Outcome),
    text=words,
    session_id=words,
    tables=st.lists(
        st.builds(Table, st.lists(words, max_size=2).map(tuple), st.just((("a", "b"),)), words), max_size=2
    ).map(tuple),
    footnote=st.lists(words, max_size=2).map(tuple),
    suggestions=st.lists(words, max_size=2).map(tuple),
    tools=st.lists(
        st.builds(ToolTrace, words, words, objects, words, words, words, st.floats(0, 9), st.none() | objects),
        max_size=2,
    ).map(tuple),
    evidence=st.lists(st.builds(Evidence, words, words, words, words, values), max_size=2).map(tuple),
    duration_ms=st.floats(0, 1e6),
)


def over_the_wire(data: object) -> object:
    return json.loads(json.dumps(data, allow_nan=False))


@pytest.mark.requirement("TOOL-3")
@given(results)
def test_a_result_survives_the_wire(result: QueryResult) -> None:
    arrived = QueryResult.from_dict(over_the_wire(result.to_dict()))  # type: ignore[arg-type]
    assert arrived == result
    assert [note_code(note) for note in arrived.notes] == [note_code(note) for note in result.notes]
    told = [note.values for note in result.notes if isinstance(note, CodedNote) and note.code]
    assert [note.values for note in arrived.notes if isinstance(note, CodedNote)] == told


@given(results)
def test_notes_are_read_whatever_codes_come_with_them(result: QueryResult) -> None:
    told = {**result.to_dict(), "note_codes": ["of_a_newer_server", 7, "placed_by"], "note_values": ["none"]}
    arrived = QueryResult.from_dict(told)
    assert arrived.notes == result.notes
    assert [note_code(note) for note in arrived.notes] == ["of_a_newer_server", ""][: len(result.notes)]


@pytest.mark.requirement("TOOL-3")
@given(errors)
def test_an_error_survives_the_wire_and_says_whether_a_retry_can_help(error: QueryError) -> None:
    data = error.to_dict()
    assert data["retry_possible"] is (error.code in {"throttled", "unavailable", "protocol"})
    assert QueryError.from_dict(over_the_wire(data)) == error  # type: ignore[arg-type]


@given(answers)
def test_an_answer_survives_the_wire(answer: Answer) -> None:
    assert Answer.from_dict(over_the_wire(answer.to_dict())) == answer  # type: ignore[arg-type]


@given(times)
def test_a_time_survives_its_text(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment


def test_azures_seven_digits_are_cut_to_six_and_a_time_without_zone_is_refused() -> None:
    assert parse_time("2015-12-31T23:59:59.1234567Z").microsecond == 123456
    assert parse_time("2024-07-02T11:45:00.5+02:00") == datetime(2024, 7, 2, 9, 45, 0, 500000, UTC)
    with pytest.raises(ValueError, match="zone"):
        parse_time("2024-07-02T09:45:00")
    with pytest.raises(ValueError, match="zone"):
        format_time(datetime(2024, 7, 2))  # the naive time is the case


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_has_no_year_for_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        parse_time(text)


def test_windows_of_any_offset_are_told_in_utc() -> None:
    start = datetime(2024, 7, 2, 9, 45, tzinfo=timezone(timedelta(hours=2)))
    assert TimeWindow(start).to_dict() == {"start": "2024-07-02T07:45:00Z", "end": None}


@given(objects)
def test_canonical_json_is_one_form_for_one_value(value: dict[str, object]) -> None:
    shuffled = dict(reversed(list(value.items())))
    assert canonical_json(value) == canonical_json(shuffled)  # type: ignore[arg-type]
    assert json.loads(canonical_json(value)) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"surrogate|JSON compliant"):
        canonical_json(value)  # type: ignore[arg-type]
