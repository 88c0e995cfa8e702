"""Laws of text safety: whatever a log holds, an answer shows one line of visible characters, never markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.agent.row_text import code, plain, quoted
from sentinel_rag.contracts.visible_text import visible

HOSTILE = st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b]8;;http://evil.example\x07", "\x9b2J",
         "\u200b", "\u202e", "\u2066", "\r\n", "\x00", "\x07",
         "![x](http://evil.example/a.png)",
         "[click](javascript:alert(1))", "<img src=x onerror=alert(1)>", "`",
         "``",
         "<script>", "**", "| a |", "# title", "\\", "[1]: http://evil.example", "https://evil.example",
         "\ufeff", "word"]
    )
    | st.text(max_size=8),
    max_size=30,
).map("".join)  # fmt: skip


@given(HOSTILE)
def test_plain_text_is_one_line_of_visible_characters(text: str) -> None:
    shown = plain(text)
    assert visible(shown) == shown
    assert len(shown.splitlines()) <= 1
    assert shown == shown.strip()
    assert plain(shown) == shown


@given(HOSTILE.filter(lambda text: len(text) < 60))
@pytest.mark.requirement("SURF-5")
def test_nothing_of_a_value_is_dropped_but_blank_space(text: str) -> None:
    """Whoever hides something in a log row is seen to have done it."""
    shown = plain(text, limit=10_000)
    hidden = {character for character in text.replace("\r\n", "") if visible(character) != character}
    if "hidden)" not in shown:  # a flood is told by its first characters and their number
        assert all(visible(each) in shown for each in hidden - {"\u200c", "\u200d"})  # joiners may belong there
    for word in re.findall(r"[A-Za-z]{2,}", text):
        assert word in shown


@given(HOSTILE, st.integers(2, 80))
def test_plain_text_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(plain(text, limit=limit)) <= limit


@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=80))
def test_letters_and_digits_of_every_script_stay(text: str) -> None:
    assert plain(text) == text


@given(HOSTILE)
def test_a_code_span_cannot_be_left_from_inside(text: str) -> None:
    shown = code(text)
    assert shown[0] == shown[-1] == "`"
    assert "`" not in shown[1:-1]
    assert "\n" not in shown


@given(HOSTILE)
def test_quoted_text_outside_a_code_span_holds_no_markup(text: str) -> None:
    shown = quoted(text)
    if not shown.startswith("`"):
        assert not re.search(r"[\[\]<>`*_|#]|://|https?:", shown)
