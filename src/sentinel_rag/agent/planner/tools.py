"""What each tool takes: the arguments of a call out of a frame. What has no place in it is asked back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sentinel_rag.agent.planner.decisions import Call, Decision, DecisionKind, Unclear, ask, call
from sentinel_rag.agent.planner.rows import told_of
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, SEVERITIES
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.phrases import SILENT

RANKED = ("account", "host", "ip", "url", "file", "process", "mailbox", "filehash", "malware")
_NAMED_KINDS = tuple(f"kind:{kind}" for kind in RANKED)
NARROWING = (
    "severity", "min", "above", "status", "title", "owner", "name", "incident", "product", "tactic", "class",
    "without", "not", "both", "closed_by",
)  # fmt: skip
_INHERITED = ("class", "severity", "min", "above", "status", "owner", "product", "tactic")
_NOT_SETTLED = ("New", "InProgress")
_OPEN_ALERTS = "Alerts have no status Open. New and InProgress are not settled yet, so I asked for both."
_STATUS_OF_INCIDENTS = {"InProgress": "Active", "Dismissed": "Closed"}
_STATUS_OF_ALERTS = {"Closed": "Resolved", "Active": "InProgress", "Open": "New"}
_INTERVALS = {"hour": ("1h", "6h"), "day": ("1d", "7d"), "week": ("7d",)}
"""Steps of a trend by their unit, the first one where no number was said."""
_ROWS_WITH_STEPS = 5
"""Rows for which the tool tells steps of remediation."""


def to_tool(frame: Frame, tool: str) -> Decision:
    """A call of `tool`, or the question back that its arguments raise."""
    takes = told_of("takes")[tool]
    for feature in NARROWING:
        if tool == "get_top_entities" and frame.has("not:except") and feature in ("not", "name"):
            continue  # rows of that name are left out of what comes back
        if tool == "get_incident_detail" and feature == "not" and not frame.has("not:except"):
            continue  # the whole record tells what is not there: "is 40 taken or not"
        if frame.has(feature) and feature not in takes:
            if feature in ("not", "without"):
                return ask(frame, Unclear.CANNOT_LEAVE_OUT)
            return ask(frame, Unclear.NOT_TAKEN, ", ".join(frame.all(feature)))
    if frame.has("class") and frame.has("status:Open"):
        return ask(frame, Unclear.CANNOT_LEAVE_OUT)
    for feature in ("tactic", "product"):
        if len(frame.all(feature)) > 1:
            return ask(frame, Unclear.NOT_TAKEN, *frame.all(feature)[1:])
    if tool == "get_threat_summary" and frame.has("status") and not frame.has("status:Open"):
        return ask(frame, Unclear.NOT_TAKEN, *frame.all("status"))
    for feature in ("problem", "symbol"):
        if frame.has(feature):
            return ask(frame, Unclear.NOT_EXPRESSIBLE, str(frame.one(feature)))
    if tool == "get_incident_detail":
        whole = {"detail": "full"} if frame.has("all") and not frame.has("kind:entity", *_NAMED_KINDS) else {}
        return call(frame, tool, {"incident": frame.all("incident")[0], **whole})
    if tool in ("list_tables", "list_workspaces"):
        return call(frame, tool, {})
    if tool == "search_logs":
        table = {"table": frame.one("table")} if frame.has("table") else {}
        return call(frame, tool, {"text": (*frame.all("name"), *frame.all("title"))[0], **table, **frame.window})
    severity = _severity(frame)
    if severity is None and tool.startswith("query_") and frame.has("op:count") and not frame.has("min"):
        return _each_severity(frame, tool)
    if severity is None:
        return ask(frame, Unclear.ONE_SEVERITY)
    told: dict[str, Any] = dict(frame.window)
    if tool != "get_threat_summary":
        told |= severity
    if tool.startswith("query_"):
        told |= _filters(frame, tool)
    if tool == "get_top_entities":
        told["kind"] = next(k for k in (*frame.all("kind"), *frame.all("group"), "account") if k in RANKED)
    if tool == "get_alert_trend":
        unit = next((u for u in (*frame.all("group"), *frame.all("unit")) if u in _INTERVALS), None)
        if unit:
            told["interval"] = f"{frame.one('every')}{unit[0]}" if frame.has("every") else _INTERVALS[unit][0]
            if told["interval"] not in _INTERVALS[unit]:
                return ask(frame, Unclear.NOT_TAKEN, told["interval"])
    if tool not in ("get_alert_trend", "get_threat_summary"):
        told |= _limit(frame, tool, told)
    if tool == "query_alerts" and set(frame.all("status")) == {"Open"}:
        both = tuple(Call(tool, {**told, "status": status}) for status in _NOT_SETTLED)
        return Decision(DecisionKind.CALL, frame, calls=both, opening=(_OPEN_ALERTS,))
    return call(frame, tool, told)


def lost(frame: Frame, tool: str, more: Iterable[str] = ()) -> list[str]:
    """The words that a call of `tool` would leave out: none of their senses has a place in it."""
    if tool not in told_of("carries"):
        return []
    carried = {*told_of("carries")["every"], *told_of("carries")[tool], *told_of("takes")[tool], *more} - {"plural"}
    carried |= {f"kind:{kind}" for kind in frame.all("of_kind")}
    titles = " ".join(frame.all("title"))
    inherited = [
        value
        for type_ in _INHERITED
        if type_ not in carried and not any(item.sense(type_) for item in frame.items)
        for value in frame.all(type_)
        if f"{type_}:{value}" not in carried and value not in frame.text
    ]  # from the question before: no word of this one says it
    return inherited + [
        item.text
        for item in frame.items
        if not any(type_ in SILENT for type_, _ in item.senses)
        and item.text not in frame.loose
        and item.text not in titles
        and all(type_ not in carried and f"{type_}:{value}" not in carried for type_, value in item.senses)
    ]


def _each_severity(frame: Frame, tool: str) -> Decision:
    """One call for each of several severities that are no threshold."""
    decision = Decision(DecisionKind.CALL, frame)
    for severity in dict.fromkeys(frame.all("severity")):
        one = frame.copy()
        one.features["severity"] = [severity]
        planned = to_tool(one, tool)
        if not planned.calls:
            return planned
        decision = replace(decision, calls=(*decision.calls, *planned.calls), opening=planned.opening)
    return decision


def _severity(frame: Frame) -> dict[str, str] | None:
    """One severity, or a threshold; None where no tool can express it."""
    if frame.has("above"):
        above = SEVERITIES.index(str(frame.one("above"))) + 1
        return {"min_severity": SEVERITIES[above]} if above < len(SEVERITIES) else None
    if frame.one("min"):
        return {"min_severity": str(frame.one("min"))}
    named = sorted({SEVERITIES.index(severity) for severity in frame.all("severity")})
    if not named:
        return {}
    if len(named) == 1:
        return {"severity": SEVERITIES[named[0]]}
    return {"min_severity": SEVERITIES[named[0]]} if named == list(range(named[0], len(SEVERITIES))) else None


def _filters(frame: Frame, tool: str) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if frame.has("title"):
        told["title_contains" if tool == "query_incidents" else "name_contains"] = " ".join(frame.all("title"))
    if frame.has("name"):
        name = frame.all("name")[0]
        told["entity"] = name if "." in name or "-" in name else frame.whole.get(name, name)
        of_kind = [
            kind for kind in frame.all("of_kind") if len(frame.all("of_kind")) == 1 or kind in frame.kinds.get(name, ())
        ]
        told |= {"entity_kind": of_kind[0]} if of_kind else {}
    if tool == "query_incidents":
        told |= {"owner": frame.one("owner")} if frame.has("owner") else {}
        told |= {"classification": frame.one("class")} if len(frame.all("class")) == 1 else {}
        told |= {"closed_by": frame.one("closed_by")} if frame.has("closed_by") else {}
    else:
        told |= {name: frame.one(name) for name in ("incident", "product", "tactic") if frame.has(name)}
        if frame.has("alert") and "incident" in told:
            told["alert_id"] = told.pop("incident")
    status = _status(frame, tool)
    if status:
        told["status"] = status
    if frame.has("class"):
        told |= {"status": "Closed"} | (
            {"time_field": "closed"} if frame.window and not frame.has("when:created") else {}
        )
    if tool == "query_incidents" and frame.window:
        # "Closed last week" tells when they were closed; "incidents of last week that are closed" when they came.
        closed = frame.has("when:closed") or not frame.has("kind:incident", "when:created")
        if status == "Closed" and closed:
            told["time_field"] = "closed"
        if frame.has("attr:updated"):
            told["time_field"] = "updated"
    if frame.has("offset"):
        told["offset"] = int(str(frame.one("offset")))
    order = next((one for one in frame.all("order") if one != "top"), None)
    if frame.has("order:top") and frame.has("group:severity"):
        order = "severity"
    if order and (tool == "query_incidents" or order != "updated"):
        told["order"] = order
    return told


def _status(frame: Frame, tool: str) -> str | None:
    named = frame.all("status")
    exact = [one for one in named if one != "Open"] or named  # "that are still at new"
    status = "Open" if {"New", "Active"} <= set(named) and tool == "query_incidents" else next(iter(exact), None)
    table = _STATUS_OF_INCIDENTS if tool == "query_incidents" else _STATUS_OF_ALERTS
    return table.get(status, status) if status else None


def _limit(frame: Frame, tool: str, told: dict[str, Any]) -> dict[str, Any]:
    if tool == "get_top_entities" and frame.has("not:except"):
        return {"limit": min(MAX_LIMIT, int(frame.one("limit") or DEFAULT_LIMIT) + len(frame.all("name")))}
    if frame.one("limit"):
        return {"limit": max(1, int(str(frame.one("limit"))))}
    if not tool.startswith("query_"):
        return {}
    if frame.has("attr:remediation") and tool == "query_alerts":
        return {"limit": _ROWS_WITH_STEPS}
    if told.get("order") and frame.has("singular"):
        return {"limit": 1}
    return {"limit": MAX_LIMIT} if frame.has("all", "class") else {}
