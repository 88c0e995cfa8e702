"""The one parse of a request body. What it returns is what is judged, and nothing else of the body is used again.

JSON leaves room: keys given twice, NaN, numbers that no double holds, halves of a surrogate pair, nesting that ends in
a crash. Each is refused, because two parsers would read it differently.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.gateway.policy.model import Effect

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_TOOL_NAME = 256

_EFFECTS = tuple(effect.value for effect in Effect)
_SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# An unterminated string matches to the end of the body, so that no byte is looked at twice.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
IF_EFFECT = "if_effect"
FIELDS = ("session_id", "tool_name", "args", IF_EFFECT)


class MalformedBody(ValueError):
    """The body is not what the route takes. The message names the fault, never the content."""


@dataclass(frozen=True, slots=True)
class ExecuteRequest:
    """The body of `POST /v1/proxy-execute`. `args` holds only str, bool, finite numbers, None, lists and dicts.
    `if_effect`: the call is meant only if the tool has this effect, as a client says that would repeat it.
    `marks_quotes`: the caller reads `{"$quote": ...}`; else quoted texts come plain."""

    session_id: str
    tool_name: str
    args: JsonObject
    if_effect: Effect | None = None
    marks_quotes: bool = True


def parse_execute(body: bytes) -> ExecuteRequest:
    """Raises MalformedBody."""
    document = parse_object(body)
    unknown = [name for name in document if name not in FIELDS]
    if unknown:
        raise MalformedBody(f"the body may hold {', '.join(FIELDS)} and nothing else")
    return read_execute(*(document.get(name) for name in FIELDS))


def read_execute(session_id: Any, tool_name: Any, args: Any, if_effect: Any = None) -> ExecuteRequest:
    """The call that parsed values make, from whichever body they came. Raises MalformedBody."""
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        raise MalformedBody("session_id must be 1 to 128 letters, digits, '.', '_', ':' or '-'")
    if not isinstance(tool_name, str) or not 0 < len(tool_name) <= MAX_TOOL_NAME:
        raise MalformedBody(f"tool_name must be a text of 1 to {MAX_TOOL_NAME} characters")
    if not isinstance(args, dict):
        raise MalformedBody("args must be an object")
    if if_effect is None:
        return ExecuteRequest(session_id, tool_name, args)
    if if_effect not in _EFFECTS:
        raise MalformedBody(f"if_effect must be one of {', '.join(_EFFECTS)}")
    return ExecuteRequest(session_id, tool_name, args, Effect(if_effect))


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that `body` is. Raises MalformedBody."""
    _check_depth(body)
    try:
        text = body.decode()
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except UnicodeDecodeError:
        raise MalformedBody("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise MalformedBody(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(document, dict):
        raise MalformedBody("the body must be a JSON object")
    if "\\u" in text and _holds_surrogate(document):
        raise MalformedBody("a text holds half of a surrogate pair")
    return document


def _check_depth(body: bytes) -> None:
    """Before the parse, which recurses. Brackets inside strings do not count."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(body):
        token = match[0]
        if token in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise MalformedBody(f"the body is nested more than {MAX_DEPTH} levels deep")
        elif token in (b"]", b"}"):
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise MalformedBody("a key is given twice in one object")
    return result


def _integer(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_INTEGER:
        raise MalformedBody("a number is too large to be exact; send it as a text")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise MalformedBody("a number is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise MalformedBody(f"{text} is not JSON")


def _holds_surrogate(value: Any) -> bool:
    """Iterative, since the depth is bounded but the width is not."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            if _SURROGATE.search(part):
                return True
        elif isinstance(part, dict):
            left += part.keys()
            left += part.values()
        elif isinstance(part, list):
            left += part
    return False
