"""Which workspace a question names ("in workspace emea", "across all workspaces"), and where its calls go.

Words name a workspace until others name another; a list over all workspaces remembers where each of its things was
found. Whether there is such a workspace, the tools say: nothing here knows the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sentinel_rag.agent.offline.conversation import Places
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES, ALL_WORKSPACES_TOOLS, TOOLS_BY_NAME
from sentinel_rag.language.frames.phrases import phrase_book
from sentinel_rag.language.text import blank, word_list

_WHERE = r"(?:in|on|of|from|for|at|across|over|within|inside|against|to)"
_NAME = r"['\"“”`]?([A-Za-z0-9][A-Za-z0-9_-]{0,39})['\"“”`]?"
_ALL = re.compile(
    rf"\b(?:{_WHERE}\s+)?(?:all|every|each|both)\s+(?:of\s+)?(?:(?:the|our|my)\s+)?(?:sentinel\s+)?workspaces?\b", re.I
)
_AFTER = re.compile(rf"\b({_WHERE}\s+)?(the\s+)?(?:sentinel\s+)?workspace\s*[:=]?\s+{_NAME}", re.IGNORECASE)
_BEFORE = re.compile(rf"\b{_WHERE}\s+(?:(?:the|our|my)\s+)?{_NAME}\s+(?:sentinel\s+)?workspace\b", re.IGNORECASE)
_NO_NAMES = frozenset(
    word_list(
        """
        the this that our my your whole entire current same sentinel embedded log analytics azure a an each every which
        what any other another and or is are has have hold holds with in on of for to from there it today yesterday
        last named called name where who when how can cannot does do did will would should could contains stores
        """
    )
)
_LISTS = re.compile(r"\b(?:which|what|list|show|name|how\s+many|tell\s+me)\b[^.?!]*\bworkspaces\b", re.IGNORECASE)
_ONLY_SWITCHES = frozenset(
    word_list("use using switch go change select please now let us s the work to in on with ask set")
)
_ONLY_REPEATS = frozenset(
    word_list("and what about how same again now also then only just instead but the for please ok")
)
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
        return self.name is not None and bool(self._left) and self._left <= _ONLY_SWITCHES

    @property
    def repeats(self) -> bool:
        """True if the question says nothing but another workspace: "and in workspace emea?"."""
        return self.name is not None and self._left <= _ONLY_REPEATS

    @property
    def _left(self) -> set[str]:
        return set(re.findall(r"[a-z0-9]+", self.rest.lower()))


def read_workspace(question: str) -> WorkspaceWords:
    """The workspace that `question` names. Total."""
    every = _ALL.search(question)
    if every is not None:
        return WorkspaceWords(ALL_WORKSPACES, blank(question, every.start(), every.end()))
    for found in _AFTER.finditer(question):
        # "the workspace holds ..." goes on with a verb: behind an article a name needs a preposition before it, and a
        # word that the grammar knows is none.
        verb = found[2] and (not found[1] or phrase_book("en").knows(found[3].lower()))
        if _is_name(found[3]) and not verb:
            return WorkspaceWords(found[3].lower(), blank(question, found.start(), found.end()))
    for found in _BEFORE.finditer(question):
        if _is_name(found[1]):
            return WorkspaceWords(found[1].lower(), blank(question, found.start(), found.end()))
    return WorkspaceWords(None, question)


def _is_name(word: str) -> bool:
    return word.lower() not in _NO_NAMES


def asks_for_workspaces(question: str) -> bool:
    """True for "which workspaces are there?"."""
    return _LISTS.search(question) is not None and _ALL.search(question) is None


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


def remember_places(conversation: Places, runs: Iterable[ToolRun]) -> None:
    """Where the things of an answer from all workspaces were found; a number that two of them use is no reference."""
    for run in runs:
        asked = run.call.arguments.get("workspace") if conversation.workspace == ALL_WORKSPACES else None
        for row in run.rows:
            workspace = row.get("workspace") or asked
            if not isinstance(workspace, str):
                continue
            for key in ("number", "incident_name", "alert_id"):
                reference = row.get(key)
                if reference:
                    before = conversation.found_in.get(str(reference), workspace)
                    conversation.found_in[str(reference)] = workspace if before == workspace else ""
    while len(conversation.found_in) > MOST_REMEMBERED:
        conversation.found_in.pop(next(iter(conversation.found_in)))
