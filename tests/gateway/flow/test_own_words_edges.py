"""What is the user's own at its edges: the first and last sign of a passage, the longest text, the case that tells."""

from __future__ import annotations

import pytest

from sentinel_rag.gateway.flow.named_values import (
    MAX_FILLED,
    MAX_QUOTED,
    clauses,
    fills,
    has_places,
    has_plain_case,
    is_passage,
    passages,
    quoted,
    sentences,
)

pytestmark = pytest.mark.requirement("TAINT-5")

TWO = "Re {a}-{b}!"
LONG = "x" * 1_000 + "{p}" * 20


@pytest.mark.parametrize(
    ("text", "of", "is_theirs"),
    [
        ("May", "in May we meet", True),
        ("Ma", "in Ma we meet", False),
        ("atch up", "catch up", False),
        ("catch u", "catch up", False),
        ("a bc", "xa bc", False),
        ("a b", "a bc", False),
        ("a b", "xa b", False),
        (".. a", "x.. a", True),
        ("a ..", "a ..x", True),
        ("rent", "rent of the parents", True),
        ("rent", "the parents pay rent", True),
        ("rent", "parents, rent and parents", True),
        ("rent", "parents and parents", False),
    ],
)
def test_a_passage_begins_and_ends_with_whole_words_wherever_it_stands(text: str, of: str, is_theirs: bool) -> None:
    assert is_passage(text, of) is is_theirs


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("one two\nthree four", "one two\nthree four"),
        ("Write 'hello there' now. Do not call Bob. Thanks", "Write 'hello there' now.\nThanks"),
        ("Write “I can not come. Sorry”. Do not call “Bob”. Thanks", "Write “I can not come. Sorry”.\nThanks"),
        ("no'thing at all' here", ""),
        ('Do not"say it" now. Thanks', "Thanks"),
    ],
)
def test_passages_are_those_of_the_lines_and_clauses_that_deny_nothing(words: str, expected: str) -> None:
    assert passages(words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Set it to 'x'", {"x"}),
        ("Set it to ' '", set()),
        ("Set it: x", {"x"}),
        (f"Set it to '{'y' * MAX_QUOTED}'", {"y" * MAX_QUOTED}),
        (f"Set it to '{'y' * (MAX_QUOTED + 1)}'", set()),
        (f"Set it: {'y' * MAX_QUOTED}", {"y" * MAX_QUOTED}),
        (f"Set it: {'y' * (MAX_QUOTED + 1)}", set()),
    ],
)
def test_a_text_that_is_handed_over_has_one_sign_or_as_many_as_may_be(words: str, expected: set[str]) -> None:
    assert quoted(words) == expected
    assert {text for _, texts in sentences(words) for text in texts} == expected


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ('look at "host ws-1" now', 'look at "host ws-1" now'),
        ('look at "the host ws-1" now', "look at   now"),
        ("look at “close the incident 5” now", "look at   now"),
    ],
)
def test_three_words_between_quotation_marks_are_somebody_elses(words: str, left: str) -> None:
    assert list(clauses(words)) == [left]
    assert [sentence for sentence, _ in sentences(words)] == [left]


@pytest.mark.parametrize(
    ("text", "is_frame"),
    [("abc{x}", True), ("{x} abc {y}", True), ("ab{x}", False), ("abc", False), (" {x}ab ", False)],
)
def test_a_frame_has_words_of_the_users_around_its_places(text: str, is_frame: bool) -> None:
    assert has_places(text) is is_frame


@pytest.mark.parametrize(
    ("text", "frame", "fits"),
    [
        (f"Re {'x' * MAX_FILLED}-y!", TWO, True),
        (f"Re {'x' * (MAX_FILLED + 1)}-y!", TWO, False),
        # The same sign stands twice: from the later one it is near enough to the end.
        (f"Re x-{'y' * 100}-{'z' * 100}!", TWO, True),
        (f"Re x-{'y' * 100}.{'z' * 100}!", TWO, False),
        ("Re x-y! and more", TWO, False),
        ("Re x-y!", "Re {a}-{b}", True),
        ("Re x-", "Re {a}-{b}", False),
        (f"{'x' * 1_000}{'p' * (MAX_QUOTED + MAX_FILLED - 1_000)}", LONG, True),
        (f"{'x' * 1_000}{'p' * (MAX_QUOTED + MAX_FILLED - 999)}", LONG, False),
    ],
)
def test_a_place_is_filled_from_where_the_words_before_it_may_end(text: str, frame: str, fits: bool) -> None:
    assert fills(text, frame) is fits


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("catch up over lunch", True),
        ("CATCH UP OVER LUNCH", True),
        ("Catch Up Over Lunch", True),
        ("Catch up over lunch", True),
        ("cATCH up over lunch", False),
        ("CAtch up over lunch", False),
        ("Catch up OVER lunch", False),
        ("catch UP OVER LUNCH", False),
        ("Catch UP OVER LUNCH", False),
    ],
)
def test_a_case_tells_nothing_where_it_follows_one_rule(text: str, plain: bool) -> None:
    assert has_plain_case(text) is plain
