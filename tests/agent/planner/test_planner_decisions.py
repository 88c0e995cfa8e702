"""What becomes of questions, in rows: the call with its arguments, or the reason for which they are asked back."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bench.bench_strangers import World
from tests.support.small_estate import NOW

from sentinel_rag.agent.planner import Decision, DecisionKind, Planner, StoredQueries, Talk, as_dict, as_lines
from sentinel_rag.agent.planner import decisions as table

ROWS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "decisions.toml").read_text(encoding="utf-8"))[
    "row"
]


@cache
def world() -> World:
    """The workspace with the shipped templates, made by the first test that asks."""
    return World({"templates": "shipped"})


def decided(row: dict[str, Any]) -> Decision:
    """The last sentence of a row, behind those before it."""
    talk = Talk()
    for before in row.get("after", ()):
        world().decide(before, talk)
    return world().decide(row["q"], talk)


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: " / ".join([*row.get("after", ()), row["q"]]))
def test_a_question_is_decided(row: dict[str, Any]) -> None:
    decision = decided(row)
    if "asks" in row:
        assert (decision.kind, decision.reason) == (DecisionKind.ASK, row["asks"]), decision
        assert decision.sentence
    elif "kind" in row:
        assert decision.kind == row["kind"]
    else:
        first = decision.calls[0]
        assert (first.tool, dict(first.arguments)) == (row["tool"], row.get("args", {}))


SHOWN = tomllib.loads((Path(__file__).parent / "shown.toml").read_text(encoding="utf-8"))


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(("q", "shown"), [pair for told in SHOWN.values() for pair in told.items()])
def test_what_is_asked_of_a_thing_is_shown(q: str, shown: str) -> None:
    decision = world().decide(q, Talk())
    assert "; ".join((str(decision.view), *decision.aspects)) == shown


def test_the_order_of_the_rows_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [decided(row).calls for row in ROWS]
    shuffled = list(table.rows())
    random.Random(7).shuffle(shuffled)
    again = tuple(sorted(shuffled, key=lambda row: -row.score))
    monkeypatch.setattr("sentinel_rag.agent.planner.planner.rows", lambda: again)
    assert [decided(row).calls for row in ROWS] == before


def test_a_stored_query_of_ones_own_is_found_by_its_questions() -> None:
    own = {
        "name": "badge_readers_by_door",
        "questions": ["Which doors were opened at night?", "Badge readers of host gate-01"],
        "description": "Openings of doors.",
        "parameters": [{"name": "host", "required": False}],
    }
    planner = Planner(StoredQueries([own], world().reader))
    decision = planner.decide(world().reader.read("which doors were opened yesterday at night"), NOW)
    assert decision.calls[0].arguments["template"] == "badge_readers_by_door"
    assert planner.decide(world().reader.read("which windows were opened"), NOW).kind is DecisionKind.ASK


def test_a_stored_query_of_another_shape_is_left_out() -> None:
    assert StoredQueries([{"name": 7}, {"name": "a", "parameters": "text"}], world().reader).entries == []


def test_what_was_read_is_told_for_people_and_for_programs() -> None:
    decision = decided({"q": "open incidents of yesterday that frobnicate"})
    told = as_dict("open incidents of yesterday that frobnicate", decision)
    assert told["unread"] == ["frobnicate"]
    assert {"text": "open", "as": ["status:Open", "op:list"]} in told["read"]
    assert (told["decision"], told["reason"], told["values"]) == ("ask", "unread", ["frobnicate"])
    assert any("unread     frobnicate" in line for line in as_lines("", decision))
