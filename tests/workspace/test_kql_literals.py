"""Literals that cannot be held."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sentinel_rag.workspace.cells import Cell
from sentinel_rag.workspace.kql.errors import KqlError

pytestmark = pytest.mark.requirement("DATA-4")

Evaluate = Callable[[str], tuple[str, Cell]]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("datetime(2020-13-45x)", "datetime literal"),
        ("datetime(yesterday)", "datetime literal"),
        ("1tick", "timespan"),
        ("time(soon)", "timespan literal"),
        ("9223372036854775808", "long"),
        ("int(2147483648)", "int literal"),
    ],
)
def test_a_literal_that_cannot_be_held_is_refused_and_never_null(
    evaluated: Evaluate, expression: str, name: str
) -> None:
    with pytest.raises(KqlError) as refusal:
        evaluated(expression)
    assert name in str(refusal.value)
    assert refusal.value.next_step
