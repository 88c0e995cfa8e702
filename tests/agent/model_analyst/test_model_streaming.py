"""Answers that are shown while a model writes them: each sentence after its own check, taken back where it was no part
of the answer, and never another text than the answer's."""

from __future__ import annotations

import anyio
import pytest

from sentinel_rag.agent.model_analyst import TurnLimits
from sentinel_rag.contracts.evidence import REMOVED, Outcome, Progress, Written
from sentinel_rag.testing.scripted_gateway import rows_result
from sentinel_rag.testing.scripted_model import calls_reply, json_reply, stream_reply, text_reply
from sentinel_rag.testing.scripted_model.replies import Cut, Hang, Part, call_piece, chunk, completion, ending
from sentinel_rag.testing.small_estate import NOW, small_estate

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-14"), pytest.mark.requirement("GRND-1")]
ONE = calls_reply(("get_incident_detail", {"incident": "40"}))
MORE = calls_reply(("query_incidents", {}), first=7)


def words(text: str) -> tuple[Part, ...]:
    """`text` as a model streams it, a few characters at a time."""
    return tuple(chunk({"content": text[start : start + 5]}) for start in range(0, len(text), 5))


class Reader:
    """Who listens: the pieces as they came, and where they were taken back."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.withdrawn: list[str] = []
        self.written = Written()
        self.saw: anyio.Event | None = None
        self.waits_for = ""

    def __call__(self, progress: Progress) -> None:
        if progress.withdrawn:
            self.withdrawn.append(self.written.text)
        self.written.hear(progress)
        if progress.written:
            self.pieces.append(progress.written)
            if self.saw is not None and self.waits_for in self.written.text:
                self.saw.set()


async def ask(at, reader: Reader, question: str = "Tell me about incident 40"):
    return await at.analyst.answer(question, session_id="session-1", progress=reader)


async def test_a_sentence_is_shown_while_the_model_still_writes(desk):
    at = desk(ONE, stream_reply(*words("Incident 40 is High. It has the status New. The own"), Hang()))
    reader = Reader()
    reader.saw, reader.waits_for = anyio.Event(), "status New."
    async with anyio.create_task_group() as group:
        group.start_soon(ask, at, reader)
        with anyio.fail_after(60):
            await reader.saw.wait()
        group.cancel_scope.cancel()  # the model has not finished, and never does
    assert reader.pieces == ["Incident 40 is High.", " It has the status New."]


async def test_nothing_that_no_result_holds_is_shown_at_any_time(desk):
    text = (
        "Incident 40 is Low. Incident 4711 was opened by 198.51.100.23 on fin-db-09. I closed it for you. "
        "Its severity is High.\n\n- **Severity:** High\n- **Host:** evil-host-9\n\nThat is what there is."
    )
    at = desk(ONE, stream_reply(*words(text), *ending()))
    reader = Reader()
    answer = await ask(at, reader)
    assert len(reader.pieces) >= 4
    assert not reader.withdrawn
    for invented in ("4711", "198.51", "fin-db-09", "closed it", "evil-host-9", "is Low."):
        assert not any(invented in piece for piece in reader.pieces), invented
    assert REMOVED in reader.written.text
    assert "(corrected)" in reader.written.text
    assert answer.text.startswith(reader.written.text)
    assert "Left out of the model's words, because no result supports them: 4 sentences or cells." in answer.footnote


async def test_a_table_comes_as_one_once_it_is_whole(desk):
    table = "| Incident | Severity |\n|---|---|\n| 40 | High |\n| 40 | Low |"
    at = desk(ONE, stream_reply(*words(f"This is what I read:\n\n{table}\n\nNothing else was looked at."), *ending()))
    reader = Reader()
    answer = await ask(at, reader)
    [shown] = [piece for piece in reader.pieces if "|" in piece]
    assert shown.strip().count("\n") == 3
    assert "| 40 | Low |" not in shown
    assert answer.text.startswith(reader.written.text)


async def test_what_a_model_says_before_it_asks_on_is_taken_back(desk):
    said = words("I have read incident 40. Its severity is High. Let me look at the others. ")
    more = stream_reply(*said, *MORE.parts)
    at = desk(ONE, more, text_reply("Incident 40 is High. It is New."))
    reader = Reader()
    answer = await ask(at, reader)
    [taken_back] = reader.withdrawn
    assert taken_back.endswith("Its severity is High.")
    assert "Let me look" not in answer.text
    assert answer.text.startswith(reader.written.text)
    assert reader.written.text == "Incident 40 is High."


async def test_a_call_is_enough_to_take_back_and_its_arguments_need_not_have_come(desk):
    parts = (
        *words("Its severity is High. It is New. "),
        chunk({"tool_calls": [call_piece("query_incidents", "", call_id="c")]}),
        Hang(),
    )
    at = desk(ONE, stream_reply(*parts))
    reader = Reader()
    saw = anyio.Event()

    def listen(progress: Progress) -> None:
        reader(progress)
        if progress.withdrawn:
            saw.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: at.analyst.answer("incident 40?", session_id="session-1", progress=listen))
        with anyio.fail_after(60):
            await saw.wait()
        group.cancel_scope.cancel()
    assert reader.written.text == ""


async def test_a_stream_that_breaks_off_is_taken_back_and_asked_for_again(desk):
    broken = stream_reply(*words("Incident 40 is High. It is New. And "), Cut())
    at = desk(ONE, broken, text_reply("The severity of incident 40 is High. It is New."))
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.withdrawn == ["Incident 40 is High. It is New."]
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("The severity of incident 40 is High. It is New.")
    assert answer.text.startswith(reader.written.text)


async def test_a_stream_that_breaks_off_for_good_leaves_the_failure_and_no_half_answer(desk):
    broken = stream_reply(*words("Incident 40 is High. It is New. And "), Cut())
    at = desk(ONE, broken, limits=TurnLimits(turn_s=60, retries=0))
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.withdrawn == ["Incident 40 is High. It is New."]
    assert reader.written.text == ""
    assert answer.outcome is Outcome.TOOL_FAILED
    assert answer.text.startswith("The connection to the model broke before its answer ended.")
    assert "It is New" not in answer.text


async def test_an_answer_that_is_cut_at_its_length_keeps_what_was_shown(desk):
    at = desk(ONE, stream_reply(*words("Incident 40 is High. It is New. It was cre"), *ending("length")))
    reader = Reader()
    answer = await ask(at, reader)
    assert not reader.withdrawn
    assert reader.written.text == "Incident 40 is High. It is New."
    assert answer.text.startswith("Incident 40 is High. It is New.")


async def test_a_server_that_does_not_stream_is_answered_in_one_piece(desk):
    text = "Incident 40 is High. Incident 4711 is Low. It is New."
    streamed = desk(ONE, text_reply(text))
    whole = desk(ONE, json_reply(completion({"content": text})))
    reader = Reader()
    answer = await ask(whole, reader)
    assert answer.text == (await ask(streamed, Reader())).text
    assert answer.text.startswith(reader.written.text)
    assert "4711" not in answer.text


async def test_facts_without_a_call_are_never_shown_while_they_come(desk):
    at = desk(
        text_reply("Incident 40 is High. It is New. It is open."), ONE, text_reply("Incident 40 is High. So it is.")
    )
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.pieces == ["Incident 40 is High."]
    assert not reader.withdrawn
    assert answer.text.startswith("Incident 40 is High.")


async def test_no_word_of_the_model_is_shown_where_the_calls_found_nothing(desk):
    gateway = small_estate(lambda: NOW)
    gateway.answers["query_incidents"] = rows_result([], table_rows=120, newest=NOW)
    at = desk(MORE, text_reply("There was a breach. It began in May. All is lost."), gateway=gateway)
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.pieces == []
    assert answer.outcome is Outcome.NO_DATA


async def test_a_count_of_what_is_listed_further_on_waits_for_the_list(desk):
    text = "These are 2 hosts to look at. The next lines name them.\n\n- ws-14\n- ws-15\n\nThat is all. So it is."
    at = desk(ONE, stream_reply(*words(text), *ending()))
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.pieces == []
    assert answer.text.startswith(reader.written.text)


async def test_the_sentence_of_used_up_rounds_opens_what_is_shown(desk):
    at = desk(MORE, text_reply("Incident 40 is High. It is New."), limits=TurnLimits(turn_s=60, rounds=1))
    reader = Reader()
    answer = await ask(at, reader)
    assert reader.pieces[0].startswith("Reached maximum tool rounds. Here's what I found so far.\n\nIncident 40")
    assert answer.text.startswith(reader.written.text)


async def test_reasoning_in_the_text_is_not_shown(desk):
    text = "<think>Incident 40 is High. They must not read this. </think>Incident 40 is High. It is New. Done."
    at = desk(ONE, stream_reply(*words(text), *ending()))
    reader = Reader()
    answer = await ask(at, reader)
    assert "must not read" not in "".join(reader.pieces)
    assert answer.text.startswith(reader.written.text)
