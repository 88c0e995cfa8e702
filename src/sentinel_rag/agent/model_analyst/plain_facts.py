"""What code says of a turn's calls where the model's words do not count: nothing was found, or nothing came back.

With zero data an answer holds zero facts, because no word of the model is in it. Every value stands in a result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions.scope import filters_shown, is_empty, say_partial, say_window
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Failed, Succeeded

CATALOGUES = frozenset({"list_kql_templates", "list_tables", "list_workspaces", "describe_table"})
"""Tools whose rows tell what there is to ask, and nothing of what happened."""
_NOUNS = {
    "query_incidents": "incidents",
    "get_incident_detail": "incidents",
    "query_alerts": "alerts",
    "get_alert_trend": "alerts",
    "get_alert_events": "events",
    "get_top_entities": "entities",
    "get_threat_summary": "incidents and alerts",
}
MOST_EMPTY = 4
"""Empty results that an answer tells of, the last ones; the footnote has all."""
_TO_CALLER = re.compile(r"\b(?:and|to) call again\b|\b(?:send|make) the call again\b", re.IGNORECASE)
_WRONG_ARGUMENT = "The model called it with an argument that it does not take: ask in other words."
_JSON_TYPES = frozenset({"integer", "number", "string", "boolean", "array", "object", "null"})
_WINDOW = ("time_window", "start_time", "end_time")
_SEVERITY = ("min_severity", "severity")


def found_nothing(run: ToolRun) -> bool:
    """True for a call that worked and came back without anything of what was asked."""
    match run.outcome:
        case Succeeded(result=DocumentResult()):
            return False
        case Succeeded():
            if run.call.tool_name == "get_alert_trend":
                return run.at("/summary/total") == 0
            if run.call.tool_name == "get_threat_summary":
                return not run.at("/summary/incidents/total") and not run.at("/summary/alerts/total")
            if run.call.tool_name == "get_alert_events" and run.at("/summary/alert_id"):
                return False
            return is_empty(run)
        case _:
            return False


def say_nothing_found(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """Each empty result: what was asked, in which window, whether the table holds rows at all, and what to try."""
    distinct = {(run.call.tool_name, str(dict(run.call.arguments))): run for run in runs}
    for run in list(distinct.values())[-MOST_EMPTY:]:
        template, parts = filters_shown(run)
        noun = _NOUNS.get(run.call.tool_name, "rows")
        about = run.call.arguments.get("template") or run.call.arguments.get("incident")
        if about and not template:
            template, parts = "{}", [Echo(str(about))]
        writer.say(f"No {noun} match" + (f" ({template})." if template else "."), *parts)
        say_window(writer, run)
        say_partial(writer, run)
        if run.at("/coverage/table_rows") == 0:
            writer.say(
                "The table behind it ({}) holds no rows at all: nothing was collected or imported yet.",
                writer.joined(run, "/coverage/tables", writer.number),
            )
            continue
        if run.at("/coverage/table_newest"):
            writer.say(
                "The table ({}) does hold rows, the newest of {}.",
                writer.joined(run, "/coverage/tables", writer.number),
                writer.time(run, "/coverage/table_newest"),
            )
        _say_what_to_try(writer, run)


def _say_what_to_try(writer: AnswerWriter, run: ToolRun) -> None:
    arguments = run.call.arguments
    tries = ["a wider window"] if any(name in arguments for name in _WINDOW) else []
    tries += ["a lower severity"] if any(name in arguments for name in _SEVERITY) else []
    tries += ["another spelling of the name"] if arguments.get("entity") or arguments.get("incident") else []
    if tries:
        writer.fixed(f"Try {' or '.join(tries)}.")


def say_what_came(writer: AnswerWriter, runs: Sequence[ToolRun]) -> None:
    """How many rows each call found, for a turn whose model gave no usable words about them; the same call once, as it
    came out last."""
    distinct = {(run.call.tool_name, str(dict(run.call.arguments))): run for run in runs}
    for run in distinct.values():
        if run.result is None:
            continue
        if run.at("/coverage/rows_total") is None:
            writer.say(f"Rows that {run.call.tool_name} returned: {{}}.", writer.number(run, "/coverage/rows_returned"))
        else:
            writer.say(f"Rows that {run.call.tool_name} found: {{}}.", writer.number(run, "/coverage/rows_total"))


def unsuccessful(runs: Sequence[ToolRun]) -> list[ToolRun]:
    """The calls to tell of: every refusal once, and each failure that no later call of the same tool made good."""
    told: list[ToolRun] = []
    seen: set[tuple[str, str]] = set()
    for place, run in enumerate(runs):
        match run.outcome:
            case Denied(rule_id=rule_id, approval_id=approval_id):
                key = (run.call.tool_name, approval_id or rule_id or "")
            case Failed(error=error):
                if any(later.worked and later.call.tool_name == run.call.tool_name for later in runs[place + 1 :]):
                    continue
                key = (run.call.tool_name, error.code.value)
            case _:
                continue
        if key not in seen:
            seen.add(key)
            told.append(_for_person(run))
    return told


def _for_person(run: ToolRun) -> ToolRun:
    """A failure without what only the writer of the call can do: the person did not choose its arguments."""
    match run.outcome:
        case Failed(error=error) if _TO_CALLER.search(error.next_step):
            step = _WRONG_ARGUMENT if error.code is QueryErrorCode.INVALID_ARGUMENT else "Ask again."
            allowed = () if set(error.allowed) <= _JSON_TYPES else error.allowed
            return replace(run, outcome=replace(run.outcome, error=replace(error, next_step=step, allowed=allowed)))
        case _:
            return run
