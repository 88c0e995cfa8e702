"""What a person is shown of a call before they decide: what it would change, read by the gateway itself, and what the
conversation had read.

The reading changes nothing and reaches nobody but whoever decides; it is on record before it is made. Where the tool
server says that the call cannot be made at all, nobody is asked about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from sentinel_rag.audit import Journal, JournalEntry, OutcomeStatus, RecordFilter
from sentinel_rag.audit.approval_events import PreviewRead
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.contracts.tool_servers import OWN_SERVERS
from sentinel_rag.gateway.approvals import CallSubject, EarlierRead, FieldChange
from sentinel_rag.gateway.arguments import CanonicalArguments
from sentinel_rag.gateway.flow import NoSuchHandle
from sentinel_rag.gateway.flow.references import step_into
from sentinel_rag.gateway.gate.call import DecidedCall
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.policy import Effect, Preview
from sentinel_rag.gateway.policy.fields import Path
from sentinel_rag.gateway.store import resources_of
from sentinel_rag.gateway.upstream import Returned, ToolFailed, Upstream

LONGEST_S = 10.0
"""A person is asked without a preview rather than late."""

MAX_EVIDENCE = 8
EVIDENCE_OF = timedelta(days=1)


class Previews:
    """`upstreams` maps the policy's `server` names to tool servers."""

    def __init__(self, journal: Journal, upstreams: Mapping[str, Upstream], limits: Limits, clock: Clock) -> None:
        self._journal = journal
        self._upstreams = upstreams
        self._limits = limits
        self._clock = clock

    async def of(self, wanted: DecidedCall) -> CallSubject | QueryError | None:
        """What the call would change; the tool server's error where its arguments cannot be used; None where nothing
        can be read. Raises UnavailableError if the reading cannot be recorded."""
        tool, preview = wanted.tool, wanted.tool.preview
        upstream = self._upstreams.get(tool.server)
        if preview is None or upstream is None:
            return None
        given = wanted.arguments.value
        handed = CanonicalArguments.of(
            {name: value for name, value in given.items() if not preview.arguments or name in preview.arguments}
        )
        await self._journal.append(
            PreviewRead(
                audit_id=wanted.call.audit_id,
                key_id=wanted.call.key_id,
                session_id=wanted.session.session_id,
                tool=preview.tool,
                server=tool.server,
                arguments_sha256=handed.sha256,
            )
        )
        reply = await upstream.call(
            preview.tool,
            handed,
            principal=wanted.call.key_id,
            session_id=wanted.session.session_id,
            timeout_s=min(LONGEST_S, tool.timeout_s or self._limits.tool_seconds),
        )
        if isinstance(reply, Returned):
            return _subject(preview, reply.value, given)
        ours = tool.server in OWN_SERVERS
        if ours and isinstance(reply, ToolFailed) and reply.error.code is QueryErrorCode.INVALID_ARGUMENT:
            return reply.error
        return None

    async def evidence(self, wanted: DecidedCall) -> tuple[EarlierRead, ...]:
        """The newest calls of the session that read something: first those that asked for what the call is for."""
        session_id = wanted.session.session_id
        found = await self._journal.back(
            RecordFilter(kind="intent", session_id=session_id, since=self._clock() - EVIDENCE_OF), None, 100
        )
        things = frozenset(resources_of(wanted.tool.writes, wanted.arguments.value))
        read = [_evidence(wanted, entry, things) for entry in found.entries if _has_read(entry)]
        return tuple(sorted(read, key=lambda each: not each.about)[:MAX_EVIDENCE])


def _has_read(entry: JournalEntry) -> bool:
    return entry.record.get("effect") == Effect.READ.value and entry.outcome is OutcomeStatus.SUCCESS


def _evidence(wanted: DecidedCall, entry: JournalEntry, things: Iterable[str]) -> EarlierRead:
    """Whether a read was about the thing says the text by which both name it."""
    arguments: JsonObject = entry.record.get("arguments") or {}
    asked = {resource for template in wanted.tool.writes for resource in resources_of([template], arguments)}
    return EarlierRead(entry.audit_id, str(entry.record["tool"]), str(entry.record["at"]), not asked.isdisjoint(things))


def _subject(preview: Preview, result: Any, arguments: JsonObject) -> CallSubject | None:
    """None where the result is not of the form that the policy says."""
    try:
        told = step_into(result, preview.changes) if preview.changes else None
        changes = _told_changes(told) if preview.changes else _replaced(preview, result, arguments)
    except (NoSuchHandle, TypeError, KeyError):
        return None
    number, name = (_text_at(result, path) for path in (preview.number, preview.name))
    state = {field: _value_at(result, path) for field, path in preview.state.items()}
    return CallSubject(number, name, state, changes)


def _told_changes(told: Any) -> tuple[FieldChange, ...]:
    """Raises TypeError or KeyError for what is no list of changes."""
    if not isinstance(told, list):
        raise TypeError("no list")
    return tuple(FieldChange(str(each["field"]), each["before"], each["after"]) for each in told)


def _replaced(preview: Preview, result: Any, arguments: JsonObject) -> tuple[FieldChange, ...]:
    found = (
        FieldChange(name, _value_at(result, path), arguments[name])
        for name, path in preview.fields.items()
        if name in arguments
    )
    return tuple(change for change in found if change.before != change.after)


def _value_at(result: Any, path: Path) -> JsonValue:
    try:
        value: JsonValue = step_into(result, path)
    except NoSuchHandle:
        return None
    return value


def _text_at(result: Any, path: Path) -> str:
    value = _value_at(result, path) if path else None
    return "" if value is None else str(value)
