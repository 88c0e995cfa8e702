"""All that is recorded of one thing, rows of people's own tables, and watchlists, asked in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryResult
from sentinel_rag.sentinel.templates.template_registry import load_templates
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio

WHO = {"AccountUPN": "m.keller@contoso.example", "AccountDisplayName": "Mia Keller", "JobTitle": "Director",
       "Department": "Finance", "City": "Porto", "Country": "PT"}  # fmt: skip
DONE = {"Activity": "Sign-ins", "Log": "SigninLogs", "Events": 9, "Failed": 4, "Places": ["PT", "RO"]}
TEMPLATES: dict[str, list[dict[str, Any]]] = {
    "identity_of_account": [WHO],
    "activity_of_account": [DONE],
    "activity_of_host": [{"Activity": "Processes started", "Log": "DeviceProcessEvents", "Events": 3, "Failed": 0}],
    "activity_of_ip": [],
    "watchlists": [{"WatchlistAlias": "HighValueAssets", "Items": 2}, {"WatchlistAlias": "VIP", "Items": 1}],
    "watchlist_items": [{"SearchKey": "dc-01"}],
    "watchlist_alerts": [{"AlertName": "Some alert"}],
}
COLUMNS = ("TimeGenerated", "user", "src_ip", "bytes")


def estate(**answers: Any) -> ScriptedGateway:
    """The small estate with the stored queries that ship; `answers` are rows by template, an error for one."""
    told = {**TEMPLATES, **answers}

    def run(arguments: Mapping[str, JsonValue]) -> QueryResult | QueryError:
        found = told.get(str(arguments["template"]), [{"Value": "anna", "Rows": 2}])
        return found if isinstance(found, QueryError) else rows_result(found, table="SigninLogs")

    def describe(arguments: Mapping[str, JsonValue]) -> QueryResult | QueryError:
        if arguments["table"] != "Fw_CL":
            return QueryError(code=QueryErrorCode.INVALID_ARGUMENT, message="The workspace has no such table.")
        return rows_result([{"column": name, "type": "string", "filled": 3} for name in COLUMNS])

    shipped = rows_result([each.to_row() for each in load_templates().values()], table="", time_column="")
    return small_estate(run_kql_query=run, describe_table=describe, list_kql_templates=lambda _: shipped)


async def asked(
    question: str, gateway: ScriptedGateway, *before: str
) -> tuple[Answer, list[tuple[str, dict[str, Any]]]]:
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    for each in before:
        await analyst.answer(Question(each, "s"))
    gateway.calls.clear()
    answer = await analyst.answer(Question(question, "s"))
    lists = ("list_kql_templates", "get_top_entities", "describe_table")
    return answer, [(c.tool_name, dict(c.arguments)) for c in gateway.calls if c.tool_name not in lists]


@pytest.mark.parametrize(
    "question", ["who is m.keller", "tell me about m.keller", "is m.keller compromised", "m.keller"]
)
async def test_one_answer_tells_who_an_account_is_what_names_it_and_what_the_logs_say(question: str) -> None:
    answer, calls = await asked(question, estate())
    read = {str(arguments.get("template", tool)) for tool, arguments in calls}
    assert read == {"identity_of_account", "activity_of_account", "query_incidents", "query_alerts"}
    assert "“Mia Keller”. Director, department Finance. Place: Porto, PT." in answer.text
    assert "Open, the worst of them:" in answer.text
    assert "alerts name `m.keller`" in answer.text
    assert "In the logs: Sign-ins 9 from PT, RO (4 failed)." in answer.text
    assert [table.title for table in answer.tables] == ["Incidents", "Alerts", "In the logs"]
    assert answer.suggestions[0].startswith("What is incident")


async def test_the_worst_alert_comes_first_and_is_what_a_number_means() -> None:
    answer, _ = await asked("who is m.keller", estate())
    shown = answer.tables[1]
    severities = [row[shown.columns.index("Severity")] for row in shown.rows]
    assert severities == sorted(severities, key=["High", "Medium", "Low", "Informational"].index)
    number = int(shown.rows[0][0].strip("[]"))
    assert number == len(answer.tables[0].rows) + 1


async def test_what_a_host_did_is_of_the_time_that_was_said() -> None:
    _, calls = await asked("what did web-03 do yesterday", estate())
    windows = {str(a.get("template", tool)): a.get("start_time") for tool, a in calls}
    assert windows == {
        "query_alerts": "2024-07-22T00:00:00Z",
        "query_incidents": None,
        "activity_of_host": "2024-07-22T00:00:00Z",
    }


async def test_a_part_that_could_not_be_read_is_told_beside_the_others() -> None:
    broken = QueryError(code=QueryErrorCode.TIMEOUT, message="It did not answer in time.")
    answer, _ = await asked("who is m.keller", estate(activity_of_account=broken))
    assert answer.outcome is Outcome.ANSWERED
    assert "“Mia Keller”" in answer.text
    assert "Not all of it could be answered:" in answer.text
    assert "It did not answer in time" in answer.text


async def test_whether_it_is_compromised_is_not_judged() -> None:
    answer, _ = await asked("is web-03 compromised", estate())
    assert answer.text.startswith("Whether that is so is no field of the rows, and I do not judge it")


async def test_the_next_name_is_asked_for_in_the_same_way() -> None:
    _, calls = await asked("and dc-01?", estate(), "tell me about web-03")
    assert {str(a.get("template", tool)) for tool, a in calls} == {
        "query_alerts",
        "query_incidents",
        "activity_of_host",
    }


@pytest.mark.parametrize("question", ["who is the manager of m.keller", "alerts of m.keller", "was web-03 attacked"])
async def test_what_asks_for_less_gets_less(question: str) -> None:
    _, calls = await asked(question, estate())
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("question", "template", "parameters"),
    [
        ("show the newest rows of Fw_CL", "own_table_rows", {}),
        ("Fw_CL by user", "own_table_counts", {"by": "user"}),
        ("count Fw_CL per src ip", "own_table_counts", {"by": "src_ip"}),
        ("top users in Fw_CL", "own_table_counts", {"by": "user"}),
        ("bytes by src_ip in Fw_CL", "own_table_sums", {"by": "src_ip", "sum": "bytes"}),
        ("rows of Fw_CL where the user is lea.brandt", "own_table_rows", {"column": "user", "value": "lea.brandt"}),
        ("Fw_CL by src_ip where user is anna", "own_table_counts", {"by": "src_ip", "column": "user", "value": "anna"}),
    ],
)
async def test_a_table_of_peoples_own_is_asked_in_words(
    question: str, template: str, parameters: dict[str, str]
) -> None:
    _, calls = await asked(question, estate())
    assert calls == [("run_kql_query", {"template": template, "parameters": {"table": "Fw_CL", **parameters}})]


@pytest.mark.parametrize(
    ("question", "tool"),
    [("how many rows are in Fw_CL", "list_tables"), ("rows of Fw_CL with lea.brandt", "search_logs")],
)
async def test_its_size_and_a_name_in_any_column_have_tools_of_their_own(question: str, tool: str) -> None:
    _, calls = await asked(question, estate())
    assert [name for name, _ in calls] == [tool]


async def test_a_column_that_it_does_not_have_is_asked_back_with_those_it_has() -> None:
    answer, calls = await asked("Fw_CL by country", estate())
    assert (answer.outcome, calls) == (Outcome.CLARIFICATION, [])
    assert all(f"“{name}”" in answer.text for name in ("country", *COLUMNS))


async def test_a_follow_up_counts_the_same_table_by_another_column() -> None:
    _, calls = await asked("and by src_ip?", estate(), "how many rows are in Fw_CL")
    assert calls[0][1]["parameters"] == {"table": "Fw_CL", "by": "src_ip"}


async def test_a_table_that_is_not_there_is_told_so() -> None:
    answer, _ = await asked("show the newest rows of Fx_CL", estate())
    assert "The workspace has no such table" in answer.text


@pytest.mark.parametrize(
    ("question", "template", "parameters"),
    [
        ("who is on the VIP list", "watchlist_items", {"watchlist": "VIP"}),
        ("show the watchlist VIP", "watchlist_items", {"watchlist": "VIP"}),
        ("alerts for VIPs", "watchlist_alerts", {"watchlist": "VIP"}),
        ("is dc-01 on the asset list", "watchlist_items", {"watchlist": "HighValueAssets", "contains": "dc-01"}),
        ("is m.keller a VIP?", "watchlist_items", {"watchlist": "VIP", "contains": "m.keller"}),
    ],
)
async def test_a_watchlist_is_found_by_the_words_of_its_name(
    question: str, template: str, parameters: dict[str, str]
) -> None:
    answer, calls = await asked(question, estate())
    assert calls[-1] == ("run_kql_query", {"template": template, "parameters": parameters})
    assert answer.text.startswith("Yes. ") is ("contains" in parameters)


async def test_a_name_that_is_not_on_it_is_answered_with_no() -> None:
    answer, _ = await asked("is web-03 on the asset list", estate(watchlist_items=[]))
    assert answer.text.startswith("No. ")


async def test_a_watchlist_that_is_not_there_is_asked_back_with_those_that_are() -> None:
    answer, _ = await asked("who is on the crown jewels list", estate())
    assert answer.outcome is Outcome.CLARIFICATION
    assert "“HighValueAssets”" in answer.text
    assert "“VIP”" in answer.text


async def test_all_watchlists_are_looked_through_for_a_name() -> None:
    _, calls = await asked("is dc-01 on a watchlist?", estate())
    assert [a["parameters"] for _, a in calls if a.get("template") == "watchlist_items"] == [
        {"watchlist": name, "contains": "dc-01"} for name in ("HighValueAssets", "VIP")
    ]


@pytest.mark.parametrize(
    ("before", "question", "arguments"),
    [
        ("high alerts since 1 July", "which hosts?", {"kind": "host", "severity": "High"}),
        ("high alerts since 1 July", "and which hosts do they name?", {"kind": "host", "severity": "High"}),
        ("high alerts since 1 July", "the addresses?", {"kind": "ip", "severity": "High"}),
        ("open incidents since 1 July", "which accounts?", {"kind": "account", "status": "Open"}),
        ("", "which accounts are in the open incidents since 1 July", {"kind": "account", "status": "Open"}),
        ("", "addresses in the high alerts since 1 July", {"kind": "ip", "severity": "High"}),
    ],
)
async def test_the_things_of_a_list_are_asked_behind_it_or_at_once(
    before: str, question: str, arguments: dict[str, str]
) -> None:
    gateway = estate()
    await asked(question, gateway, *([before] if before else []))
    made = [(c.tool_name, dict(c.arguments)) for c in gateway.calls if c.arguments.get("limit") != 100]
    assert made == [("get_top_entities", {"start_time": "2024-07-01T00:00:00Z", **arguments})]


@pytest.mark.parametrize(
    ("before", "question"),
    [("alerts with spray in the name", "which accounts?"), ("", "accounts of the alerts with spray in the name")],
)
async def test_where_no_ranking_takes_the_filter_they_are_read_from_the_alerts(before: str, question: str) -> None:
    answer, calls = await asked(question, estate(), *([before] if before else []))
    assert calls == [("query_alerts", {"name_contains": "spray"})]
    assert "in these alerts" in answer.text
    assert "match" in answer.text


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("write me the hand-over", "`sentinel report` writes the hand-over of a shift as a page to hand on"),
        ("make me a report of incident 12", "`sentinel report 12` writes this as a page to hand on"),
    ],
)
async def test_a_page_to_hand_on_is_told_who_writes_it_before_what_it_is_about(question: str, told: str) -> None:
    answer, _ = await asked(question, estate())
    assert answer.outcome is not Outcome.CLARIFICATION
    assert answer.text.startswith(told)
