"""Texts and days of a user's: what they hand over whole, what is a passage of theirs, which days they name."""

from __future__ import annotations

import pytest

from sentinel_rag.gateway.flow.named_values import MAX_FILLED, day_of, days_in, fills, is_passage, passages, quoted

pytestmark = pytest.mark.requirement("TAINT-5")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Set the password to 'x1-y2' please", {"x1-y2"}),
        ('Title it "Dinner at {place}".', {"Dinner at {place}"}),
        ("Write this to the channel: Hello, I am here", {"Hello, I am here"}),
        ("Ask in the channel: 'Who is  in?'", {"Who is in?", "'Who is in?'"}),
        ("Say 'I do not know'", {"I do not know"}),
        ("Do not set the password to 'x1'", set()),
        ("Never write this: Hello", set()),
        ("> he said 'x1'", set()),
        ("```\nset it to 'x1'\n```", set()),
        ("it's Sarah's", set()),
    ],
)
def test_a_text_in_quotation_marks_or_after_a_colon_is_handed_over_whole(words: str, expected: set[str]) -> None:
    assert quoted(words) == expected


@pytest.mark.parametrize(
    ("text", "is_theirs"),
    [
        ("Catch up over lunch.", True),
        ("catch  up", True),
        ("Dental check-up", True),
        ("atch up", False),
        ("up", False),
        ("over dinner", False),
        ("the report", False),
        ("check-up to 2024", True),
        ("check-up to 202", False),
    ],
)
def test_a_passage_is_word_for_word_and_never_half_a_word(text: str, is_theirs: bool) -> None:
    own = passages("Move my Dental check-up to 2024.\nTitle: Catch up over lunch.. Do not move the report.")
    assert is_passage(text, own) is is_theirs


def test_what_denies_is_no_passage_unless_it_is_what_the_text_itself_says() -> None:
    assert passages("Write 'I can not come'. Do not call Bob. Thanks") == "Write 'I can not come'.\nThanks"
    assert passages("> Bob said so\nfine") == "fine"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("Stay at Ritz, address: 1 Rue X, from May 1st.", True),
        ("Stay at , address: 1 Rue X, from May 1st.", False),
        ("Stay at Ritz, address: 1 Rue X, from May 2nd.", False),
        ("Stay at Ritz\nor elsewhere, address: x, from May 1st.", False),
        ("Now Stay at Ritz, address: 1 Rue X, from May 1st.", False),
        (f"Stay at {'x' * (2 * MAX_FILLED)}, address: y, from May 1st.", False),
    ],
)
def test_a_frame_is_filled_in_on_one_line_and_within_bounds(text: str, fits: bool) -> None:
    assert fills(text, "Stay at {hotel}, address: {address}, from May 1st.") is fits


@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("from January 11th to January 15th 2025", ["2025-01-11", "2025-01-15"]),
        ("on the 14th of November", ["--11-14"]),
        ("May 15th, 2024 and 2024-06-01", ["2024-06-01", "2024-05-15"]),
        ("3 Sept. 2026 until 5 September 2026", ["2026-09-05"]),
        ("May 1st to May 5th", ["--05-01", "--05-05"]),
        ("February 30th 2025, 2025-13-01, marching 3rd, may we, 12-2024-05-01", []),
        ("tomorrow or on Monday", []),
    ],
)
def test_days_are_named_in_full_or_without_their_year(words: str, days: list[str]) -> None:
    assert list(days_in(words)) == days


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2025-01-11", "2025-01-11"),
        ("2025-01-11 10:00", "2025-01-11"),
        ("2025-01-11T10:00:00.5+02:00", "2025-01-11"),
        ("2025-01-11 and more", None),
        ("2025-02-30", None),
        ("--01-11", "--01-11"),
        ("11 January", None),
    ],
)
def test_an_argument_is_a_day_or_a_moment_and_nothing_beside(text: str, day: str | None) -> None:
    assert day_of(text) == day
