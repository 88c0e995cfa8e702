"""One question on its way to an answer: what it gathers, how its calls are made, how its answer is put together.

Above it stand the steps of the analyst, below it the gateway. It chooses no call and writes no sentence about data.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from sentinel_rag.agent.answers.failures import say_failures
from sentinel_rag.agent.answers.renderer import RenderedView, view_data
from sentinel_rag.agent.answers.results_file import kept_form
from sentinel_rag.agent.answers.writer import AnswerWriter
from sentinel_rag.agent.offline.conversation import Conversation
from sentinel_rag.agent.offline.workspaces import placed, remember_places
from sentinel_rag.agent.planner import Decision, Option
from sentinel_rag.agent.planner.decisions import PlannedCall
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import READING_TOOLS, ToolRun, footnote, run_calls
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import ProgressListener, ToolGateway
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed, ToolCall
from sentinel_rag.language.frames import Reader
from sentinel_rag.language.times import Now, read_time_in_its_zone

MISSHAPEN = (TypeError, ValueError, KeyError, IndexError, AttributeError)
"""What reading a result raises that does not have the agreed shape."""

NAMED = ("account", "host")
"""Kinds of things whose names a question may mistype."""


@dataclass(slots=True)
class OfflineTurn:
    """`runs` are all calls so far, in their order; `started` is a monotonic time in seconds."""

    question: str
    session_id: str
    conversation: Conversation
    gateway: ToolGateway
    zone: ZoneInfo
    now: Now
    progress: ProgressListener | None = None
    started: float = field(default_factory=time.monotonic)
    runs: list[ToolRun] = field(default_factory=list)

    def writer(self) -> AnswerWriter:
        """An empty answer in the session's time zone."""
        return AnswerWriter(self.zone, self.now.moment)

    async def run(self, planned: Sequence[PlannedCall], *, exact: bool = False) -> list[ToolRun]:
        """Make the calls together, each in the workspace that the conversation is at; results in their order.

        `exact` sends the arguments as they are, whatever the workspace is by now.
        """
        calls = [
            ToolCall(
                self.conversation.next_call_id(),
                self.session_id,
                call.tool,
                dict(call.arguments) if exact else placed(call.tool, self._with_zone(call), self.conversation),
            )
            for call in planned
        ]
        runs = await run_calls(self.gateway, calls, progress=self.progress, started=self.started)
        self.runs += runs
        remember_places(self.conversation, runs)
        return runs

    async def whole(self, run: ToolRun) -> ToolRun:
        """An incident that came in its compact form, again in full: code has no context to spare."""
        if run.call.tool_name != "get_incident_detail" or run.at("/summary/detail") != "compact":
            return run
        call = replace(
            run.call,
            call_id=self.conversation.next_call_id(),
            arguments={**run.call.arguments, "detail": "full"},
        )
        full = await run_calls(self.gateway, [call], progress=None, started=self.started)
        if not full[0].worked:
            return run
        self.runs += full
        return full[0]

    async def names(self) -> dict[str, tuple[str, ...]]:
        """The directory of hosts and accounts, fetched once in a conversation; what could not be fetched is missing."""
        if self.conversation.names is not None:
            return self.conversation.names
        fetched = await self.run(tuple(PlannedCall("get_top_entities", {"kind": k, "limit": 100}) for k in NAMED))
        names = {
            kind: tuple(str(row["name"]) for row in run.rows if row.get("name"))
            for kind, run in zip(NAMED, fetched, strict=True)
        }
        if all(run.result is not None for run in fetched):
            self.conversation.names = names
        return names

    def _with_zone(self, call: PlannedCall) -> dict[str, JsonValue]:
        """The arguments of a call; days of a trend begin at midnight of the session's zone."""
        arguments = dict(call.arguments)
        if call.tool == "get_alert_trend" and self.zone.key != "UTC":
            arguments.setdefault("timezone", self.zone.key)
        return arguments

    def answer(self, writer: AnswerWriter, composed: RenderedView) -> Answer:
        """What was written, with the places that it rests on."""
        return Answer(
            outcome=composed.outcome,
            text=writer.text,
            session_id=self.session_id,
            tables=tuple(writer.tables),
            footnote=self._footnote(),
            suggestions=tuple(composed.suggestions),
            tools=tuple(run.trace() for run in self.runs),
            results=tuple(
                kept_form(run, writes=run.call.tool_name not in READING_TOOLS, read_at=self.now.moment)
                for run in self.runs
            ),
            evidence=writer.evidence,
            sentences=writer.sentences(),
            duration_ms=round((time.monotonic() - self.started) * 1e3, 3),
        )

    def plain_answer(
        self, outcome: Outcome, text: str, suggestions: Sequence[str] = (), *, numbered: bool = False
    ) -> Answer:
        """Fixed text; `numbered` puts the suggestions below it as [1], [2], ..."""
        writer = self.writer()
        for line in text.split("\n"):
            writer.fixed(line)
        for place, option in enumerate(suggestions if numbered else (), start=1):
            writer.offer(f"[{place}] {plain(option)}")
        return self.answer(writer, RenderedView(outcome=outcome, suggestions=() if numbered else tuple(suggestions)))

    def replied(self, name: str) -> Answer:
        """A reply of `views.toml`; that something lies outside of the job for one that is not there."""
        replies = view_data()["reply"]
        outcome, text, *suggestions = replies.get(name, replies["out_of_scope"])
        return self.plain_answer(Outcome(outcome), text, *suggestions)

    def asked_back(self, sentence: str, options: Sequence[str] = ()) -> Answer:
        """A question back. `options` are whole questions that can be picked by their numbers."""
        reader = Reader(lambda text: read_time_in_its_zone(text, self.now))
        self.conversation.talk.propose(
            Option(option, reader.read(option), place) for place, option in enumerate(options, start=1)
        )
        return self.plain_answer(Outcome.CLARIFICATION, sentence, options, numbered=True)

    def decided_back(self, decision: Decision) -> Answer:
        """A question back that was decided, with what it offers under its numbers."""
        self.conversation.talk.remember(decision)
        writer = self.writer()
        writer.fixed(decision.sentence)
        for option in decision.options:
            writer.offer(f"[{option.number}] {plain(option.text)}")
        return self.answer(writer, RenderedView(outcome=Outcome.CLARIFICATION))

    def failed_answer(self, runs: Sequence[ToolRun]) -> Answer:
        """Why none of the calls gave an answer."""
        writer = self.writer()
        return self.answer(writer, RenderedView(outcome=say_failures(writer, runs, some_worked=False)))

    def misshapen_answer(self, runs: Sequence[ToolRun]) -> Answer:
        """The results do not have the agreed shape, so nothing can be told of them."""
        return self.failed_answer([_misshapen(run) for run in runs])

    def _footnote(self) -> tuple[str, ...]:
        references = self.conversation.talk.footnote
        calls = footnote(self.runs, now=self.now.moment, zone=self.zone)
        return (references, *calls) if references else calls


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
