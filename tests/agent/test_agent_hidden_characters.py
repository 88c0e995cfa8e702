"""Values of rows that hold what a terminal would obey or nobody would see: an answer shows it as visible escapes."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.visible_text import visible
from sentinel_rag_testing.scripted_gateway import rows_result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SURF-5")]
TITLES = {
    "Wiped \x1b[2Jscreen": "Wiped \\x1b[2Jscreen",
    "Title \x1b]0;owned\x07 set": "Title \\x1b]0;owned\\x07 set",
    "invoice\u202egnp.exe": "invoice\\u202egnp.exe",
    "pay\u200bpal login": "pay\\u200bpal login",
    "flood e" + "\u0301" * 40 + " words": "flood e\u0301\u0301\u0301\u0301(+36 hidden) words",
    "zero" + "\u200b" * 90 + "width": "zero\\u200b\\u200b\\u200b\\u200b(+86 hidden)width",
    "sled \\x90\\x90\\x90\\x90\\x90\\x90": "sled \\x90\\x90\\x90\\x90\\x90\\x90",
    "good\rbad": "good\\x0dbad",
    "line one\r\nline two": "line one line two",
    "नमस्ते क्‍ष": "नमस्ते क्‍ष",
}


@pytest.mark.parametrize(("title", "shown"), TITLES.items(), ids=range(len(TITLES)))
async def test_what_was_hidden_in_a_title_is_seen_in_the_answer(title: str, shown: str) -> None:
    gateway = small_estate(lambda: NOW)
    row = {"number": 77, "title": title, "severity": "High", "status": "New", "created_time": "2024-07-02T09:45:00Z"}
    gateway.answers["query_incidents"] = rows_result([row])
    answer = await OfflineAnalyst(gateway, clock=lambda: NOW).answer(Question("list the incidents", "shift-1"))
    cells = [cell for table in answer.tables for row_ in table.rows for cell in row_]
    assert shown in cells
    assert all(visible(text) == text for text in (answer.text, *cells, *answer.footnote))
    # What it rests on is the value as it stands in the row.
    assert title in [piece.value for piece in answer.evidence]


async def test_a_question_with_characters_that_nobody_sees_is_read_as_it_looks() -> None:
    gateway = small_estate(lambda: NOW)
    analyst = OfflineAnalyst(gateway, clock=lambda: NOW)
    plain = await analyst.answer(Question("which incidents are high?", "shift-1"))
    pasted = await analyst.answer(Question("which inci\u200bdents are\ufeff high?", "shift-2"))
    assert pasted.text == plain.text
