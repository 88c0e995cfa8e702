"""Nothing found, as the offline analyst says it: window, filters, what the table holds, and a wider look to accept."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_gateway import ScriptedGateway, rows_result

pytestmark = pytest.mark.anyio
WINDOWS = ("time_window", "start_time", "end_time")


@pytest.fixture
def gateway() -> ScriptedGateway:
    return small_estate()


@pytest.mark.requirement("CHAT-10")
@pytest.mark.parametrize(
    ("question", "tool", "filters"),
    [
        ("list the incidents in May 2020", "query_incidents", ()),
        ("high severity incidents in May 2020", "query_incidents", ("severity High",)),
        ("list the alerts in May 2020", "query_alerts", ()),
        ("medium alerts in May 2020", "query_alerts", ("severity Medium",)),
        ("how many alerts were there on 1 May 2020?", "query_alerts", ()),
        ("top accounts by alerts in May 2020", "get_top_entities", ()),
    ],
)
async def test_an_empty_window_is_explained_and_the_wider_one_is_a_word_away(
    gateway: ScriptedGateway, question: str, tool: str, filters: tuple[str, ...]
) -> None:
    """Field report F1: window, filters, whether the table has rows and its newest one, and an offer to widen."""
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    answer = await analyst.answer(Question(question, "s"))
    assert answer.outcome is Outcome.NO_DATA
    assert "Window: from 2020-05-01 00:00:00 UTC" in answer.text
    for part in filters:
        assert part in answer.text
    assert "does hold rows" in answer.text
    assert "the newest of 2024-07-" in answer.text
    first = gateway.calls[-1]
    assert (first.tool_name, any(name in first.arguments for name in WINDOWS)) == (tool, True)
    wider = await analyst.answer(Question("yes", "s"))
    second = gateway.calls[-1]
    assert second.tool_name == tool
    assert not any(name in second.arguments for name in WINDOWS)
    assert {name: value for name, value in first.arguments.items() if name not in WINDOWS} == dict(second.arguments)
    assert wider.outcome is Outcome.ANSWERED


EMPTY = rows_result([], table="SecurityIncident", table_rows=0)


@pytest.mark.requirement("CHAT-10")
@pytest.mark.parametrize(
    "question",
    [
        "how many incidents are there?",
        "list the alerts",
        "top hosts",
        "alerts per day",
        "what happened in the last 7 days?",
        "what data do you have?",
        "what is incident 12 about?",
        "compare 12 and 18",
        "alerts except the low ones",
        "what triggered the newest alert?",
        "mimikatz",
    ],
)
async def test_a_workspace_without_data_is_told_as_such_with_how_to_fill_it(question: str) -> None:
    estate = small_estate()
    gateway = ScriptedGateway({**dict.fromkeys(estate.answers, EMPTY), "list_kql_templates": rows_result([])})
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question(question, "s"))
    assert answer.outcome is Outcome.NO_DATA
    assert answer.text.count("`sentinel workspace import FILE`") == 1
    assert "`sentinel workspace generate`" in answer.text
    assert not answer.tables
