"""Plans at their edges: how many and how long steps may be, what a slot may say, and what each slot chooses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import TOP
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, judge
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import (
    MAX_STEP_CHARACTERS,
    MAX_STEPS,
    PLAN,
    BadPlan,
    Step,
    chosen,
    planned,
    read_plan,
)
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import NoteKind

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy("""
tools:
  - name: list
    effect: read
    parameters: [{name: folder, type: string}]
    taint_rules: [{rule_id: list_any, condition: "true", taint_level: LOW}]
  - name: delete
    effect: write
    parameters: [{name: id, type: string}, {name: hosts, type: array, items: string, format: host}]
    taint_rules: [{rule_id: delete_any, condition: "true", taint_level: LOW}]
""")
KEYS = "a slot that chooses has of, rows, at, take and one of largest, smallest, starts_with, holds, only"


def committed(*args: dict[str, Any]) -> dict[NamedValue, str]:
    """A plan that lists once, and then deletes by each of these arguments."""
    steps = [{"tool": "list", "args": {}}, *({"tool": "delete", "args": each} for each in args)]
    return dict.fromkeys(read_plan(steps, POLICY), PLAN)


def listing(named: dict[NamedValue, str]) -> Step:
    found = planned(POLICY.tools["list"], {}, named)
    assert found is not None
    return found.step


def judged(named: dict[NamedValue, str], **arguments: Any) -> Judgement:
    return judge(POLICY, POLICY.tools["delete"], arguments, CallFacts(context=TOP, named=named))


ROWS = {
    "rows": [
        {"id": "a", "size": 3, "name": "Minutes of May", "tags": ["x", "rent"]},
        {"id": "b", "size": 9, "name": "rent of May", "tags": ["y", "car"]},
        {"id": "c", "size": "12", "name": 7, "tags": []},
        {"id": "d", "size": True},
    ],
    "one": [{"id": "a"}],
    "text": "see https://a.example/x",
}


@pytest.mark.parametrize(
    ("slot", "result", "picked"),
    [
        ({"rows": "/rows", "largest": "/size", "take": "/id"}, ROWS, "b"),
        ({"rows": "/rows", "smallest": "/size", "take": "/id"}, ROWS, "a"),
        ({"rows": "/rows", "largest": "/size", "take": "/tags/1"}, ROWS, "car"),
        ({"rows": "/rows", "largest": "/size", "take": "/tags/2"}, ROWS, None),
        ({"rows": "/rows", "largest": "/size", "take": "/tags/x"}, ROWS, None),
        ({"rows": "/rows", "largest": "/size", "take": "/tags/²"}, ROWS, None),
        ({"rows": "/rows", "largest": "/size", "take": "/tags/٣"}, ROWS, None),
        ({"rows": "/rows", "largest": "/size", "take": "/size/0"}, ROWS, None),
        ({"rows": "/rows", "largest": "/size", "take": "/none"}, ROWS, None),
        ({"rows": "/rows", "starts_with": "Min", "at": "/name", "take": "/id"}, ROWS, "a"),
        ({"rows": "/rows", "starts_with": "r", "at": "/tags/1", "take": "/id"}, ROWS, "a"),
        ({"rows": "/rows", "starts_with": "May", "at": "/name", "take": "/id"}, ROWS, None),
        ({"rows": "/rows", "holds": "rent", "at": "/name", "take": "/id"}, ROWS, "b"),
        ({"rows": "/rows", "holds": "May", "at": "/name", "take": "/id"}, ROWS, None),
        ({"rows": "/one", "only": True, "take": "/id"}, ROWS, "a"),
        ({"rows": "/one", "only": True, "at": "/id", "take": "/id"}, ROWS, "a"),
        ({"rows": "/one", "only": True, "at": "/size", "take": "/id"}, ROWS, None),
        (
            {"rows": "/rows", "only": True, "at": "/name", "take": "/id"},
            {"rows": [{"id": "a", "name": ""}, {"id": "b"}]},
            None,
        ),
        ({"rows": "/rows", "only": True, "at": "/name"}, {"rows": [{"id": "a"}]}, None),
        ({"only": True, "take": "/id"}, [{"id": "a"}], "a"),
        ({"only": True}, ["a"], "a"),
        ({"only": True}, [], None),
        ({"starts_with": "M"}, ["Minutes", "Rent"], "Minutes"),
        ({"holds": "rent"}, ["Minutes", "the rent"], "the rent"),
        ({"largest": ""}, [1, 5, 2], 5),
        ({"smallest": ""}, [1, 5, 2], 1),
        ({"rows": "/none", "only": True}, ROWS, None),
        ({"rows": "/text", "only": True}, ROWS, None),
        ({"rows": "/text", "only": "url"}, ROWS, "https://a.example/x"),
        ({"rows": "/none", "only": "url"}, ROWS, None),
        ({"only": "url"}, ROWS, "https://a.example/x"),
        ({"rows": "/1/0", "only": "url"}, ["https://b.example/y", ["https://c.example/z"]], "https://c.example/z"),
    ],
)
def test_a_slot_chooses_one_value_of_the_step_that_it_names(slot: dict[str, Any], result: Any, picked: Any) -> None:
    """What was chosen is stored with the session under these names, and judged again years later."""
    for of in (0, 1):
        named = committed({"hosts": ["alpha"]}, {"id": {"$slot": {"of": of, **slot}}})
        found = {(value.kind, value.text) for value in chosen(listing(named), result, named)}
        text = f'{{"number":2,"parameter":"id","value":{json.dumps(picked)}}}'
        assert found == ({(NoteKind.CHOSEN, text)} if picked is not None and of == 0 else set())


def test_only_a_plan_of_the_persons_chooses_whatever_else_is_named_beside_it() -> None:
    plan = committed({"id": {"$slot": {"of": 0, "only": True}}})
    first = listing(plan)
    beside = NamedValue("host", "ws-1")
    assert chosen(first, ["a"], {beside: "user", **plan}) == chosen(first, ["a"], plan)
    for by in ("user", "participants"):
        assert chosen(first, ["a"], dict.fromkeys(plan, by)) == frozenset()
        assert planned(POLICY.tools["list"], {}, dict.fromkeys(plan, by)) is None
    assert chosen(first, ["a"], {beside: PLAN}) == frozenset()


@pytest.mark.parametrize(
    ("slot", "because"),
    [
        ({"of": 0}, KEYS),
        ({"of": 0, "only": True, "largest": "/a"}, KEYS),
        ({"of": 0, "only": True, "more": 1}, KEYS),
        ({"of": 0, "only": "url", "at": "/a"}, KEYS),
        ({"only": True}, "of is the number of an earlier step"),
        ({"of": True, "only": True}, "of is the number of an earlier step"),
        ({"of": "0", "only": True}, "of is the number of an earlier step"),
        ({"of": -1, "only": True}, "of is the number of an earlier step"),
        ({"of": 0, "only": False}, "only is true, or a kind of value"),
        ({"of": 0, "only": 1}, "only is true, or a kind of value"),
        ({"of": 0, "only": ""}, "only is true, or a kind of value"),
        ({"of": 0, "holds": 5}, "holds is a text"),
        ({"of": 0, "starts_with": None}, "starts_with is a text"),
        ({"of": 0, "largest": 5}, "rows, at and take are JSON pointers"),
        ({"of": 0, "holds": "x", "at": 5}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "at": 5}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "rows": 5}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "rows": None}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "take": 5}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "take": None}, "rows, at and take are JSON pointers"),
        ({"of": 0, "only": True, "rows": "a"}, "a pointer is empty or starts with /"),
        ({"of": 0, "only": True, "take": "a"}, "a pointer is empty or starts with /"),
        ({"of": 0, "only": True, "take": "/*"}, "the pointers of a slot hold no *"),
        ({"of": 0, "only": True, "rows": "/*"}, "the pointers of a slot hold no *"),
        ({"of": 0, "holds": "x", "at": "/*"}, "the pointers of a slot hold no *"),
        ({"of": 0, "holds": ""}, "holds is not empty"),
        ({"of": 0, "starts_with": ""}, "starts_with is not empty"),
    ],
)
def test_a_slot_that_says_something_else_is_no_plan(slot: dict[str, Any], because: str) -> None:
    with pytest.raises(BadPlan) as refused:
        committed({"id": {"$slot": slot}})
    assert str(refused.value) == f"Step 1: {because}"


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["/id", "url", "\ud800"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
SLOTS = st.fixed_dictionaries(
    {"of": st.sampled_from([0, 0, 0, 1, None])},
    optional=dict.fromkeys(("rows", "at", "take"), JSON)
    | {"only": st.just(True) | JSON, "holds": JSON, "largest": JSON},
)


@settings(max_examples=40)
@given(JSON | st.fixed_dictionaries({"$slot": JSON}) | st.fixed_dictionaries({"$slot": SLOTS}))
def test_whatever_stands_in_a_plan_it_is_one_or_it_is_refused_with_its_step(value: Any) -> None:
    try:
        plan = committed({"id": value})
    except BadPlan as fault:
        refused = str(fault)
    else:
        refused = ""
        chosen(listing(plan), [{"id": "a"}], plan)
    assert refused == "" or refused.startswith("Step 1: ")


@pytest.mark.parametrize("tool", [5, None, ["list"], {"list": 1}, "", "lost"])
def test_a_step_of_no_tool_is_no_plan(tool: Any) -> None:
    with pytest.raises(BadPlan, match=r"Step 0: there is no such tool\."):
        read_plan([{"tool": tool, "args": {}}], POLICY)


def test_a_plan_has_so_many_steps_of_so_many_characters() -> None:
    step: dict[str, Any] = {"tool": "list", "args": {}}
    assert len(read_plan([step] * MAX_STEPS, POLICY)) == MAX_STEPS
    for too_many in ([step] * (MAX_STEPS + 1), []):
        with pytest.raises(BadPlan, match="one to 50 steps"):
            read_plan(too_many, POLICY)
    [short] = read_plan([{"tool": "list", "args": {"folder": ""}}], POLICY)
    room = MAX_STEP_CHARACTERS - len(short.text)
    [longest] = read_plan([{"tool": "list", "args": {"folder": "x" * room}}], POLICY)
    assert len(longest.text) == MAX_STEP_CHARACTERS
    with pytest.raises(BadPlan, match="at most 8000 characters"):
        read_plan([{"tool": "list", "args": {"folder": "x" * (room + 1)}}], POLICY)


@pytest.mark.parametrize(
    ("literal", "value", "is_step"),
    [
        (["Alpha.", "BETA"], ["alpha", "beta"], True),
        (["Alpha", "BETA"], ["beta", "alpha"], False),
        (["Alpha"], ["Alpha"], False),  # no call comes in that form
        (["Alpha", 5], ["alpha", 5], True),
        (["no host!", "b"], ["no host!", "b"], True),
        ([], [], True),
        (5, 5, True),
    ],
)
def test_a_list_of_literals_is_compared_in_the_form_in_which_a_call_is_judged(
    literal: Any, value: Any, is_step: bool
) -> None:
    plan = committed({"hosts": literal})
    assert (planned(POLICY.tools["delete"], {"hosts": value}, plan) is not None) is is_step


def test_a_call_that_the_choice_fits_passes_and_another_does_not() -> None:
    plan = committed({"id": {"$slot": {"of": 0, "rows": "/rows", "largest": "/size", "take": "/id"}}})
    plan |= dict.fromkeys(chosen(listing(plan), ROWS, plan), PLAN)
    assert isinstance(judged(plan, id="b").decision, Allow)
    for other in ("a", "B", "", "b "):
        assert not isinstance(judged(plan, id=other).decision, Allow)
