"""Running the calls of one turn, with status lines, one silent second try and a line each in the footnote; and spans
and counts that tell of it.

`ToolRun` is a call with its outcome and reads places of the result by JSON pointer (RFC 6901), which is what evidence
refers to. Used by every analyst; knows nothing of how calls were chosen.

Never a word of a question, an argument, a result or an answer: names, ids, sizes, statuses and codes only. A model, or
a page that a model has read, chooses what a call is named; so a name is recorded only once the gateway has shown that
it knows the tool.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.agent.models.failures import ModelError
from sentinel_rag.agent.models.port import NO_DEADLINE, ChatModel, Finished, ModelEvent, ModelRequest, ModelStream
from sentinel_rag.agent.row_text import plain, show_age, show_time, show_window
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer, Progress, ToolTrace
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import Chat, ProgressListener, Question, ToolGateway
from sentinel_rag.contracts.query_results import Coverage, QueryResult, TimeWindow
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Failed, Reason, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.language.text import toml_beside
from sentinel_rag.telemetry import Span, SpanKind, start_span

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry


READING_TOOLS = frozenset(tool.name for tool in SHIPPED_TOOLS) - WRITING_TOOLS
"""Tools that are known to change nothing. Any other is treated as one that may."""
FREEFORM_TOOL = "run_freeform_kql"
MAX_WAIT_S = 3.0
"""A longer Retry-After is not waited for, the person decides."""


@dataclass(frozen=True)
class ToolRun:
    """One call and its outcome. `duration_ms` is the time from here and back, the gateway included."""

    call: ToolCall
    outcome: ToolOutcome
    duration_ms: float = 0.0

    @property
    def result(self) -> QueryResult | None:
        """The rows with their coverage, if that is what there is."""
        match self.outcome:
            case Succeeded(result=QueryResult() as result):
                return result
            case _:
                return None

    @property
    def worked(self) -> bool:
        """True if there is a result of any kind."""
        return isinstance(self.outcome, Succeeded)

    @property
    def rows(self) -> Sequence[Mapping[str, JsonValue]]:
        """The rows; none if the call did not succeed."""
        return () if self.result is None else self.result.rows

    @cached_property
    def document(self) -> JsonValue:
        """The result in wire form: what pointers point into."""
        match self.outcome:
            case Succeeded(result=QueryResult() as result):
                return result.to_dict()
            case Succeeded(result=DocumentResult(value=value)):
                return value
            case _:
                return None

    def at(self, pointer: str) -> JsonValue:
        """The value at `pointer`; None where the result has no such place."""
        return resolve(self.document, pointer)

    def trace(self) -> ToolTrace:
        """The run as the footnote and `--json` show it."""
        coverage = None if self.result is None else self.result.coverage.to_dict()
        approval_id = decided_by = ""
        match self.outcome:
            case Succeeded():
                status, detail = "ok", ""
            case Denied(detail=detail, approval_id=waits, decided_by=decided_by):
                status, approval_id = "denied", waits or ""
            case Failed(error=error):
                status, detail = "failed", error.message
        return ToolTrace(
            call_id=self.call.call_id,
            name=self.call.tool_name,
            arguments=self.call.arguments,
            status=status,
            detail=detail,
            audit_id=self.outcome.audit_id,
            duration_ms=round(self.duration_ms, 3),
            coverage=coverage,
            approval_id=approval_id,
            decided_by=decided_by,
        )


def changed_something(run: ToolRun, reading: frozenset[str]) -> bool:
    """True for a call that worked and changed something. A tool that says that all was so already did not. `reading`
    are the tools that change nothing."""
    return run.worked and run.call.tool_name not in reading and run.at("/rows/0/changes") not in ([], ())


def resolve(document: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer; None where there is none."""
    value = document
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(token)
        elif isinstance(value, list | tuple) and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def _status_lines() -> Mapping[str, str]:
    return toml_beside(__package__, "status_lines.toml")


def _status_line(tool: str) -> str:
    return _status_lines().get(tool) or _status_lines()["any_other_tool"]


async def run_calls(
    gateway: ToolGateway, calls: Sequence[ToolCall], *, progress: ProgressListener | None, started: float
) -> list[ToolRun]:
    """Run independent calls together; results in the order of the calls. One that fails cancels no other."""
    runs: list[ToolRun | None] = [None] * len(calls)

    def tell(trace: ToolTrace) -> None:
        if progress is not None:
            text = _status_line(trace.name)
            progress(Progress(text, round(time.monotonic() - started, 3), trace))

    async def one(place: int, call: ToolCall) -> None:
        begin = time.monotonic()
        tell(ToolTrace(call.call_id, call.tool_name, call.arguments, "running"))
        outcome = await gateway.execute(call)
        run = runs[place] = ToolRun(call, outcome, (time.monotonic() - begin) * 1e3)
        tell(run.trace())

    if progress is not None:
        for text in dict.fromkeys(_status_line(call.tool_name) for call in calls):
            progress(Progress(text, round(time.monotonic() - started, 3)))
    async with anyio.create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    return [run for run in runs if run is not None]


class RetryOnce:
    """Wraps a `ToolGateway`: errors that say `retry_possible` are tried again, once, and only when the wait that they
    ask for is short. A refusal or an argument error is final, and so is every answer to a call that may have changed
    something."""

    def __init__(self, gateway: ToolGateway) -> None:
        self._gateway = gateway

    async def execute(self, call: ToolCall) -> ToolOutcome:
        """`ToolGateway.execute` with at most one more try."""
        outcome = await self._gateway.execute(call)
        if call.tool_name not in READING_TOOLS or not isinstance(outcome, Failed) or not outcome.error.retry_possible:
            return outcome
        wait = outcome.error.retry_after_s or 0.0
        if wait > MAX_WAIT_S:
            return outcome
        await anyio.sleep(wait)
        return await self._gateway.execute(call)

    async def offered_tools(self) -> frozenset[str]:
        """As the gateway says; an answer without them is no failure, so nothing is tried again."""
        return await self._gateway.offered_tools()


def footnote(runs: Sequence[ToolRun], *, now: datetime, zone: tzinfo) -> tuple[str, ...]:
    """One line for each run, in their order."""
    return tuple(_footnote_line(run, now, zone) for run in runs)


def _footnote_line(run: ToolRun, now: datetime, zone: tzinfo) -> str:
    arguments = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in run.call.arguments.items()
    )
    parts = [plain(f"{run.call.tool_name}({arguments})", limit=500)]
    match run.outcome:
        case Succeeded(result=DocumentResult()):
            pass  # no rows and no window: the call and its record say all
        case Succeeded(result=QueryResult() as result):
            parts += _coverage(result.coverage, now, zone, own_text=run.call.tool_name == FREEFORM_TOOL)
        case Denied(approval_id=str(), rule_id=rule_id, decided_by=decided_by):
            whom = "for your own yes" if decided_by else "for a person's yes"
            parts.append(f"waits {whom}" + ("" if rule_id is None else f" (rule {plain(rule_id)})"))
        case Denied(detail=detail, rule_id=rule_id):
            parts.append(f"denied: {plain(detail)}" + ("" if rule_id is None else f" (rule {plain(rule_id)})"))
        case Failed(error=error):
            parts.append(f"failed, {error.code.value}: {plain(error.message)}")
    if run.outcome.audit_id:
        parts.append(f"audit {plain(run.outcome.audit_id)}")
    return " · ".join(parts)


def _coverage(coverage: Coverage, now: datetime, zone: tzinfo, *, own_text: bool) -> list[str]:
    """`own_text` tells of a query whose text may bound its time by itself."""
    total = "an unknown total" if coverage.rows_total is None else str(coverage.rows_total)
    parts = [f"{coverage.rows_returned} of {total} rows"]
    window = f"window {show_window(coverage.window, zone)}"
    if own_text and coverage.window == TimeWindow():
        window = "window as the query itself says"
    elif coverage.time_column:
        window += f" by {plain(coverage.time_column)}"
    parts.append(window)
    if coverage.table_newest is not None:
        age = now - coverage.table_newest
        parts.append(f"newest row {show_time(coverage.table_newest, zone)}, {show_age(age)} old")
    elif coverage.table_rows == 0:
        parts.append("the table holds no rows")
    if coverage.partial:
        parts.append(f"PARTIAL: {plain(coverage.partial_reason) or 'the service cut the result'}")
    if coverage.workspace:
        parts.append(f"workspace {plain(coverage.workspace)}")
    return parts


AGENT_NAME = "sentinel-rag-agent"
UNKNOWN = "unknown"
SHIPPED = frozenset(tool.name for tool in SHIPPED_TOOLS)
_OF_A_TOOL = frozenset(
    {
        Reason.NO_RULE_MATCHED,
        Reason.RULE_DENIES,
        Reason.APPROVAL_REQUIRED,
        Reason.CONDITION_UNDECIDED,
        Reason.SINK_LABEL,
        Reason.TOOL_QUARANTINED,
        Reason.TOOL_SWITCHED_OFF,
    }
)
"""The denials that the gateway gives to tools it knows; a key without its scope is denied before any name is looked
at."""


class AgentCounts:
    """Questions, tool calls and model requests, counted into `registry`."""

    def __init__(self, registry: Registry) -> None:
        from sentinel_rag.telemetry.metrics import Counter, Histogram  # an agent that counts nothing does not load it

        self.questions = Counter("sentinel_agent_questions_total", "Questions by how they ended.", ("outcome",))
        self.seconds = Histogram("sentinel_agent_question_seconds", "From a question to its answer.")
        self.calls = Counter("sentinel_agent_tool_calls_total", "Tool calls of the agent.", ("tool", "status"))
        self.requests = Counter("sentinel_agent_llm_requests_total", "Requests to models.", ("model", "result"))
        self.model_seconds = Histogram("sentinel_agent_llm_seconds", "How long a model took to answer.", ("model",))
        self.tokens = Counter("sentinel_agent_llm_tokens_total", "Tokens as the provider counts.", ("model", "type"))
        registry.add(self.questions, self.seconds, self.calls, self.requests, self.model_seconds, self.tokens)

    def answered(self, answer: Answer | None, seconds: float) -> None:
        """Count a question; None for one that was not answered."""
        self.questions.add("failed" if answer is None else answer.outcome.value)
        self.seconds.observe(seconds)
        for trace in () if answer is None else answer.tools:
            self.calls.add(trace.name if trace.name in SHIPPED else "other", trace.status)


class TracedChat:
    """Wraps the analyst that surfaces talk to. `counts` is None where nobody reads them."""

    def __init__(self, chat: Chat, counts: AgentCounts | None = None) -> None:
        self._chat = chat
        self._counts = counts

    async def answer(self, question: Question) -> Answer:
        """See `Chat.answer`."""
        started, answer = time.perf_counter(), None
        try:
            with start_span("agent.invoke", SpanKind.INTERNAL) as span:
                span.set("session.id", question.session_id)
                span.set("gen_ai.conversation.id", question.session_id)
                span.set("gen_ai.operation.name", "invoke_agent")
                span.set("gen_ai.agent.name", AGENT_NAME)
                answer = await self._chat.answer(question)
                span.set("sentinel.outcome", answer.outcome.value)
                span.set("sentinel.tool.calls", len(answer.tools))
        finally:
            if self._counts is not None:
                self._counts.answered(answer, time.perf_counter() - started)
        return answer

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """See `Chat.clear`."""
        return await self._chat.clear(session_id, carry=carry)

    async def delete(self, session_id: str) -> None:
        """See `Chat.delete`."""
        await self._chat.delete(session_id)


class TracedModel:
    """Wraps a model. `provider` is its name in OpenTelemetry's conventions, `host` the machine that it is asked at."""

    def __init__(self, model: ChatModel, counts: AgentCounts | None, *, provider: str, host: str) -> None:
        self._model = model
        self._counts = counts
        self._provider = provider
        self._host = host

    @property
    def name(self) -> str:
        return self._model.name

    def stream(self, request: ModelRequest, *, deadline: float = NO_DEADLINE) -> ModelStream:
        """See `ChatModel.stream`."""
        return aclosing(self._events(request, deadline))

    async def aclose(self) -> None:
        await self._model.aclose()

    async def _events(self, request: ModelRequest, deadline: float) -> AsyncGenerator[ModelEvent, None]:
        # Never the current span: a stream may be read in another task than it was opened in.
        span, started, result = self._begin(request), time.perf_counter(), "left"
        try:
            async with self._model.stream(request, deadline=deadline) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        result = event.reason.value
                        self._record(span, event)
                    yield event
        except GeneratorExit:  # the caller left
            raise
        except BaseException as failure:
            result = failure.kind.value if isinstance(failure, ModelError) else "stopped"
            span.fail(result)
            raise
        finally:
            span.end()
            if self._counts is not None:
                self._counts.requests.add(self.name, result)
                self._counts.model_seconds.observe(time.perf_counter() - started, self.name)

    def _begin(self, request: ModelRequest) -> Span:
        span = start_span("llm.invoke", SpanKind.CLIENT)
        span.set("gen_ai.operation.name", "chat")
        span.set("gen_ai.provider.name", self._provider)
        span.set("gen_ai.request.model", self.name)
        span.set("gen_ai.request.max_tokens", request.max_output_tokens)
        span.set("server.address", self._host or None)
        return span

    def _record(self, span: Span, finished: Finished) -> None:
        span.set("gen_ai.response.finish_reasons", (finished.reason.value,))
        if finished.usage.uncounted == 0:
            tokens = finished.usage.tokens
            span.set("gen_ai.usage.input_tokens", tokens.input)
            span.set("gen_ai.usage.output_tokens", tokens.output)
            if self._counts is not None:
                self._counts.tokens.add(self.name, "input", by=tokens.input)
                self._counts.tokens.add(self.name, "output", by=tokens.output)


def tool_span(call: ToolCall) -> Span:
    """The span, named by a tool of this product or, for now, `tool.unknown`."""
    return start_span(f"tool.{call.tool_name if call.tool_name in SHIPPED else UNKNOWN}", SpanKind.CLIENT)


def trace_response(span: Span, call: ToolCall, status: int | None, outcome: ToolOutcome) -> None:
    """Record what came back; does nothing for a span that is not recorded."""
    if not span.recording:
        return
    name = call.tool_name if call.tool_name in SHIPPED or _shows_tool(outcome) else UNKNOWN
    span.rename(f"tool.{name}")
    audit_id = outcome.audit_id or None
    for attribute, value in (
        ("tool.name", name),
        ("gen_ai.tool.name", name),
        ("session.id", call.session_id),
        ("gen_ai.conversation.id", call.session_id),
        ("http.status_code", status),
        ("http.response.status_code", status),
        ("http.request.method", "POST"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.call.id", audit_id),
        ("sentinel.audit.id", audit_id),
    ):
        span.set(attribute, value)
    match outcome:
        case Succeeded(result=QueryResult() as result):
            span.set("sentinel.outcome", "succeeded")
            span.set("sentinel.result.rows", len(result.rows))
        case Succeeded():
            span.set("sentinel.outcome", "succeeded")
        case Denied(reason=reason, approval_id=approval_id):
            span.set("sentinel.outcome", "denied")
            span.set("sentinel.reason", reason.value)
            span.set("sentinel.approval.id", approval_id)
            span.fail(reason.value)
        case Failed(error=error):
            span.set("sentinel.outcome", "failed")
            span.fail(error.code.value)


def _shows_tool(outcome: ToolOutcome) -> bool:
    """True if the outcome comes from a gateway that knows the tool."""
    return isinstance(outcome, Succeeded) or (isinstance(outcome, Denied) and outcome.reason in _OF_A_TOOL)
