"""Answers that are shown while a model writes them: the beginning of the answer with the states of its sentences, taken
back where it was no part of the answer, and written anew after a repair."""

from __future__ import annotations

import anyio
import pytest

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.agent.model_analyst.composing import SENTENCES
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress, Sentence, Written
from sentinel_rag.contracts.ports import Question
from sentinel_rag_testing.scripted_model import calls_reply, json_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import Cut, Hang, Part, Reply, call_piece, chunk, completion, ending
from waiting import WAIT_S

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-14"), pytest.mark.requirement("GRND-1")]
ONE = calls_reply(("get_incident_detail", {"incident": "40"}))
MORE = calls_reply(("query_incidents", {}), first=7)
TRUE = "Incident 40 is High [c1.1]. It is New [c1.1]."


def words(text: str) -> tuple[Part, ...]:
    """`text` as a model streams it, a few characters at a time."""
    return tuple(chunk({"content": text[start : start + 5]}) for start in range(0, len(text), 5))


def written(text: str, *more: Part) -> Reply:
    """A whole answer, streamed."""
    return stream_reply(*words(text), *(more or ending()))


class Reader:
    """Who listens: the pieces as they came, and what was taken back. `saw` is set once `sees` says so."""

    def __init__(self, sees=lambda _: False) -> None:
        self.pieces: list[str] = []
        self.withdrawn: list[str] = []
        self.sentences: list[Sentence] = []
        self.written = Written()
        self.saw = anyio.Event()
        self.sees = sees

    def __call__(self, progress: Progress) -> None:
        if progress.withdrawn:
            self.withdrawn.append(self.written.text)
            self.sentences.clear()
        self.written.hear(progress)
        self.sentences += progress.sentences
        if progress.written:
            self.pieces.append(progress.written)
        if self.sees(self):
            self.saw.set()

    async def ask(self, at, question: str = "Tell me about incident 40") -> Answer:
        answer = await at.analyst.answer(Question(question, "session-1", progress=self))
        assert answer.text.startswith(self.written.text)
        assert [*answer.sentences[: len(self.sentences)]] == self.sentences, "places and states are the answer's"
        return answer

    async def ask_until_seen(self, at) -> None:
        """Ask, and leave as soon as it is seen what was waited for: the model never ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.ask, at)
            with anyio.fail_after(WAIT_S):
                await self.saw.wait()
            group.cancel_scope.cancel()


async def test_sentences_are_shown_with_their_states_while_the_model_still_writes(desk):
    text = "Incident 40 is High [c1.1]. It is Low [c1.1].\n\n- Phishing is common\n\nThe own"
    reader = Reader(lambda seen: len(seen.sentences) == 3)
    await reader.ask_until_seen(desk(ONE, written(text, Hang())))
    assert reader.written.text.startswith("Incident 40 is High. It is Low.\n\n- Phishing is common")
    assert [sentence.state for sentence in reader.sentences] == ["values_found", "contradicted", "own_words"]
    assert not reader.withdrawn


async def test_a_call_is_enough_to_take_back_and_its_arguments_need_not_have_come(desk):
    call = chunk({"tool_calls": [call_piece("query_incidents", "", call_id="c")]})
    reader = Reader(lambda seen: seen.withdrawn)
    await reader.ask_until_seen(desk(ONE, written(f"{TRUE} ", call, Hang())))
    assert reader.withdrawn == ["Incident 40 is High. It is New."]
    assert reader.written.text == ""


@pytest.mark.requirement("CHAT-19")
@pytest.mark.parametrize("correct", [True, False])
async def test_after_a_repair_the_answer_is_written_anew_and_the_repair_itself_is_never_shown(correct, desk):
    at = desk(
        ONE,
        written("Incident 40 is Low [c1.1]. It is New [c1.1]. So we look on."),
        written("1: Incident 40 is High [c1.1]." if correct else "I stand by it. Every word."),
    )
    reader = Reader()
    answer = await reader.ask(at)
    assert not any("1:" in piece or "stand by it" in piece for piece in reader.pieces)
    if correct:
        assert reader.withdrawn == ["Incident 40 is Low. It is New."]
        assert reader.written.text == answer.text
        assert answer.text.startswith("Incident 40 is High. It is New. So we look on.")
    else:
        assert not reader.withdrawn
        assert [sentence.state for sentence in answer.sentences] == ["contradicted", "values_found", "own_words"]


@pytest.mark.parametrize(
    ("first", "taken_back"),
    [
        (
            stream_reply(*words("I have read it. It is High [c1.1]. Let me look on"), *MORE.parts),
            "I have read it. It is High.",
        ),
        (written(f"{TRUE} And ", Cut()), "Incident 40 is High. It is New."),
    ],
    ids=["it asks on", "it breaks off"],
)
async def test_what_was_no_part_of_the_answer_is_taken_back(first, taken_back, desk):
    reader = Reader()
    answer = await reader.ask(desk(ONE, first, written("The severity is High [c1.1]. So it is.")))
    assert reader.withdrawn == [taken_back]
    assert answer.text.startswith("The severity is High. So it is.")
    assert reader.written.text == "The severity is High."
    assert answer.outcome is Outcome.ANSWERED


async def test_a_stream_that_breaks_off_for_good_leaves_the_failure_and_no_half_answer(desk):
    reader = Reader()
    answer = await reader.ask(desk(ONE, written(f"{TRUE} And ", Cut()), limits=TurnLimits(turn_s=60, retries=0)))
    assert reader.withdrawn == ["Incident 40 is High. It is New."]
    assert reader.written.text == answer.text
    assert answer.outcome is Outcome.TOOL_FAILED
    assert answer.text.startswith("The connection to the model broke before its answer ended.")
    assert "It is New" not in answer.text


async def test_facts_without_a_call_are_taken_back_when_the_model_looks_after_all(desk):
    reader = Reader()
    at = desk(written("Incident 40 is Low. It is open. So."), ONE, written(f"{TRUE} So."))
    answer = await reader.ask(at, "How bad is it?")
    assert reader.withdrawn == ["Incident 40 is Low. It is open."]
    assert answer.text.startswith("Incident 40 is High. It is New. So.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{TRUE} It was cre", "Incident 40 is High. It is New."),
        (f"<think>They must not read this. So. </think>{TRUE} Done", "Incident 40 is High. It is New."),
        (f"\n {TRUE} 5 < 6 and", "Incident 40 is High. It is New."),
        ("It is New [c1.1]. It ran `a. b` and `c. d", "It is New."),
        ("It is New [c1.1]. See [the page](https://a. b", "It is New."),
        ("| Number | Severity |\n|---|---|\n| 40 | High. So [c1.1]", "| Number | Severity |\n|---|---|\n"),
        ("Do.\n```kql\nSigninLogs. A\n```\nThat. Is", "Do.\n```kql\nSigninLogs. A\n```\nThat."),
        ("Do.\n```kql\nSigninLogs. A\n| take", "Do.\n"),
    ],
    ids=[
        "sentence",
        "reasoning",
        "blank and a sign",
        "code span",
        "link",
        "table",
        "block of code",
        "open block of code",
    ],
)
@pytest.mark.parametrize("step", [1, 5])
async def test_only_what_can_no_longer_change_is_shown_and_that_at_once(text, shown, step, desk):
    parts = (chunk({"content": text[start : start + step]}) for start in range(0, len(text), step))
    reader = Reader()
    answer = await reader.ask(desk(ONE, stream_reply(*parts, *ending("length"))))
    assert reader.written.text == shown
    assert not reader.withdrawn
    assert "must not" not in answer.text


async def test_a_call_that_is_written_as_text_is_not_shown(desk):
    reader = Reader()
    call = '<tool_call>{"name": "query_incidents", "arguments": {}}</tool_call>'
    await reader.ask(desk(written(call), written(f"{TRUE} Done.")))
    assert not any("tool_call" in piece for piece in reader.pieces)


async def test_a_server_that_does_not_stream_is_answered_in_one_piece(desk):
    text = "Incident 40 is High [c1.1]. Phishing is common. It is New [c1.1]."
    whole = await Reader().ask(desk(ONE, json_reply(completion({"content": text}))))
    assert whole.text == (await Reader().ask(desk(ONE, text_reply(text)))).text


async def test_the_sentence_of_used_up_rounds_opens_what_is_shown(desk):
    reader = Reader()
    await reader.ask(desk(MORE, written(f"{TRUE} So."), limits=TurnLimits(turn_s=60, rounds=1)))
    assert reader.pieces[0].startswith(f"{SENTENCES['out_of_rounds']}\n\nIncident 40")
    assert not reader.withdrawn
