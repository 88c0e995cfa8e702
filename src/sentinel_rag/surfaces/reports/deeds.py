"""What was done and what was refused, one entry each: asked for, decided by whom, and what came of it.

The journal has a record of each step. A reader of the first page wants them as one: the refused call that asked a
person, the person's decision, and the call that used it share the id of the approval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sentinel_rag.surfaces.reports.model import Deed, ReportTurn
from sentinel_rag.surfaces.reports.recorded import READ, Json, person, plain

_DENIED = "den"
SUCCESS = "success"
"""The outcome on record of a call that did what it was for."""


def deeds_of(records: Sequence[Json], turns: Sequence[ReportTurn], people: Mapping[str, str]) -> tuple[Deed, ...]:
    """In order of time. `records` are in the form of `sentinel audit show --json`."""
    asked = {str(call["audit_id"]): _with(call["arguments"]) for turn in turns for call in _calls(turn)}
    stories: dict[str, list[Json]] = {}
    for entry in records:
        record = entry["record"]
        told = {**record, "outcome": entry.get("outcome")}
        stories.setdefault(str(record.get("approval_id") or record["audit_id"]), []).append(told)
    found = (deed for story in stories.values() for deed in _deed(story, asked, people))
    return tuple(sorted(found, key=lambda deed: deed.at))


def _deed(story: Sequence[Mapping[str, Any]], asked: Mapping[str, str], people: Mapping[str, str]) -> Iterator[Deed]:
    kinds = {str(record["kind"]): record for record in story}
    ran, refused = kinds.get("intent"), kinds.get("refusal")
    decided, lapsed = kinds.get("approval_decided"), kinds.get("approval_lapsed")
    call = ran or refused or kinds.get("approval_asked")
    if call is None or (ran is not None and ran.get("effect") == READ):
        return
    tool = str(call.get("tool") or call.get("requested_tool") or "")
    with_what = next((asked[at] for record in story if (at := str(record["audit_id"])) in asked), "")
    if ran is not None:
        outcome = str(ran["outcome"] or "unknown")
        came_of_it, done = ("done" if outcome == SUCCESS else f"ended: {outcome}"), outcome == SUCCESS
    elif decided is not None:
        denied = str(decided["decision"]).startswith(_DENIED)
        came_of_it, done = ("not done: denied" if denied else "approved, not yet done"), False
    elif lapsed is not None:
        came_of_it, done = "not done: nobody came in time", False
    elif refused is not None and not refused.get("approval_id"):
        came_of_it, done = f"refused: {refused['reason']}", False
    else:
        came_of_it, done = "waits for a decision", False
    what = f"{tool}: {with_what}" if with_what else tool
    yield Deed(str(call["at"]), what, _decision(decided, people), came_of_it, done)


def _calls(turn: ReportTurn) -> Sequence[Mapping[str, Any]]:
    made: Sequence[Mapping[str, Any]] = (turn.answer or {}).get("tools", ())
    return made


def _with(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {plain(value)}" for name, value in arguments.items() if name != "workspace")


def _decision(decided: Mapping[str, Any] | None, people: Mapping[str, str]) -> str:
    if decided is None:
        return ""
    word = "denied" if str(decided["decision"]).startswith(_DENIED) else "approved"
    who = person(decided["key_id"], people) + (f" ({decided['actor']})" if decided.get("actor") else "")
    comment = f": {decided['comment']}" if decided.get("comment") else ""
    return f"{word} by {who}{comment}"
