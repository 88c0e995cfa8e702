"""The analyst without a model: read the question, decide, call, write, check.

Implements `contracts.ports.Analyst`. Deterministic: the same question in the same conversation plans the same calls,
whatever the rows say. It holds a gateway and references, no facts and no credential.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.agent.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.conversation import AskedCall, Conversation, Conversations, ListItem, Offer
from sentinel_rag.agent.footnote import FREEFORM_TOOL, footnote
from sentinel_rag.agent.grounding import KnownAtoms, broken_evidence, checked_lines, checked_table
from sentinel_rag.agent.instruction_text import suspicions
from sentinel_rag.agent.offline import alert_walk, directory, every_workspace, follow_up, outside, second_look
from sentinel_rag.agent.offline.arguments import unused_words
from sentinel_rag.agent.offline.compositions import Composed, compose, freeform, say_failures, say_numbered
from sentinel_rag.agent.offline.compositions.verdicts import open_with_verdict
from sentinel_rag.agent.offline.elsewhere import Elsewhere, When, elsewhere_plan
from sentinel_rag.agent.offline.incident_plans import needs_whole_incident
from sentinel_rag.agent.offline.kql_questions import SWITCHED_OFF, kql_in
from sentinel_rag.agent.offline.moment_kinds import Now
from sentinel_rag.agent.offline.parts import joined, parts_of
from sentinel_rag.agent.offline.plan import Ask, NeedTemplates, Plan, PlannedCall, Reply, View
from sentinel_rag.agent.offline.planner import decide
from sentinel_rag.agent.offline.reading import Reading, read_question
from sentinel_rag.agent.offline.workspace_words import (
    WorkspaceWords,
    asks_for_workspaces,
    placed,
    read_workspace,
    remember_places,
)
from sentinel_rag.agent.retry import RetryOnce
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun, run_calls
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Clock, ProgressListener, ToolGateway
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed, ToolCall
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES, MAX_LIMIT


def _misshapen(run: ToolRun) -> ToolRun:
    """A run whose result cannot be told because it does not have the agreed shape."""
    if not run.worked:
        return run
    error = QueryError(
        code=QueryErrorCode.PROTOCOL,
        message=f"The result of {run.call.tool_name} does not have the agreed shape.",
        next_step="The agent and the tool server do not match: install one version of both.",
    )
    return ToolRun(run.call, Failed(run.call, error, run.outcome.audit_id), run.duration_ms)


_OWN_TEXT = frozenset({"list_kql_templates", "list_tables", "list_workspaces"})
"""Tools whose rows are not from the logs."""
_NOT_FOUND = frozenset({Outcome.NO_DATA, Outcome.CLARIFICATION})
_LISTS = frozenset({View.INCIDENTS, View.INCIDENT_COUNT, View.ALERTS, View.ALERT_COUNT})


def _names_left_out(plan: Plan, runs: Sequence[ToolRun]) -> list[str]:
    """Things that the question names beside others and that no call asked for."""
    asked = _asked_for(runs)
    names = [plain(name.value) for name in plan.reading.names]
    left = [name for name in names if name.lower() not in asked.replace("\\\\", "\\")]
    return left if len(left) < len(names) or plan.view is View.KQL else []


def _asked_for(runs: Sequence[ToolRun]) -> str:
    """The arguments of all calls as one text in lower case."""
    return " ".join(str(dict(run.call.arguments)) for run in runs).lower()


@dataclass(slots=True)
class _Turn:
    """What one question gathers on its way to an answer."""

    question: str
    session_id: str
    conversation: Conversation
    progress: ProgressListener | None
    started: float
    now: Now
    runs: list[ToolRun] = field(default_factory=list)


class OfflineAnalyst:
    """`Analyst` over a `ToolGateway`. `timezone` is an IANA name; "today" and "yesterday" follow it.

    Raises UsageError for a time zone that is not known.
    """

    def __init__(self, gateway: ToolGateway, *, clock: Clock, timezone: str = "UTC") -> None:
        try:
            self._zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(
                f"{timezone!r} is not a time zone.", next_step="Give an IANA name such as Europe/Berlin or UTC."
            ) from error
        self._gateway = RetryOnce(gateway)
        self._clock = clock
        self._conversations = Conversations()

    async def answer(
        self,
        question: str,
        *,
        session_id: str,
        progress: ProgressListener | None = None,
        workspace: str | None = None,
    ) -> Answer:
        """One turn; never raises for a tool."""
        conversation = self._conversations.of(session_id)
        conversation.turns += 1
        if workspace is not None:
            conversation.request_workspace(workspace)
        kql = kql_in(question)
        if kql is not None:
            return await self._answer_kql(question, kql, session_id, progress)
        parts = parts_of(question)
        answers = [await self._answer_part(part, session_id, progress) for part in parts]
        return answers[0] if len(answers) == 1 else joined(answers)

    def _turn(self, question: str, session_id: str, progress: ProgressListener | None) -> _Turn:
        now = Now(self._clock(), self._zone)
        return _Turn(question, session_id, self._conversations.of(session_id), progress, time.monotonic(), now)

    async def _answer_kql(self, question: str, kql: str, session_id: str, progress: ProgressListener | None) -> Answer:
        """The rows of a query that the person wrote, where that is switched on."""
        turn = self._turn(question, session_id, progress)
        turn.conversation.pending = ""
        if FREEFORM_TOOL not in await self._gateway.offered_tools():
            return self._plain_answer(turn, Outcome.OUT_OF_SCOPE, SWITCHED_OFF, ("What queries can you run?",))
        runs = await self._run(turn, (PlannedCall(FREEFORM_TOOL, {"kql": kql}),))
        writer = AnswerWriter(self._zone)
        try:
            composed = freeform.compose(writer, runs[0])
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return self._failed(turn, [_misshapen(run) for run in runs])
        self._say_instructions(writer, View.KQL, runs)
        turn.conversation.offers = ()
        turn.conversation.last = None
        return self._checked(turn, writer, composed)

    async def _answer_part(self, question: str, session_id: str, progress: ProgressListener | None) -> Answer:
        turn = self._turn(question, session_id, progress)
        if not plain(question):
            return self._plain_answer(turn, Outcome.CLARIFICATION, "Ask me something about Sentinel.", ())
        said = read_workspace(follow_up.completed(question, turn.conversation))
        reading = read_question(said.rest, turn.now)
        turn.conversation.pending = ""
        told = alert_walk.walk_plan(said.rest, turn.now)
        if told is not None:
            return await self._execute(turn, told)
        if said.name is not None:
            turn.conversation.go_to(said.name)
            if said.repeats and turn.conversation.last is not None:
                return await self._execute(turn, follow_up.repeated(reading, turn.conversation.last))
        if said.switches or asks_for_workspaces(question):
            return await self._about_workspaces(turn, reading, said)
        wish = await self._wish(turn, reading)
        if wish is None:
            return await self._from_the_workspace(turn, reading)
        if wish.when is When.IF_ASKED:
            answer = await self._from_the_workspace(turn, reading)
            offered = (wish.question,) if answer.outcome in _NOT_FOUND else ()
            return replace(answer, suggestions=(*answer.suggestions, *offered))
        found = await self._elsewhere(turn, wish)
        if wish.when is When.ONLY or found.outcome is Outcome.ANSWERED:
            return found
        answer = await self._from_the_workspace(turn, reading)
        refused = found.outcome is not Outcome.NO_DATA and answer.outcome is Outcome.CLARIFICATION
        return found if refused else answer

    async def _about_workspaces(self, turn: _Turn, reading: Reading, said: WorkspaceWords) -> Answer:
        """The workspaces by name, or the one that questions go to from here on, if there is such a one."""
        plan = Plan(view=View.WORKSPACES, calls=(PlannedCall("list_workspaces"),), reading=reading)
        if said.name is None:
            return await self._execute(turn, plan)
        (run,) = await self._run(turn, plan.calls)
        names = [str(row.get("name")) for row in run.rows]
        if names and said.name not in (*names, ALL_WORKSPACES):
            turn.conversation.go_to(turn.conversation.requested_workspace)
            known = ", ".join(map(plain, names))
            text = f"There is no workspace {plain(said.name)}; there are: {known}."
            return self._plain_answer(turn, Outcome.CLARIFICATION, text, ())
        where = "every workspace" if said.name == ALL_WORKSPACES else f"the workspace {plain(said.name)}"
        return self._plain_answer(turn, Outcome.ANSWERED, f"Questions go to {where} from here on.", ())

    async def _from_the_workspace(self, turn: _Turn, reading: Reading) -> Answer:
        decision = decide(reading, turn.conversation, None, turn.now)
        if isinstance(decision, NeedTemplates):
            fetched = await self._run(turn, (PlannedCall("list_kql_templates"),))
            decision = decide(reading, turn.conversation, list(fetched[0].rows), turn.now)
            assert not isinstance(decision, NeedTemplates)
            understood = isinstance(decision, Plan) and decision.view is not View.KEYWORD
            if fetched[0].result is None and not understood:
                # Without the templates the question could not be understood; the reason is the failure, not the words.
                return self._failed(turn, fetched)
        match decision:
            case Reply(outcome=outcome, text=text, suggestions=suggestions):
                return self._plain_answer(turn, outcome, text, suggestions)
            case Ask(sentence=sentence, options=options, pending=pending):
                if options:
                    turn.conversation.show_list(tuple(ListItem("question", option) for option in options))
                turn.conversation.offers = ()
                turn.conversation.pending = pending
                return self._plain_answer(turn, Outcome.CLARIFICATION, sentence, options, numbered=True)
            case Plan():
                return await self._execute(turn, decision)

    async def _wish(self, turn: _Turn, reading: Reading) -> Elsewhere | None:
        """What the question may want of the web or of files, if the gateway offers the tool."""
        wish = elsewhere_plan(reading)
        if wish is None or outside.outside_reply(reading, turn=turn.conversation.turns) is not None:
            return None
        return wish if wish.tool in await self._gateway.offered_tools() else None

    async def _elsewhere(self, turn: _Turn, wish: Elsewhere) -> Answer:
        """The answer from the web or from files."""
        runs = await self._run(turn, wish.plan.calls)
        writer = AnswerWriter(self._zone)
        try:
            composed = compose(writer, wish.plan, runs)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return self._failed(turn, [_misshapen(run) for run in runs])
        turn.conversation.offers = ()
        return self._checked(turn, writer, composed)

    def forget(self, session_id: str) -> None:
        """Drop what the conversation refers to."""
        self._conversations.forget(session_id)

    async def _execute(self, turn: _Turn, plan: Plan) -> Answer:
        runs = await self._run_plan(turn, plan)
        again = second_look.other_calls(plan, runs)
        if again is not None:
            more = await self._run(turn, again.calls)
            if any(run.rows for run in more):
                plan, runs = again, more
        if plan.view is View.INCIDENT and plan.calls[0].tool == "query_incidents" and len(runs[0].rows) == 1:
            detail = PlannedCall("get_incident_detail", {"incident": str(runs[0].rows[0].get("number"))})
            plan = replace(plan, calls=(detail,))
            runs = await self._run_plan(turn, plan)
        for other in plan.others:
            if runs[0].rows or runs[0].at("/coverage/table_rows") != 0:
                break
            further = await self._run(turn, (other,))
            if further[0].rows:
                plan, runs = replace(plan, calls=(other,), opening=(*plan.opening, second_look.OTHER_TABLE)), further
        writer = AnswerWriter(self._zone)
        try:
            for _ in range(alert_walk.MOST_ROUNDS if plan.view is View.ATTRIBUTE else 0):
                closer = alert_walk.next_calls(plan, runs)
                if not closer:
                    break
                runs = [*runs, *await self._run(turn, closer)]
            composed = compose(writer, plan, runs)
            open_with_verdict(writer, plan, runs)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return self._failed(turn, [_misshapen(run) for run in runs])
        every_workspace.say_asked_alone(writer, turn.conversation, runs)
        if plan.view in _LISTS and (unused := unused_words(plan.reading, _asked_for(runs))):
            writer.say("I did not understand and left out: {}.", Echo(", ".join(unused)))
        if plan.view is not View.ATTRIBUTE and (dropped := _names_left_out(plan, runs)):
            writer.say("I looked nothing up for {}; ask about it by itself.", Echo(", ".join(dropped)))
        if plan.reading.limit == MAX_LIMIT and not plan.reading.everything and not plan.reading.has(str(MAX_LIMIT)):
            writer.say("More than {} rows do not come at once.", Echo(str(MAX_LIMIT)))
        self._say_instructions(writer, plan.view, runs)
        if composed.outcome is Outcome.NO_DATA:
            proposed = await self._near_names(turn, writer, plan, runs)
            composed = proposed or composed
        self._remember(turn.conversation, plan, composed)
        return self._checked(turn, writer, composed)

    @staticmethod
    def _say_instructions(writer: AnswerWriter, view: View, runs: Sequence[ToolRun]) -> None:
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
        shown = [writer.words(each.run, each.pointer, limit=240) for each in found]
        if len(shown) == 1:
            writer.say(
                "Note: a text in these rows reads like an instruction. It came from the logs, is shown here as data "
                "and was not followed: {}",
                shown[0],
            )
        else:
            writer.say(
                "Note: texts in these rows read like instructions. They came from the logs, are shown here as data "
                "and were not followed: {}",
                shown,
            )
        if last is not None:
            writer.lines.append(last)

    def _failed(self, turn: _Turn, runs: Sequence[ToolRun]) -> Answer:
        writer = AnswerWriter(self._zone)
        outcome = say_failures(writer, runs, some_worked=False)
        return self._answer(turn, outcome, "\n".join(line.text for line in writer.lines), ())

    async def _run(self, turn: _Turn, planned: Sequence[PlannedCall]) -> list[ToolRun]:
        calls = [
            ToolCall(
                turn.conversation.next_call_id(),
                turn.session_id,
                call.tool,
                placed(call.tool, self._with_zone(call), turn.conversation),
            )
            for call in planned
        ]
        runs = await run_calls(self._gateway, calls, progress=turn.progress, started=turn.started)
        turn.runs += runs
        remember_places(turn.conversation, runs)
        return runs

    async def _run_plan(self, turn: _Turn, plan: Plan) -> list[ToolRun]:
        calls = plan.calls
        if every_workspace.in_sections(plan, turn.conversation):
            (workspaces,) = await self._run(turn, (every_workspace.WORKSPACES,))
            calls = every_workspace.calls_for_each(plan, workspaces)
        runs = await self._run(turn, calls)
        return [await self._whole(turn, run) for run in runs] if needs_whole_incident(plan) else runs

    async def _whole(self, turn: _Turn, run: ToolRun) -> ToolRun:
        """An incident that came in its compact form, again in full: code has no context to spare."""
        if run.call.tool_name != "get_incident_detail" or run.at("/summary/detail") != "compact":
            return run
        call = replace(
            run.call,
            call_id=turn.conversation.next_call_id(),
            arguments={**run.call.arguments, "detail": "full"},
        )
        full = await run_calls(self._gateway, [call], progress=None, started=turn.started)
        if not full[0].worked:
            return run
        turn.runs += full
        return full[0]

    def _with_zone(self, call: PlannedCall) -> dict[str, JsonValue]:
        """The arguments of a call; days of a trend begin at midnight of the session's zone."""
        arguments = dict(call.arguments)
        if call.tool == "get_alert_trend" and self._zone.key != "UTC":
            arguments["timezone"] = self._zone.key
        return arguments

    async def _near_names(
        self, turn: _Turn, writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]
    ) -> Composed | None:
        """Names of the workspace that are like the one that found nothing, asked back as a numbered list."""
        arguments = plan.calls[0].arguments
        value = arguments.get("entity")
        if not isinstance(value, str) or any(run.result is None for run in runs):
            return None
        if turn.conversation.names is None:
            fetched = await self._run(turn, directory.CALLS)
            names = directory.names_of(fetched)
            if all(run.result is not None for run in fetched):
                turn.conversation.names = names
        else:
            names = turn.conversation.names
        near = directory.near_names(value, names)
        if not near:
            return None
        tool, view = plan.calls[0].tool, plan.view.value
        offers = tuple(
            Offer(
                f"Show the alerts that name {kind} {plain(name)}",
                AskedCall(tool, {**arguments, "entity": name, "entity_kind": kind}, view),
            )
            for kind, name in near
        )
        writer.lines.clear()
        writer.say("Nothing names {}. There are names like it; which one do you mean? Answer with [n].", Echo(value))
        say_numbered(writer, offers)
        return Composed(outcome=Outcome.CLARIFICATION, offers=offers)

    @staticmethod
    def _remember(conversation: Conversation, plan: Plan, composed: Composed) -> None:
        conversation.offers = composed.offers
        if composed.items or composed.outcome is Outcome.ANSWERED:
            if composed.items:
                conversation.show_list(composed.items, first=composed.first)
            conversation.shown = composed.shown
        if composed.incident is not None:
            conversation.incident = composed.incident
        if composed.alert is not None:
            conversation.alert = composed.alert
        if composed.entity is not None:
            conversation.entity = composed.entity
        call = plan.calls[0]
        conversation.last = AskedCall(call.tool, dict(call.arguments), plan.view.value, plan.aspects)
        if plan.view in (View.INCIDENT, View.ATTRIBUTE) and "incident" in call.arguments and not composed.incident:
            conversation.incident = None

    def _checked(self, turn: _Turn, writer: AnswerWriter, composed: Composed) -> Answer:
        known = KnownAtoms(turn.runs, turn.question, self._zone, writer.tallies)
        lines = checked_lines(writer.lines, known)
        tables = tuple(checked_table(table, known) for table in writer.tables)
        evidence = [piece for line in lines for piece in line.evidence] + writer.table_evidence
        broken = broken_evidence(evidence, turn.runs)
        answer = self._answer(turn, composed.outcome, "\n".join(line.text for line in lines), composed.suggestions)
        return replace(answer, tables=tables, evidence=tuple(piece for piece in evidence if piece not in broken))

    def _plain_answer(
        self, turn: _Turn, outcome: Outcome, text: str, suggestions: Sequence[str], *, numbered: bool = False
    ) -> Answer:
        if numbered and suggestions:
            text += "\n" + "\n".join(f"[{place}] {plain(option)}" for place, option in enumerate(suggestions, start=1))
        return self._answer(turn, outcome, text, () if numbered else suggestions)

    def _answer(self, turn: _Turn, outcome: Outcome, text: str, suggestions: Sequence[str]) -> Answer:
        return Answer(
            outcome=outcome,
            text=text,
            session_id=turn.session_id,
            footnote=footnote(turn.runs, now=turn.now.moment, zone=self._zone),
            suggestions=tuple(suggestions),
            tools=tuple(run.trace() for run in turn.runs),
            duration_ms=round((time.monotonic() - turn.started) * 1e3, 3),
        )
