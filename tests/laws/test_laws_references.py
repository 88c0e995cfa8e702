"""Laws of pointing, for any words in any conversation: binding never raises, names no id that is neither known nor
said, changes nothing but what the sentence points at, and what is stored comes back."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.planner import Decision, DecisionKind, Talk
from sentinel_rag.agent.planner.binding import complete, read
from sentinel_rag.agent.planner.decisions import Call
from sentinel_rag.agent.planner.sentence import Readings
from sentinel_rag.agent.things import ListItem, alert_item, entity_item, incident_item
from sentinel_rag.language.frames import Frame, Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

NOW = datetime(2024, 7, 23, 12, tzinfo=UTC)
READER = Reader(lambda text: read_time_in_its_zone(text, Now(NOW, UTC)))

_incidents = st.builds(
    lambda number, title, severity, owner, day: incident_item(
        {"number": number, "title": title, "severity": severity, "owner": owner, "status": "New",
         "created_time": f"2024-07-{day:02d}T08:00:00Z"}
    ),
    st.integers(1, 400),
    st.sampled_from(["Phishing mail", "Password spray", "it", "[2] of the first list", "Ransomware on host web-03"]),
    st.sampled_from(["High", "Medium", "Low", "Informational", ""]),
    st.sampled_from(["m.keller", "Ines Duarte", ""]),
    st.integers(1, 28),
)  # fmt: skip
_alerts = st.builds(
    lambda number, incident: alert_item({"alert_id": f"a{number}-x", "name": "Alert", "incident_number": incident}),
    st.integers(1, 99),
    st.integers(1, 400),
)
_entities = st.builds(
    entity_item,
    st.sampled_from(["host", "account", "ip", "process", ""]),
    st.one_of(
        st.sampled_from(
            ["web-03", "m.keller", "[1]", "it", "the second one", 'a" of incident 5 "', "the other host", "7"]
        ),
        st.text(max_size=30),
    ),
)
_lists = st.lists(st.lists(st.one_of(_incidents, _alerts, _entities), max_size=7), max_size=4)

_WORDS = re.findall(
    r"\S+",
    """[1] [2] [9] 2 7 #2 #31 incident alert host account the that this same other second first last one ones it its
    them these both all of two compare who owns alerts details no, sorry I meant not and what about list before from
    high phishing newest assigned to m.keller yesterday previous next "it" `[1]` ? , . yes""",
)
_questions = st.one_of(
    st.lists(st.sampled_from(_WORDS), max_size=9).map(" ".join),
    st.text(max_size=60),
)


def _conversation(lists: list[list[ListItem]], questions: list[str]) -> Talk:
    talk = Talk()
    for place, question in enumerate(questions):
        done = complete(talk, read(talk, READER, question), NOW)
        frame = done if isinstance(done, Frame) else Frame(question)
        items = lists[place] if place < len(lists) else []
        talk.remember(Decision(DecisionKind.CALL, frame, (Call("query_incidents"),)), items, told=items[1:])
    return talk


_conversations = st.builds(_conversation, _lists, st.lists(_questions, min_size=4, max_size=5))


def _incidents_of(done: object) -> list[str]:
    frames = [done] if isinstance(done, Frame) else []
    frames += done.frames if isinstance(done, Readings) else ()
    if isinstance(done, Decision):
        frames = [done.frame, *(option.frame for option in done.options)]
    return [number for frame in frames for number in (*frame.all("incident"), *frame.all("alert_id"))]


@pytest.mark.requirement("CHAT-6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations, _questions)
def test_binding_never_raises_and_keeps_the_state(talk: Talk, question: str) -> None:
    before = talk.to_dict()
    complete(talk, read(talk, READER, question), NOW)
    assert talk.to_dict() == before


@pytest.mark.requirement("CHAT-6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations, _questions)
def test_no_id_is_invented(talk: Talk, question: str) -> None:
    frame = read(talk, READER, question)
    done = complete(talk, frame, NOW)
    known = {value for shown in talk.lists for item in shown.items for value in (item.value, item.incident)}
    known |= {value for each in (*talk.spoken, *talk.told) for value in (each.item.value, each.item.incident)}
    known |= {item.value for item in talk.together}
    known |= {number for decision in talk.decisions for number in decision.frame.all("incident")}
    said = {*re.findall(r"\d+", question), *re.findall(r"\d+", frame.text), *frame.all("incident")}
    for number in _incidents_of(done):
        assert number in known or number in said, (question, number)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations)
def test_what_is_stored_comes_back(talk: Talk) -> None:
    assert Talk.from_dict(json.loads(json.dumps(talk.to_dict()))).to_dict() == talk.to_dict()


_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lists", "turn", "spoken", "decisions", "waiting", "items", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_values, st.sampled_from([1, 2]))
def test_what_was_not_stored_by_us_is_refused_with_one_kind_of_error(data: object, version: int) -> None:
    stored = {"version": version, **data} if isinstance(data, dict) else {"version": data}
    try:
        talk = Talk.from_dict(stored)
    except ValueError:
        return
    assert Talk.from_dict(talk.to_dict()).to_dict() == talk.to_dict()


@pytest.mark.parametrize("unit", ["the ", "it ", "[1] ", "1-1", "the high ", "no, ", "a.b", "#", '"', "of the list "])
def test_a_text_that_points_everywhere_is_bound_to_what_is_shown_or_asked_back(unit: str) -> None:
    incidents = [incident_item({"number": n, "title": f"T {n}"}) for n in range(50)]
    talk = _conversation([incidents], ["list"])
    done = complete(talk, read(talk, READER, (unit * 1_000)[:1_000]), NOW)
    assert set(_incidents_of(done)) <= {str(n) for n in range(50)} | {"1"}
