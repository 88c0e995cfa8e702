"""What is told of one gateway: its journal's listeners, its tool servers in their wrappers, and what is so now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import anyio

from sentinel_rag.audit import AuditEvent
from sentinel_rag.audit.journal import JournalListener
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.approvals import ApprovalState
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.telemetry.spans import RecordSpans, TracedUpstream
from sentinel_rag.gateway.upstream import McpHttpUpstream, Upstream
from sentinel_rag.telemetry import tracing

if TYPE_CHECKING:
    from sentinel_rag.telemetry.metrics import Registry


LOOK_S = 3.0
"""How long a reader of the metrics waits for tool servers to say that they are there."""


def told_upstreams(upstreams: Mapping[str, Upstream]) -> Mapping[str, Upstream]:
    """The same tool servers; those that make no spans themselves are wrapped where spans are made."""
    if not tracing():
        return upstreams
    return {
        name: upstream if _tells_itself(upstream) else TracedUpstream(upstream, server=name)
        for name, upstream in upstreams.items()
    }


def _tells_itself(upstream: Upstream) -> bool:
    return isinstance(upstream, McpHttpUpstream) and upstream.is_ours


def tell_records(
    state: State, gate: Gate, policies: Policies, upstreams: Mapping[str, Upstream], registry: Registry | None
) -> None:
    """Have the journal's records told; nothing is set where there is nobody to tell."""
    listeners: list[JournalListener] = []
    if tracing():
        listeners.append(RecordSpans())
    if registry is not None:
        from sentinel_rag.gateway.telemetry.counts import RecordCounts, watch_gateway

        listeners.append(RecordCounts(registry, servers=sorted(policies.current.servers())))
        watch_gateway(registry, _Gateway(state, gate, policies, upstreams), longest_s=LOOK_S)
    if listeners:
        state.journal.listener = Listeners(listeners)


class _Gateway:
    """The gateway as `counting.Standing` asks it."""

    def __init__(self, state: State, gate: Gate, policies: Policies, upstreams: Mapping[str, Upstream]) -> None:
        self._state = state
        self._gate = gate
        self._policies = policies
        self._upstreams = upstreams

    async def pending_approvals(self) -> Mapping[str, int]:
        return (await self._state.approvals.page(ApprovalState.PENDING, 1)).pending_by_tool

    async def journal_length(self) -> int:
        return (await self._state.journal.head()).seq

    async def servers(self) -> Mapping[str, bool]:
        up: dict[str, bool] = dict.fromkeys(sorted(self._policies.current.servers()), False)

        async def ask(server: str) -> None:
            try:
                await self._upstreams[server].list_tools(timeout_s=LOOK_S)
                up[server] = True
            except UnavailableError:
                pass

        async with anyio.create_task_group() as group:
            for server in up:
                if server in self._upstreams:
                    group.start_soon(ask, server)
        return up

    def calls_in_flight(self) -> int:
        return self._gate.calls_in_flight


# Several listeners of one journal.


class Listeners:
    """Tells each of `listeners`."""

    def __init__(self, listeners: Sequence[JournalListener]) -> None:
        self._listeners = tuple(listeners)

    def written(self, event: AuditEvent, seconds: float) -> None:
        for listener in self._listeners:
            listener.written(event, seconds)

    def failed(self, event: AuditEvent) -> None:
        for listener in self._listeners:
            listener.failed(event)
