"""What a call that changed something did, and which words of a model may tell of it.

The record of the calls knows the incident and the fields; a sentence that claims another deed, or one at another
incident, is not told by it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS

_VERBS = {
    "owner": ("assign", "re-assign", "reassign", "unassign"),
    "severity": ("lower", "rais", "escalat"),
    "classification": ("classif", "re-classif", "reclassif"),
    "classification_comment": ("comment", "add"),
    "labels": ("add", "remov", "delet"),
    "message": ("comment", "add", "post", "creat"),
}
"""Beginnings of the verbs that may be said of a change of a field."""
_ANY_FIELD = ("updat", "chang", "set", "mark")
_CLOSED = ("clos", "resolv", "dismiss")
_OPEN = ("re-open", "reopen")


@dataclass(frozen=True, slots=True)
class MadeChange:
    """A change of `incident`, as the call named it; `verbs` are beginnings of verbs that tell it truly, none where the
    tool is not one of ours and any may."""

    incident: str
    verbs: frozenset[str]


def changed_something(run: ToolRun, reading: frozenset[str]) -> bool:
    """True for a call that worked and changed something. A tool that says that all was so already did not."""
    return run.worked and run.call.tool_name not in reading and run.at("/rows/0/changes") not in ([], ())


def changes_made(runs: Iterable[ToolRun], reading: frozenset[str]) -> list[MadeChange]:
    """The changes that the calls made."""
    return [
        MadeChange(str(run.call.arguments.get("incident", "")), _verbs(run))
        for run in runs
        if changed_something(run, reading)
    ]


def _verbs(run: ToolRun) -> frozenset[str]:
    if run.call.tool_name not in WRITING_TOOLS:
        return frozenset()
    fields = set(run.call.arguments)
    verbs = {verb for field in fields for verb in _VERBS.get(field, ())} | set(_ANY_FIELD)
    if "status" in fields:
        verbs |= set(_CLOSED if str(run.call.arguments["status"]).casefold() == "closed" else _OPEN)
    return frozenset(verbs)
