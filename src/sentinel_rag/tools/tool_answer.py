"""What a tool answers over MCP, and the arguments that it was given with their types."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.query_results import (
    QueryError,
    QueryErrorCode,
    QueryFailedError,
    internal_error,
    invalid_argument,
)
from sentinel_rag.contracts.tool_calls import ToolSchema

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """`value` travels as structured content; `text` is for clients that show text only and holds no data of a file,
    a page or a log. `meta` is for the gateway alone (`contracts.trusted_meta`)."""

    value: JsonObject
    text: str
    is_error: bool = False
    meta: JsonObject = field(default_factory=dict)


def failed(
    code: QueryErrorCode, message: str, next_step: str, *, retry_after_s: float | None = None
) -> QueryFailedError:
    """The failure of something that the tool needs."""
    return QueryFailedError(QueryError(code=code, message=message, next_step=next_step, retry_after_s=retry_after_s))


def error_answer(error: QueryError) -> ToolAnswer:
    """An error as an answer."""
    return ToolAnswer(error.to_dict(), " ".join(part for part in (error.message, error.next_step) if part), True)


async def answer_of(tool: str, tools: Sequence[ToolSchema], run: Callable[[], Awaitable[ToolAnswer]]) -> ToolAnswer:
    """What `run` answers for `tool`, which must be one of `tools`, or why there is no answer. Never raises: one tool's
    fault must not end the server or reach the caller as a traceback."""
    known = tuple(each.name for each in tools)
    try:
        if tool not in known:
            step = f"Use one of: {', '.join(known)}."
            raise invalid_argument("tool_name", "There is no such tool.", step, allowed=known)
        return await run()
    except QueryFailedError as failure:
        return error_answer(failure.error)
    except SentinelError as error:
        return error_answer(failed(QueryErrorCode.UNAVAILABLE, str(error), error.next_step).error)
    except Exception:
        return error_answer(internal_error(tool, _LOG))


T = TypeVar("T", bound=msgspec.Struct)

# The gateway has judged the very bytes that arrive here, so nothing is stripped, folded or converted: a path with a
# blank in front must not become another path behind the rule's back.
_PLACE = re.compile(r" - at `\$\.(?P<field>\w+)`$")
_NAMED = re.compile(r"(?:unknown|required) field `(?P<field>\w+)`")


def read_arguments(kind: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
    """`arguments` as a `kind`, whose fields and limits they must keep. Raises QueryFailedError that names the field."""
    try:
        return msgspec.convert(arguments, kind, strict=True)
    except msgspec.ValidationError as fault:
        text = str(fault)
        found = _PLACE.search(text) or _NAMED.search(text)
        field = found["field"] if found else ""
        reason = _PLACE.sub("", text).replace("`", "'")
        takes = ", ".join(each.name for each in msgspec.structs.fields(kind))
        raise invalid_argument(
            field,
            f"{tool} cannot take {field or 'these arguments'}: {reason[:1].lower()}{reason[1:]}.",
            f"It takes: {takes}.",
        ) from None
