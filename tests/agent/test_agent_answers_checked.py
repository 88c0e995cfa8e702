"""What the offline analyst writes passes the check of a model's answers: its values stand in what it cites."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.support.small_estate import NOW, small_estate

from cited_sentences import doubts
from law_examples import IN_FULL
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer, SentenceState
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.tool_calls import Denied, Reason, ToolCall

pytestmark = pytest.mark.anyio

QUESTIONS = sorted((Path(__file__).resolve().parents[2] / "bench" / "questions").glob("*.yaml"))
ZONE = "Europe/Berlin"
WAITS = Denied(ToolCall("", "", ""), Reason.APPROVAL_REQUIRED, "Denied.", "r", approval_id="3f2c9a10")


def dialogues(file: Path) -> list[list[str]]:
    """What is asked in each dialogue of a file; single questions are asked three in a row."""
    held = yaml.safe_load(file.read_text())
    if "dialogues" in held:
        return [[str(turn["say"]) for turn in each["turns"]] for each in held["dialogues"]]
    asked = [str(item["q"]) for item in held["questions"]]
    return [asked[place : place + 3] for place in range(0, len(asked), 3)]


async def dialogue(questions: list[str]) -> list[tuple[str, Answer]]:
    analyst = OfflineAnalyst(
        small_estate(update_incident=WAITS, add_incident_comment=WAITS), clock=lambda: NOW, timezone=ZONE
    )
    return [(question, await analyst.answer(Question(question, "s"))) for question in questions]


@pytest.mark.requirement("GRND-4")
@pytest.mark.parametrize("file", QUESTIONS, ids=lambda file: file.stem)
async def test_every_sentence_is_found_in_what_it_cites(file: Path) -> None:
    for asked in dialogues(file)[:: 1 if IN_FULL else 4]:  # `make laws` asks them all
        results: list[object] = []
        for question, answer in await dialogue(asked):
            results += answer.results
            if answer.results:  # an answer that asked for nothing states nothing of the workspace
                assert not doubts(answer.sentences, results, timezone=ZONE, said=asked), question


@pytest.mark.requirement("GRND-2")
@pytest.mark.parametrize("file", QUESTIONS[:2], ids=lambda file: file.stem)
async def test_sentences_have_the_places_and_the_values_that_they_say(file: Path) -> None:
    for _, answer in [each for asked in dialogues(file) for each in await dialogue(asked)]:
        for sentence in answer.sentences:
            assert answer.text[sentence.start : sentence.end] == sentence.text
            assert all(sentence.start <= mark.start < mark.end <= sentence.end for mark in sentence.marks)
            assert bool(sentence.citations) == (sentence.state is not SentenceState.OWN_WORDS)
            assert all(mark.found for mark in sentence.marks)
        shown = {answer.text[mark.start : mark.end] for sentence in answer.sentences for mark in sentence.marks}
        assert shown <= {piece.text for piece in answer.evidence}
