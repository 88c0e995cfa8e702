"""Conversions between the types of KQL: `tostring`, `tolong` and their kind, and those that other functions ask for.

Source: the Kusto pages named like the functions. `conversions.txt` has the SQL of each pair of types; here is what is
known before a row is read: constants, members of a dynamic, and texts that nobody makes JSON of to read them back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.definitions import ARGUMENT_KINDS, ArgumentKind, BoundCall, fill, python, rows
from kql_duckdb.time_texts import parse_datetime, parse_timespan
from kql_duckdb.types import BOOL, DECIMAL, DYNAMIC, GUID, INT, INTEGERS, LONG, NUMBERS, REAL, STRING, KustoType

_READERS = {"datetime": parse_datetime, "timespan": parse_timespan}
for _kind, _read in _READERS.items():
    python(f"kql_to{_kind}(text: string): {_kind}")(_read)


def _read_rules() -> dict[tuple[str, str], str]:
    """The SQL by the type that it makes and the one that it takes."""
    found: dict[tuple[str, str], str] = {}
    inner = re.compile(r"(\w+) from (\w+)\[([^\[\]]*)\]")
    for row in rows("conversions.txt"):
        names, sql = row.split(" = ", 1)
        made, taken = (one.split(", ") for one in names.split(" from "))
        while of := inner.search(sql):
            sql = sql.replace(of[0], "(" + found[of[1], of[2]].replace("{0}", f"({of[3]})") + ")")
        found |= {(to, one): sql.replace("{held}", KustoType(to).held) for to in made for one in taken}
    return found


_RULES = _read_rules()


def to_string(value: Typed) -> Typed:
    """`tostring(value)`: null is the empty text, for every type."""
    if value.is_constant and value.constant is None:
        return literal("", STRING)
    text = nullable_text(value)
    if text.type is value.type and not value.nullable:
        return value
    return replace(fill("coalesce({0}, '')", STRING, text), simple=text.simple)


def present(value: Typed) -> Typed:
    """The value itself; no text is null."""
    return to_string(value) if value.type is STRING else value


def nullable_text(value: Typed) -> Typed:
    """The same, with SQL NULL for null."""
    if value.type is STRING:
        return value
    if value.text is not None:
        return value.text
    if value.json_path:
        base, path = value.json_path
        return fill("{0} ->> {1}", STRING, base, literal(path, STRING), nullable=True)
    return fill(_RULES[STRING, value.type], STRING, value, nullable=True)


def json_value(value: Typed) -> Typed:
    """The value as it stands inside a dynamic: times and spans in Kusto's text, a null as JSON null or SQL NULL."""
    if value.type is DYNAMIC:
        return value
    if value.is_constant and value.constant is not None and value.type in (STRING, BOOL, LONG, INT):
        return literal(value.constant, DYNAMIC)
    if value.type is STRING:
        return fill("to_json({0})", DYNAMIC, to_string(value), nullable=False)
    return fill(_RULES[DYNAMIC, value.type], DYNAMIC, value)


def convert(value: Typed, kind: KustoType) -> Typed:
    """Return `value` as `kind`, by the function of that name; null where it cannot be. Raises KqlError if no value of
    its type can ever be."""
    if value.type is kind and kind not in (STRING, DYNAMIC):
        return value
    if value.is_constant and value.constant is None and kind is not STRING:
        return literal(None, kind)
    if folded := _folded(value, kind):
        return folded
    if kind is STRING:
        return to_string(value)
    if kind is DYNAMIC and value.type not in (STRING, DYNAMIC):
        return json_value(value)
    sql = _RULES.get((kind, value.type))
    if sql is None and value.type is DYNAMIC:
        sql, value = _RULES.get((kind, "text")) or _RULES[kind, STRING], nullable_text(value)
    if sql is None:
        raise KqlError(f"A value of type {value.type} cannot be converted to {kind}.", "SEM0025")
    return fill(sql, kind, value)


def _folded(value: Typed, kind: KustoType) -> Typed | None:
    """A literal becomes one of the other type, so that DuckDB sees a plain constant."""
    if not value.is_constant or value.type_name:
        return None
    if value.type is STRING and kind in _READERS:
        return literal(_READERS[kind](str(value.constant)), kind)
    if value.type in INTEGERS and kind in (REAL, LONG, INT) and (kind is not INT or abs(value.constant) < 2**31):
        return literal(float(value.constant) if kind is REAL else value.constant, kind)
    if value.type in INTEGERS and kind is STRING and value.constant is not None:
        return literal(str(value.constant), STRING)
    if value.type is DYNAMIC and kind is STRING and not isinstance(value.constant, (float, datetime)):
        held = value.constant
        return literal("" if held is None else held if isinstance(held, str) else json_text(held), STRING)
    return None


def condition(call: BoundCall, value: Typed) -> Typed:
    """Return `value` as a bool, which a dynamic or a number may stand for."""
    if value.type is BOOL:
        return value
    if value.type is DYNAMIC or value.type in NUMBERS:
        return convert(value, BOOL)
    raise call.invalid(f"a condition must be a bool, not {value.type}.", "SEM0034")


def _of(described: str, kinds: Iterable[KustoType], made: Callable[[Typed], Typed]) -> ArgumentKind:
    """An argument of one of `kinds`, as `made` makes it."""
    taken = frozenset(kinds)

    def check(call: BoundCall, place: int, argument: Typed) -> Typed:
        if argument.type not in taken:
            raise call.invalid(f"argument #{place + 1} must be {described}, not {argument.type}.", "SEM0201")
        return made(argument)

    return ArgumentKind(taken, check)


def _number(value: Typed) -> Typed:
    return value if value.type in NUMBERS else convert(value, LONG if value.type is BOOL else REAL)


def _type_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if not argument.type_name:
        raise call.invalid(f"argument #{place + 1} must be typeof(...).", "SEM0207")
    return argument


def _to(kind: KustoType) -> Callable[[Typed], Typed]:
    return lambda value: convert(value, kind)


def _as_it_is(value: Typed) -> Typed:
    return value


_NUMERIC = (*NUMBERS, BOOL, DYNAMIC)
# A value of the type, or a dynamic that becomes one; `=long` takes that type alone, and `to_long` converts every type.
ARGUMENT_KINDS |= {kind.value: _of(f"a {kind}", (kind, DYNAMIC), _to(kind)) for kind in KustoType}
ARGUMENT_KINDS |= {f"={kind}": _of(f"a {kind}", (kind,), _as_it_is) for kind in KustoType}
ARGUMENT_KINDS |= {f"to_{kind}": _of("a value", KustoType, _to(kind)) for kind in KustoType}
ARGUMENT_KINDS |= {
    "any": _of("a value", KustoType, _as_it_is),
    "text": _of("a value", KustoType, to_string),
    "json": _of("a value", KustoType, json_value),
    "condition": ArgumentKind(None, lambda call, place, argument: condition(call, argument)),
    "string": _of("a string", (STRING, DYNAMIC, GUID), to_string),
    "number": _of("a number", _NUMERIC, _number),
    "integer": _of("a whole number", (*INTEGERS, BOOL), _to(LONG)),
    "fraction": _of("a number", (INT, LONG, REAL, BOOL), lambda value: convert(_number(value), REAL)),
    "exact": _of("a number", (*NUMBERS, BOOL), lambda value: convert(_number(value), DECIMAL)),
    "counted": _of("a value", KustoType, lambda value: nullable_text(value) if value.type is DYNAMIC else value),
    "real": _of("a number", _NUMERIC, lambda value: convert(_number(value), REAL)),
    "long": _of("a number", _NUMERIC, lambda value: convert(value if value.type is DYNAMIC else _number(value), LONG)),
    "type": ArgumentKind(None, _type_argument),
    **dict.fromkeys(("dynamic", "nullable", "array", "bag", "numbers"), _of("dynamic", (DYNAMIC,), _as_it_is)),
}
