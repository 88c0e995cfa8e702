"""Texts that have a form, which cannot be read exactly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("parse_command_line('a', 'posix')", "windows"),
        ("parse_user_agent('Mozilla/5.0', 'browser')", "parse_user_agent"),
        ("extract_json('$..a', '{}')", "path"),
        ("extract('a', 0, 'a', 'long')", "typeof"),
    ],
)
def test_what_cannot_be_parsed_exactly_is_refused(evaluated: Evaluate, expression: str, reason: str) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert reason in str(refusal.value)
    assert refusal.value.next_step
