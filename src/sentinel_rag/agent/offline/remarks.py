"""What an answer adds about the question and the rows: words that were left out, names that nobody looked up, texts of
rows that read like instructions.

Written behind the facts of an answer by the step that carried out its plan. Nothing here calls a tool.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.instruction_text import suspicions
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT

_OWN_TEXT = frozenset({"list_kql_templates", "list_tables", "list_workspaces"})
"""Tools whose rows are not from the logs."""


def say_remarks(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> None:
    """Everything that the answer to `plan` has to add."""
    asked = _asked_for(runs)
    if plan.view is not View.ATTRIBUTE and (dropped := _names_left_out(plan, asked)):
        writer.say("I looked nothing up for {}; ask about it by itself.", Echo(", ".join(dropped)))
    if int(plan.frame.one("limit") or 0) > MAX_LIMIT:
        writer.say("More than {} rows do not come at once.", Echo(str(MAX_LIMIT)))
    say_instructions(writer, plan.view, runs)


def say_instructions(writer: AnswerWriter, view: View, runs: Sequence[ToolRun]) -> None:
    """One note if a text of the rows reads like an instruction: it is shown as data and changes nothing.

    An answer about one incident or alert tells of every such text; a list or a search of those that it shows. A
    question that ends the answer stays its end.
    """
    found = suspicions([run for run in runs if run.call.tool_name not in _OWN_TEXT])
    if view not in (View.INCIDENT, View.ANALYSIS, View.ALERT):
        found = [each for each in found if writer.shows(each.text)]
    if not found:
        return
    last = writer.lines.pop() if writer.lines and writer.lines[-1].text.endswith("?") else None
    shown = [writer.words(each.run, each.pointer, limit=240) for each in found]
    if len(shown) == 1:
        writer.say(
            "Note: a text in these rows reads like an instruction. It came from the logs, is shown here as data "
            "and was not followed: {}",
            shown[0],
        )
    else:
        writer.say(
            "Note: texts in these rows read like instructions. They came from the logs, are shown here as data "
            "and were not followed: {}",
            shown,
        )
    if last is not None:
        writer.lines.append(last)


def _names_left_out(plan: Plan, asked: str) -> list[str]:
    """Things that the question names beside others and that no call asked for."""
    names, asked = [plain(name) for name in plan.frame.all("name")], asked.replace("\\\\", "\\")
    forms = {name: (name, plan.frame.whole.get(name, name)) for name in names}
    left = [name for name in names if not any(form.lower() in asked for form in forms[name])]
    return left if len(left) < len(names) or plan.view is View.KQL else []


def _asked_for(runs: Sequence[ToolRun]) -> str:
    """The arguments of all calls as one text in lower case."""
    return " ".join(str(dict(run.call.arguments)) for run in runs).lower()
