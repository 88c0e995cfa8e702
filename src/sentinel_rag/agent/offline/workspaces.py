"""Which workspace a question names ("in workspace emea", "across all workspaces"), and where its calls go.

Words name a workspace until others name another; a list over all workspaces remembers where each of its things was
found. Whether there is such a workspace, the tools say: nothing here knows the names. A question to all workspaces that
no tool adds up over them, such as a ranking, is asked of each in turn, one section each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.answers.writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.conversation import Conversation, Places
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES, ALL_WORKSPACES_TOOLS, TOOLS_BY_NAME
from sentinel_rag.language.frames.asides import asides, said_words
from sentinel_rag.language.frames.phrases import phrase_book
from sentinel_rag.language.text import blank

WORKSPACES = PlannedCall("list_workspaces")
_IN_SECTIONS = frozenset({View.TREND, View.TOP, View.SUMMARY, View.KQL, View.COLUMNS})
_REFERENCES = ("incident", "alert_id")
MOST_REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class WorkspaceWords:
    """`name` is the workspace that the words name (`all` for every one), None for none; `rest` is the question
    without them."""

    name: str | None
    rest: str

    @property
    def switches(self) -> bool:
        """True if the question does nothing but choose a workspace."""
        return self.name is not None and bool(self._left) and self._left <= said_words("workspace", "switch")

    @property
    def repeats(self) -> bool:
        """True if the question says nothing but another workspace: "and in workspace emea?"."""
        return self.name is not None and self._left <= said_words("workspace", "repeat")

    @property
    def _left(self) -> set[str]:
        return set(re.findall(r"[^\W_]+", self.rest.lower()))


def read_workspace(question: str) -> WorkspaceWords:
    """The workspace that `question` names. Total."""
    for every in asides(question, "workspace", "every"):
        return WorkspaceWords(ALL_WORKSPACES, blank(question, every.start(), every.end()))
    for found in (*asides(question, "workspace", "after"), *asides(question, "workspace", "before")):
        name, told = found["bare"].lower(), found.groupdict()
        # "the workspace holds ..." goes on with a verb: behind an article a name needs a preposition before it, and a
        # word that the grammar knows is none.
        verb = told.get("the") and (not told["at"] or phrase_book("en").knows(name))
        if name not in said_words("workspace", "no_name") and not verb:
            return WorkspaceWords(name, blank(question, found.start(), found.end()))
    return WorkspaceWords(None, question)


def asks_for_workspaces(question: str) -> bool:
    """True for "which workspaces are there?"."""
    return any(asides(question, "workspace", "lists")) and not any(asides(question, "workspace", "every"))


def goes_to_one(tool: str) -> bool:
    """True for a tool that asks one workspace and cannot ask all of them at once."""
    return _takes_workspace(tool) and tool not in ALL_WORKSPACES_TOOLS


def _takes_workspace(tool: str) -> bool:
    known = TOOLS_BY_NAME.get(tool)
    return known is not None and "workspace" in known.parameter_schemas()


def placed(tool: str, arguments: Mapping[str, JsonValue], conversation: Places) -> dict[str, JsonValue]:
    """The arguments of a call with the workspace that it goes to; none is named where the default one is meant."""
    if not _takes_workspace(tool) or "workspace" in arguments:
        return dict(arguments)
    name = conversation.workspace
    if name == ALL_WORKSPACES:
        references = [str(arguments[key]) for key in _REFERENCES if arguments.get(key)]
        places = [conversation.found_in[each] for each in references if conversation.found_in.get(each)]
        if places:
            name = places[0]
        elif tool not in ALL_WORKSPACES_TOOLS or "incident" in arguments:
            requested = conversation.requested_workspace
            name = "" if requested == ALL_WORKSPACES else requested
    return {**arguments, "workspace": name} if name else dict(arguments)


def remember_place(conversation: Places, reference: str, workspace: str) -> None:
    """Where a thing was found; a number that two workspaces use is no reference to either."""
    before = conversation.found_in.get(reference, workspace)
    conversation.found_in[reference] = workspace if before == workspace else ""


def remember_places(conversation: Places, runs: Iterable[ToolRun]) -> None:
    """Where the things of an answer from all workspaces were found; a number that two of them use is no reference."""
    for run in runs:
        asked = run.call.arguments.get("workspace") if conversation.workspace == ALL_WORKSPACES else None
        for row in run.rows:
            workspace = row.get("workspace") or asked
            if not isinstance(workspace, str):
                continue
            for key in ("number", "incident_name", "alert_id"):
                if row.get(key):
                    remember_place(conversation, str(row[key]), workspace)
    while len(conversation.found_in) > MOST_REMEMBERED:
        conversation.found_in.pop(next(iter(conversation.found_in)))


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
