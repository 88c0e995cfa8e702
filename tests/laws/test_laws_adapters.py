"""Laws of the adapters for other people's agents: whatever a server answers is one of three things and a text for the
model; what may change something is sent once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.integrations.gateway import Blocked, GatewayCall, NotRun, Ran, told_to_model
from sentinel_rag.integrations.gateway.answers import HttpReply, NoReply, read_answer
from sentinel_rag.integrations.gateway.calls import (
    GatewayConversations,
    Pause,
    Send,
    WaitLimits,
    calling,
    wire_arguments,
)

pytestmark = pytest.mark.requirement("GATE-8")
TEXTS = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(TEXTS, parts, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["result", "detail", "status", "reason", "approval_id", "error", "audit_id", "note", "session_id", "context"]
)
BODIES = st.binary(max_size=20) | st.dictionaries(KEYS, JSON, max_size=6).map(lambda body: json.dumps(body).encode())
STATUSES = st.sampled_from([200, 201, 204, 302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504])
HEADERS = st.dictionaries(st.just("retry-after"), st.sampled_from(["0", "1", "99", "-1", "x", "١"]))
REPLIES = st.builds(HttpReply, STATUSES, HEADERS, BODIES) | st.builds(
    NoReply, st.just("It broke."), st.just(""), st.booleans(), st.booleans()
)


@given(st.builds(HttpReply, STATUSES, HEADERS, BODIES))
def test_every_answer_is_one_of_three_and_a_text(reply: HttpReply) -> None:
    answer = read_answer(reply)
    text = told_to_model("t", answer)
    assert isinstance(text, str)
    match answer:
        case Ran():
            assert reply.status == 200
        case Blocked():
            assert reply.status == 403
            assert text.startswith("Tool 't' was blocked by a security policy. Reason: ")
        case NotRun():
            assert reply.status != 403
            assert text.startswith("Result: SYSTEM_ERROR: ")


def sent(call: GatewayCall, replies: list[HttpReply | NoReply], conversations: GatewayConversations) -> list[Send]:
    """What a call sends if these are the answers, one after the other; silence after the last."""
    exchange = calling(call, conversations, WaitLimits(repeats=2, longest_wait_s=60), set())
    made: list[Send] = []
    reply: HttpReply | NoReply | None = None
    left = list(replies)
    try:
        while True:
            wish = exchange.send(reply)
            if isinstance(wish, Pause):
                assert wish.seconds > 0
                reply = None
            else:
                made.append(wish)
                reply = left.pop(0) if left else NoReply("Nobody answers.", "", sent=True)
    except StopIteration:
        return made


@settings(max_examples=60)
@given(st.lists(REPLIES, max_size=6), st.sampled_from(["write", "external", "of a later version"]), st.booleans())
def test_what_may_change_something_is_sent_at_most_once(
    replies: list[HttpReply | NoReply], effect: str, opens: bool
) -> None:
    call = GatewayCall("t", {}, effect, session_id=None if opens else "s", wants_context=True)
    executed = [wish for wish in sent(call, replies, GatewayConversations()) if wish.path == "/v1/proxy-execute"]
    assert len(executed) <= 1


@settings(max_examples=40)
@given(st.lists(REPLIES, max_size=8))
def test_what_reads_is_sent_at_most_three_times_in_one_session(replies: list[HttpReply | NoReply]) -> None:
    made = sent(GatewayCall("t", {}, "read", session_id="s"), replies, GatewayConversations())
    assert len(made) <= 3
    assert {json.loads(wish.body or b"{}").get("session_id") for wish in made} <= {"s"}


@given(st.dictionaries(TEXTS, JSON, max_size=5), st.sets(TEXTS, max_size=3))
def test_json_arguments_arrive_as_they_are_but_for_nulls_that_mean_nothing(
    arguments: dict[str, Any], required: set[str]
) -> None:
    found = wire_arguments(arguments, {"type": "object", "required": sorted(required)})
    kept = {name: value for name, value in arguments.items() if value is not None or name in required}
    assert found == kept


def approval(approval_id: str) -> HttpReply:
    body = {"detail": "no", "reason": "approval_required", "approval_id": approval_id}
    return HttpReply(403, {}, json.dumps(body).encode())


@settings(max_examples=30)
@given(st.integers(0, 5), st.integers(1, 60))
def test_waiting_for_a_person_ends_with_the_time_or_with_another_question(same: int, patience_s: int) -> None:
    """What a person is asked anew about was not decided, so nobody may be left waiting for it unheard."""
    call = GatewayCall("t", {}, "write", session_id="s", approval_wait_s=patience_s)
    asked_anew = sent(call, [approval("a")] * (same + 1) + [approval("b")] * 50, GatewayConversations())
    assert len(asked_anew) <= same + 2
    waited = list(pauses(call, [approval("a")] * 100))
    assert sum(waited) == pytest.approx(patience_s)
    assert max(waited) <= 10


def pauses(call: GatewayCall, replies: list[HttpReply]) -> Iterator[float]:
    """How long a call waits each time, if these are the answers."""
    exchange = calling(call, GatewayConversations(), WaitLimits(), set())
    reply: HttpReply | None = None
    left = list(replies)
    with suppress(StopIteration):
        while True:
            wish = exchange.send(reply)
            reply = None if isinstance(wish, Pause) else left.pop(0)
            if isinstance(wish, Pause):
                yield wish.seconds


def test_two_first_calls_of_a_conversation_use_one_session_and_close_the_other() -> None:
    conversations = GatewayConversations()
    first, second = (calling(GatewayCall("t", {}, "read"), conversations, WaitLimits(), set()) for _ in range(2))
    for exchange in (first, second):
        assert exchange.send(None) == Send("POST", "/v1/sessions")
    opened = [HttpReply(201, {}, json.dumps({"session_id": name}).encode()) for name in ("one", "two")]
    call = first.send(opened[0])
    assert second.send(opened[1]) == Send("DELETE", "/v1/sessions/two")
    again = second.send(HttpReply(204, {}, b""))
    for wish in (call, again):
        assert isinstance(wish, Send)
        assert json.loads(wish.body or b"")["session_id"] == "one"
