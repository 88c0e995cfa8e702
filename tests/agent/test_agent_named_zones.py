"""A zone that a question names for its answer: its days begin there, times are shown in it, or it is asked back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.offline.questions import NamedZone, read_named_zone
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag_testing.scripted_gateway import ScriptedGateway

pytestmark = pytest.mark.anyio
Ask = Callable[[str], Awaitable[Answer]]


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("alerts per day in Berlin time", {"interval": "1d", "timezone": "Europe/Berlin"}),
        ("alerts per day in berlin time", {"interval": "1d", "timezone": "Europe/Berlin"}),
        ("trend of alerts per day, New York time", {"interval": "1d", "timezone": "America/New_York"}),
        ("alerts per hour on 2 July 2024 in Asia/Tokyo",
         {"interval": "1h", "timezone": "Asia/Tokyo",
          "start_time": "2024-07-01T15:00:00Z", "end_time": "2024-07-02T15:00:00Z"}),
        ("alerts per day, CEST", {"interval": "1d", "timezone": "Etc/GMT-2"}),
        ("alerts per day in UTC-8", {"interval": "1d", "timezone": "Etc/GMT+8"}),
        ("alerts per day in UTC", {"interval": "1d"}),
        ("alerts per day in local time", {"interval": "1d"}),
    ],
)  # fmt: skip
async def test_days_of_a_trend_begin_where_the_question_says(
    ask: Ask, gateway: ScriptedGateway, question: str, arguments: dict[str, str]
) -> None:
    await ask(question)
    assert [(call.tool_name, call.arguments) for call in gateway.calls] == [("get_alert_trend", arguments)]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("alerts per day in Frankfurt time", "I know no time zone of the name Frankfurt."),
        ("alerts per day, IST", "IST is the name of more than one time zone."),
        ("alerts per day in UTC+5:30", "midnight of a named zone or of whole hours"),
        ("alerts per day in UTC+37", "is no offset"),
    ],
)
async def test_what_is_no_one_zone_is_asked_back(ask: Ask, gateway: ScriptedGateway, question: str, says: str) -> None:
    answer = await ask(question)
    assert answer.outcome is Outcome.CLARIFICATION
    assert says in answer.text
    assert not gateway.calls


async def test_times_are_shown_in_the_named_zone_for_this_question_only(ask: Ask) -> None:
    answer = await ask("newest alert in Tokyo time")
    assert "2024-07-20 06:05:00 UTC (15:05:00 JST)" in answer.text
    assert "JST" not in (await ask("newest alert")).text


async def test_a_day_in_words_is_a_day_there(ask: Ask, gateway: ScriptedGateway) -> None:
    await ask("alerts yesterday in Berlin time")
    assert gateway.calls[0].arguments == {"start_time": "2024-07-21T22:00:00Z", "end_time": "2024-07-22T22:00:00Z"}


@pytest.mark.parametrize(
    "question",
    ["what time was the newest alert", "what is the response time of incident 12", "first alert in real time",
     "sign-ins in Berlin", "alerts of host berlin-01", "how much time did it take", "files in Documents/Reports"],
)  # fmt: skip
def test_other_words_name_no_zone(question: str) -> None:
    assert read_named_zone(question, trend=True) == NamedZone(question)


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_reading_is_total_and_keeps_the_length(text: str) -> None:
    assert len(read_named_zone(f"{text} in Berlin time", trend=True).rest) == len(f"{text} in Berlin time")
