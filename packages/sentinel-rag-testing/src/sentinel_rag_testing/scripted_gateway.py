"""A `ToolGateway` without a network: answers come from functions, one a tool, and every call is kept.

For people who test an analyst: script refusals, failures and hostile rows, then look at `calls`. `small_estate` gives
answers over a handful of made-up incidents and alerts in the documented shapes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.ports import ToolGateway
from sentinel_rag.contracts.query_results import (
    Column,
    Coverage,
    QueryError,
    QueryErrorCode,
    QueryResult,
    TimeWindow,
)
from sentinel_rag.contracts.shipped_tools import SHIPPED_TOOLS
from sentinel_rag.contracts.tool_calls import (
    Denied,
    DocumentResult,
    Failed,
    OfferedTool,
    Reason,
    Succeeded,
    ToolCall,
    ToolOutcome,
)
from sentinel_rag.contracts.tool_schemas import WRITING_TOOLS

Result = QueryResult | DocumentResult | QueryError
Scripted = Result | Denied | Callable[[JsonObject], Result] | Callable[[JsonObject], Awaitable[Result]]


def shipped_catalogue(gateway: ToolGateway) -> Callable[[str], Awaitable[Sequence[OfferedTool]]]:
    """The catalogue of a gateway that tells names alone: the schemas that this product ships."""

    async def offered(_: str) -> Sequence[OfferedTool]:
        names = await gateway.offered_tools()
        return [OfferedTool(tool, tool.name not in WRITING_TOOLS) for tool in SHIPPED_TOOLS if tool.name in names]

    return offered


class ScriptedGateway:
    """Answers `execute` from `answers` (tool name -> result, error, denial or a function of the arguments).

    A sequence of answers is given out one by one, the last one repeats. A tool without an answer is denied, as the real
    gateway does for a tool that no rule names.
    """

    def __init__(self, answers: Mapping[str, Scripted | Sequence[Scripted]]) -> None:
        self.answers = dict(answers)
        self._given: dict[str, int] = {}
        self.calls: list[ToolCall] = []

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        audit_id = f"audit-{len(self.calls)}"
        answer = self.answers.get(call.tool_name)
        if isinstance(answer, list | tuple):
            place = self._given.get(call.tool_name, 0)
            self._given[call.tool_name] = place + 1
            answer = answer[min(place, len(answer) - 1)]
        given: object = answer(call.arguments) if callable(answer) else answer
        if isinstance(given, Awaitable):
            given = await given
        match given:
            case QueryResult() | DocumentResult() as result:
                return Succeeded(call, result, audit_id)
            case QueryError() as error:
                return Failed(call, error, audit_id)
            case Denied() as denied:
                return replace(denied, call=call, audit_id=audit_id)
            case _:
                return Denied(
                    call, Reason.NO_RULE_MATCHED, "Access denied by security policy. Taint level: HIGH", None, audit_id
                )

    async def offered_tools(self) -> frozenset[str]:
        return frozenset(self.answers)


def denial(rule_id: str | None = "deny_all", level: str = "HIGH") -> Denied:
    """A refusal to script; its call is replaced by the one that was made."""
    call = ToolCall("", "", "")
    return Denied(call, Reason.RULE_DENIES, f"Access denied by security policy. Taint level: {level}", rule_id)


def failure(code: QueryErrorCode, message: str, next_step: str = "", retry_after_s: float | None = None) -> QueryError:
    """An error to script."""
    return QueryError(code=code, message=message, next_step=next_step, retry_after_s=retry_after_s)


def rows_result(
    rows: Sequence[JsonObject],
    *,
    total: int | None = None,
    summary: Mapping[str, JsonValue] | None = None,
    window: TimeWindow | None = None,
    table: str = "SecurityAlert",
    time_column: str = "TimeGenerated",
    table_rows: int | None = None,
    oldest: datetime | None = None,
    newest: datetime | None = None,
    notes: Sequence[str] = (),
    partial_reason: str = "",
) -> QueryResult:
    """A result with coverage filled in; `total` defaults to the number of rows."""
    names = list(rows[0]) if rows else []
    return QueryResult(
        columns=tuple(Column(name, "string") for name in names),
        rows=tuple(rows),
        summary=dict(summary or {}),
        notes=tuple(notes),
        coverage=Coverage(
            workspace="scripted",
            tables=(table,),
            window=window or TimeWindow(),
            time_column=time_column,
            rows_returned=len(rows),
            rows_total=len(rows) if total is None else total,
            query=table,
            duration_ms=1.0,
            partial=bool(partial_reason),
            partial_reason=partial_reason,
            table_rows=table_rows,
            table_oldest=oldest,
            table_newest=newest,
        ),
    )
