"""Rows in the text of other people's tool servers: what a policy declares as `result` of a tool, made typed rows.

A server that writes its rows as text gives one opaque string: no part of it can be labelled, hidden, pointed at or
cited. With a declared form the value is a result like those of our own servers (`contracts.query_results`). What does
not hold to its form is an error and never the text: the policy speaks of parts that could not be told apart in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, Coverage, QueryResult, TimeWindow
from sentinel_rag.gateway.policy.model import AS_IT_COMES, KUSTO_V2
from sentinel_rag.gateway.upstream.port import Returned, UpstreamReply
from sentinel_rag.gateway.upstream.tool_result import OTHER_CONTENT
from sentinel_rag.gateway.upstream.unanswered import unusable

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
