"""Running a call that was allowed: the intent on record, the tool server's reply, the outcome on record.

A call that is not recorded is not run, and what has run never looks as if it had not. A server that writes its rows as
text gives one opaque string, of which no part can be labelled, hidden or cited; with the form that a policy declares it
becomes typed rows, and what does not hold to its form is an error and never the text.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import anyio
import msgspec

from sentinel_rag.audit import CallOutcome, Journal, OutcomeStatus
from sentinel_rag.contracts.decisions import Reason
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, Coverage, QueryResult, TimeWindow
from sentinel_rag.gateway.gate.call import DecidedCall, Endings, Intent
from sentinel_rag.gateway.gate.result import ResultRecorder
from sentinel_rag.gateway.limits import GatewayLimits
from sentinel_rag.gateway.outcomes import Outcome, OutcomeLost
from sentinel_rag.gateway.policy import Effect
from sentinel_rag.gateway.policy.model import AS_IT_COMES, KUSTO_V2
from sentinel_rag.gateway.store import ContextMoved
from sentinel_rag.gateway.upstream import Upstream, UpstreamReply
from sentinel_rag.gateway.upstream.port import Returned, UpstreamCall, nobody_waits, unusable
from sentinel_rag.gateway.upstream.tool_result import OTHER_CONTENT

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
