"""Sets of questions that were seen stay as right as they are; what is first sight is told by `bench strangers`."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from bench.bench_strangers import World, measure

from sentinel_rag.agent.planner import DecisionKind, Talk, Unclear

SETS = Path(__file__).parents[3] / "bench" / "questions"
FLOORS = {
    "development": 0.98,
    "heldout": 0.99,
    "heldout_final": 0.98,
    "heldout_hunting": 1.0,
    "heldout_late": 1.0,
    "heldout_manager": 0.97,
    "heldout_round2": 0.98,
    "heldout_round2_final": 1.0,
    "strangers_german": 1.0,
    "triage": 1.0,
}


@pytest.mark.requirement("AGENT-1")
@pytest.mark.parametrize(("name", "floor"), FLOORS.items())
def test_a_set_that_was_seen_stays_right(name: str, floor: float) -> None:
    figures = measure(SETS / f"{name}.yaml", analyst=False, verbose=False)
    assert figures["right"] >= floor
    assert figures["confidently_wrong"] <= 0.02


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize(
    "name", ["strangers/dialogues_1", "strangers/dialogues_2", "strangers/dialogues_3", "follow_ups"]
)
def test_a_conversation_that_was_seen_is_bound_right(name: str) -> None:
    figures = measure(SETS / f"{name}.yaml", analyst=False, verbose=False)
    assert figures["wrong"] == 0
    assert figures["right"] >= 0.98


BOUND = {
    "dialogues_4": (0.8, 0.0), "dialogues_5": (0.78, 0.02), "dialogues_6": (0.9, 0.0), "dialogues_7": (0.75, 0.034),
    "dialogues_8": (0.9, 0.0), "dialogues_9": (0.98, 0.0), "dialogues_10": (0.85, 0.0),
    "dialogues_11": (0.93, 0.017), "dialogues_12": (0.9, 0.0), "dialogues_13": (0.88, 0.067),
}  # fmt: skip
"""The share that is bound right and the share that is bound wrong, of sets that were first met by an earlier reader."""


@pytest.mark.requirement("CHAT-6")
@pytest.mark.parametrize("name", BOUND)
def test_a_follow_up_is_bound_right_or_asked_back(name: str) -> None:
    right, wrong = BOUND[name]
    figures = measure(SETS / "strangers" / f"{name}.yaml", analyst=False, verbose=False)
    assert figures["right"] >= right
    assert figures["wrong"] <= wrong


@pytest.mark.parametrize("name", ["strangers_3", "strangers_16", "strangers_17", "strangers_es2"])
def test_nothing_is_offered_that_another_question_back_follows(name: str) -> None:
    document = yaml.safe_load((SETS / "strangers" / f"{name}.yaml").read_text())
    world, ended = World(document), []
    for item in document["questions"]:
        talk = Talk()
        for before in item.get("after", ()):
            world.decide(before, talk)
        for option in world.decide(item["q"], talk).options:
            picked = deepcopy(talk).pick(world.planner, world.reader.read(str(option.number)), world.now)
            if picked is not None and picked.kind is DecisionKind.ASK and picked.reason in REFUSALS:
                ended.append((item["q"], option.text, picked.sentence))
    assert ended == []


REFUSALS = (Unclear.NO_STORED_QUERY, Unclear.NO_SUCH_QUERY, Unclear.NOT_TAKEN, Unclear.NOT_EXPRESSIBLE)
