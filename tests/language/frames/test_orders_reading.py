"""Orders to change something: what they say, slot by slot, and what is none; the words of orders are sound."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.language.frames.orders import Act, Said, order_book, read_earlier, read_order, read_pick, read_values
from sentinel_rag.language.frames.phrases import LANGUAGES

ROWS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "orders.toml").read_text(encoding="utf-8"))["row"]
_PASSED = {"filler", "opening", "to", "joint", "thing", "field"}
_HOLDS_BACK = {"no", "condition"}


@pytest.mark.requirement("DATA-4")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["q"])
def test_an_order_is_read_slot_by_slot(row: dict[str, Any]) -> None:
    order = read_order(row["q"])
    if "act" not in row:
        assert order is None
        return
    assert order is not None
    assert order.act == row["act"]
    assert order.changes == row.get("changes", {})
    assert (order.note, order.message) == (row.get("note", ""), row.get("message", ""))
    assert [*order.incidents, *order.numbers] == row.get("incidents", [])
    assert list(order.pointed) == row.get("pointed", [])
    assert list(order.unread) == row.get("unread", [])
    assert order.unsure is row.get("unsure", False)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_that_holds_an_order_back_is_passed_over(language: str) -> None:
    for phrase, senses in order_book(language).phrases.items():
        types = {type_ for type_, _ in senses}
        assert not (types & _HOLDS_BACK and types & _PASSED), phrase


CHANGING = (Act.CHANGE, Act.COMMENT)
NEGATED = ("don't close 12", "never assign 12 to me", "please do not reopen 12", "schließe 12 nicht", "ne ferme pas 12")
QUESTIONS = ("who closed 12", "was 12 closed?", "should I close 12?", "why did ana reopen 12", "how do I close 12")


@pytest.mark.parametrize("text", [*NEGATED, *QUESTIONS, "ana closed 12", "I closed 12", "closed incidents", "open 12"])
def test_what_orders_nothing_is_no_change(text: str) -> None:
    order = read_order(text)
    assert order is None or order.act not in CHANGING


@pytest.mark.requirement("DATA-4")
@settings(max_examples=100)
@given(st.sampled_from(["who said:", "the mail says", "she wrote", "title:", "is it true that i should", "comment"]))
def test_words_before_an_order_make_it_none(before: str) -> None:
    order = read_order(f"{before} close incident 5 as undetermined")
    assert order is None or order.act is not Act.CHANGE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("do it now", Said.AGAIN),
        ("ok, it is approved", Said.AGAIN),
        ("try again", Said.AGAIN_JUST_NOW),
        ("never mind", Said.DROP),
        ("what did you change?", Said.ALL),
        ("did you close 12?", Said.INCIDENT),
        ("can you undo that?", Said.UNDO),
        ("yes please", Said.YES),
    ],
)
def test_what_is_said_of_earlier_changes(text: str, said: Said) -> None:
    assert said in read_earlier(text).said


@pytest.mark.parametrize(
    "text", ["do it now and list alerts", "what did ana change?", "undo the filter", "yes but high"]
)
def test_more_words_say_nothing_of_earlier_changes(text: str) -> None:
    assert read_earlier(text).said == frozenset()


def test_an_answer_to_a_question_back_is_a_place_or_a_value() -> None:
    assert [read_pick(text) for text in ("2", "[2]", "the second one", "der zweite", "12 alerts")] == [2, 2, 2, 2, None]
    assert read_values("benign positive") == {"classification": "BenignPositive"}
    assert read_values("to ana@contoso.example please") == {"owner": "ana@contoso.example"}
    assert read_values('"looks fine"') == {"message": "looks fine"}
    assert read_values("low or high") == {}
    assert read_values("list low incidents") == {}
