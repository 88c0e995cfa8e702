"""What the gateway's journal says of a session: actions, refusals, and people's decisions about them.

Arguments are taken from the answers, which hold what the agent had, and never from the journal: a record may hold what
the policy hides from the agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sentinel_rag.surfaces.reports.model import Action, ReportTurn

Json = Mapping[str, Any]

READ = "read"


def actions_of(records: Sequence[Json], turns: Sequence[ReportTurn], people: Mapping[str, str]) -> tuple[Action, ...]:
    """Everything but calls that only read and were allowed, in the order of the journal. `records` are in the form of
    `sentinel audit show --json`; without any, what the answers tell of refused calls is all there is."""
    if not records:
        return tuple(_refused(turns))
    asked = asked_for(turns)
    found = (_action(entry["record"], entry.get("outcome"), asked, people) for entry in records)
    return tuple(action for action in found if action is not None)


def asked_for(turns: Sequence[ReportTurn]) -> dict[str, str]:
    """The arguments of each call by its audit id."""
    return {
        str(trace["audit_id"]): plain(trace["arguments"])
        for turn in turns
        for trace in (turn.answer or {}).get("tools", ())
    }


def person(key_id: object, people: Mapping[str, str]) -> str:
    """Whose key it is; its id where nobody knows."""
    return people.get(str(key_id), str(key_id))


def of_approvals(records: Sequence[Json]) -> frozenset[str]:
    """Audit ids of refused calls that a person was asked about: what became of them is told of the approval."""
    entries = [entry["record"] for entry in records]
    return frozenset(
        str(record["audit_id"]) for record in entries if record["kind"] == "refusal" and record.get("approval_id")
    )


def _refused(turns: Sequence[ReportTurn]) -> Iterator[Action]:
    for turn in turns:
        for trace in (turn.answer or {}).get("tools", ()):
            if trace["status"] == "denied":
                said = f"denied ({trace['detail']})" if trace["detail"] else "denied"
                yield Action(turn.asked_at, trace["name"], plain(trace["arguments"]), said, trace["audit_id"])


def waiting(records: Sequence[Json]) -> tuple[str, ...]:
    """Ids of approvals that nobody has decided, and whose time is not known to be over."""
    asked = [str(entry["record"]["audit_id"]) for entry in records if entry["record"]["kind"] == "approval_asked"]
    over = {
        str(entry["record"]["audit_id"])
        for entry in records
        if entry["record"]["kind"] in ("approval_decided", "approval_lapsed")
    }
    return tuple(each for each in asked if each not in over)


def plain(value: Any) -> str:
    """A JSON value on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _action(record: Json, outcome: str | None, asked: Mapping[str, str], people: Mapping[str, str]) -> Action | None:
    kind, tool = str(record["kind"]), str(record.get("tool") or record.get("requested_tool") or "")
    audit_id, at = str(record["audit_id"]), str(record["at"])
    approval = str(record.get("approval_id") or "")
    what = asked.get(audit_id, "")
    if kind == "intent" and record.get("effect") != READ:
        by = " after approval" if approval else ""
        return Action(at, tool, what, f"allowed{by}; outcome: {outcome or 'unknown'}", audit_id, approval)
    if kind == "refusal":
        rule = f", rule {record['rule_id']}" if record.get("rule_id") else ""
        waits = "; waits for approval" if approval else ""
        return Action(at, tool, what, f"denied ({record['reason']}{rule}){waits}", audit_id, approval)
    if kind == "approval_asked":
        return Action(at, tool, what, f"a person was asked: {record['why']}", audit_id, audit_id)
    if kind == "approval_decided":
        word = "denied" if str(record["decision"]).startswith("den") else "approved"
        who = person(record["key_id"], people) + (f" ({record['actor']})" if record.get("actor") else "")
        comment = f": {record['comment']}" if record.get("comment") else ""
        return Action(at, tool, what, f"{word} by {who}{comment}", audit_id, audit_id)
    if kind == "approval_lapsed":
        return Action(at, tool, what, f"nobody came in time (it was {record['state']})", audit_id, audit_id)
    return None
