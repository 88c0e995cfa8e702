"""Laws of references, for any words in any conversation: resolving never raises, names no id that is neither known nor
said, changes nothing in its own output, and what is stored comes back."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.references import (
    ListItem,
    References,
    alert_item,
    entity_item,
    incident_item,
    remember,
    resolve,
)

NOW = datetime(2024, 7, 23, 12, tzinfo=timezone(timedelta(hours=2)))

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


def _conversation(lists: list[list[ListItem]], questions: list[str]) -> References:
    references = References()
    for place, question in enumerate(questions):
        resolution = resolve(question, references, now=NOW)
        remember(question, resolution, references)
        if place < len(lists):
            references.show_list(lists[place])
            references.mention(lists[place][1:])
    return references


_conversations = st.builds(_conversation, _lists, st.lists(_questions, min_size=4, max_size=5))


@pytest.mark.requirement("CHAT-6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations, _questions)
def test_resolving_never_raises_and_changes_nothing_in_its_own_output(references: References, question: str) -> None:
    before = references.to_dict()
    once = resolve(question, references, now=NOW)
    assert references.to_dict() == before
    if once.ask:
        assert once.text == question
        assert not once.resolved
        return
    again = resolve(once.text, references, now=NOW)
    if once.items and once.items[0].kind != "question" and all(each.named for each in once.resolved):
        assert (again.text, again.ask) == (once.text, "")


@pytest.mark.requirement("CHAT-6")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations, _questions)
def test_no_id_is_invented(references: References, question: str) -> None:
    resolution = resolve(question, references, now=NOW)
    known = {item.value for shown in references.lists for item in shown.items}
    known |= {each.item.value for each in (*references.focused, *references.mentioned)}
    known |= {item.incident for shown in references.lists for item in shown.items}
    known |= {item.value for item in references.group}
    said = set(re.findall(r"\d+", question))
    for item in (*resolution.items, *resolution.choices):
        assert item.value in known or item.value in said, (question, item)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_conversations)
def test_what_is_stored_comes_back(references: References) -> None:
    assert References.from_dict(json.loads(json.dumps(references.to_dict()))) == references


_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lists", "turn", "focused", "asked", "choices", "items", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_values)
def test_what_was_not_stored_by_us_is_refused_with_one_kind_of_error(data: object) -> None:
    stored = {"version": 1, **data} if isinstance(data, dict) else {"version": data}
    try:
        references = References.from_dict(stored)  # type: ignore[arg-type]
    except ValueError:
        return
    assert References.from_dict(references.to_dict()) == references


@pytest.mark.parametrize("unit", ["the ", "it ", "[1] ", "1-1", "the high ", "no, ", "a.b", "#", '"', "of the list "])
def test_a_text_that_points_everywhere_is_left_as_it_is(unit: str) -> None:
    references = _conversation([[incident_item({"number": n, "title": f"T {n}"}) for n in range(50)]], ["list"])
    question = (unit * 8_000)[:8_000]
    resolution = resolve(question, references, now=NOW)
    assert (resolution.text, resolution.ask) == (question, "")
