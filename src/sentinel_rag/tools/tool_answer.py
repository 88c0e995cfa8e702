"""What a tool answers over MCP, and the arguments that it was given with their types."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """`value` travels as structured content; `text` is for clients that show text only and holds no data of a file,
    a page or a log. `meta` is for the gateway alone (`contracts.trusted_meta`)."""

    value: JsonObject
    text: str
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)


class ToolFault(Exception):
    """There is no result; `error` says why, in words that may reach the caller."""

    def __init__(self, error: QueryError) -> None:
        super().__init__(error.message)
        self.error = error


def wrong_argument(field: str, message: str, next_step: str, *, allowed: tuple[str, ...] = ()) -> ToolFault:
    """The refusal of one argument."""
    return ToolFault(
        QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT, message=message, next_step=next_step, field=field, allowed=allowed
        )
    )


def failed(code: QueryErrorCode, message: str, next_step: str, *, retry_after_s: float | None = None) -> ToolFault:
    """The failure of something that the tool needs."""
    return ToolFault(QueryError(code=code, message=message, next_step=next_step, retry_after_s=retry_after_s))


def error_answer(error: QueryError) -> ToolAnswer:
    """An error as an answer."""
    return ToolAnswer(error.to_dict(), " ".join(part for part in (error.message, error.next_step) if part), True)


def our_fault(tool: str) -> ToolAnswer:
    """A fault of ours: the trace goes to the log under an id, the caller gets the id and no data. Call it while the
    exception is handled."""
    fault = uuid4().hex[:8]
    _LOG.exception("internal error %s in %s", fault, tool)
    return error_answer(
        QueryError(
            code=QueryErrorCode.INTERNAL,
            message=f"{tool} failed for a reason that is our fault (error {fault}).",
            next_step=f"Report it with the line 'internal error {fault}' of the tool server's log.",
        )
    )


T = TypeVar("T", bound=msgspec.Struct)

# The gateway has judged the very bytes that arrive here, so nothing is stripped, folded or converted: a path with a
# blank in front must not become another path behind the rule's back.
_PLACE = re.compile(r" - at `\$\.(?P<field>\w+)`$")
_NAMED = re.compile(r"(?:unknown|required) field `(?P<field>\w+)`")


def read_arguments(kind: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
    """`arguments` as a `kind`, whose fields and limits they must keep. Raises ToolFault that names the field."""
    try:
        return msgspec.convert(arguments, kind, strict=True)
    except msgspec.ValidationError as fault:
        text = str(fault)
        found = _PLACE.search(text) or _NAMED.search(text)
        field = found["field"] if found else ""
        reason = _PLACE.sub("", text).replace("`", "'")
        takes = ", ".join(each.name for each in msgspec.structs.fields(kind))
        raise wrong_argument(
            field,
            f"{tool} cannot take {field or 'these arguments'}: {reason[:1].lower()}{reason[1:]}.",
            f"It takes: {takes}.",
        ) from None
