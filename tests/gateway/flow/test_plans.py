"""Plans: which calls are a step, what a slot may hold, and what no plan can be."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Label
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, LabelSource, facts_of, flow_record, judge
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, BadPlan, chosen, read_plan, used
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy("""
tools:
  - name: list
    effect: read
    parameters: [{name: folder, type: string}]
    taint_rules: [{rule_id: list_any, condition: "true", taint_level: LOW}]
  - name: delete
    effect: write
    parameters: [{name: id, type: string, required: true, format: host}, {name: why, type: string}]
    taint_rules: [{rule_id: delete_any, condition: "true", taint_level: LOW}]
""")
LARGEST = {"$slot": {"of": 0, "rows": "/result", "largest": "/size", "take": "/id"}}
ONLY = {"$slot": {"of": 0, "rows": "/result", "only": True, "take": "/id"}}
HOLDS = {"$slot": {"of": 0, "rows": "/result", "at": "/subject", "holds": "rent", "take": "/id"}}
INSIDE = {"$slot": {"of": 0, "rows": "/result", "only": "url"}}
IDS = ("a", "b", "c", "d", "External_0", "External_1", "http://a.example/x", "http://b.example/x")
FIRST_LETTERS = {"$slot": {"of": 0, "rows": "/result", "starts_with": "Ext"}}


def committed(*steps: tuple[str, dict[str, Any]]) -> dict[NamedValue, str]:
    return dict.fromkeys(read_plan([{"tool": tool, "args": args} for tool, args in steps], POLICY), PLAN)


def judged(named: dict[NamedValue, str], tool: str, **arguments: Any) -> Judgement:
    return judge(POLICY, POLICY.tools[tool], arguments, CallFacts(context=TOP, named=named))


def passes(named: dict[NamedValue, str], **arguments: Any) -> bool:
    return isinstance(judged(named, "delete", **arguments).decision, Allow)


def test_a_call_that_is_a_step_carries_what_the_person_committed_to() -> None:
    plan = committed(("delete", {"id": "Alpha", "why": "old"}))
    found = judged(plan, "delete", id="alpha", why="old")  # in the form in which the call is judged
    assert found.decision == Allow("delete_any", BOTTOM)
    assert [(entry.label, entry.source, entry.by) for entry in found.arguments] == [
        (BOTTOM, LabelSource.NAMED, PLAN)
    ] * 2
    assert found.step is not None
    assert not passes(plan, id="beta", why="old")
    assert not passes(plan, id="alpha", why="new")
    assert not passes(plan, id="alpha")


def test_a_step_passes_once_and_two_equal_ones_twice() -> None:
    plan = committed(("delete", {"id": "alpha"}), ("delete", {"id": "alpha"}))
    first = judged(plan, "delete", id="alpha")
    assert first.step is not None
    plan[used(first.step)] = PLAN
    second = judged(plan, "delete", id="alpha")
    assert second.step is not None
    assert second.step.number != first.step.number
    plan[used(second.step)] = PLAN
    assert not passes(plan, id="alpha")


def test_a_bare_slot_holds_anything_and_carries_the_context() -> None:
    plan = committed(("delete", {"id": {"$slot": {}}, "why": "old"}))
    found = judged(plan, "delete", id="any", why="old")
    assert [entry.label for entry in found.arguments] == [TOP, BOTTOM]
    assert [violation.parameter for violation in found.violations] == ["id"]


@pytest.mark.parametrize(
    ("slot", "rows", "picked"),
    [
        (LARGEST, [{"size": 3, "id": "a"}, {"size": 9, "id": "b"}, {"id": "c"}, {"size": True, "id": "d"}], ["b"]),
        (LARGEST, [{"size": 9, "id": "a"}, {"size": 9, "id": "b"}], []),
        (LARGEST, [], []),
        (LARGEST, {"size": 1, "id": "a"}, []),
        ({"$slot": {"of": 0, "smallest": "/size", "rows": "/result", "take": "/id"}}, [{"size": 3, "id": "a"}], ["a"]),
        (FIRST_LETTERS, ["general", "External_0"], ["External_0"]),
        (FIRST_LETTERS, ["External_1", "External_0"], []),
        (FIRST_LETTERS, ["general"], []),
        (ONLY, [{"id": "a"}], ["a"]),
        (ONLY, [{"id": "a"}, {"id": "b"}], []),
        (ONLY, [{"id": "a"}, {"name": "b"}], []),
        (HOLDS, [{"subject": "Rent of May", "id": "a"}, {"subject": "Car", "id": "b"}], ["a"]),
        (HOLDS, [{"subject": "RENT", "id": "a"}, {"subject": "rent again", "id": "b"}], []),
        (HOLDS, [{"subject": "parents", "id": "a"}], []),
        (INSIDE, "Look at http://a.example/x and call", ["http://a.example/x"]),
        (INSIDE, ["Look at http://a.example/x", {"again": "http://A.example/x."}], ["http://a.example/x"]),
        (INSIDE, "Look at http://a.example/x, not at http://b.example/x", []),
        (INSIDE, "Look at nothing", []),
    ],
)
def test_a_slot_that_chooses_holds_the_choice_and_nothing_else(slot: Any, rows: Any, picked: list[str]) -> None:
    plan = committed(("list", {"folder": "x"}), ("delete", {"id": slot}))
    step = judged(plan, "list", folder="x").step
    assert step is not None
    plan.update(dict.fromkeys(chosen(step, {"result": rows}, plan), PLAN))
    assert [each for each in IDS if passes(plan, id=each)] == picked


@pytest.mark.parametrize("beside", [{}, {"why": "old"}])
def test_a_record_is_enough_to_judge_again(beside: dict[str, str]) -> None:
    plan = committed(("list", {"folder": "x"}), ("delete", {"id": LARGEST, **beside}))
    step = judged(plan, "list", folder="x").step
    assert step is not None
    plan.update(dict.fromkeys(chosen(step, {"result": [{"size": 1, "id": "a"}]}, plan), PLAN))
    facts = CallFacts(context=TOP, named=plan)
    arguments = {"id": "a", **beside}
    first = judge(POLICY, POLICY.tools["delete"], arguments, facts)
    record = {"context_before": TOP.to_dict(), "flow": flow_record(first, facts, {})}
    assert isinstance(first.decision, Allow)
    assert judge(POLICY, POLICY.tools["delete"], arguments, facts_of(record)) == first


@pytest.mark.parametrize(
    ("hidden", "chooses"),
    [
        (("result", "0", "id"), False),
        (("result", "0", "size"), False),
        (("result", "0"), False),
        ((), False),
        (("result", "0", "id", "deeper"), False),
        (("result", "0", "other"), True),
        (("beside",), True),
    ],
)
def test_what_is_hidden_chooses_nothing(hidden: tuple[str, ...], chooses: bool) -> None:
    plan = committed(("list", {"folder": "x"}), ("delete", {"id": LARGEST}))
    step = judged(plan, "list", folder="x").step
    assert step is not None
    result = {"result": [{"size": 1, "id": "a"}]}
    assert bool(chosen(step, result, plan, [hidden])) is chooses


@pytest.mark.parametrize(
    ("steps", "because"),
    [
        ([], "A plan is a list of one to 50 steps."),
        ("delete", "A plan is a list of one to 50 steps."),
        ([{"tool": "delete"}], "Step 0: a step holds a tool and its args, and nothing else."),
        ([{"tool": "destroy", "args": {}}], "Step 0: there is no such tool."),
        ([{"tool": "delete", "args": {"it": 1}}], "Step 0: the tool has no such parameter; there are: id, why"),
        ([{"tool": "delete", "args": {"id": {"$slot": 1}}}], "Step 0: a slot is an object with the one key $slot"),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": 0}}}}],
            "Step 0: a slot that chooses has of, rows, at, take and one of largest, smallest, starts_with, holds, only",
        ),
        ([{"tool": "delete", "args": {"id": LARGEST}}], "Step 0: a slot chooses from an earlier step."),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": "x", "largest": "/a"}}}}],
            "Step 0: of is the number of an earlier step",
        ),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": 0, "largest": "size"}}}}],
            "Step 0: a pointer is empty or starts with /",
        ),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": 0, "largest": "/*/size"}}}}],
            "Step 0: the pointers of a slot hold no *",
        ),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": 0, "starts_with": ""}}}}],
            "Step 0: starts_with is not empty",
        ),
        (
            [{"tool": "list", "args": {}}, {"tool": "delete", "args": {"id": {"$slot": {"of": 0, "only": "mail"}}}}],
            "Step 1: only takes no such kind; did you mean 'email'?",
        ),
        (
            [{"tool": "list", "args": {}}, {"tool": "delete", "args": {"id": {"$slot": {"of": 0, "only": False}}}}],
            "Step 1: only is true, or a kind of value",
        ),
        (
            [{"tool": "delete", "args": {"id": {"$slot": {"of": 0, "only": "url", "take": "/id"}}}}],
            "Step 0: a slot that chooses has of, rows, at, take and one of largest, smallest, starts_with, holds, only",
        ),
        ([{"tool": "delete", "args": {"id": "x" * 9_000}}], "Step 0: a step has at most 8000 characters."),
    ],
)
def test_what_is_no_plan_is_refused_with_the_step(steps: Any, because: str) -> None:
    with pytest.raises(BadPlan) as refused:
        read_plan(steps, POLICY)
    assert str(refused.value) == because


def test_what_the_persons_words_name_stays_theirs_in_a_planned_call() -> None:
    policy = parse_policy("""
tools:
  - name: pick
    effect: read
    parameters: [{name: host, type: string, attest: host}]
    taint_rules: [{rule_id: pick_any, condition: "true", taint_level: LOW}]
""")
    steps = read_plan([{"tool": "pick", "args": {"host": "ws-01"}}], policy)
    plan = dict.fromkeys(steps, PLAN)
    both = {NamedValue("host", "ws-01"): "user", **plan}
    for named, by in ((both, "user"), (plan, PLAN)):
        found = judge(policy, policy.tools["pick"], {"host": "ws-01"}, CallFacts(context=TOP, named=named))
        assert found.arguments[0].by == by
        assert found.step is not None


def test_a_choice_is_the_persons_and_its_words_are_as_secret_and_as_strange_as_before() -> None:
    starts = {"$slot": {"of": 0, "rows": "/result", "starts_with": "Minutes"}}
    plan = committed(("list", {"folder": "x"}), ("delete", {"id": "alpha", "why": starts}))
    step = judged(plan, "list", folder="x").step
    assert step is not None
    for text, passing in (("Minutes of today", True), ("Minutes at https://evil.example/?q=", False)):
        session = {**plan, **dict.fromkeys(chosen(step, {"result": [text, "other"]}, plan), PLAN)}
        assert passes(session, id="alpha", why=text) is passing
        entry = judged(session, "delete", id="alpha", why=text).arguments[1]
        assert entry.label == Label(TOP.sensitivity)
        assert not entry.is_named


def test_what_is_hidden_holds_no_only_value() -> None:
    plan = committed(("list", {"folder": "x"}), ("delete", {"id": INSIDE}))
    step = judged(plan, "list", folder="x").step
    assert step is not None
    result = {"result": {"a": "http://a.example/x", "b": "nothing"}, "beside": 1}
    for hidden, chooses in ((("result", "b"), False), (("result",), False), ((), False), (("beside",), True)):
        assert bool(chosen(step, result, plan, [hidden])) is chooses
