"""A plan carried out: its calls, a second look where the first found nothing, the answer, and what is remembered of it.

Below the analyst, which decides what to do, and above `turn`, which makes the calls.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sentinel_rag.agent.answers.compute import NAME, computed_run
from sentinel_rag.agent.answers.renderer import RenderedView, say_numbered
from sentinel_rag.agent.answers.results import Results, numbered
from sentinel_rag.agent.answers.writer import AnswerWriter, Echo
from sentinel_rag.agent.instruction_text import suspicions
from sentinel_rag.agent.offline import other_readings, query_rows, related, relations, workspaces
from sentinel_rag.agent.offline.composing import compose, open_with_verdict
from sentinel_rag.agent.offline.turn import MISSHAPEN, OfflineTurn
from sentinel_rag.agent.planner import Decision, DecisionKind
from sentinel_rag.agent.planner.decisions import Plan, PlannedCall, View, things
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.things import ListItem, shown_text, told_in
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import format_time, parse_time
from sentinel_rag.contracts.tool_calls import ToolCall
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT


async def carry_out(turn: OfflineTurn, plan: Plan) -> Answer:
    """The answer to `plan`, whatever its calls come back with."""
    plan, runs = await _run_with_second_look(turn, plan)
    writer = turn.writer()
    try:
        runs = await _walked(turn, plan, runs)
        composed = compose(writer, plan, runs)
        open_with_verdict(writer, plan, runs)
    except MISSHAPEN:
        return turn.misshapen_answer(runs)
    workspaces.say_asked_alone(writer, turn.conversation, runs)
    say_remarks(writer, plan, runs)
    if composed.outcome is Outcome.NO_DATA:
        composed = await _asked_back(turn, writer, plan, runs) or composed
    answer = turn.answer(writer, composed)
    _remember(turn, plan, composed, answer)
    return answer


async def _walked(turn: OfflineTurn, plan: Plan, runs: list[ToolRun]) -> list[ToolRun]:
    """The runs with those that follow from them where one thing is looked for along the alerts, in bounded rounds."""
    for _ in range(relations.MOST_ROUNDS if plan.view is View.ATTRIBUTE else 0):
        closer = relations.next_calls(plan, runs)
        if not closer:
            break
        runs = [*runs, *await turn.run(closer)]
    return runs


async def _run_with_second_look(turn: OfflineTurn, plan: Plan) -> tuple[Plan, list[ToolRun]]:
    """The runs of `plan`, or of what it became where other calls answer it better."""
    runs = await _run_plan(turn, plan)
    again = query_rows.grouped(plan, runs) or other_readings.other_calls(plan, runs)
    if again is not None:
        more = await (_calculated(turn, again) if again.then else turn.run(again.calls))
        if any(run.rows for run in more):
            plan, runs = again, more
    while (following := related.beside(plan, runs)) is not None:
        runs = await turn.run(following.calls) if following.calls != plan.calls else runs
        plan = following
    if plan.view is View.INCIDENT and plan.calls[0].tool == "query_incidents" and len(runs[0].rows) == 1:
        detail = PlannedCall("get_incident_detail", {"incident": str(runs[0].rows[0].get("number"))})
        plan = replace(plan, calls=(detail,))
        runs = await _run_plan(turn, plan)
    return plan, runs


async def _run_plan(turn: OfflineTurn, plan: Plan) -> list[ToolRun]:
    calls = plan.calls
    if plan.then:
        return await _calculated(turn, plan)
    if workspaces.in_sections(plan, turn.conversation):
        (listed,) = await turn.run((workspaces.WORKSPACES,))
        calls = workspaces.calls_for_each(plan, listed)
    runs = await turn.run(calls)
    return [await turn.whole(run) for run in runs] if _needs_whole_incident(plan) else runs


async def _calculated(turn: OfflineTurn, plan: Plan) -> list[ToolRun]:
    """The runs of the calls, every page of them where rows are looked at, and those of the calculations."""
    pages = [await _pages(turn, call) if plan.chooses_rows else await turn.run((call,)) for call in plan.calls]
    runs = [[await turn.whole(run) for run in each] for each in pages]
    if not any(run.rows for each in runs for run in each):  # no column to calculate with
        return [run for each in runs for run in each]
    results = Results()
    for run in (run for each in runs for run in each):
        results.add(numbered(run))
    refs = {f"${place}": ",".join(run.call.call_id for run in each) for place, each in enumerate(runs, start=1)}
    made = []
    for step in plan.then:
        arguments = {name: refs.get(str(value), value) for name, value in step.items()}
        call = ToolCall(turn.conversation.next_call_id(), turn.session_id, NAME, arguments)
        run, result = computed_run(call, results, now=turn.now.moment)
        made.append(run)
        if result is not None:
            results.add(result)
    turn.runs += made
    return [*(run for each in runs for run in each), *made]


_OF_ITS_ROW = frozenset(
    {"owner", "severity", "status", "created", "updated", "closed", "duration", "ids", "classification", "closer",
     "reopened", "response", "description"}
)  # fmt: skip
"""Fields that an incident's compact form holds too."""


def _needs_whole_incident(plan: Plan) -> bool:
    """False if the compact form of an incident answers the question: it keeps every field but not every list."""
    return plan.view is not View.INCIDENT or not plan.aspects or not _OF_ITS_ROW.issuperset(plan.aspects)


MOST_PAGES = 10
"""Pages of a list of which something is left out; more rows than that are told as not looked at."""


async def _pages(turn: OfflineTurn, call: PlannedCall) -> list[ToolRun]:
    """Every row of a list, page by page."""
    runs: list[ToolRun] = []
    seen = 0
    for _ in range(MOST_PAGES):
        paged = replace(call, arguments={**call.arguments, "offset": seen}) if seen else call
        (run,) = await turn.run((paged,))
        runs.append(run)
        seen += len(run.rows)
        if not run.rows or run.result is None or seen >= (run.result.coverage.rows_total or 0):
            break
    return runs


async def _asked_back(
    turn: OfflineTurn, writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]
) -> RenderedView | None:
    """A question back in the place of "none": with names of the workspace that are like the one that found nothing, or
    about a word that nobody knew, whose absence is no answer."""
    sought = other_readings.sought(plan)
    if plan.then or any(run.result is None for run in runs) or (sought is None and not plan.unknown):
        return None
    offers = other_readings.offers(plan, await turn.names()) if sought is not None else ()
    if not offers and not plan.unknown:
        return None
    writer.lines.clear()
    if sought is not None and offers:
        none = "Nothing names {}. There are names like it; which one do you mean? Answer with [n]."
        writer.say_none(runs, none, Echo(sought[0]))
        say_numbered(writer, offers)
    else:
        words = plain(" ".join(plan.unknown))
        writer.fixed(
            f"I do not know “{words}”, and nothing here is called so or has it in its name. Say it in other words."
        )
    return RenderedView(outcome=Outcome.CLARIFICATION, offers=offers)


def _remember(turn: OfflineTurn, plan: Plan, composed: RenderedView, answer: Answer) -> None:
    """What the next question may lean on: what was listed under which numbers, what was told of, what was proposed."""
    talk, told = turn.conversation.talk, shown_text(answer)
    numbered = bool(composed.items) and f"[{composed.first + 1}]" in told
    on_screen = not composed.items and re.search(r"\[1\](?!\S)", told) is not None
    offers = [
        replace(option, number=place if on_screen else 0) for place, option in enumerate(composed.offers, start=1)
    ]
    if composed.outcome is Outcome.CLARIFICATION and numbered:
        # One of the listed things is meant; what was asked is then asked of it alone.
        frame = plan.frame.copy()
        for told_by_words in ("title", "guess", "singled"):
            frame.features.pop(told_by_words, None)
        offers = list(things(frame, composed.items))
    of_alert = plan.view in (View.ALERT, View.EVENTS)
    incident = ListItem("incident", composed.incident, incident=composed.incident) if composed.incident else None
    about = (composed.entity, *((incident, composed.alert) if of_alert else (composed.alert, incident)))
    result = turn.runs[-1].result if turn.runs else None
    kind = DecisionKind.ASK if composed.outcome is Outcome.CLARIFICATION else DecisionKind.CALL
    talk.remember(
        Decision(kind, plan.frame, plan.calls, view=plan.view, aspects=plan.aspects, then=plan.then),
        composed.items if numbered else (),
        first=composed.first,
        total=None if result is None else result.coverage.rows_total,
        told=(*told_in(turn.runs, told), *(() if numbered else composed.items)),
        about=[item for item in about if item is not None],
        offers=offers,
        found=composed.outcome is Outcome.ANSWERED,
    )
    talk.moment = _told_moment(plan, turn.runs[-1:])


# --- what an answer adds


_OWN_TEXT = frozenset({"list_kql_templates", "list_tables", "list_workspaces"})
"""Tools whose rows are not from the logs."""


def say_remarks(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> None:
    """Everything that the answer to `plan` has to add."""
    asked = _asked_for(runs)
    if plan.view is not View.ATTRIBUTE and (dropped := _names_left_out(plan, asked)):
        writer.say("I looked nothing up for {}; ask about it by itself.", Echo(", ".join(dropped)))
    if int(plan.frame.one("limit") or 0) > MAX_LIMIT:
        writer.say("More than {} rows do not come at once.", Echo(str(MAX_LIMIT)))
    say_instructions(writer, plan.view, runs)


def say_instructions(writer: AnswerWriter, view: View, runs: Sequence[ToolRun]) -> None:
    """One note if a text of the rows reads like an instruction: it is shown as data and changes nothing.

    An answer about one incident or alert tells of every such text; a list or a search of those that it shows. A
    question that ends the answer stays its end.
    """
    found = suspicions([run for run in runs if run.call.tool_name not in _OWN_TEXT])
    if view not in (View.INCIDENT, View.ANALYSIS, View.ALERT):
        found = [each for each in found if writer.shows(each.text)]
    if not found:
        return
    last = writer.lines.pop() if writer.lines and writer.lines[-1].text.endswith("?") else None
    first = writer.words(found[0].run, found[0].pointer, limit=240)
    if len(found) == 1:
        writer.say(
            "Note: a text in these rows reads like an instruction. It came from the logs, is shown here as data "
            "and was not followed: {}",
            first,
        )
    else:
        writer.say(
            "Note: texts in these rows read like instructions. They came from the logs, are shown here as data "
            "and were not followed. The first of them: {}",
            first,
        )
        cells = [[writer.cell(each.run, each.pointer, limit=600)] for each in found]
        writer.table("Texts that read like instructions", ("Text",), cells, folded=True)
    if last is not None:
        writer.lines.append(replace(last, goes_on=False))


def _names_left_out(plan: Plan, asked: str) -> list[str]:
    """Things that the question names beside others and that no call asked for."""
    names, asked = [plain(name) for name in plan.frame.all("name")], asked.replace("\\\\", "\\")
    forms = {name: (name, plan.frame.whole.get(name, name)) for name in names}
    left = [name for name in names if not any(form.lower() in asked for form in forms[name])]
    return left if len(left) < len(names) or plan.view is View.KQL else []


def _asked_for(runs: Sequence[ToolRun]) -> str:
    """The arguments of all calls as one text in lower case."""
    return " ".join(str(dict(run.call.arguments)) for run in runs).lower()


# --- the time that was told


_BUCKETS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "1d": timedelta(days=1), "7d": timedelta(days=7)}
_SUMMER_TIME = timedelta(hours=1)


def _told_moment(plan: Plan, runs: Sequence[ToolRun]) -> dict[str, str]:
    """The bucket that a trend told of, as a window; empty for other answers."""
    if plan.view is not View.TREND or len(runs) != 1:
        return {}
    run = runs[0]
    rows = list(run.rows)
    place = next((at for at, row in enumerate(rows) if row.get("time") == run.at("/summary/peak_time")), None)
    if plan.frame.has("calm") and rows:
        place = min(range(len(rows)), key=lambda each: _count(rows[each]))
    length = _BUCKETS.get(str(run.at("/summary/interval") or ""))
    if place is None or length is None:
        return {}
    begin = str(rows[place]["time"])
    end = parse_time(begin) + length
    following = parse_time(str(rows[place + 1]["time"])) if place + 1 < len(rows) else end
    # Where the clocks change, the next bucket says how long this one is; a bucket without rows may be left out.
    end = following if abs(following - end) <= _SUMMER_TIME < length else end
    return {"start_time": begin, "end_time": format_time(end)}


def _count(row: Mapping[str, object]) -> int:
    return int(str(row.get("count") or 0))
