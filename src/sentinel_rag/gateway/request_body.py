"""The one parse of a request body, and a call's arguments in the one form that is judged, recorded and sent.

JSON leaves room: keys given twice, NaN, numbers that no double holds, halves of a surrogate pair, nesting that ends in
a crash. Each is refused, because two parsers would read it differently.

Nothing is converted on the way: a text where the policy wants a number is refused. Only where MCP comes in, and
models write the arguments themselves, `as_declared` reads first what loses nothing; that form is then judged and sent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from sentinel_rag.contracts.json_values import JsonObject, JsonValue, canonical_json
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.policy.conditions import TypeName, ValueType, closest
from sentinel_rag.gateway.policy.model import Effect, ToolPolicy

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


_NAME = re.compile(r"[A-Za-z_]{1,40}")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?|true|false")
_EXACT = 2**53
"""Up to here a whole number written as 5.0 is that number."""


@dataclass(frozen=True, slots=True)
class CanonicalArguments:
    """`encoded` is the canonical JSON of `value` and exactly what an upstream is sent; `sha256` is its hash in hex."""

    value: JsonObject
    encoded: bytes
    sha256: str

    @classmethod
    def of(cls, value: JsonObject) -> CanonicalArguments:
        """Raises ValueError for what JSON cannot hold."""
        encoded = canonical_json(value)
        return cls(value, encoded, hashlib.sha256(encoded).hexdigest())


@dataclass(frozen=True, slots=True)
class ArgumentFault:
    """Why the arguments do not fit the tool. Names the argument and what is allowed, and never repeats a value."""

    field: str
    message: str
    allowed: tuple[str, ...] = ()

    @property
    def next_step(self) -> str:
        """What helps, as the same call would fail again."""
        return f"Call again with another argument: correct or leave out {self.field or 'the one that is wrong'}."


def fit(tool: ToolPolicy, arguments: Mapping[str, Any]) -> CanonicalArguments | ArgumentFault:
    """The arguments in canonical form, if each is a parameter of the tool and of its type, and none is missing."""
    result: dict[str, JsonValue] = {}
    for name, value in arguments.items():
        parameter = tool.parameters.get(name)
        if parameter is None:
            return _unknown(tool, name)
        if value is None:
            return ArgumentFault(name, f"{name} is null: leave it out instead.")
        if isinstance(value, str) and not value.strip():
            # A tool may take blank for absent, a rule such as has(incident) does not: one meaning for both.
            return ArgumentFault(name, f"{name} is blank: leave it out instead.")
        if not _has_type(value, parameter.type):
            return ArgumentFault(name, f"{name} must be {parameter.type}.", (str(parameter.type),))
        if parameter.format is not None:
            try:
                canonical = FORMATS[parameter.format]
                value = list(map(canonical, value)) if isinstance(value, list) else canonical(value)
            except NotCanonical as fault:
                return ArgumentFault(name, f"{name} is not a usable {parameter.format}: {fault}.")
        result[name] = value
    for parameter in tool.parameters.values():
        if parameter.required and parameter.name not in result:
            return ArgumentFault(parameter.name, f"{parameter.name} is required.")
    return CanonicalArguments.of(result)


def as_declared(tool: ToolPolicy, arguments: JsonObject) -> JsonObject:
    """`arguments` in the tool's own types where nothing is lost: "5" and 5.0 for 5, 124 for "124", null for an option
    that is left out. "05", 5.5 and whatever else is not certain stay for `fit` to refuse."""
    declared = tool.parameters
    return {
        name: _typed(value, declared[name].type.kind) if name in declared else value
        for name, value in arguments.items()
        if value is not None or name not in declared or declared[name].required
    }


def _typed(value: JsonValue, kind: TypeName) -> JsonValue:
    if kind is TypeName.STRING and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if kind is TypeName.INTEGER and isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if (
        kind in (TypeName.INTEGER, TypeName.NUMBER, TypeName.BOOLEAN)
        and isinstance(value, str)
        and _SCALAR.fullmatch(value)
    ):
        read: JsonValue = json.loads(value)
        if _has_kind(read, kind) and canonical_json(read).decode() == value:
            return read
    return value


def _unknown(tool: ToolPolicy, name: str) -> ArgumentFault:
    known = tuple(tool.parameters)
    # A name may hold anything; only one that could be a parameter's is repeated, since people read the sentence too.
    shown = name if _NAME.fullmatch(name) else ""
    told = repr(shown) if shown else "An argument"
    return ArgumentFault(shown, f"{told} is not a parameter of {tool.name}{closest(name, known)}", known)


def _has_type(value: Any, wanted: ValueType) -> bool:
    if wanted.kind is TypeName.ARRAY:
        items = wanted.items
        return isinstance(value, list) and (items is None or all(_has_kind(item, items) for item in value))
    return _has_kind(value, wanted.kind)


def _has_kind(value: Any, kind: TypeName) -> bool:
    match kind:
        case TypeName.STRING:
            return isinstance(value, str)
        case TypeName.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case TypeName.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case TypeName.BOOLEAN:
            return isinstance(value, bool)
        case TypeName.ARRAY:
            return isinstance(value, list)
        case TypeName.OBJECT:
            return isinstance(value, dict)
        case TypeName.NULL:
            return value is None
