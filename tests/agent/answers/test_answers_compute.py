"""The tool `compute`: what a model can have counted, compared and ordered over the results of a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from sentinel_rag.agent.answers.compute import COMPUTE, compute
from sentinel_rag.agent.answers.results import Result, Results, numbered
from sentinel_rag.agent.answers.selection import ComputeError
from sentinel_rag.agent.tokens import EstimatingCounter, count_tool, load_counter
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import Coverage, QueryError, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.contracts.tool_calls import Failed, Succeeded, ToolCall

NOW = datetime(2026, 11, 29, 8, 0, tzinfo=UTC)
INCIDENTS: tuple[dict[str, Any], ...] = (
    {"number": 128, "title": "Port scan", "severity": "Low", "status": "New", "created_time": "2026-11-28T19:02:00Z",
     "alert_count": 1},
    {"number": 127, "title": "Unfamiliar sign-in", "severity": "High", "status": "New", "owner": "Åsa Öberg",
     "created_time": "2026-11-28T14:02:00Z", "alert_count": 2},
    {"number": 126, "title": "Phishing\u200b", "severity": "Medium", "status": "Closed", "owner": "Åsa Öberg",
     "created_time": "2026-11-26T09:02:00Z", "alert_count": 4},
    {"number": 124, "title": "Ransomware and theft", "severity": "High", "status": "Active", "owner": "Tomasz",
     "created_time": "2026-11-25T23:56:00Z", "alert_count": 8},
)  # fmt: skip
ALERTS: tuple[dict[str, Any], ...] = (
    {"alert_id": "a1", "name": "Click", "severity": "Medium", "start_time": "2026-11-26T23:20:00Z",
     "tactics": ["InitialAccess"], "compromised_entity": "anna@x.example"},
    {"alert_id": "a2", "name": "Sign-in", "severity": "High", "start_time": "2026-11-26T23:50:00Z",
     "tactics": ["InitialAccess", "CredentialAccess"], "compromised_entity": "anna@x.example"},
    {"alert_id": "a3", "name": "Dump", "severity": "High", "start_time": "2026-11-28T03:02:00Z",
     "tactics": ["CredentialAccess"], "compromised_entity": "srv-file-01"},
)  # fmt: skip


def result(
    ref: str,
    rows: Sequence[Mapping[str, Any]] = INCIDENTS,
    *,
    tool: str = "query_incidents",
    total: int | None = -1,
    quoted: tuple[str, ...] = (),
    window: TimeWindow = TimeWindow(),  # noqa: B008
    time_column: str = "CreatedTime",
    summary: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Result:
    coverage = Coverage(
        workspace="sample", tables=("SecurityIncident",), window=window, time_column=time_column,
        rows_returned=len(rows), rows_total=len(rows) if total == -1 else total, query="", duration_ms=1.0,
    )  # fmt: skip
    told = QueryResult(columns=(), rows=tuple(rows), coverage=coverage, summary=summary or {})
    call = ToolCall(ref, "session", tool, arguments)
    return numbered(ToolRun(call, Succeeded(call, told, quoted=quoted)))


def kept(*made: Result) -> Results:
    results = Results()
    for each in made:
        results.add(each)
    return results


RESULTS = kept(
    result("c1", summary={"by_severity": {"High": 2, "Medium": 1, "Low": 1}}),
    result("c2", ALERTS, tool="query_alerts"),
)


def run(results: Results = RESULTS, /, **arguments: Any) -> Result:
    return compute("c9", arguments, results, now=NOW)


def cells(results: Results = RESULTS, /, **arguments: Any) -> list[dict[str, Any]]:
    return [dict(row.cells) for row in run(results, **arguments).rows]


@pytest.mark.anyio
@pytest.mark.requirement("CHAT-18")
async def test_the_tool_costs_a_model_few_tokens() -> None:
    counter = await load_counter()
    assert count_tool(COMPUTE, counter) <= 355 or isinstance(counter, EstimatingCounter)


@pytest.mark.requirement("CHAT-18")
def test_rows_that_fulfil_a_condition_are_counted() -> None:
    made = run(op="count", of="c1", where="severity = High")
    assert dict(made.rows[0].cells) == {
        "count": 2, "of": 4, "percent": 50, "severity": "High", "where": "severity = High",
        "incident_numbers": (127, 124),
    }  # fmt: skip
    assert (made.ref, made.rows[0].ref, made.rows[0].kind, made.complete) == ("c9", "c9.1", "computed", True)
    assert (made.operands, made.coverage["rows_total"], made.computed) == (("c1",), 1, True)


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("severity = high", 2),
        ("Severity == 'High'", 2),
        ("severity: High; status: New", 1),
        ("severity = High and status != New", 1),
        ("title = Ransomware and theft", 1),
        ("title = Phishing", 1),
        ("title contains SIGN", 1),
        ("title does not contain sign", 3),
        ("severity in (High, Medium)", 3),
        ("severity not in (High, Medium)", 1),
        ("severity >= Medium", 3),
        ("alert_count > 2", 2),
        ("alert_count = 8.0", 1),
        ("alertCount<=2", 2),
        ("created_time after 2026-11-26", 3),
        ("created_time before 2026-11-26T09:02:00Z", 1),
        ("created_time = 2026-11-28", 2),
        ("created_time before now", 4),
        ("owner is empty", 1),
        ("owner = ", 1),
        ("owner = (none)", 1),
        ("owner is not empty", 3),
        ({"severity": "High", "status": ["New", "Active"]}, 2),
        ({"owner": None}, 1),
        ({"alert_count": "> 2"}, 2),
        (["severity = High", "status = New"], 1),
        ("", 4),
        (None, 4),
    ],
)
def test_conditions_are_read_as_models_write_them(where: Any, count: int) -> None:
    assert cells(op="count", of="c1", where=where)[0]["count"] == count


def test_a_list_is_grouped_by_each_of_its_items() -> None:
    assert cells(op="group", of="c2", by="tactics") == [
        {"tactics": "CredentialAccess", "count": 2, "of": 3, "percent": 66.7},
        {"tactics": "InitialAccess", "count": 2, "of": 3, "percent": 66.7},
    ]


def test_rows_without_a_value_are_a_group_of_their_own() -> None:
    assert [(row["owner"], row["count"]) for row in cells(op="group", of="c1", by="owner")] == [
        ("Åsa Öberg", 2), ("(none)", 1), ("Tomasz", 1),
    ]  # fmt: skip


def test_days_without_a_row_are_told_with_zero() -> None:
    made = run(op="group", of="c1", by="day", column="created_time")
    assert [(row.cells["day"], row.cells["count"]) for row in made.rows] == [
        ("2026-11-25", 1), ("2026-11-26", 1), ("2026-11-27", 0), ("2026-11-28", 2),
    ]  # fmt: skip
    assert made.notes == ("by day of created_time in UTC",)
    week = cells(op="group", of="c1", by="week of created_time")
    assert week == [{"week": "2026-11-23", "count": 4, "of": 4, "percent": 100}]
    hours = cells(op="group", of="c2", by="hour")
    assert (hours[0]["hour"], hours[-1]["hour"], len(hours)) == ("2026-11-26T23:00:00Z", "2026-11-28T03:00:00Z", 29)


def test_the_empty_ends_of_a_covered_window_are_told_too() -> None:
    window = TimeWindow(datetime(2026, 11, 24, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC))
    made = cells(kept(result("c1", window=window)), op="group", by="day of created_time")
    assert [row["count"] for row in made] == [0, 1, 1, 0, 2, 0]


def test_shares_of_a_condition_of_totals_and_of_a_sum() -> None:
    assert cells(op="share", of="c1", that="severity = High", where="status = New") == [
        {"count": 1, "of": 2, "percent": 50, "status": "New", "severity": "High",
         "where": "status = New; severity = High", "incident_numbers": (127,)}
    ]  # fmt: skip
    assert cells(op="share", of="c1", by="by_severity")[0] == {
        "by_severity": "High", "count": 2, "of": 4, "percent": 50,
    }  # fmt: skip
    assert cells(op="share", of="c1", by="owner", column="alert_count")[0] == {
        "owner": "Tomasz", "alert_count": 8, "of": 15, "percent": 53.3,
    }  # fmt: skip


def test_numbers_of_a_column_are_summed_and_averaged() -> None:
    assert cells(op="sum", of="c1", column="alert_count")[0]["sum"] == 15
    assert cells(op="avg", of="c1", field="alert_count")[0]["average"] == 3.75
    assert cells(op="median", of="c1", column="alert_count")[0]["median"] == 3
    assert cells(op="sum", of="c1", column="alert_count", by="owner")[0] == {
        "owner": "Åsa Öberg", "column": "alert_count", "sum": 6, "rows": 2,
    }  # fmt: skip


def test_the_time_between_two_columns_of_each_row_is_measured() -> None:
    closed = {127: "2026-11-28T15:02:00Z", 126: "2026-11-26T12:02:00Z"}
    results = kept(result("c1", [{**row, "closed_time": closed.get(row["number"])} for row in INCIDENTS]))
    span = "closed_time - created_time"
    made = run(results, op="average", of="c1", column=span, by="owner", where="closed_time is not empty")
    assert [dict(row.cells) for row in made.rows] == [
        {"owner": "Åsa Öberg", "column": span, "average": 7200, "seconds": 7200, "minutes": 120, "hours": 2,
         "days": 0.1, "rows": 2, "where": "closed_time is not empty"}
    ]  # fmt: skip
    longest = run(results, op="max", of="c1", column="closedTime - createdTime")
    assert (longest.rows[0].cells["number"], longest.rows[0].cells[span]) == (126, 10800)
    assert longest.notes == ("2 rows have no closed_time - created_time and were left out",)
    assert [row["hours"] for row in cells(results, op="order", of="c1", column=span)] == [1, 3]
    ages = cells(results, op="order", of="c1", column="Now - created_time")
    assert [(row["number"], row["days"]) for row in ages][-1] == (124, 3.3)
    with pytest.raises(ComputeError, match=r"title of c1\.2 is no time"):
        run(results, op="sum", of="c1", column="closed_time - title")


def test_the_extreme_comes_with_its_whole_row() -> None:
    (made,) = cells(op="max", of="c1", column="alert_count")
    assert (made["number"], made["row"], made["extreme"]) == (124, "c1.4", "max alert_count")
    assert cells(op="earliest", of="c1")[0]["number"] == 124
    tied = cells(op="max", of="c1", column="severity")
    assert [(row["number"], row["ties"]) for row in tied] == [(127, 2), (124, 2)]


def test_rows_are_ordered_with_their_places() -> None:
    made = cells(op="order", of="c1", column="created_time")
    assert [(row["place"], row["row"], row["number"]) for row in made] == [
        (1, "c1.4", 124), (2, "c1.3", 126), (3, "c1.2", 127), (4, "c1.1", 128),
    ]  # fmt: skip
    assert [row["place"] for row in cells(op="order", of="c1", column="severity")] == [1, 2, 3, 3]
    assert run(op="order", of="c2.3, c2.1", column="start_time").complete


def test_all_none_and_any_name_what_speaks_against_them() -> None:
    assert cells(op="all", of="c1", where="severity = High", that="owner is not empty")[0]["holds"] is True
    (made,) = cells(op="all", of="c1", that={"status": "New"})
    assert (made["holds"], made["of"], made["count"], made["exceptions"]) == (False, 4, 2, ("c1.3", "c1.4"))
    assert cells(op="none", of="c1", that="status = Closed")[0]["exceptions"] == ("c1.3",)
    assert cells(op="any", of="c1", that="status = Closed")[0]["examples"] == ("c1.3",)
    with pytest.raises(ComputeError, match="no row to judge"):
        run(op="all", of="c1", where="number = 5", that="status = New")


def test_numbers_of_cells_totals_and_results_are_compared() -> None:
    assert cells(op="ratio", a="c1.by_severity.High", b="c1") == [
        {"a": 2, "b": 4, "difference": -2, "ratio": 0.5, "percent": 50, "change_percent": -50}
    ]
    assert cells(op="difference", a="c1.4.alert_count", b="c1.3.alert_count") == [{"a": 8, "b": 4, "difference": 4}]
    assert cells(op="change", a="c1.1.alert_count", b="c1.3.alert_count") == [
        {"from": 1, "to": 4, "difference": 3, "ratio": 4, "change_percent": 300}
    ]
    none = kept(result("c1"), result("c2", (), total=0))
    made = run(none, op="ratio", a="c1", b="c2")
    assert (dict(made.rows[0].cells), made.notes) == (
        {"a": 4, "b": 0, "difference": 4}, ("b is 0: there is no ratio",),
    )  # fmt: skip


def test_a_duration_runs_from_the_earlier_to_the_later() -> None:
    made = run(op="duration", a="c2.3", b="[c2.1.start_time]")
    assert dict(made.rows[0].cells) == {
        "from": "2026-11-26T23:20:00Z", "to": "2026-11-28T03:02:00Z", "seconds": 99720, "minutes": 1662,
        "hours": 27.7, "days": 1.2, "first": "c2.1.start_time", "last": "c2.3.start_time",
    }  # fmt: skip
    assert made.operands == ("c2.3.start_time", "c2.1.start_time")
    assert cells(op="duration", a="c1.4", b="now")[0]["hours"] == 80.1


@pytest.mark.parametrize(
    ("op", "length", "end"),
    [
        ("later", "72h", "2026-11-29T23:20:00Z"),
        ("later", "-30 min", "2026-11-26T22:50:00Z"),
        ("deadline", "3 days", "2026-11-29T23:20:00Z"),
    ],
)
def test_a_length_is_added_to_a_time(op: str, length: str, end: str) -> None:
    made = run(op=op, a="c2.1.start_time", b=length)
    assert dict(made.rows[0].cells) == {
        "from": "2026-11-26T23:20:00Z", "plus": length, "to": end, "first": "c2.1.start_time",
    }  # fmt: skip
    assert made.operands == ("c2.1.start_time",)


def test_values_of_two_results_are_compared_as_sets() -> None:
    results = kept(
        result("c1", [{"name": "Anna@X.example"}, {"name": "host-9"}], tool="get_top_entities"),
        result("c2", ALERTS, tool="query_alerts"),
    )
    assert cells(results, op="intersection", a="c1", b="c2", column="name, compromised_entity") == [
        {"name": "Anna@X.example", "rows_in_a": 1, "rows_in_b": 2}
    ]
    assert [row["name"] for row in cells(results, op="minus", a="c1", b="c2", column="name,compromised_entity")] == [
        "host-9"
    ]
    nothing = run(results, op="minus", a="c2", b="c2", column="name")
    assert (nothing.rows, nothing.coverage["rows_total"], nothing.complete) == ((), 0, True)


def test_a_dossier_without_rows_of_a_kind_has_none_of_them() -> None:
    dossier: dict[str, Any] = {"number": 1, "title": "t", "timeline": [], "comments": [{"message": "m"}]}
    addresses = {"account": [{"name": "anna"}], "ip": [{"name": "10.0.0.1"}]}
    results = kept(
        result("c1", [{**dossier, "entities": addresses}], tool="get_incident_detail"),
        result("c2", [{**dossier, "number": 2, "entities": {}}], tool="get_incident_detail"),
    )
    none = run(results, op="intersection", a="c1", b="c2", kind="ip", column="name")
    assert (none.rows, none.complete, none.operands) == ((), True, ("c1", "c2"))
    assert [row["name"] for row in cells(results, op="minus", a="c1", b="c2", kind="ip", column="name")] == ["10.0.0.1"]
    with pytest.raises(ComputeError, match="no rows of kind 'host'"):
        run(results, op="intersection", a="c1", b="c2", kind="host", column="name")


def test_distinct_values_are_counted_and_listed() -> None:
    assert cells(op="distinct", of="c1", column="owner") == [
        {"column": "owner", "distinct": 2, "rows": 4, "values": ("Åsa Öberg", "Tomasz")}
    ]


def test_what_is_computed_over_a_part_says_so() -> None:
    made = run(kept(result("c1", total=57)), op="count", of="c1", where="severity = High")
    assert not made.complete
    assert made.notes == ("computed over 4 of 57 rows: not complete, get the other pages first",)


def test_the_service_s_own_count_needs_no_other_page() -> None:
    made = run(kept(result("c1", total=57)), op="count", of="c1")
    assert (dict(made.rows[0].cells), made.complete) == ({"count": 57}, True)


@pytest.mark.requirement("CHAT-18")
def test_pages_of_one_list_are_complete_together() -> None:
    first, rest = result("c1", INCIDENTS[:3], total=4, limit=3), result("c4", INCIDENTS[2:], total=4, offset="2")
    results = kept(first, rest)
    made = run(results, op="count", of=["c1", "c4"], where="severity = High")
    assert (made.rows[0].cells["count"], made.rows[0].cells["of"], made.complete) == (2, 4, True)
    assert made.notes == ("1 rows that stand in more than one of the results were counted once",)
    assert not run(results, op="count", of="c4", where="severity = High").complete


def test_equal_rows_of_one_list_are_not_taken_for_one() -> None:
    rows = [{"Computer": "a"}, {"Computer": "a"}, {"Computer": "b"}]
    results = kept(result("c1", rows[:2], tool="run_kql_query", total=3), result("c2", rows[2:], tool="run_kql_query",
                                                                                total=3, offset=2))  # fmt: skip
    made = run(results, op="group", of="c1,c2", by="Computer")
    assert [(row.cells["count"], row.cells["of"]) for row in made.rows] == [(2, 3), (1, 3)]
    assert made.complete


DOSSIER = {
    "number": 124, "title": "Ransomware", "severity": "High", "alerts": list(ALERTS), "timeline": [],
    "comments": [{"author": "anna", "text": "seen"}], "entities": {"account": [{"kind": "account", "name": "anna"}]},
}  # fmt: skip


def test_rows_of_one_kind_of_a_dossier_are_meant_by_kind() -> None:
    results = kept(result("c1", [DOSSIER], tool="get_incident_detail"))
    assert cells(results, op="count", of="c1")[0]["count"] == 1
    assert cells(results, op="count", of="c1", kind="alerts")[0]["count"] == 3
    assert cells(results, op="group", of="c1", kind="alert", by="severity")[0]["count"] == 2
    with pytest.raises(ComputeError) as wrong:
        run(results, op="count", of="c1", kind="hosts")
    assert (wrong.value.field, wrong.value.allowed) == ("kind", ("incident", "alert", "comment", "account"))
    with pytest.raises(ComputeError, match="rows of kind alert have it: give kind"):
        run(results, op="group", of="c1", by="tactics")


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        ({}, "op", "op is missing"),
        ({"op": "explode"}, "op", "no op 'explode'"),
        ({"op": "count", "of": "c7"}, "of", "there is no result c7; there are c1, c2"),
        ({"op": "count"}, "of", "say which results"),
        ({"op": "count", "of": "c1.9"}, "of", "rows 1 to 4"),
        ({"op": "group", "of": "c1", "by": "severty"}, "by", "nearest is severity"),
        ({"op": "count", "of": "c1", "where": "sevrity = High"}, "where", "nearest is severity; there are number"),
        ({"op": "count", "of": "c1", "where": "who knows"}, "where", "is no condition"),
        ({"op": "count", "of": "c1", "where": "severity = High or severity = Low"}, "where", r"in \(one, other\)"),
        ({"op": "count", "of": "c1", "where": "title > 3"}, "where", "title holds"),
        ({"op": "sum", "of": "c1", "column": "title"}, "column", "is no number: 'Port scan'"),
        ({"op": "duration", "a": "c1.1.title", "b": "now"}, "a", "no time: 'Port scan'"),
        ({"op": "duration", "a": "c1", "b": "now"}, "a", "a whole result"),
        ({"op": "later", "a": "c2.1.start_time", "b": "soon"}, "b", "give a length of time"),
        ({"op": "later", "a": "2026-01-31T12:00Z", "b": "72h"}, "a", "is a plain time"),
        ({"op": "ratio", "a": "c1.1", "b": "c2"}, "a", "say which cell of c1.1"),
        ({"op": "ratio", "a": "c1.by_day.High", "b": "c2"}, "a", "no total 'by_day.High'; it has by_severity.High"),
        ({"op": "ratio", "a": "999", "b": "c2"}, "a", "999 is a plain number: name the cell"),
        ({"op": "difference", "a": "c1", "b": -5.5}, "b", "-5.5 is a plain number"),
        ({"op": "duration", "a": "2026-01-31T12:00Z", "b": "now"}, "a", "is a plain time"),
        ({"op": "ratio", "a": "c1"}, "b", "b is missing"),
        ({"op": "count", "of": "c1", "colour": "red"}, "colour", "no argument 'colour'"),
        ({"op": "order", "of": "c2", "column": "tactics"}, "column", "a list"),
    ],
)
def test_a_refusal_lets_its_writer_do_better(arguments: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(ComputeError, match=words) as refused:
        run(**arguments)
    told = refused.value.as_query_error()
    assert (told.field, told.code, str(refused.value)) == (field, QueryErrorCode.INVALID_ARGUMENT, told.message)


def test_a_result_that_failed_is_refused_with_its_reason() -> None:
    error = QueryError(code=QueryErrorCode.TIMEOUT, message="The query took too long.")
    call = ToolCall("c1", "session", "query_incidents")
    results = kept(numbered(ToolRun(call, Failed(call, error))))
    with pytest.raises(ComputeError, match="c1 holds nothing: The query took too long"):
        run(results, op="count", of="c1")


def test_a_word_that_no_row_has_is_answered_with_those_there_are() -> None:
    made = run(op="count", of="c1", where="status = Open")
    assert made.rows[0].cells["count"] == 0
    assert made.notes == ("no row has status = Open; status is one of New, Active, Closed",)


HIDDEN = kept(
    result("c1", [{"number": 1, "owner": "⟦r1#/rows/0/owner⟧"}, {"number": 2, "owner": "⟦r1#/rows/1/owner⟧"},
                  {"number": 3}])
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"of": "c1", "where": "title contains phishing mail"}, None),  # an outsider's words are not repeated
        ({"of": "c2", "where": "name contains exfil"}, "name is one of Click, Dump, Sign-in"),
        ({"of": "c3", "where": "alert_count > 70"}, "alert_count is between 0 and 39"),
        ({"of": "c3", "where": "created_time before 2026-01-01"}, "created_time is between 2026-11-01T00:00:00Z and"),
        ({"of": "c3", "where": "title = x"}, "title is one of t0, t1, t10, t11, t12, "),
    ],
)
def test_a_filter_that_nothing_fulfils_is_answered_with_what_its_column_holds(
    arguments: dict[str, Any], told: str | None
) -> None:
    many = [
        {"title": f"t{n}", "alert_count": n, "created_time": f"2026-11-{n % 28 + 1:02}T00:00:00Z"} for n in range(40)
    ]
    results = kept(
        result("c1", quoted=("/rows/0/title",)), result("c2", ALERTS, tool="query_alerts"), result("c3", many)
    )
    made = run(results, op="count", **arguments)
    assert [told in note for note in made.notes] == [True] if told else made.notes == ()
    if told:
        with pytest.raises(ComputeError, match="no row has"):
            run(results, op="max", column="severity" if arguments["of"] == "c2" else "alert_count", **arguments)


def test_hours_of_the_day_and_days_of_the_week_are_told_with_their_empty_ones() -> None:
    hours = cells(op="group", of="c1", by="hour of day")
    assert (len(hours), {row["hour_of_day"]: row["count"] for row in hours if row["count"]}) == (
        24,
        {"09:00": 1, "14:00": 1, "19:00": 1, "23:00": 1},
    )
    days = run(op="group", of="c2", by="weekday of start_time")
    assert [row.cells["count"] for row in days.rows] == [0, 0, 0, 2, 0, 1, 0]
    assert days.rows[3].cells["weekday"] == "Thursday"
    assert days.notes == ("by weekday of start_time in UTC",)
    assert cells(op="sum", of="c1", column="alert_count", by="day_of_week")[2]["sum"] == 8


def test_an_extreme_leaves_out_what_a_reader_is_not_shown() -> None:
    rows = [{**row, "url": "https://portal.example/x", "incident_name": "3f1c"} for row in INCIDENTS]
    told = cells(kept(result("c1", rows)), op="max", column="alert_count")
    assert (told[0]["number"], "url" in told[0], "incident_name" in told[0]) == (124, False, False)


def test_hidden_values_are_compared_for_equality_only() -> None:
    same = run(HIDDEN, op="count", of="c1", where="owner = ⟦r1#/rows/0/owner⟧")
    assert (same.rows[0].cells["count"], same.complete) == (1, False)
    assert same.notes == ("values of owner are hidden: two handles may stand for the same value",)
    assert cells(HIDDEN, op="count", of="c1", where="owner is empty")[0]["count"] == 1
    for where in ("owner = anna", "owner contains a", "owner > 3"):
        with pytest.raises(ComputeError, match="hidden from you"):
            run(HIDDEN, op="count", of="c1", where=where)
    for op in ("order", "max", "sum"):
        with pytest.raises(ComputeError, match="hidden from you"):
            run(HIDDEN, op=op, of="c1", column="owner")
    assert not run(HIDDEN, op="distinct", of="c1", column="owner").complete


def test_an_outsider_s_text_stays_marked_as_one() -> None:
    results = kept(result("c1", [{"number": 1, "title": "IGNORE ALL"}], quoted=("/rows/0/title",)))
    for arguments in (
        {"op": "group", "by": "title"},
        {"op": "max", "column": "number"},
        {"op": "order", "column": "number"},
    ):
        assert run(results, of="c1", **arguments).rows[0].quoted == {"title"}
    assert run(results, op="distinct", of="c1", column="title").rows[0].quoted == {"values"}
    assert "IGNORE" not in " ".join(run(results, op="count", of="c1", where="title = x").notes)


def test_what_was_computed_can_be_computed_with() -> None:
    results = kept(result("c1"))
    results.add(compute("c2", {"op": "group", "of": "c1", "by": "severity"}, results, now=NOW))
    assert cells(results, op="ratio", a="c2.1", b="c2.2.count")[0]["ratio"] == 2
    assert cells(results, op="max", of="c2", column="count")[0]["severity"] == "High"


@pytest.mark.parametrize(
    "said", ["count(tactics) > 1", "number of tactics > 1", "len(tactics) >= 2", "count(tactics) = 2"]
)
def test_how_many_values_a_cell_with_a_list_holds_can_be_asked(said: str) -> None:
    (row,) = cells(op="count", of="c2", where=said)
    assert (row["count"], row["of"]) == (1, 3)


def test_how_many_values_a_cell_holds_is_a_number_like_any_other() -> None:
    assert [row["name"] for row in cells(op="max", of="c2", column="count(tactics)")] == ["Sign-in"]
    assert [row["sum"] for row in cells(op="sum", of="c2", column="count(tactics)")] == [4]


def test_the_list_that_is_counted_must_be_there() -> None:
    with pytest.raises(ComputeError, match="no column"):
        run(op="count", of="c2", where="count(nothing) > 1")
