"""Running the calls of one turn: together, with status lines, one silent second try, and a line each in the footnote.

`ToolRun` is a call with its outcome and reads places of the result by JSON pointer (RFC 6901), which is what evidence
refers to. Used by every analyst; knows nothing of how calls were chosen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property

import anyio

from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.times import show_age, show_time, show_window
from sentinel_rag.contracts.evidence import Progress, ToolTrace
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.ports import ProgressListener, ToolGateway
from sentinel_rag.contracts.query_results import Coverage, QueryResult, TimeWindow
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import Denied, DocumentResult, Failed, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS
from sentinel_rag.language.text import toml_beside

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
