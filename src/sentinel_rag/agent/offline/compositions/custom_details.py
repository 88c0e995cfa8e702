"""Custom details: what an analytic rule was told to write beside its alerts, as a table of names and values."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.tool_runs import ToolRun

MOST_ROWS = 40


def say(writer: AnswerWriter, run: ToolRun, at: str) -> bool:
    """The details at `at`: a table of an object's values, or the raw text where it is none. False if there are none."""
    details = run.at(at)
    if not details:
        return False
    if not isinstance(details, Mapping):
        writer.say("Its custom details are no readable JSON; as they stand: {}", writer.words(run, at))
        return True
    rows: list[list[Fact]] = []
    for name, value in details.items():
        pointer = f"{at}/{escape(name)}"
        places = [f"{pointer}/{place}" for place in range(len(value))] if isinstance(value, list | tuple) else [pointer]
        rows += [[Fact(name), writer.cell(run, place, limit=300)] for place in places]
    writer.table("Custom details", ("Name", "Value"), rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        writer.fixed("Only the first of its custom details are shown.")
    return True
