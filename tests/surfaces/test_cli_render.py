"""Whatever field of an answer a hostile text came from, a terminal is never sent what it would obey (SURF-5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from io import StringIO

import pytest
from rich.console import Console

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table
from sentinel_rag.surfaces.cli._render import print_answer

HOSTILE = "\x1b]0;owned\x07 \x9b2J admin\u202egnp.exe"
FIELDS: dict[str, Callable[[str], object]] = {
    "text": lambda text: text,
    "tables": lambda text: (Table((text,), ((text,),), text),),
    "footnote": lambda text: (text,),
    "suggestions": lambda text: (text,),
    "evidence": lambda text: (Evidence(text, "c1", "query_alerts", f"/{text}", text),),
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_an_answer_reaches_the_terminal_raw(field: str, width: int, terminal: bool) -> None:
    assert field in {known.name for known in fields(Answer)}
    answer = Answer(
        **{"outcome": Outcome.ANSWERED, "text": "x", "session_id": "s1234567", field: FIELDS[field](HOSTILE)}
    )  # type: ignore[arg-type]
    written = StringIO()
    print_answer(Console(file=written, force_terminal=terminal, width=width, no_color=True), answer, evidence=True)
    for raw in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert raw not in written.getvalue()
    assert "owned" in written.getvalue()
