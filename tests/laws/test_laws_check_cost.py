"""The check costs in proportion to the text, counted in calls of functions: hostile texts buy nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from answer_rows import read, results
from sentinel_rag.agent.answers.check import check_answer
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Results

pytestmark = pytest.mark.requirement("GRND-6")
SMALL = ReadResults(results())
HOSTILE = {
    "brackets": "[",
    "pairs of brackets": "[]",
    "half citations": "[c1.",
    "citations": "[c1.1]",
    "wide ranges": "[c1.1-999999]",
    "deep nesting": "[[(【{",
    "digits": "9",
    "quotation marks": '"a',
    "backticks": "`a ",
    "right to left and invisible": "\u202e\u200b\u200dא",
    "one-letter sentences": "A. ",
    "sentences": "It is High [c1.1]. ",
    "lines": "124 is High.\n",
    "table": "|a|\n",
    "times": "26 November ",
    "addresses": "a@b.c.",
    "paths": "C:\\a\\",
    "handles": "⟦r1#",
}


def calls(do: Callable[[], object]) -> int:
    """How many calls of functions it takes."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        do()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_twice_the_text_costs_twice(piece: str) -> None:
    def cost(times: int) -> int:
        text = piece * times
        return calls(lambda: check_answer(text, SMALL))

    cost(10)
    once, twice = cost(200), cost(400)
    assert twice <= 2.3 * once + 500


def test_a_megabyte_of_brackets_and_a_long_number_are_read_to_their_end() -> None:
    for text in ("[" * 1_000_000, "9" * 100_000, "a" * 100_000, "[" * 1000 + "x" + "]" * 1000):
        assert check_answer(text, SMALL).text == text


def test_a_claim_about_many_rows_costs_no_search_of_all_of_them_for_each_sentence() -> None:
    def cost(count: int) -> int:
        held = Results()
        rows = [
            {"number": 1000 + at, "title": f"Case {at}", "severity": ("High", "Low")[at % 2], "status": "New"}
            for at in range(count)
        ]
        held.add(read("c1", "query_incidents", rows))
        evidence = ReadResults(held)
        text = "\n".join(f"Incident {1000 + at} is {('High', 'Low')[at % 2]} [c1.{at + 1}]." for at in range(50))
        return calls(lambda: check_answer(text, evidence))

    assert cost(800) <= 1.5 * cost(100)


def test_reading_more_rows_costs_in_proportion() -> None:
    def cost(count: int) -> int:
        held = Results()
        held.add(
            read("c1", "query_incidents", [{"number": at, "title": f"Case {at} of 203.0.113.7"} for at in range(count)])
        )
        return calls(lambda: ReadResults(held))

    cost(10)
    assert cost(400) <= 2.2 * cost(200)
