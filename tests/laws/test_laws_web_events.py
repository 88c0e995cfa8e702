"""Laws of how an answer becomes events: nothing is lost, no word is cut in two, and a reader may stop anywhere."""

from __future__ import annotations

import json

import anyio
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from tests.support.web_client import parse_events

from sentinel_rag.contracts.handles import fill_in, handles_in, placeholder
from sentinel_rag.surfaces.web.turns import Event, LiveTurn
from sentinel_rag.surfaces.web.turns.events import answer_events, pieces

PARTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            *(". ", "! ", "? ", "\n", "\n\n", " ", "3.5 ", "e.g. x", "⟦", "⟧"),
            *("⟦r1#/rows/0/Command. Line⟧", "⟦r12#/a b/1⟧"),
            *("\r\n", "data: x\n\n", "event: done\nid: 9\n", "\u2028", "\x00"),
        ]
    ),
)
TEXTS = st.lists(PARTS, max_size=12).map("".join)


@given(text=TEXTS)
@settings(max_examples=100, deadline=None)
def test_the_pieces_of_a_text_are_the_text_and_cut_no_handle(text: str) -> None:
    found = list(pieces(text))
    assert "".join(found) == text
    assert all(found)
    for handle in handles_in(text):
        assert any(placeholder(handle) in piece for piece in found)
    # So a hidden value is drawn in the pieces exactly where it would be in the whole.
    values = dict.fromkeys(handles_in(text), "hidden")
    assert "".join(fill_in(found, values)) == fill_in(text, values)


@given(text=TEXTS, elapsed=st.floats(0, 100))
@settings(max_examples=100, deadline=None)
def test_an_event_is_read_as_it_was_told_whatever_its_texts_are(text: str, elapsed: float) -> None:
    event = Event("status", {"text": text, "elapsed_s": elapsed})
    clean = json.loads(json.dumps({"text": text}).encode("utf-8", "replace"))
    [read] = parse_events(event.encoded(7))
    assert (read["id"], read["type"], read["data"]["elapsed_s"]) == (7, "status", elapsed)
    assert read["data"]["text"] == clean["text"].encode("utf-8", "replace").decode()


@given(text=TEXTS, after=st.integers(0, 40))
@settings(max_examples=60, deadline=None)
@pytest.mark.requirement("CHAT-14")
def test_whoever_resumes_anywhere_reads_the_rest_and_nothing_twice(text: str, after: int) -> None:
    answer = {
        "answer": text,
        "tables": [{"title": "", "columns": ["a"], "rows": [["1"]]}],
        "evidence": [{"text": "a"}],
        "outcome": "answered",
        "session_id": "s",
        "footnote": [],
        "suggestions": [],
        "duration_ms": 1.0,
        "model": None,
    }

    async def read() -> tuple[list[int], int]:
        turn = LiveTurn("t", "u", "s", None)
        turn.tell(*answer_events(answer, "t"))
        assert turn.ended
        rest = [numbered[0] async for numbered in turn.follow(after, idle_s=60) if numbered is not None]
        return rest, len(turn.events)

    rest, told = anyio.run(read)
    assert rest == list(range(after + 1, told + 1))


@pytest.mark.anyio
async def test_progress_beyond_the_bound_is_left_out_and_an_answer_never() -> None:
    turn = LiveTurn("t", "u", "s", None)
    for _ in range(1_000):
        turn.tell(Event("status", {"text": "x", "elapsed_s": 0.0}))
    kept = len(turn.events)
    assert kept < 500
    turn.tell(*(Event("text", {"text": "y"}) for _ in range(1_000)), Event("done", {}))
    assert len(turn.events) == kept + 1_001
    assert turn.ended


@pytest.mark.anyio
async def test_a_reader_hears_that_nothing_comes_and_then_what_comes() -> None:
    turn = LiveTurn("t", "u", "s", None)
    heard = []
    async for numbered in turn.follow(0, idle_s=0.001):
        heard.append(numbered)
        if numbered is None and not turn.ended:
            turn.tell(Event("done", {}))
    assert heard == [None, (1, Event("done", {}))]
