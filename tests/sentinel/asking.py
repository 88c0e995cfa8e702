"""The offline analyst over a served workspace: questions in, answers out, with the real tools between them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sentinel_servers import Served

from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.ports import Question
from sentinel_rag.contracts.query_results import QueryError
from sentinel_rag.contracts.tool_calls import Failed, Succeeded, ToolCall, ToolOutcome
from sentinel_rag.contracts.tool_schemas import TOOLS_BY_NAME


class ServedGateway:
    """A `ToolGateway` without a gateway: each call goes to the tools of one served workspace and is kept."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.calls: list[ToolCall] = []

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        outcome = await self._served.call(call.tool_name, **call.arguments)
        audit_id = f"audit-{len(self.calls)}"
        if isinstance(outcome, QueryError):
            return Failed(call, outcome, audit_id)
        return Succeeded(call, outcome, audit_id)

    async def offered_tools(self) -> frozenset[str]:
        return frozenset(TOOLS_BY_NAME)


class Conversation:
    """One session with the analyst; `calls` are (tool, arguments) of all questions so far."""

    def __init__(self, served: Served, *, now: datetime | None = None, timezone: str = "UTC") -> None:
        self._gateway = ServedGateway(served)
        moment = now or served.now
        self._analyst = OfflineAnalyst(self._gateway, clock=lambda: moment, timezone=timezone)

    async def ask(self, question: str) -> Answer:
        return await self._analyst.answer(Question(question, "shift"))

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [(call.tool_name, dict(call.arguments)) for call in self._gateway.calls]


def shown(answer: Answer) -> str:
    """Everything that a person sees of an answer."""
    cells = (cell for table in answer.tables for row in table.rows for cell in row)
    return "\n".join((answer.text, *cells, *answer.footnote))
