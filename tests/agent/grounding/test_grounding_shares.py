"""Shares in words and what an owner has are counted over the rows that were seen.

The estate has six incidents: three High, one each Medium, Low and Informational; four open, two closed; Ines Duarte
owns 31 and 18, m.keller 23 and 12.
"""

from __future__ import annotations

import pytest

from sentinel_rag.agent.grounding import REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Most incidents are closed.",
        "Most of the incidents are High.",
        "The majority of the incidents are Medium.",
        "The bulk of the incidents are New.",
        "Nearly all incidents are open.",
        "Almost all of the incidents are High.",
        "More than half of the incidents are High.",
        "Few incidents are open.",
        "Hardly any incidents are High.",
        "Ines Duarte owns most of the incidents.",
        "Ines Duarte owns the majority of the open incidents.",
        "Most of the incidents are assigned to m.keller.",
        "Ines Duarte owns three open incidents.",
        "Two closed incidents are assigned to m.keller.",
    ],
)
def test_a_share_that_the_rows_do_not_have_is_left_out(check, text: str) -> None:
    grounded = check(text)
    assert grounded.text == REMOVED
    assert grounded.repairs == ()


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "Most incidents are open.",
        "Most of the 6 incidents are open.",
        "More than half of the incidents are open.",
        "Less than half of the incidents are closed.",
        "Most of the open incidents are High.",
        "Few incidents are Medium.",
        "A few incidents are still open.",
        "Of all accounts, m.keller has the most alerts.",
        "Ines Duarte owns two open incidents.",
        "Ines Duarte owns two incidents: 31 and 18.",
        "One closed incident is assigned to m.keller.",
        "Of the open incidents, two are assigned to Ines Duarte.",
        "You should look at most incidents that are closed.",
    ],
)
def test_a_share_that_the_rows_have_stays(check, text: str) -> None:
    assert check(text).text == text
