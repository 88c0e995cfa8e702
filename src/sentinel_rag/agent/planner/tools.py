"""From a frame to calls of tools: what each takes, the view that shows its answer, and plans of several steps.

"What triggered the newest alert of incident 55": the words that tell the thing are a question for one row; what is left
is asked of the id of that row. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentinel_rag.agent.planner.decisions import (
    WITHOUT,
    Call,
    Decision,
    DecisionKind,
    Unclear,
    View,
    ask,
    call,
    counted,
    told_of,
)
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import DEFAULT_LIMIT, MAX_LIMIT, SEVERITIES
from sentinel_rag.language.frames import Frame
from sentinel_rag.language.frames.asides import asides
from sentinel_rag.language.frames.phrases import SILENT, Item, Sense, settings, words_of
from sentinel_rag.language.frames.reader import part_of, part_with
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.text import toml_beside

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
        if frame.has("status") and (frame.has("kind:alert") or not (status := _status(frame, "query_incidents"))):
            return ask(frame, Unclear.NOT_TAKEN, *frame.all("status"))
        told |= {"status": status} if frame.has("status") else {}
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


_OWN = "_CL"
"""Ends the name of a table that people imported or made themselves."""
_WORDS = re.compile(r"\"[^\"]+\"|'[^']+'|[^\s,;?!=\"]+|=")


def called(column: str) -> re.Pattern[str]:
    """How people say the name of a column: UserAgent as "user agents", src_ip as "src ip"."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", column)
    words = r"[\W_]*".join(map(re.escape, parts or [column]))
    return re.compile(rf"(?<![^\W_]){words}(?:e?s)?(?![^\W_])", re.IGNORECASE)


def own_table(decision: Decision) -> str:
    """The table of people's own whose columns a question needs; empty where it asks for nothing in its rows."""
    frame, table = decision.frame, str(decision.frame.one("table"))
    more = frame.unread or {type_ for type_, values in frame.features.items() if values} - {"table", "ask", "attr"}
    whole = not more or frame.has("attr:columns") or any(each.tool == "list_tables" for each in decision.calls)
    return table if table.endswith(_OWN) and not whole else ""


def own_rows(frame: Frame, columns: Mapping[str, Sequence[str]]) -> Decision | None:
    """Rows of a table of people's own, or how many there are of each value of a column ("bytes by src_ip", "where the
    user is anna"); None where it is no such table, its columns are not known, or only what it is is asked."""
    table, by = str(frame.one("table")), settings(frame.language, "by")
    if not table.endswith(_OWN) or table not in columns or frame.has("attr:columns", "attr:duration", "meta"):
        return None
    text = frame.text.replace(table, " " * len(table)).replace(frame.time_said or "\0", " " * len(frame.time_said))
    words = {match.start(): match[0].rstrip(".:") for match in _WORDS.finditer(text)}
    told, read = _columns_said(frame, text, words, columns[table])
    filters: dict[str, JsonValue] = {"table": table, **told}
    known = (*frame.unread, *frame.all("name"), *frame.all("template"))
    strange = [word for at, word in words.items() if at not in read and word in known]
    if frame.has("symbol"):
        return ask(frame, Unclear.NOT_EXPRESSIBLE, *frame.all("symbol"))
    if "by" not in told and (grouped := [at for at, word in words.items() if word.lower() in by]):
        return ask(frame, Unclear.NO_COLUMN, *[words[at] for at in words if at > grouped[0]][:1], *columns[table])
    if strange and not told and strange == frame.all("name"):
        return call(frame, "search_logs", {"text": strange[0], "table": table, **frame.window})
    if strange:
        return ask(frame, Unclear.UNREAD, *strange)
    if not told and (frame.has("op:count") or not frame.has("order", "limit", "kind:data", "op:list")):
        return None
    asked, limit = frame.copy(), {"limit": int(str(frame.one("limit")))} if frame.one("limit") else {}
    asked.unread, asked.loose = [], []
    template = f"own_table_{'sums' if 'sum' in told else 'counts' if 'by' in told else 'rows'}"
    return call(asked, "run_kql_query", {"template": template, "parameters": filters, **frame.window, **limit})


def _columns_said(
    frame: Frame, text: str, words: Mapping[int, str], names: Iterable[str]
) -> tuple[dict[str, str], set[int]]:
    """The column that rows are counted by, the one that is added up, the one whose value is said with that value; and
    where the words stand that say so."""
    by, equals = settings(frame.language, "by"), settings(frame.language, "equals") | {"="}
    silent = {item.start for item in frame.items if item.silent}
    found = sorted((said.start(), -said.end(), name) for name in names for said in called(name).finditer(text))
    begins = {at for at, _, _ in found}
    told, read, mentioned, ended = dict[str, str](), set[int](), list[str](), 0
    for start, end, name in found:
        if start < ended:
            continue
        ended = -end
        read |= {at for at in words if start <= at < ended}
        behind = [at for at in words if at >= ended]
        equal = [at for at in behind[:2] if words[at].lower() in equals]
        value = next((at for at in behind if at not in equal and (not equal or at not in silent)), None)
        if any(word.lower() in by for word in [word for at, word in words.items() if at < start][-1:]):
            told["by"] = name
        elif value is None or value in begins | (silent - {*equal}) or words[value].lower() in by:
            mentioned.append(name)
        else:
            told |= {"column": name, "value": words[value].strip("\"'")}
            read.add(value)
    if mentioned and ("by" in told or frame.has("op:top")):
        told["sum" if "by" in told else "by"] = mentioned[0]
    return told, read


_NARROW_NO_RANKING = ("title", "tactic", "product", "name", "class", "owner")


def named_by(frame: Frame) -> Decision | None:
    """The things of one kind that the alerts or incidents of a list name ("which hosts are in these"); None where
    something else is asked, or no tool tells it."""
    kinds = frame.all("kind")
    lists = [kind for kind in kinds if kind in _LISTED]
    asks = len(kinds) == 2 and kinds[0] in RANKED and len(lists) == 1 and set(frame.all("attr")) <= {"title"}
    if not asks or not frame.has("plural") or frame.has(*told_of("types")["of_rows_alone"]):
        return None
    if lists == ["alert"] and (frame.has(*_NARROW_NO_RANKING) or frame.has("status")):
        narrowed = frame.copy()
        narrowed.features["kind"], narrowed.features["attr"], narrowed.features["op"] = ["alert"], [], []
        planned = to_tool(narrowed, "query_alerts")
        labels = _kind_labels(_OF_ITSELF.get(kinds[0], kinds[:1]))
        return replace(planned, frame=frame, view=View.PROPERTY, aspects=labels) if planned.calls else None
    severity = _severity(frame)
    if frame.has(*_NARROW_NO_RANKING) or severity is None or (lists == ["incident"] and severity):
        return None
    status = {"status": _status(frame, "query_incidents")} if frame.has("status") else {}
    return call(frame, "get_top_entities", {"kind": kinds[0], **frame.window, **severity, **status})


def _kind_labels(kinds: Iterable[str]) -> tuple[str, ...]:
    return tuple(_table("property")[f"kind:{kind}"] for kind in kinds if f"kind:{kind}" in _table("property"))


def of_the_list(frame: Frame, base: Decision, told: Frame) -> Frame:
    """`told`; where it asks for things of a kind behind a list of alerts or incidents ("which hosts?"), those of it."""
    listed = next((kind for kind in _LISTED if base.calls and base.calls[0].tool == f"query_{kind}s"), "")
    asks = any(kind in RANKED for kind in frame.all("kind")) and frame.has("plural") and len(base.calls) == 1
    if (
        listed
        and asks
        and not base.frame.has("incident", "name")
        and not frame.has(*_LISTED_KINDS, *told_of("types")["of_rows_alone"], "name")
    ):
        told.tell("kind", listed)
    return told


WATCHLISTS = Call("run_kql_query", {"template": "watchlists"})


def says_watchlist(frame: Frame) -> bool:
    """Whether the sentence speaks of watchlists."""
    return bool(_lists_said(frame)) or next(asides(frame.said, "watchlist", "all"), None) is not None


def _lists_said(frame: Frame) -> list[str]:
    named = [match["title"] for match in asides(frame.said, "watchlist", "named")]
    return [*named, *(match["known"] for match in asides(frame.said, "watchlist", "usual"))]


def on_watchlist(frame: Frame, aliases: Sequence[str]) -> Decision | None:
    """The watchlists, the items of the one that is named by words of its alias, whether a name is on it, or the alerts
    that name its items; None where no watchlist is meant."""
    said = _lists_said(frame)
    known = {alias: {word.rstrip("s") for word in words_of(_BROKEN.sub(" ", alias))} for alias in aliases}
    meant = [
        alias
        for words in (*said, *frame.unread)
        for alias, own in known.items()
        if fold(words) == fold(alias) or {word.rstrip("s") for word in words_of(words)} <= own
    ][:1]
    every = next(asides(frame.said, "watchlist", "all"), None) is not None
    if not (meant or every or (said and aliases and frame.unread)):
        return None
    names = [
        name for name in frame.all("name") if not {*words_of(name)} <= {*words_of(" ".join((*said, *frame.unread)))}
    ]
    alerts = frame.has("kind:alert", "kind:incident")
    if not meant and not (every and (names or not said or not alerts)):
        return ask(frame, Unclear.NO_WATCHLIST, *said[:1], *aliases)
    asked = frame.copy()
    asked.unread, asked.loose, asked.features["name"] = [], [], names
    asked.tell("meta", "watchlist")
    template = "watchlist_alerts" if alerts else "watchlist_items"
    window, contains = dict(frame.window) if alerts else {}, {"contains": names[0]} if names and not alerts else {}
    calls = tuple(
        Call("run_kql_query", {"template": template, "parameters": {"watchlist": alias, **contains}, **window})
        for alias in (meant or (aliases if names or alerts else ()))
    )
    return Decision(DecisionKind.CALL, asked, calls or (WATCHLISTS,), view=View.KQL)


_BROKEN = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def profiled(decision: Decision) -> Decision:
    """The decision; where it asks of a thing as a whole ("who is X", "is X compromised"), with the calls for all that
    is recorded of it: who it is, incidents, alerts, and what the logs say."""
    frame, told = decision.frame, _data()["profile"]
    kinds = frame.name_kinds(str(frame.one("name"))) or ("",)
    said = {(type_, str(value)) for type_, values in frame.features.items() for value in values} - {("name", "")}
    asks = any(f"{type_}:{value}" in told["asks"] for type_, value in said) or {type_ for type_, _ in said} == {"name"}
    allowed = all(type_ in told["beside"] or f"{type_}:{value}" in told["asks"] for type_, value in said)
    of_one = any(
        item.sense("topic") and not item.sense("whois") and not item.sense("topic", _ACTIVITY) for item in frame.items
    )
    first, read = decision.calls[:1], told["calls"].get(kinds[0], ())
    decided = decision.view in (View.ALERTS, View.KQL) and len(decision.calls) == 1 and not decision.then
    if not (asks and allowed and decided and read) or of_one or len(frame.all("name")) > 1 or frame.loose:
        return decision
    if first[0].arguments.get("template") not in (None, told["identity"]) or (frame.polar and not frame.has("claim")):
        return decision
    name = first[0].arguments.get("entity") or frame.whole.get(str(frame.one("name")), frame.one("name"))
    whose = {
        "entity": name,
        **{each: first[0].arguments[each] for each in ("entity_kind",) if each in first[0].arguments},
    }
    window = frame.window or told["window"]
    calls = [Call("query_incidents", whose), Call("query_alerts", {**whose, **frame.window})]
    for template, parameter in read.items():
        of_time = window if template != told["identity"] else {}
        calls.append(Call("run_kql_query", {"template": template, "parameters": {parameter: name}, **of_time}))
    rest = tuple(each for each in calls if _what_it_reads(each) != _what_it_reads(first[0]))
    if "template" in first[0].arguments:  # who it is holds at any time
        always = {each: value for each, value in first[0].arguments.items() if each not in frame.window}
        first = (Call(first[0].tool, always),)
    return replace(decision, calls=(*first, *rest), view=View.PROFILE, opening=())


def _what_it_reads(made: Call) -> str:
    return str(made.arguments.get("template", made.tool))


SIDE_BY_SIDE = ("op:compare", "attr:worse", "both", "not", "know:similar", "compare")
"""What holds two incidents beside each other."""
_SHARED = ("both", "compare:shared")
_OF_ITSELF = {
    "account": ("account", "mailbox", "sender"), "ip": ("ip",), "host": ("host",), "url": ("url", "domain"),
    "domain": ("domain", "url"), "file": ("file", "process"), "filehash": ("filehash",), "process": ("process", "file"),
}  # fmt: skip
"""Words of kinds that name a thing of those kinds again ("host dc-01"), and ask for nothing more of it."""


def shown(frame: Frame, tools: Sequence[str], view: View | None) -> tuple[View | None, tuple[str, ...]]:
    """The view of the results of `tools`, and the fields asked for; `view` is that of the row, where it tells one."""
    if view is not None:
        return view, _aspects_of(view, frame)
    if tools[0] not in _table("tool"):
        return None, ()
    view = View(_table("tool")[tools[0]])
    match view:
        case View.INCIDENT if frame.has("attr:analysis"):
            view = View.ANALYSIS
        case View.INCIDENT if frame.has("alert"):
            view = View.ALERT
        case View.INCIDENT if len(tools) > 1 and (frame.has(*SIDE_BY_SIDE) or not frame.has("attr", "kind")):
            view = View.COMPARISON
        case View.ALERTS if _properties(frame) and frame.has("name") and not frame.has("kind:alert"):
            view = View.PROPERTY
        case View.ALERTS | View.INCIDENTS if frame.has("op:count") and not frame.has("limit"):
            view = counted(view)
    return view, _aspects_of(view, frame)


def _aspects_of(view: View, frame: Frame) -> tuple[str, ...]:
    match view:
        case View.INCIDENT:
            return _fields(frame)
        case View.COMPARISON:
            side = "minus" if frame.has("not") else "shared" if frame.has(*_SHARED) else ""
            return (*((side,) if side else ()), *(each for each in _fields(frame) if each.startswith("entities:")))
        case View.ALERT:
            belongs = ("incident",) if frame.has("kind:incident") and not frame.has("attr") else ()
            return belongs or tuple(f"attribute:{each}" for each in _properties(frame)[:1])
        case View.PROPERTY:
            return _properties(frame)
        case View.NEIGHBOUR:
            at = next(item for item in frame.items if item.sense("relation"))
            behind = [item.text for item in frame.items if item.start >= at.end and not _of_the_place(item)]
            return str(frame.one("relation")), " ".join(behind)
        case View.ALERTS:
            fields = _told(frame, "alert")
            narrowed = frame.has("title", "name", "incident")
            return ("fields", *fields) if fields and narrowed else ()
        case View.TOP if frame.has("not:except"):
            return tuple(f"{WITHOUT}{name}" for name in frame.all("name"))
        case View.INCIDENTS if frame.has("attr:ids"):
            return ("ids",)
        case View.INCIDENTS if frame.has("title"):
            return _fields(frame)
        case _:
            return ()


def _fields(frame: Frame) -> tuple[str, ...]:
    """The fields of one incident; none where all of it is asked for. A state that is a filter is no field."""
    found = _told(frame, "incident")
    if not frame.has("incident"):
        # Of a list, a status or a severity says which rows are meant.
        asked = {name for feature, name in _table("incident").items() if ":" in feature and frame.has(feature)}
        found = tuple(each for each in found if each in asked)
    fields = [each for each in found if not each.startswith("entities:")]
    about = ("everything",) if frame.has("attr:detail") and len(found) > len(fields) else ()
    if frame.has("attr:reason") and not frame.has("status:Closed", "class"):
        # Why it is closed stands in its row; why it has its severity does not.
        found = tuple("why" if each == "severity" else each for each in found if each != "reason" or len(found) == 1)
    if frame.has("ask:when") and frame.has("status:Closed"):
        found = tuple("closed" if each == "status" else each for each in found)
    gone = {one for each in found for one in _tells().get(each, ())}
    return (*about, *(each for each in found if each not in gone), *(f"values:{each}" for each in _labels(frame)))


def _properties(frame: Frame) -> tuple[str, ...]:
    """Labels of what is asked of a thing, those of its properties before those of other things."""
    own = {one for name in frame.all("name") for kind in frame.name_kinds(name)[:1] for one in _OF_ITSELF.get(kind, ())}
    table = _table("property")
    kinds = [f"kind:{kind}" for kind in frame.all("kind") if kind not in own]
    if frame.has("ask:who") and frame.has("rel") and "account" not in own:
        kinds.append("kind:account")
    return tuple(dict.fromkeys((*_labels(frame), *(table[kind] for kind in kinds if kind in table))))


def _labels(frame: Frame) -> tuple[str, ...]:
    """Labels of the properties that are said with a word of their own."""
    table = _table("property")
    return tuple(table[f"prop:{value}"] for value in frame.all("prop") if f"prop:{value}" in table)


def _of_the_place(item: Item) -> bool:
    """True for words that say in which incident, and for those that mean nothing by themselves."""
    return item.silent or item.text.lstrip("#").isdecimal() or item.sense("kind", _INCIDENT) is not None


_INCIDENT, _ROWS = frozenset({"incident"}), frozenset({"incident", "alert"})


def asked_properties(frame: Frame) -> tuple[str, ...]:
    """Labels of what is asked for, in the order of the words behind the last one that asks; the first is meant."""
    table = _table("property")
    starts = [0, *(item.end for place, item in enumerate(frame.items) if _asks(frame, place))]
    for start in reversed(starts):
        behind = [item for item in frame.items if item.start >= start]
        said = [(f"{sense[0]}:{sense[1]}", item) for item in behind for sense in _asked_senses(item)]
        found = [(table[one], one, item) for one, item in said if one in table]
        noun = next((item for item in behind if item.sense("kind") or item.sense("prop") or item.sense("that")), None)
        if start and noun is not None and noun.sense("kind", _ROWS) is not None:
            return ()  # an alert is asked for, not a thing of one
        if len(found) > 1 and found[1][1].startswith("prop:") and found[1][2].start <= found[0][2].end + 3:
            found = found[1:]  # of "account SID" the SID is meant
        who = start and any(item.end == start and item.sense("ask", _WHO) for item in frame.items)
        if found or who:
            labels = [label for label, _, _ in found]
            first = [label for label in labels if label in _OF_A_PERSON] or ["account"] if who else []
            return tuple(dict.fromkeys((*first, *labels)))
    return ()


def asks_for_several(frame: Frame) -> bool:
    """True if the word for what is asked for stands in the plural: "which hosts", "what are the URLs"."""
    asked = asked_properties(frame)[:1]
    several = [item for item in frame.items if item.sense("plural") is not None]
    return any(label_of(sense) in asked for item in several for sense in item.senses) and not frame.has("one_of")


def _asked_senses(item: Item) -> list[Sense]:
    """The senses of a word in which it may be asked for, a sort of file before a kind of thing."""
    # "The address" may point at one that was spoken of; here it is a kind of thing as any other.
    senses = [("kind", value) if type_ == "that" else (type_, value) for type_, value in item.senses]
    return sorted((s for s in senses if s[0] in _PROPERTIES), key=lambda sense: _PROPERTIES.index(sense[0]))


def label_of(sense: Sense) -> str:
    """The label of the property that a word means; empty for another word."""
    return _table("property").get(f"{'kind' if sense[0] == 'that' else sense[0]}:{sense[1]}", "")


_PROPERTIES = ("sort", "prop", "kind")
_OF_A_PERSON = ("SID", "UPN", "email address", "Entra object id", "display name", "sender")
_ACTIVITY = frozenset({"activity"})
_WHO, _WHICH, _DETAIL = frozenset({"who"}), frozenset({"who", "what"}), frozenset({"detail"})


def _asks(frame: Frame, place: int) -> bool:
    """True for a word that asks; "which" and "who" inside a clause, and verbs of showing, tell something there."""
    item = frame.items[place]
    if item.sense("attr") is not None and item.sense("op") is None:
        return item.sense("attr", _DETAIL) is not None
    if item.sense("op", frozenset({"list"})) is None and item.sense("ask", _WHICH) is None:
        return False
    opens = frame.text[: item.start].rstrip()[-1:] in ("", *",;:.?!")
    before = next((one for one in reversed(frame.items[:place]) if not one.silent), None)
    follows = before is not None and (before.sense("op", frozenset({"list"})) is not None or before.type == "modal")
    asks_plainly = item.sense("ask") is not None and item.sense("relative") is None
    return opens or asks_plainly or follows or before is None


def _told(frame: Frame, table: str) -> tuple[str, ...]:
    """What a table calls the features of the frame, in the table's order."""
    return tuple(dict.fromkeys(name for feature, name in _table(table).items() if frame.has(feature)))


def _data() -> Mapping[str, Mapping[str, Any]]:
    return toml_beside(__package__, "views.toml")


def _table(name: str) -> Mapping[str, str]:
    return _data()[name]


def _tells() -> Mapping[str, Sequence[str]]:
    return _data()["tells"]


_LISTED = frozenset({"incident", "alert"})
_LISTED_KINDS = ("kind:incident", "kind:alert")
_RANKED = frozenset({"newest", "oldest", "severity"})
_FIRST = frozenset({"1"})
_QUALITIES = ("status", "severity", "class", "owner", "f", "pad", "definite")
"""Types of words between an order and its noun."""
_LINKS = ("of", "rel", "f", "kind", "definite", "ref")
_THINGS = ("lit", "name", "digits", "num")
_NUMBER = re.compile(r"\d{1,9}")
ALERT_ID = re.compile(r"(?:[a-z]{2})?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2}\d{6,24}_-?\d{1,12}", re.I)
"""Only an id of such a shape is asked about: nothing else that a row says becomes a part of a question."""


MOST_PARTS = 4


def parts_of(frame: Frame) -> tuple[str, ...]:
    """The questions that a sentence holds, in order: each that counts something of its own; itself alone if it is
    one."""
    counts = [item.start for item in frame.items if item.sense("op", frozenset({"count"})) is not None]
    begins = [0, *(start for start in counts if _asked_of_step(part_of(frame, 0, start)))][:MOST_PARTS]
    spans = list(zip(begins, [*begins[1:], len(frame.text)], strict=True))
    parts = [part_of(frame, begin, end) for begin, end in spans]
    if len(parts) < 2 or not all(part.has("kind") for part in parts):
        return (frame.said,)
    told = [frame.text[begin:end].rstrip(" ,;") for begin, end in spans]
    if not frame.other_window and set(words_of(frame.time_said)) <= set(words_of(told[-1])):
        # "How many alerts and how many incidents today": the time is that of both, where nothing else is said before.
        alike = [all(item.silent or item.type in ("op", "kind", "follow") for item in part.items) for part in parts]
        told[:-1] = [
            f"{text} {frame.time_said}" if same else text for text, same in zip(told[:-1], alike, strict=False)
        ]
    return tuple(told)


def _asked_of_step(frame: Frame) -> bool:
    """True for words that ask for something of their own."""
    return frame.has("kind") and frame.has("op:count", "attr")


@dataclass(frozen=True, slots=True)
class Steps:
    """`first` finds one row, an alert or an incident; `rest` is asked about it."""

    first: Frame
    rest: Frame
    finds_alert: bool

    def about(self, reference: str) -> Frame | None:
        """The question about the row of that id; None for an id of another shape."""
        if not (ALERT_ID if self.finds_alert else _NUMBER).fullmatch(reference):
            return None
        frame = self.rest.copy()
        frame.tell("incident", reference)
        if self.finds_alert and frame.has("attr:events"):
            frame.tell("alert_id", reference)
        of_its_incident = frame.has("kind:incident") and frame.has("attr", "status", "severity", "class")
        if self.finds_alert and not of_its_incident:
            frame.tell("alert", reference)
        return frame


def two_steps(frame: Frame) -> Steps | None:
    """What has to be found before the question can be asked; None if the question is about nothing such."""
    items = list(frame.items)
    span = next((found for place in range(len(items)) if (found := _span(items, place)) is not None), None)
    if span is None or frame.has("limit", "not", "except", "order:updated") or frame.unread or frame.around:
        return None
    begin, noun, end = span
    inner, outer = items[begin:end], [*items[:begin], *items[end:]]
    finds_alert = items[noun].sense("kind", frozenset({"alert"})) is not None
    first, rest = part_with(frame, inner), part_with(frame, outer)
    first.tell("singular", "one")
    if not first.has("order"):
        first.tell("order", "oldest")
        first.features.pop("ref", None)
    rest.window = {}
    asks = [attr for attr in rest.all("attr") if attr != "detail" or finds_alert]
    if not asks and not rest.has("kind") and not (rest.polar and rest.has("status", "severity", "class")):
        return None
    return Steps(first, rest, finds_alert) if not rest.has("op:count", "op:top", "op:compare") else None


def _span(items: list[Item], place: int) -> tuple[int, int, int] | None:
    """Where the words for one row begin, where their noun stands and where they end, for an order at `place`."""
    ranked = items[place].sense("order", _RANKED) is not None
    if not ranked and items[place].sense("ref", _FIRST) is None:
        return None
    noun = place + 1
    while noun < len(items) and items[noun].type in _QUALITIES:
        noun += 1
    if noun >= len(items) or items[noun].sense("kind", _LISTED) is None or items[noun].sense("plural") is not None:
        return None
    begin = place
    if place > 1 and items[place - 1].sense("of", frozenset({"s"})) is not None:
        begin = place - 2
    end = _end_of_link(items, noun + 1)
    # "The first alert" alone is the first of the list on the screen.
    return (begin, noun, end) if ranked or end > noun + 1 else None


def _end_of_link(items: list[Item], place: int) -> int:
    """Behind the thing that the noun is tied to ("of incident 55", "on host web-03"); `place` if there is none."""
    end = place
    while end < len(items) and any(items[end].sense(type_) is not None for type_ in _LINKS):
        if any(items[end].sense(type_) is not None for type_ in _THINGS):
            break
        end += 1
    named = end < len(items) and any(items[end].sense(type_) is not None for type_ in _THINGS)
    return end + 1 if named and end > place else place
