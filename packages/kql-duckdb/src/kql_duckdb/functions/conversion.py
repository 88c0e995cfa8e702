"""Conversions between the types of KQL: `tostring`, `tolong` and their kind, and those that other functions ask for.

Source: the Kusto pages named like the functions, and what was measured on Kusto where the pages are silent: text
becomes a number only in KQL's own syntax, a span or a time becomes its ticks, and what cannot be converted is null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, json_text, literal
from kql_duckdb.functions.definitions import ARGUMENT_KINDS, BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import python_function
from kql_duckdb.time_texts import parse_datetime, parse_timespan
from kql_duckdb.types import INTEGERS, NUMBERS, KustoType

BOOL, INT, LONG, REAL, DECIMAL = (
    KustoType.BOOL,
    KustoType.INT,
    KustoType.LONG,
    KustoType.REAL,
    KustoType.DECIMAL,
)
DATETIME, TIMESPAN, STRING, GUID, DYNAMIC = (
    KustoType.DATETIME,
    KustoType.TIMESPAN,
    KustoType.STRING,
    KustoType.GUID,
    KustoType.DYNAMIC,
)

DATETIME_TEXT = "strftime({0}, '%Y-%m-%dT%H:%M:%S.%f') || '0Z'"
TIMESPAN_TEXT = (
    "list_transform([epoch_us({0})], lambda _us: CASE WHEN _us < 0 THEN '-' ELSE '' END "
    "|| CASE WHEN abs(_us) >= 86400000000 THEN CAST(abs(_us) // 86400000000 AS VARCHAR) || '.' ELSE '' END "
    "|| lpad(CAST(abs(_us) // 3600000000 % 24 AS VARCHAR), 2, '0') || ':' "
    "|| lpad(CAST(abs(_us) // 60000000 % 60 AS VARCHAR), 2, '0') || ':' "
    "|| lpad(CAST(abs(_us) // 1000000 % 60 AS VARCHAR), 2, '0') "
    "|| CASE WHEN _us % 1000000 <> 0 THEN '.' || lpad(CAST(abs(_us) % 1000000 AS VARCHAR), 6, '0') || '0' "
    "ELSE '' END)[1]"
)
# `1E+21`, `NaN`, `Infinity`: as .NET spells them.
REAL_TEXT = "replace(replace(replace(upper(CAST({0} AS VARCHAR)), '-NAN', 'NaN'), 'NAN', 'NaN'), 'INF', 'Infinity')"
DECIMAL_TEXT = r"regexp_replace(CAST({0} AS VARCHAR), '\.?0+$', '')"
BOOL_TEXT = "CASE {0} WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' END"

_HELD_TEXT = "({0} ->> '$')"

_TEXTS = {
    BOOL: BOOL_TEXT,
    INT: "CAST({0} AS VARCHAR)",
    LONG: "CAST({0} AS VARCHAR)",
    REAL: REAL_TEXT,
    DECIMAL: DECIMAL_TEXT,
    DATETIME: DATETIME_TEXT,
    TIMESPAN: TIMESPAN_TEXT,
    GUID: "CAST({0} AS VARCHAR)",
    DYNAMIC: "{0} ->> '$'",
}

_EPOCH_TICKS = 621_355_968_000_000_000
_TICKS = {TIMESPAN: "epoch_us({0}) * 10", DATETIME: f"epoch_us({{0}}) * 10 + {_EPOCH_TICKS}"}
# Digits with a sign, or hexadecimal; told without a regular expression, which is dear in a lambda.
_SPACES = "E' \\t\\n\\r'"
_INTEGER_TEXT = (
    f"ltrim(trim({{0}}, {_SPACES}), '+-0123456789') = '' OR starts_with(lower(ltrim({{0}}, {_SPACES})), '0x')"
)
_BOUNDS = {LONG: (2**63 - 1, -(2**63)), INT: (2**31 - 1, -(2**31))}


def to_string(value: Typed) -> Typed:
    """`tostring(value)`: null is the empty text, for every type."""
    if value.type is STRING:
        return value if not value.nullable else replace(fill("coalesce({0}, '')", STRING, value), simple=value.simple)
    if value.is_constant and value.constant is None:
        return literal("", STRING)
    if value.text is not None:
        return to_string(value.text)
    if value.type is DYNAMIC and value.json_path:
        base, path = value.json_path
        return fill("coalesce({0} ->> {1}, '')", STRING, base, literal(path, STRING))
    return fill(f"coalesce({_TEXTS[value.type]}, '')", STRING, value)


def nullable_text(value: Typed) -> Typed:
    """The same, with SQL NULL for null."""
    if value.type is STRING:
        return value
    if value.text is not None:
        return value.text
    if value.type is DYNAMIC and value.json_path:
        base, path = value.json_path
        return fill("{0} ->> {1}", STRING, base, literal(path, STRING), nullable=True)
    return fill(_TEXTS[value.type], STRING, value, nullable=True)


def json_value(value: Typed) -> Typed:
    """The value as it stands inside a dynamic: times and spans in Kusto's text, a null as JSON null or SQL NULL."""
    if value.type is DYNAMIC:
        return value
    if value.is_constant and value.constant is not None and value.type in (STRING, BOOL, LONG, INT):
        return literal(value.constant, DYNAMIC)
    if value.type is STRING:
        return fill("to_json({0})", DYNAMIC, to_string(value), nullable=False)
    if value.type in (DATETIME, TIMESPAN, GUID):
        return fill("to_json({0})", DYNAMIC, nullable_text(value))
    if value.type is DECIMAL:
        return fill("CAST({0} AS JSON)", DYNAMIC, nullable_text(value))
    if value.type is REAL:
        spelled = f"CASE WHEN isfinite({{0}}) THEN to_json({{0}}) ELSE to_json({REAL_TEXT}) END"
        return fill(spelled, DYNAMIC, value)
    return fill("to_json({0})", DYNAMIC, value)


def _of_real(kind: KustoType) -> str:
    """Truncated towards zero, and at the bounds of the type; null for what is no number."""
    high, low = _BOUNDS[kind]
    return (
        f"CASE WHEN NOT isfinite({{0}}) THEN NULL WHEN {{0}} >= {float(high + 1)!r} THEN CAST({high} AS {kind.held}) "
        f"WHEN {{0}} <= {float(low)!r} THEN CAST({low} AS {kind.held}) ELSE CAST(trunc({{0}}) AS {kind.held}) END"
    )


def _of_text(kind: KustoType) -> str:
    return f"CASE WHEN {_INTEGER_TEXT} THEN TRY_CAST(trim({{0}}, {_SPACES}) AS {kind.held}) END"


# A long becomes an int by its lowest 32 bits.
_WRAPPED = "CAST(((({0} & 4294967295) + 2147483648) & 4294967295) - 2147483648 AS INTEGER)"


def _integer(value: Typed, kind: KustoType) -> Typed:
    if value.type is kind:
        return value
    if value.type is STRING:
        return fill(_of_text(kind), kind, value)
    if value.type in (REAL, DECIMAL):
        return fill(_of_real(kind), kind, convert(value, REAL))
    if value.type is BOOL or value.type in INTEGERS or value.type in _TICKS:
        ticks = value if value.type not in _TICKS else fill(_TICKS[value.type], LONG, value)
        return fill(_WRAPPED if kind is INT and ticks.type is LONG else f"CAST({{0}} AS {kind.held})", kind, ticks)
    text = _HELD_TEXT
    whole = f"TRY_CAST({text} AS BIGINT)"
    if kind is INT:
        whole = _WRAPPED.replace("{0}", whole)
    template = (
        f"CASE json_type({{0}}) WHEN 'UBIGINT' THEN {whole} WHEN 'BIGINT' THEN {whole} "
        f"WHEN 'DOUBLE' THEN {_of_real(kind).replace('{0}', f'CAST({text} AS DOUBLE)')} "
        f"WHEN 'BOOLEAN' THEN CAST({text} = 'true' AS {kind.held}) "
        f"WHEN 'VARCHAR' THEN {_of_text(kind).replace('{0}', text)} END"
    )
    return fill(template, kind, value)


def _real(value: Typed) -> Typed:
    if value.type is STRING:
        return fill("TRY_CAST({0} AS DOUBLE)", REAL, value)
    if value.type in _TICKS:
        return fill(f"CAST({_TICKS[value.type]} AS DOUBLE)", REAL, value)
    if value.type is DYNAMIC:
        return fill("TRY_CAST({0} AS DOUBLE)", REAL, _scalar_text(value))
    return fill("CAST({0} AS DOUBLE)", REAL, value)


def _decimal(value: Typed) -> Typed:
    if value.type in _TICKS:
        value = fill(_TICKS[value.type], LONG, value)
    if value.type is DYNAMIC:
        value = _scalar_text(value)
    return fill(f"TRY_CAST({{0}} AS {DECIMAL.held})", DECIMAL, value)


def _scalar_text(value: Typed) -> Typed:
    """What a dynamic holds as text, with 1 for true, since a bool is a number where one is asked for."""
    return fill(
        "CASE {0} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {0} END", STRING, nullable_text(value), nullable=True
    )


_BOOL_OF_TEXT = (
    f"CASE lower(trim({{0}}, {_SPACES})) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE "
    f"ELSE CASE WHEN ltrim(trim({{0}}, {_SPACES}), '+-0123456789') = '' "
    f"THEN TRY_CAST(trim({{0}}, {_SPACES}) AS BIGINT) <> 0 END END"
)


def _bool(value: Typed) -> Typed:
    if value.type is STRING:
        return fill(_BOOL_OF_TEXT, BOOL, value)
    if value.type is DYNAMIC:
        return fill(
            "CASE WHEN json_type({0}) = 'DOUBLE' THEN TRY_CAST({0} ->> '$' AS DOUBLE) <> 0 "
            f"ELSE {_BOOL_OF_TEXT.replace('{0}', _HELD_TEXT)} END",
            BOOL,
            value,
        )
    if value.type in NUMBERS:
        return fill("{0} <> 0", BOOL, value)
    raise KqlError(f"A value of type {value.type} cannot be converted to bool.", "SEM0025")


# The form that Kusto writes is cast by DuckDB; every other, offsets among them, is read in Python.
_DATETIME_OF_TEXT = (
    "CASE WHEN {0} LIKE '____-__-__T__:__:__%Z' THEN TRY_CAST({0} AS TIMESTAMP) ELSE kql_todatetime({0}) END"
)


def _datetime(value: Typed) -> Typed:
    if value.type is DYNAMIC:
        value = nullable_text(value)
    if value.type is STRING:
        return fill(_DATETIME_OF_TEXT, DATETIME, value)
    raise KqlError(f"A value of type {value.type} cannot be converted to datetime.", "SEM0025")


_SPAN_OF_TICKS = "to_microseconds({0} // 10)"


def _timespan(value: Typed) -> Typed:
    if value.type is STRING:
        return fill("kql_totimespan({0})", TIMESPAN, value)
    if value.type is DYNAMIC:
        ticks = _SPAN_OF_TICKS.replace("{0}", "TRY_CAST(trunc(TRY_CAST({0} ->> '$' AS DOUBLE)) AS BIGINT)")
        return fill(
            f"CASE WHEN json_type({{0}}) = 'VARCHAR' THEN kql_totimespan({{0}} ->> '$') ELSE {ticks} END",
            TIMESPAN,
            value,
        )
    return fill(_SPAN_OF_TICKS, TIMESPAN, convert(value, LONG))


def _guid(value: Typed) -> Typed:
    if value.type in (STRING, DYNAMIC):
        return fill("TRY_CAST({0} AS UUID)", GUID, nullable_text(value))
    raise KqlError(f"A value of type {value.type} cannot be converted to guid.", "SEM0025")


@python_function("kql_todatetime", ("VARCHAR",), "TIMESTAMP")
def _to_datetime(text: str | None) -> datetime | None:
    return parse_datetime(text) if text else None


@python_function("kql_totimespan", ("VARCHAR",), "INTERVAL")
def _to_timespan(text: str | None) -> timedelta | None:
    return parse_timespan(text) if text else None


def parse_json(value: Typed) -> Typed:
    """`parse_json(value)`: text that is no JSON is a dynamic text, and empty text is null."""
    if value.type is DYNAMIC:
        # A text inside a dynamic is parsed; any other dynamic is already what it says.
        return fill(
            f"CASE WHEN json_type({{0}}) = 'VARCHAR' THEN {_JSON_OF_TEXT.replace('{0}', _HELD_TEXT)} ELSE {{0}} END",
            DYNAMIC,
            value,
        )
    if value.type is STRING:
        return fill(_JSON_OF_TEXT, DYNAMIC, value)
    return json_value(value)


_JSON_OF_TEXT = "nullif(coalesce(TRY_CAST({0} AS JSON), to_json(nullif({0}, ''))), CAST('null' AS JSON))"

_CONVERSIONS: dict[KustoType, Callable[[Typed], Typed]] = {
    BOOL: _bool,
    INT: lambda value: _integer(value, INT),
    LONG: lambda value: _integer(value, LONG),
    REAL: _real,
    DECIMAL: _decimal,
    DATETIME: _datetime,
    TIMESPAN: _timespan,
    STRING: to_string,
    GUID: _guid,
    DYNAMIC: parse_json,
}


def convert(value: Typed, kind: KustoType) -> Typed:
    """Return `value` as `kind`, by the function of that name; null where it cannot be. Raises KqlError if no value of
    its type can ever be."""
    if value.type is kind and kind not in (STRING, DYNAMIC):
        return value
    if value.is_constant and value.constant is None and kind is not STRING:
        return literal(None, kind)
    if value.type is GUID and kind not in (STRING, DYNAMIC):
        raise KqlError(f"A value of type guid cannot be converted to {kind}.", "SEM0025")
    return _folded(value, kind) or _CONVERSIONS[kind](value)


def _folded(value: Typed, kind: KustoType) -> Typed | None:
    """A literal becomes one of the other type, so that DuckDB sees a plain constant."""
    if not value.is_constant or value.type_name:
        return None
    if value.type is STRING and kind is DATETIME:
        return literal(parse_datetime(str(value.constant)), DATETIME)
    if value.type is STRING and kind is TIMESPAN:
        return literal(parse_timespan(str(value.constant)), TIMESPAN)
    if value.type in INTEGERS and kind in (REAL, LONG, INT) and (kind is not INT or abs(value.constant) < 2**31):
        return literal(float(value.constant) if kind is REAL else value.constant, kind)
    if value.type in INTEGERS and kind is STRING and value.constant is not None:
        return literal(str(value.constant), STRING)
    if value.type is DYNAMIC and kind is STRING and not isinstance(value.constant, (float, datetime)):
        held = value.constant
        return literal("" if held is None else held if isinstance(held, str) else json_text(held), STRING)
    return None


def implicit(value: Typed, kind: KustoType) -> Typed | None:
    """Return `value` as Kusto converts it without being asked: numbers widen, a dynamic becomes what is needed."""
    if value.type is kind:
        return to_string(value) if kind is STRING else value
    if value.type is DYNAMIC or (value.type in NUMBERS and kind in NUMBERS):
        return convert(value, kind)
    return None


def _needs(kind: KustoType, described: str) -> Callable[[BoundCall, int, Typed], Typed]:
    def check(call: BoundCall, place: int, argument: Typed) -> Typed:
        found = implicit(argument, kind)
        if found is None:
            raise call.invalid(f"argument #{place + 1} must be {described}, not {argument.type}.", "SEM0201")
        return found

    return check


def _text_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    return to_string(argument)


def _any_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    return argument


def _number_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if argument.type in NUMBERS:
        return argument
    if argument.type is BOOL:
        return convert(argument, LONG)
    if argument.type is DYNAMIC:
        return convert(argument, REAL)
    raise call.invalid(f"argument #{place + 1} must be a number, not {argument.type}.", "SEM0201")


def _real_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    return convert(_number_argument(call, place, argument), REAL)


def _long_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if argument.type is DYNAMIC:
        return convert(argument, LONG)
    return convert(_number_argument(call, place, argument), LONG)


def _dynamic_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if argument.type is not DYNAMIC:
        raise call.invalid(f"argument #{place + 1} must be dynamic, not {argument.type}.", "SEM0201")
    return argument


def _string_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if argument.type not in (STRING, DYNAMIC, GUID):
        raise call.invalid(f"argument #{place + 1} must be a string, not {argument.type}.", "SEM0201")
    return to_string(argument)


def _summable_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if argument.type in (DATETIME, TIMESPAN):
        return argument
    return _number_argument(call, place, argument)


def _type_argument(call: BoundCall, place: int, argument: Typed) -> Typed:
    if not argument.type_name:
        raise call.invalid(f"argument #{place + 1} must be typeof(...).", "SEM0207")
    return argument


ARGUMENT_KINDS |= {
    "any": _any_argument,
    "text": _text_argument,
    "string": _string_argument,
    "number": _number_argument,
    "real": _real_argument,
    "long": _long_argument,
    "bool": _needs(BOOL, "a bool"),
    "datetime": _needs(DATETIME, "a datetime"),
    "timespan": _needs(TIMESPAN, "a timespan"),
    "decimal": _needs(DECIMAL, "a decimal"),
    "guid": _needs(GUID, "a guid"),
    "dynamic": _dynamic_argument,
    "json": lambda call, place, argument: json_value(argument),
    "summable": _summable_argument,
    "type": _type_argument,
}

_GETTYPE = (
    "coalesce(CASE json_type({0}) WHEN 'ARRAY' THEN 'array' WHEN 'OBJECT' THEN 'dictionary' WHEN 'BIGINT' THEN 'long' "
    "WHEN 'UBIGINT' THEN 'long' WHEN 'DOUBLE' THEN 'double' WHEN 'VARCHAR' THEN 'string' WHEN 'BOOLEAN' THEN 'bool' "
    "END, 'null')"
)


def _get_type(call: BoundCall) -> Typed:
    value = call.arguments[0]
    if value.type is DYNAMIC:
        return fill(_GETTYPE, STRING, value)
    return literal(value.type.value, STRING)


def _converter(kind: KustoType) -> Callable[[BoundCall], Typed]:
    return lambda call: replace(convert(call.arguments[0], kind), name="")


def _cast(call: BoundCall) -> Typed:
    return convert(call.arguments[1], call.arguments[0].type)


_NAMES = {
    "tostring": STRING,
    "tolong": LONG,
    "toint": INT,
    "toreal": REAL,
    "todouble": REAL,
    "todecimal": DECIMAL,
    "tobool": BOOL,
    "toboolean": BOOL,
    "todatetime": DATETIME,
    "totimespan": TIMESPAN,
    "totime": TIMESPAN,
    "toguid": GUID,
    "parse_json": DYNAMIC,
    "todynamic": DYNAMIC,
    "parsejson": DYNAMIC,
    "toobject": DYNAMIC,
}
_NOTES = {
    "totimespan": "a tick that is no whole microsecond is cut",
    "todatetime": "the seventh digit of a second is cut; numbers are refused",
}

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(
        function(
            f"{name}(value: any)",
            _converter(kind),
            status="partly" if name in _NOTES else "exact",
            note=_NOTES.get(name, ""),
        )
        for name, kind in _NAMES.items()
    ),
    function(
        "gettype(value: any)",
        _get_type,
        status="partly",
        note="a time, span or guid inside a dynamic is a string",
    ),
    function("__cast(type: type, value: any)", _cast),
)
