"""What code says of a turn's calls where the model's words do not count: nothing was found, or nothing came back.

With zero data an answer holds zero facts, because no word of the model is in it. Every value stands in a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.models.port import ModelToolCall
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.compositions.changes import call_text
from sentinel_rag.agent.offline.compositions.scope import filters_shown, is_empty, say_partial, say_window
from sentinel_rag.agent.row_text import plain
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
_OF_THE_MODEL = frozenset({QueryErrorCode.INVALID_ARGUMENT, QueryErrorCode.QUERY_REJECTED})
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
    """How many rows the calls found, for a turn whose model gave no usable words about them. Calls of one tool that
    found as many are told once; the footnote has each."""
    told: set[tuple[str, str, str]] = set()
    for run in runs:
        if run.result is None:
            continue
        known = run.at("/coverage/rows_total") is not None
        verb, pointer = ("found", "/coverage/rows_total") if known else ("returned", "/coverage/rows_returned")
        said = (run.call.tool_name, verb, str(run.at(pointer)))
        if said not in told:
            told.add(said)
            writer.say(f"Rows that {run.call.tool_name} {verb}: {{}}.", writer.number(run, pointer))


def say_what_was_changed(writer: AnswerWriter, runs: Sequence[ToolRun], *, when: str = "") -> None:
    """What each call that changed something says of it, whatever the model says. A tool that tells no fields is told
    by its call."""
    for run in runs:
        made = run.at("/rows/0/changes")
        count = len(made) if isinstance(made, list | tuple) else 0
        if not count or run.at("/rows/0/number") is None:
            writer.fixed(f"This change was made: {call_text(run.call.tool_name, run.call.arguments)}.")
            continue
        writer.say(f"Incident {{}} was changed{when}:", writer.number(run, "/rows/0/number"))
        for place in range(count):
            fields = (writer.cell(run, f"/rows/0/changes/{place}/{key}") for key in ("field", "before", "after"))
            writer.say("- {}: {} → {}", *fields)


def say_faulty_calls(writer: AnswerWriter, calls: Sequence[ModelToolCall]) -> None:
    """Calls of the model that could not be read, each reason once."""
    for name, why in dict.fromkeys((call.name, call.explanation) for call in calls):
        writer.fixed(f"The model's call of {plain(name)} did not run: {plain(why)}")


def unsuccessful(runs: Sequence[ToolRun]) -> list[ToolRun]:
    """The calls to tell of: every refusal once, and each failure that no later call made good. What a model got wrong
    in an argument or a query and found another way for is no failure."""
    told: list[ToolRun] = []
    seen: set[tuple[str, str]] = set()
    for place, run in enumerate(runs):
        match run.outcome:
            case Denied(rule_id=rule_id, approval_id=approval_id):
                key = (run.call.tool_name, approval_id or rule_id or "")
            case Failed(error=error):
                own_fault = error.code in _OF_THE_MODEL
                if any(
                    later.worked and (own_fault or later.call.tool_name == run.call.tool_name)
                    for later in runs[place + 1 :]
                ):
                    continue
                key = (run.call.tool_name, error.code.value)
            case _:
                continue
        if key not in seen:
            seen.add(key)
            told.append(run)
    return told
