"""Counts of the gateway: calls by decision and reason, what tool servers answered, approvals, sessions, records.

Labels are tools, servers and rules of the policy and codes of ours: never a key, a session or an id, so a series more
takes a change of the policy. What is so now (approvals that wait, servers that answer) is asked when somebody reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

import anyio

from sentinel_rag.audit import (
    AuditEvent,
    AuthenticationFailed,
    CallIntended,
    CallOutcome,
    CallRefused,
    ContextRaised,
    SessionChanged,
)
from sentinel_rag.audit.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalLapsed,
    PolicyLoaded,
    PolicyRefused,
    RequestRefused,
    ToolQuarantined,
)
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import ApprovalState
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.store import State
from sentinel_rag.gateway.upstream import Upstream
from sentinel_rag.telemetry.metrics import Counter, Gauge, Histogram, Registry, request_began

UNKNOWN = "unknown"
ASKED_AGAIN_S = 5.0
LOOK_S = 3.0
"""How long a reader of the metrics waits for tool servers to say that they are there."""

MAX_OPEN = 10_000
_DECISIONS = (CallIntended, CallRefused)


class RecordCounts:
    """A journal's listener that counts into `registry`."""

    def __init__(self, registry: Registry, *, servers: Iterable[str] = ()) -> None:
        """Counts that alerts watch begin at 0 with the process: Prometheus does not see a first event by which a series
        comes to be. `servers` are those of the policy."""
        self._open: dict[str, tuple[str, str]] = {}
        self._records = Counter("sentinel_gateway_journal_records_total", "Records of the journal.", ("kind",))
        self._append = Histogram(
            "sentinel_gateway_journal_append_seconds", "From a record's making until it is durable."
        )
        self._unwritten = Counter(
            "sentinel_gateway_journal_failures_total", "Records that could not be written; their calls did not run."
        )
        self._calls = Counter(
            "sentinel_gateway_calls_total",
            "Calls by what was decided: allowed, denied by the policy, or refused before or beside it.",
            ("tool", "decision", "reason"),
        )
        self._results = Counter(
            "sentinel_gateway_results_total",
            "Calls that were allowed, by how they ended.",
            ("tool", "status", "reason"),
        )
        self._upstream = Histogram(
            "sentinel_gateway_upstream_seconds", "How long a tool server took for a call.", ("server",)
        )
        self._decision = Histogram(
            "sentinel_gateway_decision_seconds", "From a request's head until the decision is on record."
        )
        self._raised = Counter(
            "sentinel_gateway_context_raised_total", "Rises of a session's context label.", ("sensitivity", "integrity")
        )
        self._unauthenticated = Counter(
            "sentinel_gateway_unauthenticated_total", "Requests without a key that opens the route.", ("reason",)
        )
        self._unread = Counter(
            "sentinel_gateway_requests_refused_total", "Requests refused before their body was looked at.", ("reason",)
        )
        self._approvals = Counter(
            "sentinel_gateway_approvals_total", "Questions to people and what became of them.", ("event",)
        )
        self._sessions = Counter("sentinel_gateway_sessions_total", "Sessions opened and closed.", ("change",))
        self._policies = Counter("sentinel_gateway_policy_loads_total", "Policy files read.", ("result",))
        self._quarantined = Counter(
            "sentinel_gateway_tools_quarantined_total", "Tools whose definition changed.", ("server",)
        )
        registry.add(
            *(self._records, self._append, self._unwritten, self._calls, self._results, self._upstream, self._decision),
            *(
                self._raised,
                self._unauthenticated,
                self._unread,
                self._approvals,
                self._sessions,
                self._policies,
                self._quarantined,
            ),
        )
        for server in servers:
            self._quarantined.add(server, by=0)
        for reason in (Reason.UNAUTHENTICATED, Reason.MISSING_SCOPE):
            self._unauthenticated.add(reason.value, by=0)
        for result in ("loaded", "refused"):
            self._policies.add(result, by=0)
        for event in ("asked", "approved", "denied", "expired"):
            self._approvals.add(event, by=0)

    def written(self, event: AuditEvent, seconds: float) -> None:
        began = request_began() if isinstance(event, _DECISIONS) else None
        if began is not None:
            self._decision.observe(time.perf_counter() - began)
        self._records.add(event.kind)
        self._append.observe(seconds)
        match event:
            case CallIntended():
                self._calls.add(event.tool, "allowed", "")
                if len(self._open) >= MAX_OPEN:
                    del self._open[next(iter(self._open))]
                self._open[event.audit_id] = (event.tool, event.server)
                if event.context_before != event.context_after:
                    self._raised.add(event.context_after.sensitivity.name, event.context_after.integrity.name)
            case CallOutcome():
                tool, server = self._open.pop(event.audit_id, (UNKNOWN, UNKNOWN))
                self._results.add(tool, event.status.value, "" if event.reason is None else event.reason.value)
                if event.duration_ms is not None:
                    self._upstream.observe(event.duration_ms / 1e3, server)
            case CallRefused():
                decision = "denied" if event.http_status == 403 else "refused"
                self._calls.add(event.tool or UNKNOWN, decision, event.reason.value)
            case ContextRaised():
                if event.context_before != event.context_after:
                    self._raised.add(event.context_after.sensitivity.name, event.context_after.integrity.name)
            case AuthenticationFailed():
                self._unauthenticated.add(event.reason.value, by=1 + event.not_recorded)
            case RequestRefused():
                self._unread.add(event.reason.value, by=1 + event.not_recorded)
            case ApprovalAsked():
                self._approvals.add("asked")
            case ApprovalDecided():
                self._approvals.add(event.decision)
            case ApprovalLapsed():
                self._approvals.add(event.state)
            case SessionChanged():
                self._sessions.add(event.change)
            case PolicyLoaded():
                self._policies.add("loaded")
            case PolicyRefused():
                self._policies.add("refused")
            case ToolQuarantined():
                self._quarantined.add(event.server)

    def failed(self, event: AuditEvent) -> None:
        self._unwritten.add()
        if isinstance(event, CallOutcome):
            self._open.pop(event.audit_id, None)


class CurrentCounts:
    """What is so when somebody reads the metrics: asked of the gateway once in `ASKED_AGAIN_S`, of its tool servers for
    at most `LOOK_S`."""

    def __init__(self, state: State, gate: Gate, policies: Policies, upstreams: Mapping[str, Upstream]) -> None:
        self._state = state
        self._gate = gate
        self._policies = policies
        self._upstreams = upstreams
        self._until = float("-inf")
        self._pending: Mapping[str, int] = {}
        self._servers: dict[str, bool] = {}
        self._length: int | None = None

    async def look(self) -> None:
        """Ask, unless that was done a moment ago."""
        now = time.monotonic()
        if now < self._until:
            return
        self._until = now + ASKED_AGAIN_S
        self._pending, self._length = {}, None
        try:
            self._pending = (await self._state.approvals.page(ApprovalState.PENDING, 1)).pending_by_tool
            self._length = (await self._state.journal.head()).seq
        except UnavailableError:
            pass
        self._servers = dict.fromkeys(sorted(self._policies.current.servers()), False)
        with anyio.move_on_after(LOOK_S):
            async with anyio.create_task_group() as group:
                for server in self._servers.keys() & self._upstreams.keys():
                    group.start_soon(self._ask, server)

    async def _ask(self, server: str) -> None:
        with suppress(UnavailableError):
            await self._upstreams[server].list_tools(timeout_s=LOOK_S)
            self._servers[server] = True

    def gauges(self) -> tuple[Gauge, ...]:
        """What it answered last."""
        return (
            Gauge(
                "sentinel_gateway_approvals_pending",
                "Calls that wait for a person.",
                lambda: (((tool,), float(count)) for tool, count in sorted(self._pending.items())),
                ("tool",),
            ),
            Gauge(
                "sentinel_gateway_upstream_up",
                "1 for a tool server of the policy that answers.",
                lambda: (((server,), float(up)) for server, up in self._servers.items()),
                ("server",),
            ),
            Gauge(
                "sentinel_gateway_journal_writable",
                "1 while the journal takes records; without it no call runs.",
                lambda: [((), 0.0 if self._length is None else 1.0)],
            ),
            Gauge(
                "sentinel_gateway_journal_length",
                "The number of the newest record.",
                lambda: [] if self._length is None else [((), float(self._length))],
            ),
            Gauge(
                "sentinel_gateway_calls_in_flight",
                "Calls that run at tool servers.",
                lambda: [((), float(self._gate.calls_in_flight))],
            ),
        )
