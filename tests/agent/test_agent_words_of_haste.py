"""Words that say nothing by themselves are not told as not understood."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from sentinel_rag.contracts.evidence import Answer

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("CHAT-8")]
Ask = Callable[[str], Awaitable[Answer]]


@pytest.mark.parametrize(
    "question",
    ["what needs my attention right now?", "which incidents are open right now", "show the newest detections"],
)
async def test_a_word_of_haste_is_no_word_that_was_left_out(ask: Ask, question: str) -> None:
    assert "did not understand" not in (await ask(question)).text


async def test_a_word_that_says_something_is_sought_and_told_where_nothing_is_called_so(ask: Ask) -> None:
    answer = await ask("which purple incidents are open right now")
    assert answer.text.startswith("I do not know “purple”, and nothing here is called so")
    assert ("query_incidents", {"status": "Open", "title_contains": "purple"}) in [
        (call.name, call.arguments) for call in answer.tools
    ]
