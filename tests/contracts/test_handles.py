"""Placeholders: what an agent writes down for a value that it may not see, and how a surface fills it in."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.handles import as_handles, as_text, fill_in, handles_in, placeholder

HANDLE = "r12#/rows/0/CommandLine"


def test_a_result_becomes_plain_values_and_placeholders() -> None:
    result = {"rows": [{"a": {"$quote": "x"}, "b": {"$ref": HANDLE}, "c": {"$ref": HANDLE, "more": 1}}], "n": 1}
    assert as_text(result) == {
        "rows": [{"a": "x", "b": placeholder(HANDLE), "c": {"$ref": HANDLE, "more": 1}}],
        "n": 1,
    }


def test_a_placeholder_alone_is_an_argument_and_inside_a_text_it_is_text() -> None:
    mark = placeholder(HANDLE)
    assert as_handles({"a": mark, "b": [mark], "c": f"see {mark}", "d": 1}) == {
        "a": {"$ref": HANDLE},
        "b": [{"$ref": HANDLE}],
        "c": f"see {mark}",
        "d": 1,
    }


def test_a_surface_fills_in_what_it_was_given_and_leaves_the_rest() -> None:
    other = "r1#/rows/1/x"
    answer = {"text": f"The command was {placeholder(HANDLE)}.", "tables": [[placeholder(other), 7]]}
    assert handles_in(answer) == (HANDLE, other)
    assert fill_in(answer, {HANDLE: "cmd /c ⟦r9#/x⟧"}) == {
        "text": "The command was cmd /c ⟦r9#/x⟧.",
        "tables": [[placeholder(other), 7]],
    }


@pytest.mark.parametrize(
    "text",
    ["{}", "`{}`", "“{}”, and", "({}).", "**{}**", "| {} |", "{}'s owner", "{}, {};", "[{}]", "Host: {}"],
)
def test_a_placeholder_among_signs_is_a_word_of_its_own(text: str) -> None:
    written = text.replace("{}", placeholder(HANDLE))
    assert handles_in(written) == (HANDLE,)
    assert fill_in(written, {HANDLE: "ws-01"}) == text.replace("{}", "ws-01")
