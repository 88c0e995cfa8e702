"""What no tool takes, calculated over the rows that tools give: shares, groups, ranks, sets and periods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import QueryResult
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("AGENT-1")]
Ask = Callable[[str], Awaitable[Answer]]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("what percentage of incidents are high", "3 of 6 incidents, 50 %."),
        ("what share of high incidents are still open", "3 of 3 incidents, 100 %."),
        ("what percentage of incidents were false positives", "0 of 2 incidents, 0 %."),
        ("which incident has the most alerts", "Incident 12 has 2 alerts.\nIncident 31 has 2 alerts."),
        ("incidents except phishing ones", "4 of 6 incidents."),
        ("how many incidents have at least 2 alerts", "2 of 6 incidents."),
        ("alerts that name both m.keller and dc-01", "Alerts that name both: 2."),
        ("mean time to close incidents owned by m.keller", "from creation to closing is 5 hours, over 1 incident."),
        ("average number of alerts per incident", "The mean number of alerts is 1.333, over 6 incidents."),
        ("which hosts are in 12 but not in 31", "2 values, in the table below."),
        ("which accounts are in 12 but not in 31", "None of the entities of the kind account is left."),
        ("high alerts last month vs this month", "a difference of"),
    ],
)
async def test_a_figure_is_calculated_over_the_rows(ask: Ask, question: str, said: str) -> None:
    answer = await ask(question)
    assert said in answer.text
    assert answer.tools[-1].name == "compute"


async def test_counts_by_a_field_are_a_table_with_their_source(ask: Ask) -> None:
    answer = await ask("closed incidents by classification")
    (table,) = answer.tables
    assert table.columns[:2] == ("Classification", "Count")
    assert sum(int(row[1]) for row in table.rows) == 2
    assert "Read: 2 incidents (status Closed)." in answer.text


async def test_a_list_that_was_chosen_can_be_pointed_at(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("incidents except phishing ones")
    assert (await ask("who owns [2]")).outcome is Outcome.ANSWERED
    assert gateway.calls[-1].arguments == {"incident": "18"}


async def test_every_page_is_read_up_to_a_bound_and_the_rest_is_said(ask: Ask, gateway: ScriptedGateway) -> None:
    def endless(arguments: JsonObject) -> QueryResult:
        offset = arguments.get("offset", 0)
        assert isinstance(offset, int)
        row = {"title": "t", "alert_count": 1, "created_time": "2024-07-01T00:00:00Z"}
        rows = [{**row, "number": offset + place} for place in range(100)]
        return rows_result(rows, total=5000)

    gateway.answers["query_incidents"] = endless
    answer = await ask("incidents with more than 3 alerts")
    assert len([tool for tool in answer.tools if tool.name == "query_incidents"]) == 10
    assert "Not all rows could be looked at" in answer.text
