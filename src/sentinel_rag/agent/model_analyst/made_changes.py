"""Changes that were made in a conversation: told from what the tool says it did, and known to the check of claims.

A model may be cut off before it tells of a change, or tell it wrong; the result holds field, before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue

LONGEST_TOLD = 200
MOST_REMEMBERED = 200
"""Changes of one conversation that are remembered, the newest."""
_VERBS = {
    "owner": ("assign", "re-assign", "reassign", "unassign"),
    "severity": ("lower", "rais", "escalat"),
    "classification": ("classif", "re-classif", "reclassif"),
    "labels": ("add", "remov", "delet"),
    "message": ("comment", "add", "post", "creat"),
}
"""What may be said of a change of a field, by the beginning of the verb."""
_ANY_FIELD = ("updat", "chang", "set", "mark")
_CLOSED = ("clos", "resolv", "dismiss")
_OPEN = ("re-open", "reopen")


@dataclass(frozen=True, slots=True)
class MadeChange:
    """One change that a tool made: the `incident` as the call named it, and the beginnings of the `verbs` that tell
    it truly. `call_id` names the call."""

    call_id: str
    incident: str
    verbs: frozenset[str]

    def to_dict(self) -> dict[str, JsonValue]:
        """The stored form."""
        return {"call_id": self.call_id, "incident": self.incident, "verbs": sorted(self.verbs)}

    @classmethod
    def from_dict(cls, stored: dict[str, JsonValue]) -> MadeChange:
        """Read what `to_dict` wrote. Raises TypeError or KeyError for anything else."""
        verbs = stored["verbs"]
        if not isinstance(verbs, list):
            raise TypeError("verbs")
        return cls(str(stored["call_id"]), str(stored["incident"]), frozenset(map(str, verbs)))


def changes_made(runs: Iterable[ToolRun], reading: frozenset[str]) -> list[MadeChange]:
    """The changes that the calls made. A call that came back without having changed anything is none."""
    return [
        MadeChange(run.call.call_id, str(run.call.arguments.get("incident", "")), _verbs(run))
        for run in runs
        if run.worked and run.call.tool_name not in reading and run.at("/rows/0/changes") not in ([], ())
    ]


def tells_change(run: ToolRun) -> bool:
    """True for a call that changed something and says in its result what."""
    if run.call.tool_name == "add_incident_comment":
        return bool(run.at("/rows/0/message"))
    return run.call.tool_name == "update_incident" and _count(run) > 0


def say_changes_made(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """One line for each change: the incident, and each field with its values before and after."""
    for run in runs:
        if not tells_change(run):
            continue
        if run.call.tool_name == "add_incident_comment":
            writer.say(
                "A comment was added to incident {}: {}",
                writer.number(run, "/rows/0/number"),
                writer.words(run, "/rows/0/message", limit=LONGEST_TOLD),
            )
            continue
        parts: list[Fact] = []
        for place in range(_count(run)):
            at = f"/rows/0/changes/{place}"
            parts += [writer.cell(run, f"{at}/{key}", limit=LONGEST_TOLD) for key in ("field", "before", "after")]
        told = "; ".join(["{} from {} to {}"] * _count(run))
        writer.say(
            "Incident {} ({}) was changed: " + told + ".",
            writer.number(run, "/rows/0/number"),
            writer.name(run, "/rows/0/title"),
            *parts,
        )


def _count(run: ToolRun) -> int:
    made = run.at("/rows/0/changes")
    return len(made) if isinstance(made, list | tuple) else 0


def _verbs(run: ToolRun) -> frozenset[str]:
    fields = {str(run.at(f"/rows/0/changes/{place}/field")) for place in range(_count(run))} or set(run.call.arguments)
    verbs = {verb for field in fields for verb in _VERBS.get(field, ())} | set(_ANY_FIELD)
    if "status" in fields:
        verbs |= set(_CLOSED if str(run.call.arguments.get("status", "")).casefold() == "closed" else _OPEN)
    if run.call.arguments.get("classification_comment"):
        verbs |= {"comment", "add"}
    return frozenset(verbs)
