"""The rows of a query that the person wrote, and what the guard or the workspace said of one that did not run."""

from __future__ import annotations

from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.compositions import catalogues, scope, unsuccessful
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.tool_calls import Failed


def compose(writer: AnswerWriter, run: ToolRun) -> Composed:
    """The answer to one run of run_freeform_kql."""
    if not run.worked:
        return _unsuccessful(writer, run)
    if scope.is_empty(run):
        writer.say_none([run], "The query ran and found no row.")
        _say_scope(writer, run)
        return Composed(outcome=Outcome.NO_DATA)
    known = run.at("/coverage/rows_total") is not None
    if known:
        writer.say("The query found {} rows.", writer.number(run, "/coverage/rows_total"))
    if not known or run.at("/coverage/rows_total") != len(run.rows):
        writer.say("Rows shown: {}.", writer.number(run, "/coverage/rows_returned"))
    _say_scope(writer, run)
    catalogues.say_rows(writer, run)
    return Composed(shown=len(run.rows))


def _say_scope(writer: AnswerWriter, run: ToolRun) -> None:
    if run.at("/coverage/window/start") or run.at("/coverage/window/end"):
        scope.say_window(writer, run)
    else:
        writer.fixed("Window: as the query itself says.")
    scope.say_partial(writer, run)


def _unsuccessful(writer: AnswerWriter, run: ToolRun) -> Composed:
    outcome = unsuccessful.say_failures(writer, [run], some_worked=False)
    if isinstance(run.outcome, Failed):
        for problem in run.outcome.error.problems[1:]:
            place = "" if problem.line is None else f"Line {problem.line}, column {problem.column}: "
            near = f" Nearest: {', '.join(map(plain, problem.nearest))}." if problem.nearest else ""
            writer.fixed(f"{place}{plain(problem.message)}{near}")
    return Composed(outcome=outcome)
