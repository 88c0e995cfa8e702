"""A question to all workspaces that no tool adds up over them: each workspace is asked in turn, one section each.

Rankings, trends and reports of several workspaces have no sum that is right. What goes to one workspace all the same,
such as the details of an incident, says which one it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.workspace_words import goes_to_one
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES

WORKSPACES = PlannedCall("list_workspaces")
_IN_SECTIONS = frozenset({View.TREND, View.TOP, View.SUMMARY, View.KQL, View.COLUMNS})


def in_sections(plan: Plan, conversation: Conversation) -> bool:
    """True if the answer to `plan` has a section for each workspace."""
    asks_all = conversation.workspace == ALL_WORKSPACES
    return asks_all and plan.view in _IN_SECTIONS and any(goes_to_one(call.tool) for call in plan.calls)


def calls_for_each(plan: Plan, workspaces: ToolRun) -> tuple[PlannedCall, ...]:
    """The calls of `plan` for every workspace that list_workspaces told, in its order; as they are if it told none."""
    names = [row["name"] for row in workspaces.rows if isinstance(row.get("name"), str)]
    return tuple(
        PlannedCall(call.tool, {**call.arguments, "workspace": name}) for name in names for call in plan.calls
    ) or tuple(plan.calls)


def section_of(run: ToolRun, runs: Sequence[ToolRun]) -> str:
    """The workspace whose section shows `run`, empty where the answer has no sections."""
    names = [each.call.arguments.get("workspace") for each in runs]
    own = run.call.arguments.get("workspace")
    return own if isinstance(own, str) and len(set(names)) > 1 and own != ALL_WORKSPACES else ""


def say_asked_alone(writer: AnswerWriter, conversation: Conversation, runs: Sequence[ToolRun]) -> None:
    """Where words asked for all workspaces and a call went to one that nobody named: which one that was."""
    if conversation.workspace != ALL_WORKSPACES:
        return
    alone = [run for run in runs if goes_to_one(run.call.tool_name) or "incident" in run.call.arguments]
    unnamed = [run for run in alone if run.call.arguments.get("workspace") in (None, conversation.requested_workspace)]
    run = next((each for each in unnamed if each.result is not None), None)
    if run is None:
        return
    asked = run.call.arguments.get("workspace")
    place: Fact | Echo = Echo(asked) if isinstance(asked, str) else writer.exact(run, "/coverage/workspace")
    writer.say("Only one workspace was asked: {}. To ask another, say in workspace and its name.", place)
