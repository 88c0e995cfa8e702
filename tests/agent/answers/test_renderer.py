"""The renderer of views: its data leads nowhere that is not there, and each form of a line says what it promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pytest

from sentinel_rag.agent.answers.renderer import BLOCKS, Scene, tell, view_data
from sentinel_rag.agent.answers.writer import AnswerWriter, Fact
from sentinel_rag.agent.offline import composing
from sentinel_rag.agent.planner.decisions import View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import DocumentResult, Succeeded, ToolCall

FACTS = ("n", "q", "x", "t", "w", "d", "a", "#")
VERBS = (*FACTS, *(f"{verb}*" for verb in FACTS), "arg", "word", "counts")
ROW = {"title": "Odd sign-in", "alerts": [{"name": "b", "time": 2}, {"name": "a", "time": 1}], "tactics": [], "open": 0}


def _texts(told: Any) -> Iterator[str]:
    """Every template below a view or a field."""
    if isinstance(told, str):
        yield told
    for each in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from _texts(each)


LINES = sorted({text for group in ("view", "field") for text in _texts(view_data()[group])})


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("@")])
def test_every_block_that_a_line_calls_is_there(line: str) -> None:
    assert composing.BLOCKS is BLOCKS
    assert line[1:].split()[0] in {*BLOCKS, *view_data()["field"]}


@pytest.mark.parametrize("line", [line for line in LINES if "{" in line])
def test_every_slot_of_a_line_is_one_that_is_read(line: str) -> None:
    for slot in re.findall(r"\{([^{}]*)\}", line):
        known = slot in ("filters", "total", "kind", "first") or slot.startswith("=") or slot.split(" ")[0] in VERBS
        assert known or slot.count("|") == 1, slot


def test_every_view_of_one_result_is_told() -> None:
    by_code = {View.ALERT, View.NEIGHBOUR, View.ATTRIBUTE, View.PROPERTY, View.KEYWORD, View.COMPARISON, View.COMPUTED}
    by_code |= {View.PROFILE}
    assert {view.value for view in View} - {view.value for view in by_code} <= {*view_data()["view"]}


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Called {q title}.", "Called “Odd sign-in”."),
        ({"if": "owner", "say": "Owned.", "none": "It has no owner."}, "It has no owner."),
        ({"if": "!open=None", "say": "{n open} {hour|hours}."}, "0 hours."),
        ({"say": "Tactics: {n* tactics}.", "else": "No tactics."}, "No tactics."),
        ({"say": "Names: {q* alerts/*/name}."}, "Names: “b”, “a”."),
        ({"choose": [{"if": "owner", "say": "Owned."}, "{# alerts} alerts."]}, "2 alerts."),
        (
            {"pick": "alerts", "least": "time", "say": "First was {q name} of {q ^title}."},
            "First was “a” of “Odd sign-in”.",
        ),
        ({"each": "alerts", "where": "time=2", "say": "{q name}"}, "“b”"),
        ({"each": "alerts", "order": "time", "say": "{q name}"}, "“a”\n“b”"),
        ("Said by code: {=more}.", "Said by code: yes."),
    ],
)
def test_a_line_says_what_its_form_promises(line: str | dict[str, Any], text: str) -> None:
    call = ToolCall("c1", "s", "any_tool", {})
    run = ToolRun(call, Succeeded(call, DocumentResult({"rows": [ROW]}), "a1"))
    writer = AnswerWriter(UTC)
    tell(Scene(writer, run, parts={"more": Fact("yes")}), [line])
    assert writer.text == text


def test_a_table_numbers_its_rows_and_leaves_the_rest_out() -> None:
    call = ToolCall("c1", "s", "any_tool", {})
    run = ToolRun(call, Succeeded(call, DocumentResult({"rows": [ROW]}), "a1"))
    writer = AnswerWriter(UTC)
    spec = {"table": "All", "first_of_many": "First", "rows": "alerts", "most": 1, "columns": {"": "#", "Name": "name"}}
    tell(Scene(writer, run), [spec])
    (table,) = writer.tables
    assert (table.title, table.columns, table.rows) == ("First", ("", "Name"), (("[1]", "b"),))
