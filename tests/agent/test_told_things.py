"""Lists that a model wrote: each line is tied to the id that it plainly names, or is asked back."""

from __future__ import annotations

import pytest
from tests.support.small_estate import small_estate
from tests.support.small_estate_rows import alert_id

from sentinel_rag.agent.planner import Talk
from sentinel_rag.agent.things import (
    ListItem,
    asked_about,
    entity_item,
    incident_item,
    numbered_lists,
    row_items,
    things_of,
    told_in,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag_testing.scripted_gateway import rows_result

_KNOWN = (
    incident_item({"number": 40, "title": "Suspicious inbox rule after phishing click"}),
    incident_item({"number": 31, "title": "Password spray"}),
    incident_item({"number": 3, "title": "Port scan of the DMZ"}),
    entity_item("host", "web-03.contoso.example"),
    entity_item("host", "web-03"),
    entity_item("account", "m.keller"),
)


def run(tool: str, result: QueryResult | None = None, **arguments: str | int) -> ToolRun:
    call = ToolCall("c1", "s", tool, dict(arguments))
    answer = small_estate().answers[tool]
    given = result if result is not None else answer(call.arguments)  # type: ignore[operator]
    return ToolRun(call, Succeeded(call, given, "audit-1"))


def rows_as_items(run: ToolRun) -> tuple[ListItem, ...]:
    return row_items(run.call.tool_name, run.call.arguments, run.rows, run.call.call_id)


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("1. **Incident 40** - High, 3 alerts\n2. Incident #31: spray", ["40", "31"]),
        ("[1] Incident 40 (related to incident 31)\n[2] incident 3", ["40", "3"]),
        ("- [1] Suspicious inbox rule after phishing click (incident 40, host web-03)\n- [2] #31", ["40", "31"]),
        ("| # | Incident | Alerts |\n|---|---|---|\n| 1 | 40 | 3 |\n| 2 | 31 | 2 |", ["", "31"]),
        ("| [1] | 40 | Suspicious inbox rule after phishing click |\n| [2] | 31 | Password spray |", ["40", "31"]),
        ("1. web-03.contoso.example: 3 alerts in incident 40\n2. `web-03`", ["web-03.contoso.example", "web-03"]),
        ("[1] 3 alerts of the host\n[2] Port scan of the DMZ", ["", "3"]),
        ("[1] Related to incident 31: incident 40\n[2] incident 31", ["", "31"]),
        ("1. Isolate the host\n2. Reset the password", ["", ""]),
        ("1. High, 2024-07-20 06:12 UTC: incident 40\n2. web-031", ["40", ""]),
        ("[1] Incident 999\n[2] Incident 31", ["", "31"]),
    ],
)  # fmt: skip
def test_each_line_is_tied_to_the_thing_that_it_names_or_to_none(text: str, things: list[str]) -> None:
    (items,) = numbered_lists(text, _KNOWN)
    assert [item.value for item in items] == things


def test_lists_are_those_that_count_from_one_without_a_gap() -> None:
    text = "On 2. July:\n1. incident 40\n2. incident 31\n\nHosts:\n1) web-03\n2) m.keller\n7. incident 3\nStep 1 of 2."
    assert [[item.value for item in items] for items in numbered_lists(text, _KNOWN)] == [
        ["40", "31"],
        ["web-03", "m.keller"],
    ]


def test_rows_are_things_in_their_order_whatever_the_tool() -> None:
    assert [item.value for item in rows_as_items(run("query_incidents"))] == ["40", "31", "23", "18", "12", "7"]
    assert rows_as_items(run("query_alerts"))[0].value == alert_id("a1")
    ranked = rows_as_items(run("get_top_entities", kind="account"))
    assert {item.of_kind for item in ranked} == {"account"}
    rows: list[JsonObject] = [{"Computer": "web-03", "Count": 4}, {"file": "phishing.md", "section": "2 Contain"}]
    kql = rows_as_items(run("run_kql_query", rows_result(rows)))
    assert [(item.kind, item.value) for item in kql] == [("row", "c1/rows/0"), ("section", "phishing.md § 2 Contain")]


def test_everything_that_results_name_is_known() -> None:
    things = {(item.of_kind, item.value) for item in things_of([run("get_incident_detail", incident="12")])}
    assert {
        ("incident", "12"),
        ("alert", alert_id("a6")),
        ("host", "dc-01.contoso.example"),
        ("ip", "198.51.100.23"),
    } <= things


def test_what_calls_were_about_is_spoken_of_and_what_an_answer_names_is_told() -> None:
    talk, runs = Talk(), [run("query_alerts", entity="web-03.contoso.example"), run("get_incident_detail", incident=31)]
    talk.learn(told_in(runs, "web-03.contoso.example ran a script, says incident 31."), asked_about(runs))
    assert (talk.spoken[0].item.value, talk.spoken[-1].item.value) == ("web-03.contoso.example", "31")
    assert {each.item.of_kind for each in talk.told} == {"incident", "host"}


def test_failed_and_empty_calls_are_about_nothing() -> None:
    assert list(asked_about([run("query_alerts", entity="nobody", entity_kind="account")])) == []


def test_a_line_of_a_model_with_an_id_of_nowhere_is_tied_to_nothing() -> None:
    known = (entity_item("host", "web-03"),)
    (items,) = numbered_lists("[1] Incident 4711 of host web-99\n[2] web-03\n[3] see web-03 or 4711", known)
    assert [item.value for item in items] == ["", "web-03", "web-03"]
