"""Results as numbered rows: the parts of a dossier, pointers, totals, completeness, and words of others."""

from __future__ import annotations

import json

import pytest

from sentinel_rag.agent.answers.results import Results, numbered
from sentinel_rag.agent.tool_runs import ToolRun, resolve
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import DocumentResult, Failed, Succeeded, ToolCall
from sentinel_rag_testing.scripted_gateway import rows_result

CALL = ToolCall("c1", "s", "get_incident_detail", {"incident": "124"})
DOSSIER = {
    "number": 124,
    "title": "Multi-stage attack",
    "severity": "High",
    "owner": None,
    "alerts": [{"alert_id": "a1", "name": "Click", "entities": [{"kind": "ip", "name": "203.0.113.66"}]}],
    "comments": [{"time": "2026-11-27T02:00:00Z", "author": "asa", "message": "Isolating."}],
    "timeline": [{"time": "2026-11-26T23:20:00Z", "event": "First activity"}],
    "entities": {"host": [{"name": "srv-file-01", "alerts": 4}, {"name": "wks-fin-02", "alerts": 1}]},
}


def result(rows, *, call=CALL, quoted=(), **options):
    return numbered(ToolRun(call, Succeeded(call, rows_result(rows, **options), "", quoted)))


def test_the_parts_of_an_incident_are_rows_of_their_own():
    made = result([DOSSIER])
    assert [(row.ref, row.kind) for row in made.rows] == [
        ("c1.1", "incident"),
        ("c1.2", "alert"),
        ("c1.3", "comment"),
        ("c1.4", "event"),
        ("c1.5", "host"),
        ("c1.6", "host"),
    ]
    assert made.rows[1].cells["entities"] == ("ip:203.0.113.66",)
    assert made.rows[1].cells["incident_number"] == 124
    assert "owner" not in made.rows[0].cells, "an empty cell is none"


def test_every_cell_points_at_its_place_in_the_document():
    made = result([DOSSIER])
    document = json.loads(json.dumps({"rows": [DOSSIER]}))
    for row in made.rows:
        for column, cell in row.cells.items():
            held = resolve(document, row.cell_pointer(column))
            assert column == "incident_number" or held == cell or isinstance(cell, tuple)


def test_totals_are_told_by_their_path():
    made = result([], summary={"by_severity": {"High": 3}, "top_hosts": [{"name": "srv", "alerts": 2}], "total": 5})
    assert [(total.path, total.value, total.pointer) for total in made.totals] == [
        (("by_severity", "High"), 3, "/summary/by_severity/High"),
        (("top_hosts", "srv", "alerts"), 2, "/summary/top_hosts/0/alerts"),
        (("total",), 5, "/summary/total"),
    ]


@pytest.mark.parametrize(
    ("options", "arguments", "complete"),
    [
        ({}, {}, True),
        ({"total": 9}, {}, False),
        ({}, {"offset": 20}, False),
        ({"summary": {"left_out": {"alerts": 2}}}, {}, False),
        ({"summary": {"left_out": {}}}, {}, True),
        ({"summary": {"names": {"user": {"code": "name_unclear", "like": ["a", "b"]}}}}, {}, False),
        ({"summary": {"names": {"user": {"code": "name_completed", "like": ["a"]}}}}, {}, True),
    ],
)
def test_a_result_is_complete_if_nothing_that_matched_is_missing(options, arguments, complete):
    call = ToolCall("c1", "s", "query_incidents", arguments)
    assert result([{"number": 1, "title": "x"}], call=call, **options).complete is complete


def test_the_gateways_labels_say_which_cells_others_wrote():
    made = result([DOSSIER], quoted=("/rows/0/alerts/0/name", "/rows/0/entities/host/1/name"))
    assert [row.ref for row in made.rows if row.quoted] == ["c1.2", "c1.6"]
    assert made.rows[1].quoted == {"name"}


def test_a_long_text_becomes_passages_and_hits_become_rows():
    text = "\n\n".join(f"Paragraph {place}. " + "word " * 80 for place in range(9))
    page = numbered(ToolRun(CALL, Succeeded(CALL, DocumentResult({"url": "u", "text": text}), "")))
    assert page.kinds == ("passage",)
    assert len(page.rows) > 2
    assert "\n\n".join(str(row.cells["text"]) for row in page.rows) == text
    hits = numbered(ToolRun(CALL, Succeeded(CALL, DocumentResult({"total": 1, "hits": [{"text": "t"}]}), "")))
    assert [(row.kind, row.pointer) for row in hits.rows] == [("hit", "/hits/0")]
    assert hits.totals[0].path == ("total",)


@pytest.mark.parametrize("value", [None, [], {}, "", 5, "text", [1, 2], {"a": 1}, [{"a": 1}], {"a": [{}], "b": [{}]}])
def test_a_result_of_any_shape_is_numbered(value):
    made = numbered(ToolRun(CALL, Succeeded(CALL, DocumentResult(value), "")))
    assert all(row.ref == f"c1.{place}" for place, row in enumerate(made.rows, start=1))


def test_a_failed_call_has_its_reason_and_no_rows():
    error = QueryError(code=QueryErrorCode.TIMEOUT, message="Too slow.")
    made = numbered(ToolRun(CALL, Failed(CALL, error, "")))
    assert (made.problem, made.rows, made.complete) == ("Too slow.", (), False)


def test_results_are_bounded_and_found_by_their_ids():
    results = Results(most=2)
    for place in (1, 2, 3):
        call = ToolCall(f"c{place}", "s", "query_incidents", {})
        results.add(numbered(ToolRun(call, Succeeded(call, rows_result([{"number": place, "title": "x"}]), ""))))
    assert [each.ref for each in results] == ["c2", "c3"]
    assert results.row("c3.1").cells["number"] == 3
    assert [results.row(ref) for ref in ("c3.2", "c3.0", "c1.1", "c3", "c3.x")] == [None] * 5
