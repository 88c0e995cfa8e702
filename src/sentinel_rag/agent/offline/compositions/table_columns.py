"""The columns of a table: names, types, and which of them hold values."""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """One line for each column, those that hold values first."""
    writer.say("{} has {} columns.", writer.exact(run, "/summary/table"), writer.number(run, "/summary/columns"))
    if run.at("/summary/rows_looked_at"):
        writer.say(
            "{} of them hold a value in one of the {} newest rows that were looked at; Filled counts those rows.",
            writer.number(run, "/summary/columns_filled"),
            writer.number(run, "/summary/rows_looked_at"),
        )
    if run.at("/coverage/table_newest"):
        writer.say(
            "The table holds {} rows, the oldest of {}, the newest of {}.",
            writer.number(run, "/coverage/table_rows"),
            writer.time(run, "/coverage/table_oldest"),
            writer.time(run, "/coverage/table_newest"),
        )
    scope.say_partial(writer, run)
    names = ["column", "type", "filled"]
    if run.result is not None and len(run.result.columns) > len(names):
        names.append("example")
    rows = [[writer.cell(run, f"/rows/{place}/{name}") for name in names] for place in range(len(run.rows))]
    writer.table("", [name.capitalize() for name in names], rows)
    return Composed(shown=len(run.rows))
