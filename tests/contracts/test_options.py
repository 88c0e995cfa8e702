"""Which option of the answer that was shown last a person picks by typing its number."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.evidence import option_chosen

SHOWN = "For which reason?\n[1] Close incident 7 as false positive (inaccurate data)\n[2] Close it otherwise [3] times"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("1", "Close incident 7 as false positive (inaccurate data)"),
        (" [2] ", "Close it otherwise [3] times"),
        ("2.", "Close it otherwise [3] times"),
        ("3", ""),
        ("12", ""),
        ("close incident 1", ""),
        ("", ""),
    ],
)
def test_a_number_picks_the_line_that_it_stands_before(words: str, option: str) -> None:
    assert option_chosen(words, SHOWN) == option
