"""Labels that rows tell, and readers that a tool is told, on their way through the gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_gate import KEY, Clock, Server, SmallGate, opened, small_gate

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted, OutcomeLost
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.upstream import Returned

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TAINT-6")]

POLICY = """
tools:
  - name: find
    server: knowledge
    effect: read
    row_labels: /found/hits
    sends_readers: true
    parameters: [{name: query, type: string}]
    output_labels: [{path: "", sensitivity: LOW, integrity: TRUSTED}]
    taint_rules: [{rule_id: find_any, condition: "true", taint_level: LOW}]
  - name: find_hidden
    server: knowledge
    effect: read
    row_labels: /found/hits
    parameters: [{name: query, type: string}]
    output_labels: [{path: "", sensitivity: LOW, integrity: TRUSTED}]
    exposure: [{path: /found/hits/*/text, mode: hide}]
    taint_rules: [{rule_id: find_hidden_any, condition: "true", taint_level: LOW}]
  - name: find_none
    server: knowledge
    effect: read
    row_labels: /found/hits
    parameters: [{name: query, type: string}]
    output_labels: [{path: "", sensitivity: LOW, integrity: TRUSTED}]
    exposure: [{path: /found, mode: hide}]
    taint_rules: [{rule_id: find_none_any, condition: "true", taint_level: LOW}]
  - name: plain
    server: knowledge
    effect: read
    parameters: [{name: query, type: string}]
    output_labels: [{path: "", sensitivity: LOW, integrity: TRUSTED}]
    taint_rules: [{rule_id: plain_any, condition: "true", taint_level: LOW}]
  - name: take_in
    server: knowledge
    effect: write
    row_labels: /found/hits
    parameters: [{name: query, type: string}]
    output_labels: [{path: "", sensitivity: LOW, integrity: TRUSTED}]
    taint_rules: [{rule_id: take_in_any, condition: "true", taint_level: LOW}]
  - name: comment
    server: knowledge
    effect: write
    parameters: [{name: message, type: string, accepts: {sensitivity: MEDIUM, integrity: UNTRUSTED}}]
    taint_rules: [{rule_id: comment_any, condition: "true", taint_level: LOW}]
"""

CLEAN = BOTTOM
STRANGE = Label(Sensitivity.LOW, Integrity.UNTRUSTED)
"""What any result that is shown carries at least."""
MEDIUM = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)
HIGH = Label(Sensitivity.HIGH, Integrity.TRUSTED)


def hits(*labels: Label | None, told: Any = ..., value: Any = ...) -> Returned:
    """A result with a hit for each label, told as they are unless `told` says otherwise."""
    rows = [{"text": f"text {place}", "name": f"n{place}"} for place in range(len(labels))]
    found = {"found": {"hits": rows, "total": len(rows)}} if value is ... else value
    return Returned(json.dumps(found).encode(), found, None, tuple(labels) if told is ... else told)


@pytest.fixture(scope="session")
def row_policy() -> Policy:
    return parse_policy(POLICY)


@pytest.fixture
def rows(state: State, row_policy: Policy, clock: Clock) -> SmallGate:
    return small_gate(state, row_policy, clock=clock, readers={KEY: frozenset({"tier1"}), "ana": frozenset({"hr"})})


async def test_the_context_rises_by_the_labels_of_the_rows_that_came(rows: SmallGate) -> None:
    for label, context in ((CLEAN, STRANGE), (MEDIUM, MEDIUM), (HIGH, TOP)):
        rows.server.answers["find"] = hits(CLEAN, label)
        outcome = await rows.call("find", {"query": "x"})
        assert isinstance(outcome, Completed)
        assert json.loads(outcome.encoded)["found"]["total"] == 2
        assert await rows.context() == context
    raised = await rows.records("context_raised")
    assert [record["context_after"] for record in raised] == [MEDIUM.to_dict(), TOP.to_dict()]
    assert [record["tool"] for record in raised] == ["find", "find"]


async def test_it_rises_before_the_rows_are_told_and_what_comes_after_is_judged_by_it(rows: SmallGate) -> None:
    rows.server.answers["find"] = hits(HIGH)
    assert isinstance(await rows.call("comment", {"message": "before"}), Completed)
    await rows.call("find")
    kinds = [record["kind"] for record in await rows.records("intent", "context_raised", "outcome")]
    assert kinds[2:] == ["intent", "context_raised", "outcome"]
    denied = await rows.call("comment", {"message": "after"})
    assert isinstance(denied, DeniedCall)
    assert denied.deny.reason is Reason.SINK_LABEL
    assert [call["tool"] for call in rows.server.calls] == ["comment", "find"]


async def test_no_label_of_a_row_lowers_what_the_policy_says(state: State, clock: Clock) -> None:
    stricter = parse_policy(
        POLICY.replace("taint_level: LOW", "taint_level: MEDIUM").replace("TRUSTED}]", "UNTRUSTED}]")
    )
    rows = small_gate(state, stricter, clock=clock)
    rows.server.answers["find"] = hits(CLEAN, CLEAN)
    await rows.call("find")
    assert await rows.context() == MEDIUM
    assert await rows.records("context_raised") == []


@pytest.mark.parametrize(
    "reply",
    [
        hits(CLEAN, told=None),
        hits(CLEAN, CLEAN, told=(CLEAN,)),
        hits(CLEAN, told=(CLEAN, CLEAN)),
        hits(told=(), value={"found": {}}),
        hits(told=(), value={"found": {"hits": {}}}),
        hits(told=(), value={"hits": []}),
        hits(told=(), value=[]),
        hits(told=(), value=None),
        hits(told=(), value={"found": {"hits": []}, "_mcp_content": [{"type": "image"}]}),
    ],
)
async def test_what_is_not_one_label_for_each_row_counts_as_the_worst(rows: SmallGate, reply: Returned) -> None:
    rows.server.answers["find"] = reply
    assert isinstance(await rows.call("find"), Completed)
    assert await rows.context() == TOP


async def test_no_rows_and_no_labels_are_no_fault(rows: SmallGate) -> None:
    rows.server.answers["find"] = hits()
    await rows.call("find")
    assert await rows.context() == STRANGE


async def test_labels_are_not_listened_to_where_the_policy_does_not_say_so(rows: SmallGate) -> None:
    rows.server.answers["plain"] = hits(HIGH)
    await rows.call("plain")
    assert await rows.context() == STRANGE


@pytest.mark.requirement("TAINT-3")
async def test_a_hidden_part_carries_its_own_rows_label_and_no_other(rows: SmallGate) -> None:
    rows.server.answers["find_hidden"] = hits(STRANGE, CLEAN)
    outcome = await rows.call("find_hidden")
    assert isinstance(outcome, Completed)
    handles = [hit["text"] for hit in json.loads(outcome.encoded)["found"]["hits"]]
    assert handles == [{"$ref": "r1#/found/hits/0/text"}, {"$ref": "r1#/found/hits/1/text"}]
    assert await rows.context() == STRANGE  # the name beside the hidden text was shown
    rows.server.answers["find_none"] = hits(HIGH, CLEAN)
    outcome = await rows.call("find_none")
    assert isinstance(outcome, Completed)
    assert await rows.context() == STRANGE  # nothing of the rows was shown
    whole = json.loads(outcome.encoded)["found"]
    denied = await rows.call("comment", {"message": whole})
    assert isinstance(denied, NotCompleted | DeniedCall)
    assert await rows.context() == TOP


@pytest.mark.requirement("GATE-4")
@pytest.mark.parametrize(("tool", "said"), [("take_in", OutcomeLost), ("find", UnavailableError)])
async def test_a_write_that_ran_never_looks_as_if_it_had_not(
    rows: SmallGate, tool: str, said: type[UnavailableError]
) -> None:
    """The journal goes away while the tool runs, and the rise for the rows is the first record that cannot be
    written; whoever is told "nothing passes" would send the call again."""

    async def loses_the_journal() -> Returned:
        rows.state.database.close()
        return hits(HIGH)

    rows.server.answers[tool] = loses_the_journal
    with pytest.raises(UnavailableError) as lost:
        await rows.call(tool, {"query": "x"})
    assert type(lost.value) is said
    assert len(rows.server.calls) == 1


async def test_a_session_that_was_closed_meanwhile_is_told_nothing(
    rows: SmallGate, state: State, tmp_path: Path
) -> None:
    beside = opened(tmp_path / "state")

    async def close_then_answer() -> Returned:
        await beside.sessions.close("s1", KEY)
        return hits(HIGH)

    rows.server.answers["find"] = close_then_answer
    outcome = await rows.call("find")
    beside.close()
    assert isinstance(outcome, NotCompleted)
    assert (outcome.reason, outcome.detail) == (Reason.CONFLICT, "This session is closed.")
    (record,) = await rows.records("outcome")
    assert (record["status"], record["reason"]) == ("error", "conflict")


async def test_a_label_that_another_gateway_raised_meanwhile_does_not_stop_the_rise(
    rows: SmallGate, state: State, row_policy: Policy, tmp_path: Path
) -> None:
    with opened(tmp_path / "state") as other:
        beside = small_gate(other, row_policy, server=Server(answers={"find": hits(STRANGE)}))

        async def raise_then_answer() -> Returned:
            await beside.call("find")
            return hits(HIGH)

        rows.server.answers["find"] = raise_then_answer
        assert isinstance(await rows.call("find"), Completed)
        assert await rows.context() == TOP
        assert len(rows.server.calls) == 1


@pytest.mark.requirement("KNOW-4")
async def test_the_agents_own_session_reads_as_its_key_and_it_is_on_record(rows: SmallGate) -> None:
    rows.server.answers["find"] = hits()
    await rows.call("find")
    assert rows.server.calls[0]["readers"] == frozenset({"tier1"})
    await rows.call("find", key="unknown", session="s2")
    assert rows.server.calls[1]["readers"] == frozenset()
    assert [record["readers"] for record in await rows.records("intent")] == [["tier1"], []]


@pytest.mark.requirement("KNOW-4")
async def test_a_persons_session_reads_as_that_person_and_not_as_the_agent(rows: SmallGate, state: State) -> None:
    rows.server.answers["find"] = hits()
    session = await state.sessions.open(KEY, user_key_id="ana")
    await rows.call("find", session=session.session_id)
    assert rows.server.calls[0]["readers"] == frozenset({"hr"})
    (record,) = await rows.records("intent")
    assert record["readers"] == ["hr"]


@pytest.mark.requirement("KNOW-4")
async def test_a_tool_whose_policy_does_not_say_so_is_told_no_readers(rows: SmallGate) -> None:
    await rows.call("plain")
    assert "readers" not in rows.server.calls[0]
    (record,) = await rows.records("intent")
    assert "readers" not in record
