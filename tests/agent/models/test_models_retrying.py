"""Another try: only before anything was given out, within the deadline, the budget and a wait that a person bears."""

from __future__ import annotations

import anyio
import pytest

from model_failures import failing
from sentinel_rag.agent.models.failures import FailureKind, ModelError
from sentinel_rag.agent.models.openai_wire import TimeLimits
from sentinel_rag.agent.models.port import Finished, ModelEvent, ModelRequest, RetryScheduled, TextDelta, complete
from sentinel_rag.agent.models.retrying import RetryBudget, RetryingModel, RetryPolicy
from sentinel_rag_testing.scripted_model import Reply, ScriptedModel, json_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Cut, Hang, Pause, chunk, ending

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-13")]
BUSY = json_reply({"error": {"message": "Busy"}}, 503)
LOADING = json_reply({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, 503)
QUICK = RetryPolicy(attempts=3, first_wait_s=0.01, longest_wait_s=2.0)


def limited(**headers: str) -> Reply:
    return json_reply({"error": {"code": "429"}}, 429, **headers)


async def _events(model: RetryingModel, request: ModelRequest) -> list[ModelEvent]:
    events: list[ModelEvent] = []
    await complete(model, request, listen=events.append)
    return events


async def test_a_busy_provider_is_asked_again_and_the_wait_is_announced(connect, question):
    server = ScriptedModel([BUSY, BUSY, text_reply("Hi.")])
    with server.running() as url:
        events = await _events(RetryingModel(connect(url), policy=QUICK, spread=lambda: 1.0), question)
    assert events[:2] == [
        RetryScheduled(1, 0.01, "model_provider"),
        RetryScheduled(2, 0.02, "model_provider"),
    ]
    assert isinstance(events[-1], Finished)
    assert events[-1].usage.requests == 3
    assert events[-1].usage.uncounted == 2
    assert len(server.requests) == 3


async def test_a_server_that_loads_its_model_is_waited_for_beyond_all_tries(connect, question):
    server = ScriptedModel([LOADING] * 6 + [text_reply("Hi.")])
    policy = RetryPolicy(attempts=2, first_wait_s=0.01, longest_wait_s=0.04, patience_s=0.0)
    with server.running() as url:
        events = await _events(
            RetryingModel(connect(url), policy=policy, budget=RetryBudget(0), spread=lambda: 1.0), question
        )
    waits = [(event.wait_s, event.code) for event in events if isinstance(event, RetryScheduled)]
    assert waits == [(seconds, "model_loading") for seconds in (0.01, 0.02, 0.04, 0.04, 0.04, 0.04)]
    assert events[-1].message.text == "Hi."


async def test_loading_that_outlasts_the_patience_that_is_set_is_told_by_its_name(connect, question):
    server = ScriptedModel([LOADING])
    limits = TimeLimits(first_token_s=0.2)
    with server.running() as url, failing(FailureKind.LOADING, match="still loading its model") as caught:
        await complete(RetryingModel(connect(url, limits=limits), policy=QUICK), question)
    assert "SENTINEL_MODEL_TIMEOUT_S" in caught.value.next_step


@pytest.mark.parametrize(
    "reply",
    [
        stream_reply(Cut()),
        stream_reply(before_head=(Cut(),)),
        stream_reply(chunk({"content": ""}), *ending()),
        stream_reply(chunk({"tool_calls": [{"index": 0, "function": {"name": "query_alerts"}}]}), Cut()),
        limited(retry_after_ms="5"),
        limited(),
    ],
    ids=["cut", "reset", "empty", "cut-amid-a-call", "limited", "limited-without-a-time"],
)
async def test_what_passes_is_tried_again(reply, connect, question):
    server = ScriptedModel([reply, text_reply("Hi.")])
    with server.running() as url:
        events = await _events(RetryingModel(connect(url), policy=QUICK), question)
    assert events[-1].message.text == "Hi."
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (json_reply({"error": {}}, 401), FailureKind.ACCESS),
        (stream_reply(Hang()), FailureKind.TIMED_OUT),
        (limited(retry_after="60"), FailureKind.RATE_LIMITED),
        (stream_reply(chunk({"content": "Three "}), Cut()), FailureKind.CUT_OFF),
        (stream_reply(chunk({"content": " "}), *ending()), FailureKind.EMPTY_ANSWER),
    ],
    ids=["refused", "silence", "a-long-wait", "text-was-shown", "blanks-were-shown"],
)
async def test_what_stays_or_was_shown_is_not(reply, kind, connect, question, short_limits, patient_limits):
    server = ScriptedModel([reply, text_reply("Hi.")])
    limits = short_limits if kind is FailureKind.TIMED_OUT else patient_limits
    with server.running() as url, failing(kind):
        await complete(RetryingModel(connect(url, limits=limits), policy=QUICK), question)
    assert len(server.requests) == 1


async def test_a_long_wait_is_handed_up_with_its_time(connect, question):
    server = ScriptedModel([limited(retry_after="60")])
    with server.running() as url, failing(FailureKind.RATE_LIMITED) as caught:
        await complete(RetryingModel(connect(url), policy=QUICK), question)
    assert caught.value.retry_after_s == 60
    assert "60 seconds" in str(caught.value)


async def test_the_last_failure_is_raised_with_all_that_was_spent(connect, question):
    server = ScriptedModel([BUSY])
    with server.running() as url, failing(FailureKind.PROVIDER) as caught:
        await complete(RetryingModel(connect(url), policy=QUICK), question)
    assert caught.value.usage.requests == 3
    assert len(server.requests) == 3


async def test_a_turn_shares_its_budget_over_all_its_answers(connect, question):
    server = ScriptedModel([BUSY])
    budget = RetryBudget(3)
    with server.running() as url:
        model = connect(url)
        for expected in (3, 5, 6):  # two further tries, then one, then none
            with failing(FailureKind.PROVIDER):
                await complete(RetryingModel(model, policy=QUICK, budget=budget), question)
            assert len(server.requests) == expected


async def test_no_try_begins_after_the_deadline(connect, question):
    server = ScriptedModel([limited(retry_after="50")])
    policy = RetryPolicy(attempts=3, first_wait_s=0.01, longest_wait_s=100.0)
    with server.running() as url, failing(FailureKind.RATE_LIMITED):
        await complete(RetryingModel(connect(url), policy=policy), question, deadline=anyio.current_time() + 40)
    assert len(server.requests) == 1


async def test_no_try_begins_when_a_person_has_waited_for_long(connect, question):
    server = ScriptedModel([stream_reply(Pause(0.3), Cut()), text_reply("Hi.")])
    with server.running() as url, failing(FailureKind.CUT_OFF):
        policy = RetryPolicy(first_wait_s=0.01, patience_s=0.2)
        await complete(RetryingModel(connect(url), policy=policy), question)
    assert len(server.requests) == 1


async def test_leaving_while_it_waits_is_quick_and_sends_nothing_more(connect, question):
    server = ScriptedModel([limited(retry_after="2"), text_reply("Hi.")])
    with server.running() as url:
        async with RetryingModel(connect(url), policy=QUICK).stream(question) as stream:
            assert isinstance(await anext(stream), RetryScheduled)
        assert len(server.requests) == 1


async def test_text_comes_through_as_it_is_written(connect, question):
    server = ScriptedModel([text_reply("Hi, all.", pieces=4)])
    with server.running() as url:
        events = await _events(RetryingModel(connect(url)), question)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hi", ", ", "al", "l."]


def test_waits_grow_and_are_spread():
    policy = RetryPolicy(attempts=9, first_wait_s=0.5, longest_wait_s=8.0)
    failure = ModelError(FailureKind.PROVIDER, status=503)
    assert [policy.wait(n, failure, 1.0) for n in range(1, 10)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, None]
    assert policy.wait(3, failure, 0.0) == 1.0
