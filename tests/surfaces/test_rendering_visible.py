"""Nothing from a log, a model or the web can move the cursor, hide text or reorder it (SURF-5, the terminal's part)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.surfaces.rendering.visible import safe, safe_cell


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]8;;http://evil.example\x07click\x1b]8;;\x07", "\\x1b]8;;http://evil.example\\x07click\\x1b]8;;\\x07"),
        ("a\rb", "a\\x0db"),
        ("csi \x9b2J", "csi \\x9b2J"),
        ("admin\u202egnp.exe", "admin\\u202egnp.exe"),
        ("Suspicious login\u200b", "Suspicious login\\u200b"),
        ("line\u2028line", "line\\u2028line"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("Zürich 東京 Ελλάδα", "Zürich 東京 Ελλάδα"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(raw: str, shown: str) -> None:
    assert safe(raw) == shown


@given(st.text())
def test_no_control_or_invisible_format_character_survives(text: str) -> None:
    shown = safe(text)
    left = {c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} - {"\n", "\t"}
    assert not left
    shown.encode()


@given(st.text())
def test_a_cell_is_one_line_and_saying_it_twice_changes_nothing(text: str) -> None:
    cell = safe_cell(text)
    assert "\n" not in cell
    assert "\t" not in cell
    assert safe_cell(cell) == cell
