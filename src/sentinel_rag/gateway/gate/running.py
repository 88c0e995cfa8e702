"""Running a call that was allowed: the intent on record, the tool server's reply, the outcome on record, and only then
what the caller is told, without what the policy hides.

A call that is not recorded is not run, and what has run never looks as if it had not. A server that writes its rows as
text gives one opaque string, of which no part can be labelled, hidden or cited; with the form that a policy declares it
becomes typed rows, and what does not hold to its form is an error and never the text.

Above it lies `running`, which has the reply; the view of a result and the labels of its rows are `gateway.flow`'s.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

import anyio
import msgspec

from sentinel_rag.audit import CallOutcome, Journal, OutcomeStatus, RecordConnection, ValuesNamed, Work
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import Column, Coverage, QueryError, QueryErrorCode, QueryResult, TimeWindow
from sentinel_rag.contracts.servers import OWN_SERVERS
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.flow import ResultView, view_of
from sentinel_rag.gateway.flow.endorsement import endorsed_values
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, chosen
from sentinel_rag.gateway.flow.view import row_labels_of
from sentinel_rag.gateway.gate.call import CLOSED, DecidedCall, Endings, Intent, Stores, all_of
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.policy.model import AS_IT_COMES, KUSTO_V2
from sentinel_rag.gateway.responses import Completed, Outcome, OutcomeLost, outcome_of
from sentinel_rag.gateway.store import ContextMoved, Session, named_in_file
from sentinel_rag.gateway.store.session_tables import VolumeExceeded, count, counted_as, tables_of
from sentinel_rag.gateway.upstream import ToolFailed, Unanswered, Upstream, UpstreamReply
from sentinel_rag.gateway.upstream.mcp_messages import OTHER_CONTENT
from sentinel_rag.gateway.upstream.port import Returned, UpstreamCall, nobody_waits, unusable

_ATTEMPTS = 10
"""How often values are derived again because another process named some meanwhile."""

_VOLUME = "The result is withheld: a person has to let so many rows be read."

_WITHHELD = "The tool failed; its message is withheld, because the policy hides parts of its results."


class ResultRecorder:
    """Records replies and makes them outcomes."""

    def __init__(self, stores: Stores, endings: Endings, clock: Clock) -> None:
        self._stores = stores
        self._endings = endings
        self._clock = clock

    async def tell(self, decided: DecidedCall, reply: UpstreamReply, duration_ms: float) -> Outcome:
        """Take out what the agent may not see, and write the outcome with it. Raises UnavailableError if that cannot be
        written, and VolumeExceeded, with the outcome on record, where a person has to let it be told; then nothing is
        told."""
        if isinstance(reply, Returned):
            try:
                return await self._tell_value(decided, reply, duration_ms)
            except VolumeExceeded:
                withheld = QueryError(code=QueryErrorCode.CONFLICT, message=_VOLUME)
                await self._record(decided, Unanswered(Reason.APPROVAL_REQUIRED, withheld, False), duration_ms)
                raise
        if isinstance(reply, ToolFailed) and decided.tool.fields.hides:
            # Its text may quote what the policy hides.
            reply = ToolFailed(QueryError(code=reply.error.code, message=_WITHHELD))
        return await self._record(decided, reply, duration_ms)

    async def _tell_value(self, decided: DecidedCall, reply: Returned, duration_ms: float) -> Outcome:
        call, tool, session, judgement = decided.call, decided.tool, decided.session, decided.judgement
        rows = row_labels_of(tool.row_labels, reply.value, reply.row_labels)
        marks = call.request is None or call.request.marks_quotes
        view = view_of(reply.value, reply.encoded, tool.fields, judgement.base, call.result, rows, marks=marks)
        named = _chosen(decided, reply.value, view)
        if not await self._reveal_rows(decided, view.rows):
            closed = Unanswered(Reason.CONFLICT, QueryError(code=QueryErrorCode.CONFLICT, message=CLOSED), True)
            return await self._record(decided, closed, duration_ms)
        works = await self._counting(decided, reply)
        if view.hidden:
            works.append(self._stores.handles.keep(session.session_id, view.hidden))
        hidden = all_of(works) if works else None
        seen = reply if view.encoded is reply.encoded else replace(reply, encoded=view.encoded)
        outcome = await self._record(decided, seen, duration_ms, alongside=hidden)
        if isinstance(outcome, Completed):
            label = judgement.revealed.join(view.rows)
            outcome = replace(outcome, label=label, context=session.context, exposures=tool.fields.exposures)
        await self._name(decided, named)
        if reply.value is not None and any(rule.tool == tool.name for rule in call.policy.endorsements):
            await self._endorse(decided, reply.value)
        return outcome

    async def _counting(self, decided: DecidedCall, reply: Returned) -> list[Work[object]]:
        """The writes that count what a volume counts, and spend the approval by which more of it may be told."""
        call, session = decided.call, decided.session
        if not call.policy.volumes or decided.tool.server not in OWN_SERVERS or not reply.rows:
            return []
        tables = tables_of(reply.value)
        counted = [volume for volume in call.policy.volumes if not volume.tables.isdisjoint(tables)]
        if not counted:
            return []
        whose, now = session.user_key_id or session.key_id, self._clock()
        binding = decided.at_present().binding()
        approval_id = None if decided.approval_id else await self._stores.approvals.approved(binding)
        free = decided.approval_id is not None or approval_id is not None
        works = [count(whose, counted_as(tables, counted), reply.rows, now, () if free else counted)]
        if approval_id is not None:
            works.append(self._stores.approvals.consume(approval_id, binding))
        return works

    async def _endorse(self, decided: DecidedCall, value: JsonValue) -> None:
        """Name what the policy's endorsements derive from a result. Which record answered first, and how many values
        a rule gave, another process may have written meanwhile: so both are asked of the file, and once more in the
        transaction that names. Where they keep changing, nothing is named."""
        call, session = decided.call, decided.session

        def derived(said: Mapping[NamedValue, str]) -> Mapping[str, frozenset[NamedValue]]:
            return endorsed_values(call.policy, decided.tool, decided.judgement, value, said, decided.memory)

        for _ in range(_ATTEMPTS):
            await self._stores.sessions.refresh(session)
            # Not before the last pause: of two calls at once the second has to see what the first one named.
            with suppress(ContextMoved):
                await self._name(decided, derived(session.named), derived)
                return

    async def _reveal_rows(self, decided: DecidedCall, label: Label) -> bool:
        """Raise the context by what the rows of a result carry beyond what the policy foresaw, before any of it is
        told; False if the session was closed meanwhile, and nothing may be told."""
        if label.flows_to(decided.judgement.revealed):
            return True
        while not decided.session.closed:
            try:
                await self._endings.reveal(decided.entered, label)
            except ContextMoved:
                await self._stores.sessions.refresh(decided.session)
            else:
                return True
        return False

    async def _record(
        self, decided: DecidedCall, reply: UpstreamReply, duration_ms: float, *, alongside: Work[object] | None = None
    ) -> Outcome:
        outcome, record = outcome_of(reply, decided.tool, decided.call.audit_id, duration_ms)
        await self._stores.journal.append(record, alongside=alongside)
        return outcome

    async def _name(
        self,
        decided: DecidedCall,
        named: Mapping[str, frozenset[NamedValue]],
        derived: Callable[[Mapping[NamedValue, str]], Mapping[str, frozenset[NamedValue]]] | None = None,
    ) -> None:
        """Let later calls of the session name these values, by source; what is new is on record. Raises ContextMoved
        where they are not what is `derived` from what the file says is named."""
        call, session = decided.call, decided.session
        # All of them before the first pause.
        writes = [(source, *session.name(values, source)) for source, values in named.items()]
        for place, (source, fresh, write) in enumerate(writes):
            if not fresh:
                continue
            event = ValuesNamed(
                audit_id=call.audit_id,
                key_id=call.key_id,
                session_id=session.session_id,
                source=source,
                values=tuple((str(value.kind), value.text) for value in fresh),
            )
            try:
                if derived is not None:
                    write = _if_still(session, derived, source, named[source], write)
                await self._stores.journal.append(event, alongside=write)
            except BaseException:
                for _, values, _ in writes[place:]:
                    session.unname(values)
                raise


def _if_still(
    session: Session,
    derived: Callable[[Mapping[NamedValue, str]], Mapping[str, frozenset[NamedValue]]],
    source: str,
    values: frozenset[NamedValue],
    write: Work[object],
) -> Work[object]:
    """The write, where what the file names still gives the same values. Raises ContextMoved."""

    def checked(connection: RecordConnection) -> None:
        if derived(named_in_file(connection, session.session_id)).get(source) != values:
            raise ContextMoved
        write(connection)

    return checked


def _chosen(decided: DecidedCall, value: JsonValue, view: ResultView) -> dict[str, frozenset[NamedValue]]:
    """What the person's plan takes from the result of its step, where the agent may see it."""
    step, session = decided.judgement.step, decided.session
    if step is None:
        return {}
    hidden = [each.reference.path for each in view.hidden]
    return {PLAN: chosen(step, value, session.named, hidden, decided.call.policy.kinds)}


_FENCE = re.compile(r"\s*```[A-Za-z]*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_LIST_KEYS = ("rows", "value", "results", "result", "data", "items", "records")
"""Where servers put the list of rows, beside counts and links of no consequence."""
_NO_TEXT = ("image", "audio", "resource", "resource_link")
_MOST_DEPTH = 4
_OLDER_TYPES = {"i64": "long", "i32": "int", "r64": "real", "double": "real", "boolean": "bool", "date": "datetime"}
_NUMBERS = ("long", "int", "real")


class _NotOfTheForm(Exception):
    """The value does not hold to its form; the message says where."""


def in_form(reply: UpstreamReply, form: str, server: str) -> UpstreamReply:
    """The reply with its value as `form` says; `server` is told as the place that the rows come from."""
    if form == AS_IT_COMES or not isinstance(reply, Returned):
        return reply
    try:
        result = (_kusto if form == KUSTO_V2 else _json_rows)(_document(reply.value), server)
    except _NotOfTheForm as fault:
        return unusable(f"The tool's result is not {form}, which the policy declares: {fault}.")
    value = result.to_dict()
    return Returned(msgspec.json.encode(value), value, len(result.rows))


def _document(value: Any) -> Any:
    """What the text says, whether it comes bare, in a fence, as the only field of an object, or in several blocks."""
    if isinstance(value, dict) and OTHER_CONTENT in value:
        value = {key: part for key, part in value.items() if key != OTHER_CONTENT}
    if isinstance(value, dict) and value.keys() == {"result"}:  # as the official SDK wraps a text
        value = value["result"]
    if isinstance(value, list) and value and all(_block_text(block) is not None for block in value):
        return [_decoded(str(_block_text(block))) for block in value]
    if isinstance(value, list) and any(isinstance(block, dict) and block.get("type") in _NO_TEXT for block in value):
        raise _NotOfTheForm("it holds something other than text")
    return _decoded(value) if isinstance(value, str) else value


def _block_text(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _decoded(text: str) -> Any:
    fenced = _FENCE.fullmatch(text)
    try:
        return msgspec.json.decode(fenced[1] if fenced else text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise _NotOfTheForm("its text is not JSON") from None


# --- Kusto v2


def _kusto(document: Any, server: str) -> QueryResult:
    """The primary table of the frames, whole or in fragments."""
    if isinstance(document, list) and len(document) == 1 and isinstance(document[0], list):
        document = document[0]
    if not isinstance(document, list) or not all(isinstance(frame, dict) for frame in document):
        raise _NotOfTheForm("it is no list of frames")
    columns: list[Column] = []
    raw: list[Any] = []
    primary: Any = None
    for frame in document:
        kind = frame.get("FrameType")
        if kind in ("DataTable", "TableHeader") and frame.get("TableKind") == "PrimaryResult":
            if primary is not None:
                raise _NotOfTheForm("it has more than one primary table")
            primary = frame.get("TableId")
            columns, raw = _kusto_columns(frame.get("Columns")), list(frame.get("Rows") or ())
        elif kind == "TableFragment" and primary is not None and frame.get("TableId") == primary:
            rows = list(frame.get("Rows") or ())
            raw = rows if frame.get("TableFragmentType") == "DataReplace" else [*raw, *rows]
    if not columns:
        raise _NotOfTheForm("it has no primary table")
    reasons = [
        reason for frame in document if frame.get("HasErrors") for reason in _kusto_errors(frame.get("OneApiErrors"))
    ]
    reasons += [reason for row in raw if isinstance(row, dict) for reason in _kusto_errors(row.get("OneApiErrors"))]
    if any(frame.get("FrameType") == "DataSetCompletion" and frame.get("Cancelled") for frame in document):
        reasons.append("the query was cancelled")
    return _result(columns, _positional(columns, [row for row in raw if not isinstance(row, dict)]), server, reasons)


def _kusto_columns(columns: Any) -> list[Column]:
    if not isinstance(columns, list) or not columns:
        raise _NotOfTheForm("its primary table has no columns")
    try:
        told = ((str(each["ColumnName"]), each.get("ColumnType") or each.get("DataType")) for each in columns)
        return [Column(name, _type(kind)) for name, kind in told]
    except (KeyError, TypeError, AttributeError):
        raise _NotOfTheForm("its primary table has columns without a name") from None


def _kusto_errors(errors: Any) -> list[str]:
    told = [each.get("error") for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return [str(each.get("@message") or each.get("message")) for each in told if isinstance(each, dict)] or ["an error"]


def _type(told: Any) -> str:
    name = str(told or "string").lower().removeprefix("system.")
    return _OLDER_TYPES.get(name, name)


# --- rows as JSON


def _json_rows(document: Any, server: str) -> QueryResult:
    """A list of objects, a table of columns and rows, or either of them below one of the usual keys."""
    for _ in range(_MOST_DEPTH):
        if isinstance(document, list):
            break
        if not isinstance(document, dict):
            raise _NotOfTheForm("it is neither a list nor an object")
        tables = document.get("tables")
        if isinstance(tables, list) and tables and isinstance(tables[0], dict):
            document = tables[0]
        names = document.get("columns") or document.get("schema")
        rows = next((document[key] for key in ("rows", "results") if isinstance(document.get(key), list)), None)
        if isinstance(names, list) and names and rows is not None:
            columns = [_named_column(each) for each in names]
            if not all(isinstance(row, dict) for row in rows):
                return _result(columns, _positional(columns, rows), server, ())
            return _result(columns, [_by_name(columns, row) for row in rows], server, ())
        below = [document[key] for key in _LIST_KEYS if isinstance(document.get(key), list | dict)]
        if not below:
            return _of_objects([document], server)
        document = below[0]
    if not isinstance(document, list):
        raise _NotOfTheForm("it holds no list of rows")
    if len(document) == 1 and isinstance(document[0], list):
        document = document[0]
    return _of_objects(document, server)


def _of_objects(rows: Sequence[Any], server: str) -> QueryResult:
    if not all(isinstance(row, dict) for row in rows):
        raise _NotOfTheForm("a row is no object")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [Column(name, _inferred([row.get(name) for row in rows])) for name in names]
    return _result(columns, [_by_name(columns, row) for row in rows], server, ())


def _named_column(told: Any) -> Column:
    if isinstance(told, str):
        return Column(told, "dynamic")
    if isinstance(told, dict):
        lower = {str(key).lower(): value for key, value in told.items()}
        name = lower.get("name") or lower.get("columnname")
        if isinstance(name, str):
            return Column(name, _type(lower.get("type") or lower.get("columntype") or "dynamic"))
    raise _NotOfTheForm("a column has no name")


def _by_name(columns: Sequence[Column], row: Mapping[str, Any]) -> dict[str, JsonValue]:
    return {column.name: _cell(column, row.get(column.name)) for column in columns}


def _positional(columns: Sequence[Column], rows: Sequence[Any]) -> list[dict[str, JsonValue]]:
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        raise _NotOfTheForm("a row has another number of cells than there are columns")
    return [{column.name: _cell(column, cell) for column, cell in zip(columns, row, strict=True)} for row in rows]


def _cell(column: Column, cell: Any) -> JsonValue:
    """A cell as its column's type wants it: numbers that were written as text, dynamics that were written as JSON."""
    if isinstance(cell, str):
        if column.type in _NUMBERS:
            return _number(cell, whole=column.type != "real")
        if column.type == "dynamic" and cell[:1] in "[{":
            try:
                decoded: JsonValue = msgspec.json.decode(cell)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                return cell
            return decoded
    if column.type == "bool" and cell in (0, 1):
        return bool(cell)
    told: JsonValue = cell
    return told


def _number(text: str, *, whole: bool) -> JsonValue:
    """NaN and infinities have no other form in JSON, and stay text."""
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _inferred(cells: Sequence[Any]) -> str:
    """The type that every value of a column has; dynamic where they differ."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {str}:
        return "datetime" if all(cell is None or _is_time(cell) for cell in cells) else "string"
    if kinds <= {int, float}:
        return "string" if not kinds else "real" if float in kinds else "long"
    return "bool" if kinds == {bool} else "dynamic"


def _is_time(text: str) -> bool:
    try:
        return len(text) >= len("2026-01-01T00:00") and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def _result(
    columns: Sequence[Column], rows: Sequence[Mapping[str, JsonValue]], server: str, reasons: Sequence[str]
) -> QueryResult:
    """What the server cut it does not say but in errors beside the rows; without any, these are all rows it told."""
    return QueryResult(
        columns=tuple(columns),
        rows=tuple(rows),
        coverage=Coverage(
            workspace=server,
            tables=(),
            window=TimeWindow(),
            time_column="",
            rows_returned=len(rows),
            rows_total=None if reasons else len(rows),
            query="",
            duration_ms=0.0,
            partial=bool(reasons),
            partial_reason=" ".join(dict.fromkeys(reasons)),
        ),
    )


class Running:
    """`upstreams` maps the policy's `server` names to tool servers; `readers_of` tells under which names a key may
    read."""

    def __init__(
        self,
        journal: Journal,
        endings: Endings,
        *,
        intent: Intent,
        result: ResultRecorder,
        upstreams: Mapping[str, Upstream],
        limits: GatewayLimits,
        readers_of: Callable[[str], frozenset[str]],
    ) -> None:
        self._journal = journal
        self._endings = endings
        self._intent = intent
        self._result = result
        self._upstreams = upstreams
        self._limits = limits
        self._readers_of = readers_of
        self._in_flight = InFlight(limits)

    @property
    def calls_in_flight(self) -> int:
        """How many calls run at tool servers."""
        return len(self._in_flight)

    async def run(self, decided: DecidedCall) -> Outcome:
        """Run a call by the labels it was decided by. Raises ContextMoved if they have risen since, ApprovalSpent if
        its approval has served another call, UnavailableError if the intent cannot be recorded; then it has not run."""
        call = decided.call
        upstream = self._upstreams.get(decided.tool.server)
        full = self._in_flight.refusal(call.key_id)
        if upstream is None or full is not None:
            await self._endings.reveal(decided.entered, decided.entered.handles_label())
        if upstream is None:
            return await self._endings.refuse(
                call, Reason.UPSTREAM_FAILED, "No tool server is connected for this tool."
            )
        if full is not None:
            return await self._endings.refuse(call, Reason.OVERLOADED, full)
        if decided.session.context != decided.facts.context:
            raise ContextMoved
        self._in_flight.enter(call.key_id)
        try:
            return await self._run_at(upstream, decided)
        finally:
            self._in_flight.leave(call.key_id)

    async def _run_at(self, upstream: Upstream, decided: DecidedCall) -> Outcome:
        call, tool, session = decided.call, decided.tool, decided.session
        if tool.sends_readers:
            # A person's session reads as that person does, the agent's own as its key does.
            call.readers = self._readers_of(session.user_key_id or session.key_id)
        await self._intent.record(decided)
        started = time.perf_counter()
        try:
            reply = in_form(await self._reply(upstream, decided), tool.result, tool.server)
        except BaseException:  # this server stops, or the upstream broke its promise not to raise
            await self._journal.append(CallOutcome(audit_id=call.audit_id, status=OutcomeStatus.UNKNOWN))
            raise
        try:
            return await self._result.tell(decided, reply, (time.perf_counter() - started) * 1e3)
        except UnavailableError as away:
            # Whichever record could not be written: the call has run, and must not look as if it had not.
            if tool.effect is Effect.READ:
                raise
            raise OutcomeLost(str(away), next_step=away.next_step) from away

    async def _reply(self, upstream: Upstream, decided: DecidedCall) -> UpstreamReply:
        """What the tool server answers. A call that only reads is stopped once its caller has left."""
        call, tool = decided.call, decided.tool
        asked = UpstreamCall(
            tool=tool.name,
            arguments=decided.arguments,
            principal=call.key_id,
            session_id=decided.session.session_id,
            timeout_s=tool.timeout_s or self._limits.tool_seconds,
            readers=call.readers,
        )
        if call.caller is None or tool.effect is not Effect.READ:
            return await upstream.call(asked)
        with anyio.CancelScope() as waiting, call.caller.heard_by(waiting.cancel):
            return await upstream.call(asked)
        return nobody_waits()


# How many calls run at tool servers at once: in all, and for one key, so that no key can take every place.


class InFlight:
    """Belongs to one event loop, so a place is taken without waiting and without a lock."""

    def __init__(self, limits: GatewayLimits) -> None:
        self._in_all = limits.calls_in_flight
        self._per_key = limits.calls_in_flight_per_key
        self._calls = 0
        self._of_key: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._calls

    def refusal(self, key_id: str) -> str | None:
        """Why one more call of the key may not run now, in one sentence; None if it may."""
        if self._calls >= self._in_all:
            return "Too many calls are running; try again in a moment."
        if self._of_key[key_id] >= self._per_key:
            return "Too many calls of this key are running; try again in a moment."
        return None

    def enter(self, key_id: str) -> None:
        """Take a place for one call. Ask `refusal` first, without an await between."""
        self._calls += 1
        self._of_key[key_id] += 1

    def leave(self, key_id: str) -> None:
        """Give it back."""
        self._calls -= 1
        self._of_key[key_id] -= 1
        if not self._of_key[key_id]:
            del self._of_key[key_id]
