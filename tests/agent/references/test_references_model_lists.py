"""Lists that a model wrote: each line is tied to the id that it plainly names, or is asked back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sentinel_rag.agent.references import (
    References,
    entity_item,
    incident_item,
    numbered_lists,
    remember,
    resolve,
    rows_as_items,
    show_answer,
    things_of,
)
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.small_estate import NOW, small_estate
from sentinel_rag.testing.small_estate_rows import alert_id

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


@pytest.mark.requirement("CHAT-6")
def test_a_number_of_a_models_own_list_resolves_by_the_id_in_its_line() -> None:
    references = References()
    question = "which incidents should I look at?"
    remember(question, resolve(question, references, now=NOW), references)
    text = "Look at:\n[1] Incident 18, High\n[2] Incident 40\n[3] something else\n\nThe host is dc-01.contoso.example."
    show_answer(references, text, [run("query_incidents", status="Open"), run("get_incident_detail", incident="18")])
    assert resolve("who owns [2]", references, now=NOW).text == "who owns incident 40"
    assert resolve("details of the first one", references, now=NOW).text == "details of incident 18"
    unknown = resolve("who owns [3]", references, now=NOW)
    assert "cannot tell" in unknown.ask
    assert resolve("alerts of that host", references, now=NOW).text == 'alerts of host "dc-01.contoso.example"'


def test_two_lists_of_one_answer_are_asked_back_where_their_numbers_meet() -> None:
    references = References()
    remember("q", resolve("q", references, now=NOW), references)
    text = "Incidents:\n[1] Incident 40\n[2] Incident 31\n\nHosts:\n[1] web-03.contoso.example"
    show_answer(references, text, [run("query_incidents"), run("query_alerts")])
    asked = resolve("details of [1]", references, now=NOW)
    assert [item.value for item in asked.choices] == ["40", "web-03.contoso.example"]
    remember("details of [1]", asked, references)
    assert resolve("the incident", references, now=NOW).text == "details of incident 40"


def test_an_answer_without_a_list_leaves_the_list_before_on_the_screen() -> None:
    references = References()
    references.show_list(rows_as_items(run("query_incidents")))
    remember("who owns [2]", resolve("who owns [2]", references, now=NOW), references)
    show_answer(references, "Incident 31 is owned by Ines Duarte.", [run("get_incident_detail", incident="31")])
    assert resolve("and its alerts", references, now=NOW).text == "and incident 31's alerts"
    assert resolve("details of [1]", references, now=NOW).text == "details of incident 40"


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


def test_failed_and_empty_calls_are_about_nothing() -> None:
    references = References()
    remember("q", resolve("q", references, now=datetime(2024, 7, 1, tzinfo=UTC)), references)
    show_answer(references, "No alerts.", [run("query_alerts", entity="nobody", entity_kind="account")])
    assert references.focused == ()
